//! Who may look at the page, and how a browser signs in.
//!
//! The rules are those of `guard`. A browser cannot send the token with a link,
//! so where a token is configured somebody types it into a form once and gets a
//! cookie: a seal made with the token, which is not the token, on the moment until
//! which it holds. Any replica with the same token can check it, none has to
//! remember it, and a new token ends it. It opens the page and nothing else;
//! scripts cannot read it, and other sites cannot make a browser send it. A link
//! that this process shows in its own terminal has such a seal in it, so whoever
//! sees that terminal need not type the token.
//!
//! Forms are taken only from pages of this very origin, and what a browser says
//! it wants as part of somebody else's page it does not get.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use super::by::By;
use super::{Visit, frame, html, refused};
use crate::admin::compact;
use crate::admin::state::{Admin, finish};
use crate::server::connection::Peer;
use crate::server::guard::{self, Refusal};
use crate::store::Moment;

/// The cookie.
const NAME: &str = "longhaul_page";
/// How long it holds.
const LASTS: Duration = Duration::from_hours(12);
/// What the cookie's seal is for, so that no other use of the token has the same.
const SEAL: &str = "longhaul 1 sign-in to the web page";
/// What the link's seal is for.
const LINK_SEAL: &str = "longhaul 1 link to the web page";

/// Whether somebody may look. Who is refused is counted.
pub(super) async fn admit(admin: &Admin, peer: Option<Peer>, parts: &Parts) -> Result<By, Refusal> {
    admin.slow_down(peer, &parts.headers).await;
    if admin.token().is_some() && cookies(&parts.headers).next().is_some() {
        admin.slow_down_guess(peer).await;
    }
    let by = decide(admin, peer, parts);
    by.map_err(|refusal| admin.refused(peer, refusal))
}

fn decide(admin: &Admin, peer: Option<Peer>, parts: &Parts) -> Result<By, Refusal> {
    let token = admin.token();
    let (uri, headers) = (&parts.uri, &parts.headers);
    let by = match guard::admit(token, &admin.listen, peer, uri, headers) {
        Ok(()) if token.is_some() => By::Token,
        Ok(()) => By::Here,
        Err(Refusal::NoToken) => match judge_cookie(token, headers, admin.now()) {
            Judged::Right => {
                guard::no_foreign_page(guard::host(uri, headers).as_ref(), headers)?;
                By::Cookie
            }
            Judged::Wrong => return Err(Refusal::WrongToken),
            Judged::Nothing => return Err(Refusal::NoToken),
        },
        Err(refusal) => return Err(refusal),
    };
    no_strange_fetch(&parts.method, headers)?;
    if !parts.method.is_safe() && by != By::Token {
        from_a_page(headers)?;
    }
    Ok(by)
}

/// A browser says where a request comes from. Whoever follows a link is welcome;
/// a page of another site that wants a part of this one is not.
fn no_strange_fetch(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let says = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let ours = matches!(says("sec-fetch-site"), None | Some("same-origin" | "none"));
    let follows = says("sec-fetch-mode") == Some("navigate")
        && says("sec-fetch-dest") == Some("document")
        && method.is_safe();
    if ours || follows {
        Ok(())
    } else {
        Err(Refusal::Origin)
    }
}

/// A form names the origin of its page; that it is ours is looked at elsewhere.
fn from_a_page(headers: &HeaderMap) -> Result<(), Refusal> {
    let named = headers.contains_key(header::ORIGIN);
    named.then_some(()).ok_or(Refusal::Origin)
}

/// The token is typed into the form.
pub(super) async fn enter(State(admin): State<Arc<Admin>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().copied();
    let Some(token) = admin.token() else {
        return refused(&admin, admin.refused(peer, Refusal::Off));
    };
    let allowed = from_our_site(&parts).and_then(|()| from_a_page(&parts.headers));
    if let Err(refusal) = allowed {
        return refused(&admin, admin.refused(peer, refusal));
    }
    let body = compact::read(&admin, body).await.unwrap_or_default();
    let given = field(&body, "token").unwrap_or_default();
    admin.slow_down_guess(peer).await;
    if !guard::is_token(token, given.trim().as_bytes()) {
        let refusal = if given.trim().is_empty() {
            Refusal::NoToken
        } else {
            Refusal::WrongToken
        };
        admin.refused(peer, refusal);
        let again = frame::sign_in(Some("That is not the token."));
        return finish(&admin, html(StatusCode::UNAUTHORIZED, again));
    }
    signed_in(&admin, token)
}

