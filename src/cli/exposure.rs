//! What a listener beyond this machine shows to whoever can reach it.
//!
//! The proxy asks nobody for a credential of its own: requests carry the client's.
//! So the operator is told at the start what an open address means, a sentence
//! for each thing, and what a reverse proxy on this machine would open.

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

/// What a reverse proxy on this machine would show to its clients, which look as if
/// they were on this machine; nothing where a token or an own listener prevents it.
pub fn behind_reverse_proxy(
    config: &Config,
    admin: Option<SocketAddr>,
    has_token: bool,
) -> Option<String> {
    let name = config.admin.token_env.as_ref();
    let name = name.map_or_else(|| "admin.token_env".to_owned(), ToString::to_string);
    (!has_token && admin.is_none()).then(|| {
        format!(
            "no admin token is set: the admin surface answers every connection from this machine; \
             behind a reverse proxy on this machine set {name}, or move it with admin.listen"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_token_a_reverse_proxy_on_this_machine_is_warned_of() {
        let config = Config::default();
        let told = behind_reverse_proxy(&config, None, false).unwrap();
        for part in ["reverse proxy", "LONGHAUL_ADMIN_TOKEN", "admin.listen"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let own = Some(([127, 0, 0, 1], 4181).into());
        assert_eq!(behind_reverse_proxy(&config, None, true), None);
        assert_eq!(behind_reverse_proxy(&config, own, false), None);
    }

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
