//! Which headers pass, and which belong to one connection only.
//!
//! Everything end to end passes in both directions, known or not. What concerns
//! a single connection stays on it: the standard's own list and whatever the
//! `connection` header names. Headers of ours (`x-longhaul-`) are for this proxy
//! and go no further.

use http::{HeaderMap, HeaderName, header};

/// The prefix of our own headers.
pub const OWN_PREFIX: &str = "x-longhaul-";
/// The response header with the id that is also in the logs.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-longhaul-request");

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
        // The length frames the message; nobody may talk it away.
        .filter(|name| name != header::CONTENT_LENGTH)
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
    fn a_length_beside_chunks_is_dropped() {
        let mut headers = map(&[("transfer-encoding", "chunked"), ("content-length", "3")]);
        strip_response(&mut headers);
        assert_eq!(headers, map(&[]));
    }

    #[test]
    fn a_connection_header_cannot_remove_the_length() {
        let mut headers = map(&[
            ("connection", "content-length, close"),
            ("content-length", "3"),
        ]);
        strip_response(&mut headers);
        assert_eq!(headers, map(&[("content-length", "3")]));
    }
}