/// Somebody follows the link that this process has shown.
pub(super) async fn follow(State(admin): State<Arc<Admin>>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().copied();
    let Some(token) = admin.token() else {
        return finish(&admin, Redirect::to("/longhaul/").into_response());
    };
    if let Err(refusal) = from_our_site(&parts) {
        return refused(&admin, admin.refused(peer, refusal));
    }
    let query = parts.uri.query().unwrap_or_default();
    let link = field(query.as_bytes(), "link").unwrap_or_default();
    admin.slow_down_guess(peer).await;
    let refusal = match judge(LINK_SEAL, token, &link, admin.now()) {
        Judged::Right => return signed_in(&admin, token),
        Judged::Wrong => Refusal::WrongToken,
        Judged::Nothing => Refusal::NoToken,
    };
    refused(&admin, admin.refused(peer, refusal))
}

/// Nothing that another site makes a browser do.
fn from_our_site(parts: &Parts) -> Result<(), Refusal> {
    let host = guard::host(&parts.uri, &parts.headers);
    guard::no_foreign_page(host.as_ref(), &parts.headers)?;
    no_strange_fetch(&parts.method, &parts.headers)
}

fn signed_in(admin: &Admin, token: &str) -> Response<Body> {
    let cookie = sealed(SEAL, token, lasting(admin.now()));
    finish(admin, to_front(admin, &cookie, LASTS))
}

/// The path of a link that opens the page without typing the token.
pub fn link(admin: &Admin) -> String {
    match admin.token() {
        None => "/longhaul/".to_owned(),
        Some(token) => {
            let seal = sealed(LINK_SEAL, token, lasting(admin.now()));
            format!("/longhaul/enter?link={seal}")
        }
    }
}

/// Until when something holds that is sealed now.
fn lasting(Moment(now): Moment) -> Moment {
    let lasts = i64::try_from(LASTS.as_millis()).unwrap_or(i64::MAX);
    Moment(now.saturating_add(lasts))
}

/// Signs out.
pub(super) async fn leave(State(admin): State<Arc<Admin>>, _visit: Visit) -> Response<Body> {
    finish(&admin, to_front(&admin, "", Duration::ZERO))
}

