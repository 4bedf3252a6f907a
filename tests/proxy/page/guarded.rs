//! Who may look at the page, and how they sign in.

use super::visitor::{Visitor, assert_guarded};
use crate::journal::stock::{TOKEN, house};
use crate::support::{Answer, Proxy, Tap, plain, text};

const FOREIGN: &str = "host: proxy.example\r\n";
const FORM: &str = "host: proxy.example\r\norigin: http://proxy.example\r\n\
                    content-type: application/x-www-form-urlencoded\r\n";

/// The cookie that an answer sets.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").expect("no cookie");
    for part in [
        "; HttpOnly",
        "; SameSite=Strict",
        "; Path=/longhaul;",
        "; Max-Age=",
    ] {
        assert!(set.contains(part), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

fn sign_in(visitor: &Visitor<'_>) -> String {
    let body = format!("token={TOKEN}");
    let answer = visitor.ask("POST", "/longhaul/enter", FORM, &body);
    assert_eq!(answer.status(), 303, "{}", text(&answer.body));
    assert_eq!(answer.header("location"), Some("/longhaul/"));
    let cookie = cookie(&answer);
    assert!(!cookie.contains(TOKEN));
    cookie
}

#[test]
fn a_page_is_shown_with_the_token_or_to_whoever_has_signed_in_wherever_they_are() {
    let house = house();
    let visitor = Visitor::of(&house.proxy);
    let cookie = sign_in(&visitor);
    let id = house.own.id;
    let token = format!("{FOREIGN}authorization: Bearer {TOKEN}\r\n");
    let signed_in = format!("{FOREIGN}cookie: {cookie}\r\n");
    let forged = format!("{FOREIGN}cookie: {}\r\n", cookie.replace('.', "0."));
    let here = format!("host: localhost\r\ncookie: {cookie}\r\n");
    let says = |site: &str, mode: &str, dest: &str| {
        format!(
            "{here}sec-fetch-site: {site}\r\nsec-fetch-mode: {mode}\r\nsec-fetch-dest: {dest}\r\n"
        )
    };
    let rows = [
        // Being on this machine is not enough: so is everybody behind a reverse
        // proxy on it, whatever they call the host.
        ("host: localhost\r\n".to_owned(), 401),
        ("host: 127.0.0.1:4180\r\n".to_owned(), 401),
        (here.clone(), 200),
        (format!("{here}origin: http://evil.example\r\n"), 403),
        (format!("{here}origin: null\r\n"), 403),
        (says("same-origin", "navigate", "document"), 200),
        (says("cross-site", "no-cors", "script"), 403),
        (says("cross-site", "navigate", "document"), 200),
        (says("cross-site", "navigate", "iframe"), 403),
        (FOREIGN.to_owned(), 401),
        (token, 200),
        (signed_in.clone(), 200),
        (forged, 401),
        (format!("{signed_in}origin: http://evil.example\r\n"), 403),
        (
            format!("{signed_in}sec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\n"),
            403,
        ),
        (format!("{FOREIGN}cookie: longhaul_page={TOKEN}\r\n"), 401),
    ];
    let pages = [
        "/longhaul/".to_owned(),
        format!("/longhaul/page/{id}"),
        format!("/longhaul/page/{id}/view"),
        format!("/longhaul/page/{id}/message/1"),
        format!("/longhaul/page/{id}/search?q=alpha"),
        format!("/longhaul/page/{id}/ref/{}", house.own.span),
    ];
    for (headers, expected) in rows {
        for path in &pages {
            let answer = visitor.ask("GET", path, &headers, "");
            let page = text(&answer.body);
            assert_eq!(answer.status(), expected, "{path} {headers}: {page}");
            assert_guarded(&answer, path);
            if expected != 200 {
                assert!(
                    !page.contains("label-") && !page.contains("alpha"),
                    "{page}"
                );
            }
        }
    }
}

/// It is for pages; the API goes on asking for the token.
#[test]
fn the_cookie_opens_the_page_and_nothing_else() {
    let house = house();
    let visitor = Visitor::of(&house.proxy);
    let signed_in = format!("{FOREIGN}cookie: {}\r\n", sign_in(&visitor));
    let id = house.own.id;
    for path in [
        "/longhaul/sessions".to_owned(),
        format!("/longhaul/sessions/{id}/export"),
    ] {
        assert_eq!(visitor.ask("GET", &path, &signed_in, "").status(), 401);
    }
    let compact = format!("/longhaul/sessions/{id}/compact");
    assert_eq!(visitor.ask("POST", &compact, &signed_in, "").status(), 401);
    let left = visitor.ask(
        "POST",
        "/longhaul/leave",
        &format!("{signed_in}origin: http://proxy.example\r\n"),
        "",
    );
    assert_eq!(left.status(), 303);
    assert!(cookie(&left).ends_with('='));
}

#[test]
fn only_the_whole_token_signs_in_and_only_from_a_form_of_ours() {
    let house = house();
    let visitor = Visitor::of(&house.proxy);
    let good = format!("token={TOKEN}");
    let rows = [
        (FORM, good.as_str(), 303),
        (FORM, "token=of-the-operato", 401),
        (FORM, "token=", 401),
        (FORM, "", 401),
        ("host: proxy.example\r\n", good.as_str(), 403),
        (
            "host: proxy.example\r\norigin: http://evil.example\r\n",
            good.as_str(),
            403,
        ),
        (
            "host: proxy.example\r\norigin: null\r\n",
            good.as_str(),
            403,
        ),
    ];
    for (headers, body, expected) in rows {
        let answer = visitor.ask("POST", "/longhaul/enter", headers, body);
        assert_eq!(answer.status(), expected, "{headers} {body}");
        assert_eq!(answer.header("set-cookie").is_some(), expected == 303);
        assert_guarded(&answer, "enter");
    }
    let page = visitor.ask("GET", "/longhaul/", FOREIGN, "");
    assert!(text(&page.body).contains("action=\"/longhaul/enter\""));
}

#[test]
fn a_form_is_taken_only_from_a_page_of_ours() {
    let house = house();
    let visitor = Visitor::of(&house.proxy);
    let path = format!("/longhaul/page/{}/compact", house.own.id);
    let here = format!("host: localhost\r\ncookie: {}\r\n", sign_in(&visitor));
    // Known to the store, but not to this process: 404 is past the guard.
    let rows = [
        (format!("{here}origin: http://localhost\r\n"), 404),
        (here.clone(), 403),
        (format!("{here}origin: http://evil.example\r\n"), 403),
        (format!("{here}origin: null\r\n"), 403),
        (format!("{FOREIGN}origin: http://proxy.example\r\n"), 401),
        (format!("{FOREIGN}authorization: Bearer {TOKEN}\r\n"), 404),
        (
            format!("{here}origin: http://localhost\r\nsec-fetch-site: cross-site\r\n"),
            403,
        ),
    ];
    for (headers, expected) in rows {
        let answer = visitor.ask("POST", &path, &headers, "instructions=");
        assert_eq!(answer.status(), expected, "{headers}");
    }
}

#[test]
fn without_a_token_there_is_nothing_to_sign_in_to() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::before(&tap.url());
    let visitor = Visitor::of(&proxy);
    let answer = visitor.ask("GET", "/longhaul/", FOREIGN, "");
    assert_eq!(answer.status(), 403);
    assert!(!text(&answer.body).contains("<form method=\"post\""));
    let answer = visitor.ask("POST", "/longhaul/enter", FORM, "token=");
    assert_eq!(answer.status(), 404);
    assert!(visitor.open("/longhaul/").contains("No session yet"));
    assert!(tap.saw_nothing());
}

/// The link that `longhaul run` shows: it signs in without typing the token, and
/// only a link that was made with the token does.
#[test]
fn a_link_made_with_the_token_signs_in() {
    let house = house();
    let visitor = Visitor::of(&house.proxy);
    let link = house.proxy.page_link.as_str();
    assert!(link.starts_with("/longhaul/enter?link="), "{link}");
    assert!(!link.contains(TOKEN), "{link}");
    let here = "host: localhost\r\n";
    let answer = visitor.ask("GET", link, here, "");
    assert_eq!(answer.status(), 303, "{}", text(&answer.body));
    assert_eq!(answer.header("location"), Some("/longhaul/"));
    let signed_in = format!("{here}cookie: {}\r\n", cookie(&answer));
    assert_eq!(
        visitor.ask("GET", "/longhaul/", &signed_in, "").status(),
        200
    );
    let foreign = format!("{here}sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n");
    for (path, headers, expected) in [
        (&*link.replacen("link=", "link=9", 1), here, 401),
        ("/longhaul/enter?link=", here, 401),
        ("/longhaul/enter", here, 401),
        (link, &*foreign, 403),
    ] {
        let answer = visitor.ask("GET", path, headers, "");
        assert_eq!(answer.status(), expected, "{path}");
        assert_eq!(answer.header("set-cookie"), None, "{path}");
    }
    // A cookie is no link, and a link no cookie.
    let seal = link.split('=').nth(1).unwrap();
    let as_cookie = format!("{here}cookie: longhaul_page={seal}\r\n");
    assert_eq!(
        visitor.ask("GET", "/longhaul/", &as_cookie, "").status(),
        401
    );
}

#[test]
fn the_page_moves_with_the_admin_surface() {
    let tap = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    let there = crate::support::Client::connect(proxy.admin.unwrap())
        .send("GET /longhaul HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .answer();
    assert_eq!(
        (there.status(), there.header("location")),
        (303, Some("/longhaul/"))
    );
    let here = Visitor::of(&proxy).ask("GET", "/longhaul/", "host: localhost\r\n", "");
    assert_eq!(here.status(), 404);
    assert!(tap.saw_nothing());
}
