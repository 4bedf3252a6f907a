//! What is around every page: the head, the way back, the keys; and the pages
//! that have nothing else: the form to sign in, and what went wrong.

use http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::by::By;
use super::words;
use crate::engine::ids::LineageId;
use crate::recall::Session;

/// The keys, and what they do.
const KEYS: [(&str, &str); 7] = [
    ("j  k", "next and previous row"),
    ("Enter", "open it"),
    ("/", "search"),
    ("n  p", "next and previous page"),
    ("u", "up, to the sessions"),
    ("r", "refresh now"),
    ("?", "these keys"),
];

/// Which of a session's pages it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    /// How it went.
    Timeline,
    /// Its view beside its history.
    View,
    /// What was left out.
    Journal,
}

/// A whole page. A page that is `live` is refreshed as long as somebody looks.
pub(super) fn page(title: &str, by: By, live: bool, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Longhaul" }
                link rel="icon" href=(ICON);
                link rel="stylesheet" href="/longhaul/page.css";
                script src="/longhaul/page.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href="/longhaul/" { (mark()) "Longhaul" }
                    span.grow {}
                    button.quiet #show-keys type="button" hidden { kbd { "?" } " keys" }
                    @if by == By::Cookie {
                        form method="post" action="/longhaul/leave" {
                            button.quiet type="submit" { "Sign out" }
                        }
                    }
                }
                main #main data-live[live] { (main) }
                dialog #keys aria-label="Keys" {
                    h2 { "Keys" }
                    dl { @for (key, does) in KEYS { dt { kbd { (key) } } dd { (does) } } }
                    form method="dialog" { button type="submit" { "Close" } }
                }
            }
        }
    }
}

/// A long haul: a line that grows, and one that stays.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M1 14 15 2' stroke='%23999' stroke-width='2'/%3E%3Cpath d='M1 14 6 9V12L10 9V12L15 8' stroke='%232f6feb' stroke-width='2' fill='none'/%3E%3C/svg%3E";

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 16 16" aria-hidden="true" {
            path.whole d="M1 14 15 2" {}
            path.part d="M1 14 6 9V12L10 9V12L15 8" {}
        }
    }
}

/// The name of a session for people: what the client calls it, or its beginning.
pub(super) fn name(session: &Session) -> String {
    let short: String = session.id.chars().take(12).collect();
    match session.label.as_deref().map(str::trim) {
        None | Some("") => short,
        Some(label) => words::excerpt(label, 80),
    }
}

/// The way to a session's pages.
pub(super) fn tabs(id: LineageId, here: Tab) -> Markup {
    let rows = [
        (Tab::Timeline, "", "Timeline"),
        (Tab::View, "/view", "View and original"),
        (Tab::Journal, "/search", "Journal"),
    ];
    html! {
        nav.tabs aria-label="Session" {
            @for (tab, path, title) in rows {
                a href={ "/longhaul/page/" (id) (path) } aria-current=[(tab == here).then_some("page")] {
                    (title)
                }
            }
        }
    }
}

/// The head of a session's pages.
pub(super) fn heading(name: &str, id: LineageId, here: Tab) -> Markup {
    html! {
        p.crumbs { a href="/longhaul/" data-up { "Sessions" } }
        h1 { (name) }
        p.dim { code { (id) } }
        (tabs(id, here))
    }
}

/// Links to other pages of something; nothing if there is only one.
pub(super) fn pager(base: &str, page: u32, pages: u32) -> Markup {
    let last = pages.max(1);
    html! {
        @if last > 1 {
            nav.pager aria-label="Pages" {
                @if page > 1 {
                    a href={ (base) "page=1" } { "First" }
                    a href={ (base) "page=" (page - 1) } rel="prev" { "Previous" }
                } @else { span { "First" } span { "Previous" } }
                strong { "Page " (page) " of " (last) }
                @if page < last {
                    a href={ (base) "page=" (page + 1) } rel="next" { "Next" }
                    a href={ (base) "page=" (last) } { "Last" }
                } @else { span { "Next" } span { "Last" } }
            }
        }
    }
}

/// The form to sign in.
pub(super) fn sign_in(wrong: Option<&str>) -> Markup {
    let main = html! {
        section.card.narrow {
            h1 { "Sign in" }
            p { "This page is guarded by the admin token, the value of the variable that " code { "admin.token_env" } " names." }
            @if let Some(wrong) = wrong { p.notice.bad role="alert" { (wrong) } }
            form method="post" action="/longhaul/enter" {
                label for="token" { "Token" }
                input #token name="token" type="password" autocomplete="current-password" required autofocus;
                button.primary type="submit" { "Sign in" }
            }
        }
    };
    page("Sign in", By::Nobody, false, &main)
}

/// What went wrong.
pub(super) fn wrong(by: By, status: StatusCode, message: &str) -> Markup {
    let title = status.canonical_reason().unwrap_or("Something is wrong");
    let main = html! {
        section.card.narrow {
            h1 { (title) }
            p { (message) }
            @if by != By::Nobody { p { a href="/longhaul/" data-up { "To the sessions" } } }
        }
    };
    page(title, by, false, &main)
}
