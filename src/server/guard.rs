//! Who may give orders to this process.
//!
//! Whoever has the token, and anybody on this machine; without a token in the
//! configuration, others find nothing here. A web page that somebody on this
//! machine looks at is on this machine too, so a browser is believed only if it
//! asks for a page of ours: the host it believes to talk to must be ours, or a
//! stranger's name may have been pointed at this address, and the page must come
//! from that very host. With the token the host may have any name, because a
//! page that knows the token needs no tricks.
//!
//! What is asked for by a reference needs no token, wherever the caller is: the
//! reference is the permission. Browsers are held to the same rules all the same,
//! since a page must not try references through somebody's machine.

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
    /// The token is missing or wrong.
    #[error("the admin token is needed: authorization: Bearer TOKEN")]
    Token,
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
            Self::Token => (StatusCode::UNAUTHORIZED, "authentication_error"),
            Self::Host | Self::Origin => (StatusCode::FORBIDDEN, "permission_error"),
        }
    }
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
pub(super) fn is_token(token: &str, given: &[u8]) -> bool {
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

/// Whether an order may be given; `listen` is the address in the configuration.
pub fn admit(
    token: Option<&str>,
    listen: &Listen,
    peer: Option<Peer>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let host = host(uri, headers);
    if !has_token(token, headers) {
        let is_set = token.is_some_and(|token| !token.is_empty());
        if !is_local(peer, headers) {
            return Err(if is_set { Refusal::Token } else { Refusal::Off });
        }
        // A token that is wrong is a mistake, wherever it is made.
        if is_set && bearer(headers).is_some() {
            return Err(Refusal::Token);
        }
        if !host.as_ref().is_some_and(|host| is_ours(host, listen)) {
            return Err(Refusal::Host);
        }
    }
    no_foreign_page(host.as_ref(), headers)
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
pub(super) fn no_foreign_page(
    host: Option<&Authority>,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
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
pub(super) fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
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
mod tests {
    use super::*;

    type Lines<'a> = &'a [(&'static str, &'a str)];

    fn headers(lines: Lines) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_whole_token_is_one() {
        let rows = [
            (Some("secret"), Some("Bearer secret"), true),
            (Some("secret"), Some("bearer secret"), true),
            (Some("secret"), Some("Basic secret"), false),
            (Some("secret"), Some("Bearer secre"), false),
            (Some("secret"), Some("secret"), false),
            (Some("secret"), None, false),
            (Some(""), Some("Bearer "), false),
            (None, Some("Bearer "), false),
            (None, None, false),
        ];
        for (token, given, expected) in rows {
            let given: Vec<_> = given
                .map(|given| ("authorization", given))
                .into_iter()
                .collect();
            assert_eq!(
                has_token(token, &headers(&given)),
                expected,
                "{token:?} {given:?}"
            );
        }
    }

    const HERE: &str = "127.0.0.1:9";
    const THERE: &str = "192.0.2.7:9";

    #[test]
    fn an_order_is_taken_from_this_machine_or_with_the_token() {
        let with = ("authorization", "Bearer secret");
        let wrong = ("authorization", "Bearer other");
        let handed_on = ("x-forwarded-for", "192.0.2.7");
        let host = ("host", "localhost:4180");
        let rows = [
            (None, HERE, vec![host], Ok(())),
            (Some("secret"), HERE, vec![host], Ok(())),
            (Some("secret"), HERE, vec![host, wrong], Err(Refusal::Token)),
            (None, HERE, vec![host, wrong], Ok(())),
            (None, HERE, vec![host, handed_on], Err(Refusal::Off)),
            (
                Some("secret"),
                HERE,
                vec![host, handed_on],
                Err(Refusal::Token),
            ),
            (Some("secret"), HERE, vec![host, handed_on, with], Ok(())),
            (None, "[::ffff:127.0.0.1]:9", vec![host], Ok(())),
            (None, "[::1]:9", vec![host], Ok(())),
            (None, THERE, vec![host], Err(Refusal::Off)),
            (None, THERE, vec![host, with], Err(Refusal::Off)),
            (Some(""), THERE, vec![host, with], Err(Refusal::Off)),
            (Some("secret"), THERE, vec![host], Err(Refusal::Token)),
            (
                Some("secret"),
                THERE,
                vec![host, wrong],
                Err(Refusal::Token),
            ),
            (Some("secret"), THERE, vec![host, with], Ok(())),
            (
                Some("secret"),
                THERE,
                vec![("host", "proxy.example"), with],
                Ok(()),
            ),
        ];
        let listen = "127.0.0.1:4180".parse().unwrap();
        for (token, peer, lines, expected) in rows {
            let peer = Some(Peer(peer.parse().unwrap()));
            let uri = Uri::from_static("/x");
            let admitted = admit(token, &listen, peer, &uri, &headers(&lines));
            assert_eq!(admitted, expected, "{token:?} {peer:?} {lines:?}");
        }
        let admitted = admit(
            None,
            &listen,
            None,
            &Uri::from_static("/x"),
            &headers(&[host]),
        );
        assert_eq!(admitted, Err(Refusal::Off), "nobody knows where it is");
    }

    #[test]
    fn a_page_of_somebody_else_gives_no_orders() {
        let rows: [(Lines, Result<(), Refusal>); 18] = [
            (&[("host", "localhost:4180")], Ok(())),
            (&[("host", "LOCALHOST")], Ok(())),
            (&[("host", "127.0.0.1:4180")], Ok(())),
            (&[("host", "[::1]:4180")], Ok(())),
            (&[("host", "box.example:4180")], Ok(())),
            (&[("host", "evil.example:4180")], Err(Refusal::Host)),
            (&[("host", "localhost.evil.example")], Err(Refusal::Host)),
            (&[("host", "localhost@evil.example")], Err(Refusal::Host)),
            (&[("host", "192.0.2.7:4180")], Err(Refusal::Host)),
            (&[("host", "")], Err(Refusal::Host)),
            (&[], Err(Refusal::Host)),
            (
                &[("host", "localhost"), ("host", "evil.example")],
                Err(Refusal::Host),
            ),
            (
                &[
                    ("host", "localhost:4180"),
                    ("origin", "http://localhost:4180"),
                ],
                Ok(()),
            ),
            (
                &[
                    ("host", "localhost:4180"),
                    ("origin", "https://LOCALHOST:4180"),
                ],
                Ok(()),
            ),
            (
                &[
                    ("host", "localhost:4180"),
                    ("origin", "http://localhost:3000"),
                ],
                Err(Refusal::Origin),
            ),
            (
                &[
                    ("host", "localhost:4180"),
                    ("origin", "https://evil.example"),
                ],
                Err(Refusal::Origin),
            ),
            (
                &[("host", "localhost:4180"), ("origin", "null")],
                Err(Refusal::Origin),
            ),
            (
                &[
                    ("host", "localhost"),
                    ("origin", "http://localhost"),
                    ("origin", "http://evil.example"),
                ],
                Err(Refusal::Origin),
            ),
        ];
        let listen = "box.example:4180".parse().unwrap();
        let peer = Some(Peer(HERE.parse().unwrap()));
        for (lines, expected) in rows {
            let admitted = admit(
                None,
                &listen,
                peer,
                &Uri::from_static("/x"),
                &headers(lines),
            );
            assert_eq!(admitted, expected, "{lines:?}");
        }
        let rows = [
            ("https://localhost:4180/x", Ok(())),
            ("https://evil.example/x", Err(Refusal::Host)),
        ];
        for (uri, expected) in rows {
            let admitted = admit(None, &listen, peer, &uri.parse().unwrap(), &headers(&[]));
            assert_eq!(admitted, expected, "{uri}");
        }
        // The token excuses a name that is not known here, not a foreign page.
        let lines = [
            ("host", "proxy.example"),
            ("origin", "https://evil.example"),
            ("authorization", "Bearer secret"),
        ];
        let uri = Uri::from_static("/x");
        let admitted = admit(Some("secret"), &listen, peer, &uri, &headers(&lines));
        assert_eq!(admitted, Err(Refusal::Origin));
    }

    #[test]
    fn with_a_reference_other_machines_may_use_any_name_and_browsers_none_but_ours() {
        let named = |name| ("host", name);
        let page = |origin| ("origin", origin);
        let with = ("authorization", "Bearer secret");
        let (local, box_name, other) = ("localhost:4180", "box.example:4180", "evil.example");
        let rows: [(&str, Lines, Result<(), Refusal>); 13] = [
            (HERE, &[named(local)], Ok(())),
            (HERE, &[named(box_name)], Ok(())),
            (HERE, &[named(other)], Err(Refusal::Host)),
            (HERE, &[], Err(Refusal::Host)),
            (HERE, &[named(other), with], Ok(())),
            (THERE, &[named(other)], Ok(())),
            (THERE, &[], Ok(())),
            (
                THERE,
                &[named(other), page("http://evil.example")],
                Err(Refusal::Host),
            ),
            (
                THERE,
                &[named(other), page("http://evil.example"), with],
                Ok(()),
            ),
            (
                THERE,
                &[named(box_name), page("http://box.example:4180")],
                Ok(()),
            ),
            (
                THERE,
                &[named(box_name), page("http://evil.example")],
                Err(Refusal::Origin),
            ),
            (HERE, &[named(local), page("null")], Err(Refusal::Origin)),
            (
                HERE,
                &[named(local), page("http://evil.example"), with],
                Err(Refusal::Origin),
            ),
        ];
        let listen = "box.example:4180".parse().unwrap();
        let uri = Uri::from_static("/mcp");
        let admitted = |peer, lines| {
            admit_with_reference(Some("secret"), &listen, peer, &uri, &headers(lines))
        };
        for (peer, lines, expected) in rows {
            let peer = Some(Peer(peer.parse().unwrap()));
            assert_eq!(admitted(peer, lines), expected, "{peer:?} {lines:?}");
        }
        assert_eq!(admitted(None, &[named(other)]), Err(Refusal::Host));
    }
}
