//! What a session's view looks like now, beside its history: each message on the
//! left as the client sent it, on the right what the model gets of it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::Response;
use maud::{Markup, html};

use super::found::linked;
use super::frame::{Tab, heading, name, page, pager};
use super::words::{bytes, clipped, excerpt};
use super::{Visit, answered};
use crate::admin::state::Admin;
use crate::engine::beside::{Now, Part, Place, Row, Standing};
use crate::engine::ids::LineageId;
use crate::recall::Beside;

/// Letters of a text that are shown at once, and when it is opened.
const EXCERPT: usize = 150;
const OPENED: usize = 6_000;

/// `GET /longhaul/page/{id}/view`
pub(super) async fn show(State(admin): State<Arc<Admin>>, visit: Visit) -> Response<Body> {
    let shown = async {
        let id = visit.session()?;
        let beside = admin.recall.beside(id, visit.asked.page).await?;
        let name = name(&admin.recall.glance(id).await?);
        let main = html! {
            (heading(&name, id, Tab::View))
            (about(&beside, id))
            (rows(&beside, id))
            (pager(&format!("/longhaul/page/{id}/view?"), beside.page, beside.pages))
        };
        Ok(page(&format!("View of {name}"), visit.by, false, &main))
    };
    answered(&admin, visit.by, shown.await)
}

/// The page on which a message stands.
fn page_of(message: u32) -> u32 {
    message / crate::recall::ROWS + 1
}

/// What is true of the whole view.
fn about(beside: &Beside, id: LineageId) -> Markup {
    let Beside {
        messages,
        made_at,
        head,
        cut,
        standing,
        ..
    } = beside;
    let base = format!("/longhaul/page/{id}/view?page=");
    html! {
        @match made_at {
            None => p { "The view is the history as it came: nothing of its " (messages) " messages is left out." },
            Some(made_at) => p {
                "The history has " (messages) " messages; the view was last changed when it had " (made_at) ". "
                @if cut > head {
                    "Messages " (head + 1) " to " (cut) " are told by "
                    @for (at, standing) in standing.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href={ (base) (page_of(*head)) "#segment-" (at + 1) } { (called(standing)) " " (at + 1) }
                    }
                    "; the newest begin at "
                    a href={ (base) (page_of(*cut)) "#m" (cut + 1) } { "message " (cut + 1) } ". "
                }
                "Later messages are sent as they came."
            },
        }
    }
}

fn rows(beside: &Beside, id: LineageId) -> Markup {
    let (from, to) = beside.range;
    let kept = |message: u32| beside.rows.iter().find(|row| row.message == message);
    let stands_here = beside.cut > beside.head;
    html! {
        div.beside {
            div.sides aria-hidden="true" { span {} span { "As the client sent it" } span { "As the model gets it" } }
            @for message in from..to {
                @if stands_here && message == beside.head {
                    @for (at, standing) in beside.standing.iter().enumerate() { (segment(at, standing, id)) }
                }
                @match kept(message) {
                    Some(row) => (line(row, beside, id)),
                    None => (missing(message, beside)),
                }
            }
        }
    }
}

/// A message that the journal does not have.
fn missing(message: u32, beside: &Beside) -> Markup {
    let later = message >= beside.made_at.unwrap_or(0);
    html! {
        article.row.plain data-row tabindex="-1" id={ "m" (message + 1) } {
            header { strong { (message + 1) } }
            div.part {
                div.original.dim {
                    @if later { "Not kept here: it is put away when a view first leaves something out." }
                    @else { "No longer kept." }
                }
                div.now {
                    @if later { span.same { "sent as it is" } } @else { span.dim { "not known" } }
                }
            }
        }
    }
}

