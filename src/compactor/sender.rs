//! Where a call goes, and in whose name.
//!
//! A client's credential is only ever sent where the client itself sent it. A
//! call that repeats the client's request says everything the client said; a
//! call of our own says who pays and nothing else of the client's. Another
//! upstream gets a key of its own, and nothing of the client's at all.

use std::fmt;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use crate::engine::measure::{Account, WindowKey};

/// The version that calls of our own are written for.
pub const VERSION: &str = "2023-06-01";
/// The path of every call.
const MESSAGES: &str = "/v1/messages";
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const WORKSPACE: HeaderName = HeaderName::from_static("anthropic-workspace-id");
/// The beta without which some credentials are not accepted.
const OAUTH: &str = "oauth-2025-04-20";
/// How the names of the betas begin that ask for a long context.
const LONG_CONTEXT: &str = "context-1m";

/// Headers of a client's that say something of its own body or connection.
const ABOUT_THE_BODY: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
];

/// The client in whose name a call is made.
#[derive(Clone)]
pub struct Sender {
    headers: HeaderMap,
    query: Option<String>,
}

/// Credentials are never shown.
impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender(..)")
    }
}

/// An upstream of the summarizer's own, and its key.
#[derive(Clone)]
pub struct Elsewhere {
    /// Where it is.
    pub base: Uri,
    /// The key.
    pub key: HeaderValue,
}

impl Sender {
    /// The sender of a request with these headers, already stripped of what
    /// concerns one connection or this proxy alone.
    pub fn new(mut headers: HeaderMap, target: &Uri) -> Self {
        for name in &ABOUT_THE_BODY {
            headers.remove(name);
        }
        Self {
            headers,
            query: target.query().map(str::to_owned),
        }
    }

    /// Tells credentials apart, and nothing else of them.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        credential(&mut hasher, &self.headers);
        hasher.finalize().into()
    }

    /// Whether the client asks for a long context.
    pub fn wants_long_context(&self) -> bool {
        wants_long_context(&self.headers)
    }

    /// The target and headers of the client's own request once more, with these
    /// betas besides those it announces.
    pub fn again(&self, base: &Uri, betas: &[&str]) -> (Uri, HeaderMap) {
        let mut headers = self.headers.clone();
        for beta in betas {
            announce(&mut headers, beta);
        }
        headers.insert(header::CONTENT_TYPE, json());
        (target(base, self.query.as_deref()), headers)
    }

    /// The target and headers of a call of our own, at the client's expense.
    pub fn own(&self, base: &Uri) -> (Uri, HeaderMap) {
        let mut headers = HeaderMap::new();
        for name in [
            API_KEY,
            header::AUTHORIZATION,
            header::USER_AGENT,
            WORKSPACE,
        ] {
            for value in self.headers.get_all(&name) {
                headers.append(&name, value.clone());
            }
        }
        if announced(&self.headers, OAUTH) {
            headers.insert(BETA, HeaderValue::from_static(OAUTH));
        }
        headers.insert(API_VERSION, HeaderValue::from_static(VERSION));
        headers.insert(header::CONTENT_TYPE, json());
        (target(base, None), headers)
    }
}

impl Elsewhere {
    /// The target and headers of a call of our own, at the operator's expense.
    pub fn own(&self) -> (Uri, HeaderMap) {
        let mut headers = HeaderMap::new();
        headers.insert(API_KEY, self.key.clone());
        headers.insert(API_VERSION, HeaderValue::from_static(VERSION));
        headers.insert(header::CONTENT_TYPE, json());
        (target(&self.base, None), headers)
    }
}

/// What the window of a call with these headers is learned for.
pub fn window_key(to: &Uri, headers: &HeaderMap, model: &str) -> WindowKey {
    let mut hasher = blake3::Hasher::new();
    credential(&mut hasher, headers);
    let account = Account::Credential(hasher.finalize().into());
    let place = format!(
        "{}://{}{}",
        to.scheme_str().unwrap_or_default(),
        to.authority().map_or("", |authority| authority.as_str()),
        to.path()
    );
    WindowKey::new(&place, model, account, wants_long_context(headers))
}

fn credential(hasher: &mut blake3::Hasher, headers: &HeaderMap) {
    for name in [API_KEY, header::AUTHORIZATION] {
        for value in headers.get_all(&name) {
            hasher.update(value.as_bytes());
        }
        hasher.update(b"\n");
    }
}

fn wants_long_context(headers: &HeaderMap) -> bool {
    betas(headers).any(|beta| beta.starts_with(LONG_CONTEXT))
}

