//! What a session's views have left out: searched, listed, and opened.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::Response;
use maud::{Markup, html};

use super::frame::{Tab, heading, name, page};
use super::words::{bytes, clock, excerpt};
use super::{Visit, answered};
use crate::admin::problem::Problem;
use crate::admin::state::Admin;
use crate::engine::ids::LineageId;
use crate::engine::recall::reference::{self, shown};
use crate::recall::{Hit, Page, Trouble, Who};
use crate::store::journal::Listing;

/// Letters of a reference.
const REFERENCE: usize = 23;
/// How it begins.
const PREFIX: &str = "lh-";

/// `GET /longhaul/page/{id}/search`: with a question what fits it best, without
/// one everything, the newest first, and without what it says.
pub(super) async fn search(State(admin): State<Arc<Admin>>, visit: Visit) -> Response<Body> {
    let shown = async {
        let id = visit.session()?;
        let name = session_name(&admin, id).await?;
        let asked = &visit.asked;
        let found = match &asked.query {
            Some(query) => found(&admin, id, query, asked.limit).await?,
            None => listed(&admin, &visit, id).await?,
        };
        let main = html! {
            (heading(&name, id, Tab::Journal))
            form.search role="search" method="get" action={ "/longhaul/page/" (id) "/search" } {
                input #search name="q" type="search" value=[asked.query.as_deref()]
                    placeholder="Names of files, functions or commands, words of an error" aria-label="Search";
                button.primary type="submit" { "Search" }
            }
            (found)
        };
        Ok(page(&format!("Journal of {name}"), visit.by, false, &main))
    };
    answered(&admin, visit.by, shown.await)
}

async fn found(admin: &Admin, id: LineageId, query: &str, limit: u32) -> Result<Markup, Problem> {
    let who = Who::Session(id);
    let found = match admin.recall.recall(who, query, limit).await {
        Err(trouble @ Trouble::NotKept) => return Ok(nothing(&trouble)),
        found => found?,
    };
    Ok(html! {
        @if found.hits.is_empty() {
            p { "Nothing was found. Other words may do better: names as they were written." }
        } @else {
            ol.hits { @for hit in &found.hits { (item(hit, id)) } }
            @if found.more > 0 { p.dim { (found.more) " more fit less well: ask with more words." } }
        }
    })
}

async fn listed(admin: &Admin, visit: &Visit, id: LineageId) -> Result<Markup, Problem> {
    let listing = Listing {
        kinds: visit.asked.kind.into_iter().collect(),
        before: visit.asked.before,
        limit: visit.asked.limit,
    };
    let listed = match admin.recall.show(id, &listing, false).await {
        Err(trouble @ Trouble::NotKept) => return Ok(nothing(&trouble)),
        listed => listed?,
    };
    let base = format!("/longhaul/page/{id}/search");
    Ok(html! {
        p.dim { "What was noted and left out, the newest first. What it says is shown when it is searched for or opened." }
        ol.hits { @for hit in &listed.entries { (item(hit, id)) } }
        nav.pager aria-label="Pages" {
            @if listing.before.is_some() { a href=(base) rel="prev" { "Newest" } }
            @if let Some(next) = listed.next { a href={ (base) "?before=" (next) } rel="next" { "Older" } }
        }
    })
}

fn nothing(trouble: &Trouble) -> Markup {
    html! { p.notice { (trouble) } }
}

fn item(hit: &Hit, id: LineageId) -> Markup {
    let name = shown(hit.reference);
    html! {
        li data-row {
            div.about {
                a.name href={ "/longhaul/page/" (id) "/ref/" (name) } { (hit.kind.name().replace('_', " ")) }
                @if !hit.tool.is_empty() { " " b { (excerpt(&hit.tool, 64)) } }
                @if !hit.path.is_empty() { " " code { (excerpt(&hit.path, 120)) } }
                span.dim { " turn " (hit.turn) ", " (bytes(hit.bytes)) ", " (clock(&hit.at.to_string())) }
            }
            @if !hit.snippet.is_empty() { div.said { (hit.snippet) } }
        }
    }
}