/// What stands for the messages that are not shown.
fn segment(at: usize, standing: &Standing, id: LineageId) -> Markup {
    let (from, to) = standing.messages;
    let class = match standing.origin {
        "truncated" => "truncate",
        _ => "summary",
    };
    let what = match standing.origin {
        "truncated" => "notice of messages left out",
        "native" => "summary by the API",
        _ => "summary",
    };
    html! {
        article.row.stands.(class) data-row tabindex="-1" id={ "segment-" (at + 1) } {
            header { span.chip.(class) { (at + 1) } }
            div.part {
                div.original.dim { "Messages " (from + 1) " to " (to) }
                div.now {
                    span.chip.(class) { (what) }
                    (opened(&standing.text, Some(id), None))
                }
            }
        }
    }
}

fn line(row: &Row, beside: &Beside, id: LineageId) -> Markup {
    let number = row.message + 1;
    let class = match row.place {
        Place::Shown if row.parts.iter().all(|part| part.now == Now::Same) => "plain",
        Place::Shown => "changed",
        Place::Segment(_) | Place::Native => "hidden",
    };
    html! {
        article.row.(class) data-row tabindex="-1" id={ "m" (number) } {
            header {
                span { strong { (number) } " " (row.speaker) }
                span.dim { (bytes(row.bytes as u64)) }
            }
            @for (at, part) in row.parts.iter().enumerate() {
                div.part {
                    (original(part, id, number))
                    div.now {
                        @match &part.now {
                            Now::Hidden if at > 0 => {},
                            Now::Hidden => (hidden(row.place, beside, id)),
                            now => (sent(now, id)),
                        }
                    }
                }
            }
        }
    }
}

fn original(part: &Part, id: LineageId, number: u32) -> Markup {
    let whole = format!("/longhaul/page/{id}/message/{number}");
    html! {
        div.original {
            @if part.what != "text" || part.original.is_empty() {
                span.what.bad[part.what == "failure"] { (part.what) @if !part.tool.is_empty() { " " b { (excerpt(&part.tool, 64)) } } }
            }
            @if !part.original.is_empty() { (opened(&part.original, None, Some(&whole))) }
        }
    }
}

/// What the model gets in place of a block.
fn sent(now: &Now, id: LineageId) -> Markup {
    let (chip, class, text) = match now {
        Now::Same | Now::Hidden => return html! { span.same { "sent as it is" } },
        Now::Gone => return html! { span.chip.clear { "left out" } },
        Now::Stub(text) => ("cleared", "clear", text),
        Now::Trimmed(text) => ("trimmed", "trim", text),
        Now::Replaced(text) => ("replaced", "clear", text),
        Now::Added(text) => ("added", "journal", text),
    };
    html! { span.chip.(class) { (chip) } (opened(text, Some(id), None)) }
}

/// What a text that stands for messages is called.
fn called(standing: &Standing) -> &'static str {
    match standing.origin {
        "truncated" => "notice",
        _ => "summary",
    }
}

fn hidden(place: Place, beside: &Beside, id: LineageId) -> Markup {
    let at = match place {
        Place::Segment(at) => at,
        Place::Native | Place::Shown => 0,
    };
    let called = beside.standing.get(at).map_or("summary", called);
    let link = format!(
        "/longhaul/page/{id}/view?page={}#segment-{}",
        page_of(beside.head),
        at + 1
    );
    html! {
        span.same { "in " a href=(link) { (called) " " (at + 1) } }
    }
}

/// A text: short as it is, long to be opened. References in a text of ours lead
/// to what they stand for; what is longer still has a page of its own.
fn opened(text: &str, ours: Option<LineageId>, whole: Option<&str>) -> Markup {
    let said = |text: &str| {
        let plain = || html! { (text) };
        ours.map_or_else(plain, |id| linked(text, id))
    };
    let is_short = clipped(text, EXCERPT).is_none() && text.lines().count() <= 4;
    html! {
        @if is_short {
            div.said { (said(text)) }
        } @else {
            details {
                summary { (excerpt(text, EXCERPT)) }
                @match clipped(text, OPENED) {
                    None => div.said { (said(text)) },
                    Some(part) => {
                        div.said { (said(part)) "…" }
                        @if let Some(whole) = whole { p { a href=(whole) { "All of it" } } }
                    },
                }
            }
        }
    }
}