fn betas(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(BETA).into_iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

fn json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

/// The address of the messages of an API.
fn target(base: &Uri, query: Option<&str>) -> Uri {
    let prefix = base.path().trim_end_matches('/');
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let path = PathAndQuery::try_from(format!("{prefix}{MESSAGES}{query}"));
    let mut parts = base.clone().into_parts();
    parts.path_and_query = path.ok();
    Uri::from_parts(parts).unwrap_or_else(|_| base.clone())
}

fn announced(headers: &HeaderMap, beta: &str) -> bool {
    betas(headers).any(|name| name == beta)
}

fn announce(headers: &mut HeaderMap, beta: &str) {
    if announced(headers, beta) {
        return;
    }
    if let Ok(beta) = HeaderValue::from_str(beta) {
        headers.append(BETA, beta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> Sender {
        let rows = [
            ("x-api-key", "secret"),
            ("anthropic-version", "2026-10-21"),
            ("anthropic-beta", "a-1, oauth-2025-04-20"),
            ("x-claude-code-session-id", "s"),
            ("content-length", "77"),
            ("accept-encoding", "gzip"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.insert(name, value.parse().unwrap());
        }
        let target = "/v1/messages?beta=true".parse().unwrap();
        Sender::new(headers, &target)
    }

    fn said(headers: &HeaderMap, name: &str) -> Vec<String> {
        let lines = headers.get_all(name).iter();
        lines
            .map(|line| line.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_client_s_request_once_more_says_all_that_the_client_said() {
        let base = "https://api.example/v2/".parse().unwrap();
        let (to, headers) = sender().again(&base, &["compact-2026-09-04"]);
        assert_eq!(to, "https://api.example/v2/v1/messages?beta=true");
        assert_eq!(said(&headers, "anthropic-version"), ["2026-10-21"]);
        let betas = ["a-1, oauth-2025-04-20", "compact-2026-09-04"];
        assert_eq!(said(&headers, "anthropic-beta"), betas);
        assert_eq!(said(&headers, "x-claude-code-session-id"), ["s"]);
        assert_eq!(said(&headers, "content-length"), Vec::<String>::new());
    }

    #[test]
    fn a_call_of_our_own_says_who_pays_and_nothing_else() {
        let base = "https://api.example".parse().unwrap();
        let (to, headers) = sender().own(&base);
        assert_eq!(to, "https://api.example/v1/messages");
        assert_eq!(said(&headers, "x-api-key"), ["secret"]);
        assert_eq!(said(&headers, "anthropic-beta"), [OAUTH]);
        assert_eq!(said(&headers, "anthropic-version"), [VERSION]);
        assert!(said(&headers, "x-claude-code-session-id").is_empty());
    }

    #[test]
    fn another_upstream_hears_nothing_of_the_client() {
        let elsewhere = Elsewhere {
            base: "https://other.example/x".parse().unwrap(),
            key: HeaderValue::from_static("operator"),
        };
        let (to, headers) = elsewhere.own();
        assert_eq!(to, "https://other.example/x/v1/messages");
        assert_eq!(said(&headers, "x-api-key"), ["operator"]);
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn windows_are_told_apart_by_place_credential_model_and_long_context() {
        let base: Uri = "https://api.example".parse().unwrap();
        let key = |sender: &Sender, betas: &[&str], model| {
            let (to, headers) = sender.again(&base, betas);
            window_key(&to, &headers, model)
        };
        let plain = key(&sender(), &[], "m");
        assert_eq!(plain, key(&sender(), &["compact-2026-09-04"], "m"));
        assert_ne!(plain, key(&sender(), &["context-1m-2025-08-07"], "m"));
        assert_ne!(plain, key(&sender(), &[], "n"));
        let mut other = sender();
        let value = HeaderValue::from_static("b");
        other.headers.insert("x-api-key", value);
        assert_ne!(plain, key(&other, &[], "m"));
        let (to, headers) = sender().again(&"https://other.example".parse().unwrap(), &[]);
        assert_ne!(plain, window_key(&to, &headers, "m"));
        assert!(!sender().wants_long_context());
    }

    #[test]
    fn credentials_are_not_shown() {
        assert!(!format!("{:?}", sender()).contains("secret"));
    }

    #[test]
    fn credentials_are_told_apart() {
        let mut other = sender();
        assert_eq!(other.digest(), sender().digest());
        other
            .headers
            .insert("x-api-key", HeaderValue::from_static("b"));
        assert_ne!(other.digest(), sender().digest());
    }
}
