//! Which headers pass, and which belong to one connection only.
//!
//! Everything end to end passes in both directions, known or not. What concerns
//! a single connection stays on it: the standard's own list and whatever the
//! `connection` header names, except what describes the body: without that the
//! body would mean something else to whoever reads it next. Headers of ours (`x-longhaul-`) are for this proxy
//! and go no further.

use http::header::Entry;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::views::prepare::Wish;

/// The prefix of our own headers.
pub const OWN_PREFIX: &str = "x-longhaul-";
/// The response header with the id that is also in the logs.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-longhaul-request");

/// The response header that names the session.
pub const SESSION: HeaderName = HeaderName::from_static("x-longhaul-session");
/// The response header that describes the view.
pub const VIEW: HeaderName = HeaderName::from_static("x-longhaul-view");
/// The response header that says what a pass did.
pub const COMPACTION: HeaderName = HeaderName::from_static("x-longhaul-compaction");
/// The response header that says what a person should know, in a word.
pub const NOTICE: HeaderName = HeaderName::from_static("x-longhaul-notice");
/// The response header that says that summaries are not asked for.
pub const BREAKER: HeaderName = HeaderName::from_static("x-longhaul-breaker");
/// The request header that says what a summary should mind.
const INSTRUCTIONS: HeaderName = HeaderName::from_static("x-longhaul-instructions");
/// The longest such instructions that are taken.
const INSTRUCTIONS_LIMIT: usize = 16 * 1024;
/// The longest label that is taken, in characters.
const LABEL: usize = 128;
/// The request header by which a client wishes for a pass, or against one.
const COMPACT: HeaderName = HeaderName::from_static("x-longhaul-compact");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What a client wishes for its request. A word that is not known is no wish.
pub fn wish(headers: &HeaderMap) -> Wish {
    let word = headers
        .get(COMPACT)
        .map_or(&b""[..], |value| value.as_bytes());
    let word = word.to_ascii_lowercase();
    let words: Vec<&[u8]> = word
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .collect();
    match words.as_slice() {
        [b"off"] => Wish::Off,
        [b"now"] => Wish::Now,
        [b"now", b"wait"] => Wish::NowAndWait,
        _ => Wish::None,
    }
}

/// What a client wishes of a summary; what is not text, or too long, is nothing.
pub fn instructions(headers: &HeaderMap) -> Option<String> {
    let text = std::str::from_utf8(headers.get(INSTRUCTIONS)?.as_bytes()).ok()?;
    let text = text.trim();
    (!text.is_empty() && text.len() <= INSTRUCTIONS_LIMIT).then(|| text.to_owned())
}

/// What a client calls its session: a label for people, cut where it gets long.
pub fn label(headers: &HeaderMap) -> Option<String> {
    let text = std::str::from_utf8(headers.get(SESSION)?.as_bytes()).ok()?;
    let shown = |c: &char| !c.is_control();
    let label: String = text.trim().chars().filter(shown).take(LABEL).collect();
    (!label.is_empty()).then_some(label)
}

/// Whether a request asks to become a WebSocket.
pub fn asks_for_websocket(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::UPGRADE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|protocol| protocol.trim().eq_ignore_ascii_case("websocket"))
}

/// Announces a beta, beside those the client announces.
pub fn announce_beta(headers: &mut HeaderMap, beta: &'static str) {
    let announced = headers
        .get_all(&BETA)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|name| name.trim() == beta);
    if announced {
        return;
    }
    let theirs = headers
        .get(&BETA)
        .and_then(|value| value.to_str().ok())
        .filter(|names| !names.trim().is_empty());
    let value = match theirs {
        Some(theirs) => format!("{theirs},{beta}").parse().ok(),
        None => Some(HeaderValue::from_static(beta)),
    };
    if let Some(value) = value {
        // Only the first line changes; others that a client sends stay.
        match headers.entry(&BETA) {
            Entry::Occupied(mut lines) => {
                if let Some(first) = lines.iter_mut().next() {
                    *first = value;
                }
            }
            Entry::Vacant(place) => {
                place.insert(value);
            }
        }
    }
}

/// Removes what must not go upstream.
pub fn strip_request(headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
    // We have answered it ourselves by reading the body.
    headers.remove(header::EXPECT);
    let own: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(OWN_PREFIX))
        .cloned()
        .collect();
    for name in own {
        headers.remove(name);
    }
}

/// Removes what must not go back to the client.
pub fn strip_response(headers: &mut HeaderMap) {
    strip_hop_by_hop(headers);
}

/// Removes what no longer holds for a body that is unfolded and added to.
pub fn strip_rewritten(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Where both are given, the chunks count and the length is wrong.
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // The length frames the message, the coding and the type say how to read
        // it: none of them may be talked away.
        .filter(|name: &HeaderName| !name.as_str().starts_with("content-"))
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn end_to_end_headers_pass_and_connection_headers_stay() {
        let mut headers = map(&[
            ("connection", "keep-alive, X-Private"),
            ("keep-alive", "timeout=5"),
            ("x-private", "secret"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic x"),
            ("expect", "100-continue"),
            ("x-longhaul-compact", "off"),
            ("X-Longhaul-Session", "a"),
            ("anthropic-beta", "one"),
            ("anthropic-beta", "two"),
            ("x-unknown", "kept"),
            ("authorization", "Bearer k"),
        ]);
        strip_request(&mut headers);
        let expected = map(&[
            ("anthropic-beta", "one"),
            ("anthropic-beta", "two"),
            ("x-unknown", "kept"),
            ("authorization", "Bearer k"),
        ]);
        assert_eq!(headers, expected);
    }

    #[test]
    fn only_an_upgrade_to_websocket_asks_for_one() {
        for (rows, asks) in [
            (&[("upgrade", "websocket")][..], true),
            (&[("upgrade", "h2c, WebSocket")], true),
            (&[("upgrade", "h2c")], false),
            (&[("upgrade", "h2c"), ("upgrade", "websocket")], true),
            (&[("connection", "upgrade")], false),
        ] {
            assert_eq!(asks_for_websocket(&map(rows)), asks, "{rows:?}");
        }
    }

    #[test]
    fn a_length_beside_chunks_is_dropped() {
        let mut headers = map(&[("transfer-encoding", "chunked"), ("content-length", "3")]);
        strip_response(&mut headers);
        assert_eq!(headers, map(&[]));
    }

    #[test]
    fn a_connection_header_cannot_remove_what_the_body_needs() {
        let body = [
            ("content-length", "3"),
            ("content-encoding", "br"),
            ("content-type", "application/json"),
            ("content-language", "en"),
        ];
        let named = "content-length, Content-Encoding, content-type,content-language, close, x-a";
        let mut headers = map(&body);
        headers.insert(header::CONNECTION, named.parse().unwrap());
        headers.insert("x-a", "1".parse().unwrap());
        let mut request = headers.clone();
        strip_response(&mut headers);
        strip_request(&mut request);
        assert_eq!(headers, map(&body));
        assert_eq!(request, map(&body));
    }
}
