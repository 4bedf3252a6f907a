//! Who may use the admin surface.
//!
//! Where a token is configured, only those who send it: a connection from this
//! machine proves nothing, because a reverse proxy on this machine makes every
//! client look local, and the `host` header is whatever a client likes it to be.
//! Without a token the surface answers on this machine only. A web page that
//! somebody on this machine looks at is on this machine too, so then a browser is
//! believed only if it asks for a page of ours: the host it believes to talk to
//! must be ours, or a stranger's name may have been pointed at this address. With
//! or without the token, a page of another origin is refused.
//!
//! What is asked for by a reference needs no token, wherever the caller is: the
//! reference is the permission. Browsers are held to the same rules all the same,
//! since a page must not try references through somebody's machine. A token that
//! is sent along must be the right one, or it could be guessed there.

use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri, header};
use subtle::ConstantTimeEq;

use super::connection::Peer;
use crate::config::Listen;

/// Why an order is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no token, and the client is elsewhere.
    #[error(
        "the admin API is off for other machines: set the variable that admin.token_env names, and send its value"
    )]
    Off,
    /// The token is missing.
    #[error("the admin token is needed: authorization: Bearer TOKEN")]
    NoToken,
    /// A token was sent, but not the configured one.
    #[error(
        "this is not the admin token: send the value of the variable that admin.token_env names as authorization: Bearer TOKEN"
    )]
    WrongToken,
    /// The host is none of ours.
    #[error("the host header is not this listener's: use its address, or send the admin token")]
    Host,
    /// The request comes from a page of somebody else's.
    #[error("the request comes from a page of another origin")]
    Origin,
}

impl Refusal {
    /// The status, and the API's type of error.
    pub fn facts(self) -> (StatusCode, &'static str) {
        match self {
            Self::Off => (StatusCode::NOT_FOUND, "not_found_error"),
            Self::NoToken | Self::WrongToken => (StatusCode::UNAUTHORIZED, "authentication_error"),
            Self::Host | Self::Origin => (StatusCode::FORBIDDEN, "permission_error"),
        }
    }

    /// The label of the metric.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NoToken => "no_token",
            Self::WrongToken => "wrong_token",
            Self::Host => "host",
            Self::Origin => "origin",
        }
    }
}

/// The configured token. An empty one is none.
pub fn configured(token: Option<&str>) -> Option<&str> {
    token.filter(|token| !token.is_empty())
}

/// Whether a request carries something that could be meant as the token.
pub fn sends_token(headers: &HeaderMap) -> bool {
    bearer(headers).is_some()
}

/// Whether the token is given, in a time that does not tell how much of it is
/// right. An empty token is none.
pub fn has_token(token: Option<&str>, headers: &HeaderMap) -> bool {
    match (token, bearer(headers)) {
        (None, _) | (_, None) => false,
        (Some(token), Some(given)) => is_token(token, given),
    }
}

/// The token that is given. The name of the scheme may be written in any case.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let given = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = given.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// Whether something is the token, in a time that does not tell how much of it is
/// right. An empty token is none.
pub fn is_token(token: &str, given: &[u8]) -> bool {
    !token.is_empty() && bool::from(token.as_bytes().ct_eq(given))
}

/// What those add who hand on the requests of others.
const FORWARDED: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];

/// Whether the client is on this machine. Somebody who is may speak for others,
/// and mostly says so.
pub fn is_local(peer: Option<Peer>, headers: &HeaderMap) -> bool {
    let near = peer.is_some_and(|Peer(peer)| peer.ip().to_canonical().is_loopback());
    near && !FORWARDED.iter().any(|name| headers.contains_key(*name))
}

/// Whether the admin surface may be used; `listen` is the configured address.
pub fn admit(
    token: Option<&str>,
    listen: &Listen,
    peer: Option<Peer>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let host = host(uri, headers);
    if configured(token).is_some() {
        check_token(token, headers)?;
    } else if !is_local(peer, headers) {
        return Err(Refusal::Off);
    } else if !host.as_ref().is_some_and(|host| is_ours(host, listen)) {
        return Err(Refusal::Host);
    }
    no_foreign_page(host.as_ref(), headers)
}

/// Whether the token is there and right.
fn check_token(token: Option<&str>, headers: &HeaderMap) -> Result<(), Refusal> {
    if has_token(token, headers) {
        Ok(())
    } else if sends_token(headers) {
        Err(Refusal::WrongToken)
    } else {
        Err(Refusal::NoToken)
    }
}

/// Whether the metrics may be read, unless they are open to everybody.
pub fn admit_to_metrics(
    token: Option<&str>,
    peer: Option<Peer>,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    if configured(token).is_some() {
        check_token(token, headers)
    } else if is_local(peer, headers) {
        Ok(())
    } else {
        Err(Refusal::Off)
    }
}

/// Whether something may be asked by a reference. A caller on another machine may
/// use any name for this one, unless it is a browser.
pub fn admit_with_reference(
    token: Option<&str>,
    listen: &Listen,
    peer: Option<Peer>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    if configured(token).is_some() && sends_token(headers) {
        check_token(token, headers)?;
    }
    let host = host(uri, headers);
    let elsewhere = peer.is_some() && !is_local(peer, headers);
    let free = elsewhere && !headers.contains_key(header::ORIGIN);
    let ours = host.as_ref().is_some_and(|host| is_ours(host, listen));
    if !(free || ours || has_token(token, headers)) {
        return Err(Refusal::Host);
    }
    no_foreign_page(host.as_ref(), headers)
}

/// Whoever names a page comes from one of this host's.
pub fn no_foreign_page(host: Option<&Authority>, headers: &HeaderMap) -> Result<(), Refusal> {
    let from_us = |origin: &header::HeaderValue| {
        let (_, from) = origin.to_str().ok()?.split_once("://")?;
        Some(from.parse::<Authority>().ok()? == *host?)
    };
    let mut origins = headers.get_all(header::ORIGIN).iter();
    if origins.all(|origin| from_us(origin) == Some(true)) {
        Ok(())
    } else {
        Err(Refusal::Origin)
    }
}

/// Whom the client believes to talk to; HTTP/2 says it in the target. More than
/// one is as good as none.
pub fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return None;
    }
    let target = uri.authority().cloned();
    target.or_else(|| host?.to_str().ok()?.parse().ok())
}

fn is_ours(host: &Authority, listen: &Listen) -> bool {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case(listen.host()) || Listen::new(name, 0).is_loopback()
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
