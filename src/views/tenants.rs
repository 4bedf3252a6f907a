//! Whose a request is.
//!
//! Nothing of one tenant's may ever reach another, so the tenant is part of
//! every key. By credential means by the organization and workspace that
//! upstream reports for it, so that a client whose tokens rotate stays one
//! tenant; which credential belongs to whom is kept under a digest, never the
//! credential itself. The digest is of a fixed context, because a token is long
//! and random and nothing is gained by guessing.

use std::sync::Arc;

use http::{HeaderMap, HeaderName};

use crate::bounded::Bounded;
use crate::config::TenantBy;
use crate::engine::ids::Hint;

/// The most credentials that are remembered.
const MOST: usize = 100_000;
/// Headers by which clients name the session and the agent.
const SESSION: [&str; 4] = [
    "x-claude-code-session-id",
    "x-session-id",
    "x-claude-code-agent-id",
    "x-longhaul-session",
];

/// How tenants are told apart.
pub struct Tenants {
    by: By,
    known: Bounded<String, Arc<str>>,
}

enum By {
    Nothing,
    Header(HeaderName),
    Credential,
}

/// Whose a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenant {
    /// This one's.
    Known(Arc<str>),
    /// Of whoever holds this credential, given by its digest; upstream knows.
    Of(String),
}

impl Tenants {
    /// By the configured rule; `loopback` if nobody else can connect.
    pub fn new(by: &TenantBy, loopback: bool) -> Self {
        let by = match by {
            TenantBy::Header(name) => By::Header(name.clone()),
            TenantBy::None => By::Nothing,
            TenantBy::Auto if loopback => By::Nothing,
            TenantBy::Auto | TenantBy::Credential => By::Credential,
        };
        Self {
            by,
            known: Bounded::new(MOST),
        }
    }

    /// Takes back what was written down.
    pub fn restore(&self, notes: &[(String, String)]) {
        for (key, tenant) in notes {
            if let Some(digest) = key.strip_prefix("tenant:") {
                self.know(digest, tenant);
            }
        }
    }

    /// Whose a request with these headers is.
    pub fn of(&self, headers: &HeaderMap) -> Tenant {
        match &self.by {
            By::Nothing => Tenant::Known("".into()),
            By::Header(name) => {
                let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
                Tenant::Known(format!("header:{}", String::from_utf8_lossy(value)).into())
            }
            By::Credential => {
                let digest = digest(headers);
                let found = self.known.get(&digest);
                found.map_or(Tenant::Of(digest), Tenant::Known)
            }
        }
    }

    /// The digest that the tenant of these headers is noted under, where
    /// credentials decide on it.
    pub fn note_key(&self, headers: &HeaderMap) -> Option<String> {
        matches!(self.by, By::Credential).then(|| digest(headers))
    }

    /// What is to be written down of a credential, if its tenant is known.
    pub fn note(&self, digest: &str) -> Option<(String, String)> {
        let tenant = self.known.get(&digest.to_owned())?;
        Some((format!("tenant:{digest}"), tenant.to_string()))
    }

    /// Learns from the headers of upstream's answer whose a credential is. It is
    /// to be written down only once upstream has accepted the credential: the
    /// list it was asked for may be anybody's to see.
    pub fn learn(&self, digest: &str, answer: &HeaderMap) -> Arc<str> {
        let said = |name: &str| {
            let value = answer.get(name).and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        let tenant = match said("anthropic-organization-id") {
            Some(organization) => {
                let workspace = said("anthropic-workspace-id").unwrap_or_default();
                format!("organization:{organization}/{workspace}")
            }
            None => format!("credential:{digest}"),
        };
        self.know(digest, &tenant)
    }

    fn know(&self, digest: &str, tenant: &str) -> Arc<str> {
        let tenant: Arc<str> = tenant.into();
        self.known.insert(digest.to_owned(), tenant.clone());
        tenant
    }
}

fn digest(headers: &HeaderMap) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("longhaul credential 1");
    for name in ["authorization", "x-api-key", "anthropic-workspace-id"] {
        let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    }
    let hash = hasher.finalize().to_hex();
    hash.as_str().chars().take(32).collect()
}

/// What the client says about which session a request is of.
pub fn hint(tenant: &str, headers: &HeaderMap) -> Option<Hint> {
    let mut hasher = blake3::Hasher::new_derive_key("longhaul hint 1");
    hasher.update(tenant.as_bytes());
    let mut any = false;
    for name in SESSION {
        let value = headers.get(name);
        any |= value.is_some();
        let value = value.map_or(&b""[..], |value| value.as_bytes());
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    }
    any.then(|| Hint::beginning(hasher.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
        rows.iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    /// Invariant 9: a credential decides, and a rotated one stays the same tenant.
    #[test]
    fn credentials_of_one_organization_are_one_tenant_and_others_are_not() {
        let tenants = Tenants::new(&TenantBy::Credential, true);
        let of = |key: &str| tenants.of(&headers(&[("x-api-key", key)]));
        let learn = |key: &str, organization: &str| {
            let Tenant::Of(digest) = of(key) else {
                panic!("known already");
            };
            assert!(!digest.contains(key));
            let answer = headers(&[("anthropic-organization-id", organization)]);
            tenants.learn(&digest, &answer);
            tenants.note(&digest).unwrap()
        };
        let note = learn("old", "acme");
        learn("new", "acme");
        learn("other", "umbrella");
        assert_eq!(of("old"), of("new"));
        assert_ne!(of("old"), of("other"));
        let again = Tenants::new(&TenantBy::Credential, true);
        again.restore(&[note]);
        assert_eq!(again.of(&headers(&[("x-api-key", "old")])), of("old"));
    }

    #[test]
    fn upstreams_that_do_not_say_make_each_credential_a_tenant() {
        let tenants = Tenants::new(&TenantBy::Auto, false);
        let mut found = Vec::new();
        for key in ["a", "b"] {
            let Tenant::Of(digest) = tenants.of(&headers(&[("authorization", key)])) else {
                panic!("known already");
            };
            found.push(tenants.learn(&digest, &HeaderMap::new()));
        }
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn on_loopback_there_is_one_tenant_and_a_header_can_tell_more() {
        let tenants = Tenants::new(&TenantBy::Auto, true);
        let one = headers(&[("x-api-key", "a")]);
        assert_eq!(tenants.of(&one), tenants.of(&HeaderMap::new()));
        let by = "header:x-team".parse().unwrap();
        let tenants = Tenants::new(&by, true);
        let team = |name: &str| tenants.of(&headers(&[("x-team", name)]));
        assert_ne!(team("a"), team("b"));
        assert_ne!(team("a"), tenants.of(&HeaderMap::new()));
    }

    #[test]
    fn a_hint_needs_a_session_and_is_its_tenant_s() {
        let session = headers(&[("x-claude-code-session-id", "s")]);
        let agent = headers(&[
            ("x-claude-code-session-id", "s"),
            ("x-claude-code-agent-id", "a"),
        ]);
        assert_eq!(hint("t", &HeaderMap::new()), None);
        assert_eq!(hint("t", &session), hint("t", &session));
        assert_ne!(hint("t", &session), hint("u", &session));
        assert_ne!(hint("t", &session), hint("t", &agent));
    }
}