fn to_front(admin: &Admin, value: &str, lasts: Duration) -> Response<Body> {
    let secure = if admin.encrypts { "; Secure" } else { "" };
    let seconds = lasts.as_secs();
    let cookie = format!(
        "{NAME}={value}; Path=/longhaul; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    let mut response = Redirect::to("/longhaul/").into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// The value of a field of a form.
pub(super) fn field(body: &[u8], name: &str) -> Option<String> {
    let mut fields = form_urlencoded::parse(body);
    let found = fields.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// What a cookie or a link says: until when, sealed.
fn sealed(purpose: &str, token: &str, Moment(until): Moment) -> String {
    format!("{until}.{}", seal(purpose, token, until).to_hex())
}

fn seal(purpose: &str, token: &str, until: i64) -> blake3::Hash {
    let key = blake3::derive_key(purpose, token.as_bytes());
    blake3::keyed_hash(&key, &until.to_le_bytes())
}

/// What a cookie or a link is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// It is sealed with the token and still holds.
    Right,
    /// It is sealed with something else: it may be a guess at the token.
    Wrong,
    /// It is none, or no longer holds.
    Nothing,
}

/// Looks at a seal. Seals are compared in a time that does not tell how much of one
/// is right.
fn judge(purpose: &str, token: &str, given: &str, Moment(now): Moment) -> Judged {
    let read = || {
        let (until, given) = given.split_once('.')?;
        let (until, given) = (until.parse().ok()?, blake3::Hash::from_hex(given).ok()?);
        Some((until, given))
    };
    match read() {
        Some((until, given)) if now < until => {
            if given == seal(purpose, token, until) {
                Judged::Right
            } else {
                Judged::Wrong
            }
        }
        _ => Judged::Nothing,
    }
}

/// The values of our cookie.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let cookies = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    cookies.filter_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='))
}

/// Whether somebody has signed in.
fn judge_cookie(token: Option<&str>, headers: &HeaderMap, now: Moment) -> Judged {
    let Some(token) = guard::configured(token) else {
        return Judged::Nothing;
    };
    let judged: Vec<Judged> = cookies(headers)
        .map(|given| judge(SEAL, token, given, now))
        .collect();
    let mut best = [Judged::Right, Judged::Wrong].into_iter();
    best.find(|best| judged.contains(best))
        .unwrap_or(Judged::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines<'a> = &'a [(&'static str, &'a str)];

    fn headers(lines: Lines<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_holds_for_its_token_and_its_time() {
        let good = sealed(SEAL, "secret", Moment(1_000));
        let cookie = |value: &str| format!("a=b; {NAME}={value}; c=d");
        let longer = good.replacen("1000", "9000", 1);
        let cut = good.get(..good.len() - 1).unwrap();
        let rows = [
            (Some("secret"), cookie(&good), 999, Judged::Right),
            (Some("secret"), cookie(&good), 1_000, Judged::Nothing),
            (Some("other"), cookie(&good), 999, Judged::Wrong),
            (
                Some(""),
                cookie(&sealed(SEAL, "", Moment(1_000))),
                999,
                Judged::Nothing,
            ),
            (None, cookie(&good), 999, Judged::Nothing),
            (Some("secret"), cookie(&longer), 999, Judged::Wrong),
            (Some("secret"), cookie(cut), 999, Judged::Nothing),
            (
                Some("secret"),
                cookie(&sealed(LINK_SEAL, "secret", Moment(1_000))),
                999,
                Judged::Wrong,
            ),
            (Some("secret"), cookie("secret"), 999, Judged::Nothing),
            (Some("secret"), cookie(""), 999, Judged::Nothing),
            (
                Some("secret"),
                format!("x{NAME}={good}"),
                999,
                Judged::Nothing,
            ),
        ];
        for (token, line, now, expected) in rows {
            let headers = headers(&[("cookie", &line)]);
            let judged = judge_cookie(token, &headers, Moment(now));
            assert_eq!(judged, expected, "{line}");
        }
    }

    #[test]
    fn the_cookie_does_not_hold_the_token() {
        assert!(!sealed(SEAL, "secret", Moment(1)).contains("secret"));
        assert_ne!(seal(SEAL, "secret", 1), seal(SEAL, "secret", 2));
    }

    #[test]
    fn what_another_site_wants_a_part_of_is_not_given() {
        let rows: [(Lines<'_>, Method, bool); 7] = [
            (&[], Method::GET, true),
            (&[("sec-fetch-site", "none")], Method::GET, true),
            (&[("sec-fetch-site", "same-origin")], Method::POST, true),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                Method::GET,
                true,
            ),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "iframe"),
                ],
                Method::GET,
                false,
            ),
            (
                &[
                    ("sec-fetch-site", "same-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                Method::POST,
                false,
            ),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "no-cors"),
                    ("sec-fetch-dest", "script"),
                ],
                Method::GET,
                false,
            ),
        ];
        for (lines, method, expected) in rows {
            let allowed = no_strange_fetch(&method, &headers(lines)).is_ok();
            assert_eq!(allowed, expected, "{method} {lines:?}");
        }
    }

    #[test]
    fn the_field_of_a_form_is_read() {
        let body = b"a=1&token=a+b%26%3Cc&token=second";
        assert_eq!(field(body, "token").as_deref(), Some("a b&<c"));
        assert_eq!(field(body, "b"), None);
    }
}