/// `GET /longhaul/page/{id}/ref/{ref}`: all of what a reference stands for, if it
/// is one of the session's.
pub(super) async fn reference(State(admin): State<Arc<Admin>>, visit: Visit) -> Response<Body> {
    let shown = async {
        let id = visit.session()?;
        let malformed =
            || Problem::malformed("a reference is lh- and 20 digits or letters from a to f");
        let reference = reference::read(visit.behind()).ok_or_else(malformed)?;
        if !admin.recall.belongs(id, reference).await? {
            return Err(Trouble::UnknownReference.into());
        }
        let who = Who::Reference(reference);
        let text = admin.recall.expand(who, visit.asked.page).await?;
        let name = session_name(&admin, id).await?;
        let here = format!("/longhaul/page/{id}/ref/{}", shown(reference));
        let main = html! {
            (heading(&name, id, Tab::Journal))
            (whole(&text, &here))
        };
        Ok(page(&shown(reference), visit.by, false, &main))
    };
    answered(&admin, visit.by, shown.await)
}

/// `GET /longhaul/page/{id}/message/{number}`: a message, counted from one.
pub(super) async fn message(State(admin): State<Arc<Admin>>, visit: Visit) -> Response<Body> {
    let shown = async {
        let id = visit.session()?;
        let number: Option<u32> = visit.behind().parse().ok();
        let message = number.and_then(|number| number.checked_sub(1));
        let message = message.ok_or_else(|| Problem::malformed("messages are counted from one"))?;
        let text = admin.recall.message(id, message, visit.asked.page).await?;
        let name = session_name(&admin, id).await?;
        let here = format!("/longhaul/page/{id}/message/{}", message + 1);
        let main = html! {
            (heading(&name, id, Tab::View))
            (whole(&text, &here))
        };
        Ok(page(
            &format!("Message {} of {name}", message + 1),
            visit.by,
            false,
            &main,
        ))
    };
    answered(&admin, visit.by, shown.await)
}

/// A page of something; lines of ours are told apart from what is shown.
fn whole(text: &Page, here: &str) -> Markup {
    html! {
        pre.whole tabindex="0" {
            @for line in text.text.split_inclusive('\n') {
                @if line.starts_with("[longhaul: ") { span.ours { (line) } } @else { (line) }
            }
        }
        nav.pager aria-label="Pages" {
            @if text.page > 1 { a href={ (here) "?page=" (text.page - 1) } rel="prev" { "Previous" } }
            @if text.goes_on() { a href={ (here) "?page=" (text.page + 1) } rel="next" { "Next" } }
        }
    }
}

async fn session_name(admin: &Admin, id: LineageId) -> Result<String, Problem> {
    Ok(name(&admin.recall.glance(id).await?))
}

/// A text of ours, with its references as links to what they stand for.
pub(super) fn linked(text: &str, id: LineageId) -> Markup {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, found, behind)) = next_reference(rest) {
        pieces.push((before, Some(found)));
        rest = behind;
    }
    html! {
        @for (before, found) in pieces {
            (before)
            @if let Some(found) = found { a href={ "/longhaul/page/" (id) "/ref/" (found) } { (found) } }
        }
        (rest)
    }
}

/// The first reference in a text, with what stands before and behind it.
fn next_reference(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find(PREFIX)?;
        let is_one = |found: &&str| found.get(PREFIX.len()..).is_some_and(is_digits);
        if let Some(found) = text.get(at..at + REFERENCE).filter(is_one) {
            return Some((text.get(..at)?, found, text.get(at + REFERENCE..)?));
        }
        from = at + PREFIX.len();
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_links_and_everything_else_stays_text() {
        let id = LineageId::from_bytes([0xab; 16]);
        let found = "lh-0123456789abcdef0123";
        let text = format!("lh- <b> lh-xyz é {found}; see lh-0123456789ABCDEF0123 & {found}");
        let markup = linked(&text, id).into_string();
        let link = format!("<a href=\"/longhaul/page/{id}/ref/{found}\">{found}</a>");
        assert_eq!(markup.matches(&link).count(), 2, "{markup}");
        assert!(markup.starts_with("lh- &lt;b&gt; lh-xyz é <a "), "{markup}");
        assert!(markup.contains("; see lh-0123456789ABCDEF0123 &amp; <a"));
        for odd in ["", "lh-", "lh-0123", "lh-é0123456789abcdef012"] {
            assert_eq!(linked(odd, id).into_string(), odd);
        }
    }
}
