//! What a listener beyond this machine shows to whoever can reach it.
//!
//! The proxy asks nobody for a credential of its own: requests carry the client's.
//! So the operator is told at the start what an open address means, a sentence
//! for each thing.

use std::net::SocketAddr;

use crate::config::{Config, TenantBy};

/// Sentences about listeners that others can reach; none where none is.
pub fn warnings(
    config: &Config,
    proxy: SocketAddr,
    admin: Option<SocketAddr>,
    has_token: bool,
) -> Vec<String> {
    let is_open = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
    let mut told = Vec::new();
    if is_open(proxy) {
        told.push(format!(
            "{proxy} is open beyond this machine: whoever reaches it can send requests to {} \
             with a key of their own, and no other key is asked for",
            config.upstream
        ));
        if config.tls.cert.is_none() {
            told.push(format!(
                "{proxy} is not encrypted: keys and conversations cross the network as they are; \
                 set [tls], or put something before it that is"
            ));
        }
        if config.tenant.by == TenantBy::None {
            told.push(
                "tenant.by = \"none\": everybody who reaches the proxy shares conversations"
                    .to_owned(),
            );
        }
    }
    let admin = admin.unwrap_or(proxy);
    if is_open(admin) {
        let metrics = if config.admin.metrics_open {
            "metrics are shown to anybody"
        } else {
            "metrics need the admin token"
        };
        let sessions = if has_token {
            "sessions and the journal to whoever has the admin token"
        } else {
            "sessions and the journal to nobody elsewhere, because there is no admin token"
        };
        told.push(format!(
            "{admin} answers the admin surface beyond this machine: {metrics}, {sessions}"
        ));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_address_is_told_with_what_it_shows() {
        let (open, own) = (([0, 0, 0, 0], 4180).into(), ([127, 0, 0, 1], 4180).into());
        let mut config = Config::default();
        assert_eq!(warnings(&config, own, None, false), Vec::<String>::new());
        let told = warnings(&config, open, None, false).join("\n");
        for part in [
            "0.0.0.0:4180 is open beyond this machine",
            "https://api.anthropic.com",
            "not encrypted",
            "metrics are shown to anybody",
            "to nobody elsewhere",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        config.tls.cert = Some("cert.pem".into());
        config.tenant.by = TenantBy::None;
        config.admin.metrics_open = false;
        let told = warnings(&config, open, None, true).join("\n");
        assert!(!told.contains("not encrypted"), "{told}");
        for part in [
            "shares conversations",
            "need the admin token",
            "whoever has the admin token",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(warnings(&config, own, Some(open), true).len(), 1);
        assert_eq!(warnings(&config, open, Some(own), true).len(), 2);
    }
}
