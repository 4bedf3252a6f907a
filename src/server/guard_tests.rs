//! Tables of who is let in to the admin surface and who is not.

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
fn a_configured_token_is_always_needed_and_without_one_only_this_machine_is_served() {
    let with = ("authorization", "Bearer secret");
    let wrong = ("authorization", "Bearer other");
    let handed_on = ("x-forwarded-for", "192.0.2.7");
    let host = ("host", "localhost:4180");
    let rows = [
        (None, HERE, vec![host], Ok(())),
        (Some("secret"), HERE, vec![host], Err(Refusal::NoToken)),
        (Some("secret"), HERE, vec![], Err(Refusal::NoToken)),
        (Some("secret"), HERE, vec![host, with], Ok(())),
        (
            Some("secret"),
            HERE,
            vec![host, wrong],
            Err(Refusal::WrongToken),
        ),
        (Some(""), HERE, vec![host], Ok(())),
        (None, HERE, vec![host, wrong], Ok(())),
        (None, HERE, vec![host, handed_on], Err(Refusal::Off)),
        (
            Some("secret"),
            HERE,
            vec![host, handed_on],
            Err(Refusal::NoToken),
        ),
        (Some("secret"), HERE, vec![host, handed_on, with], Ok(())),
        (None, "[::ffff:127.0.0.1]:9", vec![host], Ok(())),
        (None, "[::1]:9", vec![host], Ok(())),
        (None, THERE, vec![host], Err(Refusal::Off)),
        (None, THERE, vec![host, with], Err(Refusal::Off)),
        (Some(""), THERE, vec![host, with], Err(Refusal::Off)),
        (Some("secret"), THERE, vec![host], Err(Refusal::NoToken)),
        (
            Some("secret"),
            THERE,
            vec![host, wrong],
            Err(Refusal::WrongToken),
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
    let wrong = ("authorization", "Bearer other");
    let rows: [(&str, Lines, Result<(), Refusal>); 15] = [
        (HERE, &[named(local), wrong], Err(Refusal::WrongToken)),
        (THERE, &[named(other), wrong], Err(Refusal::WrongToken)),
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
    let admitted =
        |peer, lines| admit_with_reference(Some("secret"), &listen, peer, &uri, &headers(lines));
    for (peer, lines, expected) in rows {
        let peer = Some(Peer(peer.parse().unwrap()));
        assert_eq!(admitted(peer, lines), expected, "{peer:?} {lines:?}");
    }
    assert_eq!(admitted(None, &[named(other)]), Err(Refusal::Host));
    // Where no token is configured, what is sent is no token of ours.
    let peer = Some(Peer(HERE.parse().unwrap()));
    let lines = headers(&[named(local), wrong]);
    let admitted = admit_with_reference(None, &listen, peer, &uri, &lines);
    assert_eq!(admitted, Ok(()));
}

#[test]
fn metrics_that_are_not_open_need_the_token_or_this_machine() {
    type Row<'a> = (
        Option<&'static str>,
        &'static str,
        Lines<'a>,
        Result<(), Refusal>,
    );
    let with = ("authorization", "Bearer secret");
    let wrong = ("authorization", "Bearer other");
    let rows: [Row; 6] = [
        (None, HERE, &[], Ok(())),
        (None, THERE, &[], Err(Refusal::Off)),
        (Some("secret"), HERE, &[], Err(Refusal::NoToken)),
        (Some("secret"), HERE, &[with], Ok(())),
        (Some("secret"), THERE, &[with], Ok(())),
        (Some("secret"), THERE, &[wrong], Err(Refusal::WrongToken)),
    ];
    for (token, peer, lines, expected) in rows {
        let peer = Some(Peer(peer.parse().unwrap()));
        let admitted = admit_to_metrics(token, peer, &headers(lines));
        assert_eq!(admitted, expected, "{token:?} {peer:?} {lines:?}");
    }
}
