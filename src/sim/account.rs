//! Who is calling: the credential and what is derived from it.
//!
//! The prompt cache is scoped by workspace and some thinking by organization,
//! so both follow from the credential. The credential itself is never kept.

use http::HeaderMap;

use super::betas::{Betas, beta};
use super::error::{ApiError, Checked};
use super::options::Options;

/// The caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Organization id.
    pub organization: String,
    /// Workspace id.
    pub workspace: String,
    /// A hash that stands for the credential in the ledger.
    pub credential_hash: String,
}

impl Account {
    /// The account of a request, or why it is refused.
    pub fn of(headers: &HeaderMap, options: &Options) -> Checked<Self> {
        let credential = credential(headers)?;
        if credential.is_empty() && options.credential_required {
            return Err(ApiError::authentication("x-api-key header is required"));
        }
        // A token of a subscription is only a credential together with its beta.
        if credential.starts_with("sk-ant-oat") && !Betas::of(headers).has(beta::OAUTH) {
            return Err(ApiError::authentication(
                "OAuth authentication is currently not supported.",
            ));
        }
        let hash = short_hash(&credential);
        // A credential of several workspaces names the one it means.
        let named = headers
            .get("anthropic-workspace-id")
            .and_then(|value| value.to_str().ok());
        let workspace = |own: String| named.map_or(own, str::to_owned);
        if let Some(key) = options.keys.iter().find(|key| key.credential == credential) {
            return Ok(Self {
                organization: key.organization.clone(),
                workspace: workspace(key.workspace.clone()),
                credential_hash: hash,
            });
        }
        if !options.keys.is_empty() {
            return Err(ApiError::authentication("invalid x-api-key"));
        }
        Ok(Self {
            organization: format!("org_{hash}"),
            workspace: workspace(format!("wrkspc_{hash}")),
            credential_hash: hash,
        })
    }
}

/// A short hash for names and for the ledger.
pub fn short_hash(text: &str) -> String {
    blake3::hash(text.as_bytes())
        .to_hex()
        .chars()
        .take(16)
        .collect()
}

fn credential(headers: &HeaderMap) -> Checked<String> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let bearer = text("authorization").map(|value| value.strip_prefix("Bearer ").unwrap_or(""));
    match (text("x-api-key"), bearer) {
        (Some(_), Some(_)) => Err(ApiError::authentication(
            "Only one of x-api-key and authorization headers may be provided",
        )),
        (Some(key), None) | (None, Some(key)) => Ok(key.trim().to_owned()),
        (None, None) => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn account(pairs: &[(&'static str, &str)]) -> Checked<Account> {
        Account::of(&headers(pairs), &Options::default())
    }

    /// Fact: the key goes into `x-api-key` or into `authorization: Bearer`.
    #[test]
    fn a_key_is_the_same_account_in_either_header() {
        let key = account(&[("x-api-key", "k")]).unwrap();
        let bearer = account(&[("authorization", "Bearer k")]).unwrap();
        assert_eq!(key, bearer);
        assert_ne!(key, account(&[("x-api-key", "other")]).unwrap());
    }

    /// Fact: sending both headers is refused with 401.
    #[test]
    fn both_headers_at_once_are_refused() {
        let error = account(&[("x-api-key", "k"), ("authorization", "Bearer k")]).unwrap_err();
        assert_eq!(error.status, 401);
    }

    /// Fact: a subscription token without its beta is refused with 401.
    #[test]
    fn a_subscription_token_needs_its_beta() {
        let token = ("authorization", "Bearer sk-ant-oat01-x");
        assert_eq!(account(&[token]).unwrap_err().status, 401);
        assert!(account(&[token, ("anthropic-beta", "oauth-2025-04-20")]).is_ok());
    }

    #[test]
    fn no_credential_is_refused_unless_none_is_required() {
        assert_eq!(account(&[]).unwrap_err().status, 401);
        let options = Options {
            credential_required: false,
            ..Options::default()
        };
        assert!(Account::of(&HeaderMap::new(), &options).is_ok());
    }
}
