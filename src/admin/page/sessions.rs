//! The list of sessions: how full each is, what it cost and would have cost, and
//! whether something is wrong with it. No words of a conversation are here.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::Response;
use maud::{Markup, html};

use super::words::{ago, clock, maybe_dollars, percent, short};
use super::{Visit, answered, frame};
use crate::admin::sessions::query;
use crate::admin::state::Admin;
use crate::engine::numerals::grouped;
use crate::recall::Session;
use crate::store::Moment;
use crate::store::sessions::Behind;

/// `GET /longhaul/`
pub(super) async fn list(State(admin): State<Arc<Admin>>, visit: Visit) -> Response<Body> {
    let first = visit.asked.behind.is_none();
    let listed = admin.recall.sessions(visit.asked.behind, visit.asked.limit);
    let shown = listed.await.map(|(sessions, next)| {
        let rows: Vec<Row> = sessions
            .into_iter()
            .map(|session| Row {
                usable: admin.shared.views.usable_by_table(&session.model),
                session,
            })
            .collect();
        let main = table(&rows, next, first, admin.now());
        frame::page("Sessions", visit.by, first, &main)
    });
    answered(&admin, visit.by, shown.map_err(Into::into))
}

/// A session, and the tokens that its model's prompts may have.
struct Row {
    session: Session,
    usable: u64,
}

fn table(rows: &[Row], next: Option<Behind>, first: bool, now: Moment) -> Markup {
    html! {
        h1 { "Sessions" }
        @if rows.is_empty() {
            section.card {
                p { "No session yet." }
                p.dim { "Point an agent at this proxy; it is listed here from its first answer on." }
            }
        } @else {
            (totals(rows))
            div.scroll {
                table.list {
                    thead {
                        tr {
                            th { "Session" }
                            th { "Window filled" }
                            th.number { "History" }
                            th.number { "Sent" }
                            th.number { "Spent" }
                            th.number { "Without" }
                            th.number { "Saved" }
                            th.number { "Passes" }
                            th.number { "Messages" }
                            th.number { "Last seen" }
                        }
                    }
                    tbody { @for row in rows { (line(row, now)) } }
                }
            }
            nav.pager aria-label="Pages" {
                @if !first { a href="/longhaul/" rel="prev" { "Newest" } }
                @if let Some(next) = next {
                    a href={ "/longhaul/?before=" (query::written(next)) } rel="next" { "Older sessions" }
                }
            }
        }
    }
}

/// What is true of all that are listed together.
fn totals(rows: &[Row]) -> Markup {
    let dollars = |of: fn(&Session) -> Option<f64>| -> Option<f64> {
        let known = rows.iter().filter_map(|row| of(&row.session));
        known.reduce(|sum, more| sum + more)
    };
    let paid = dollars(|session| session.spent_usd);
    let without = dollars(|session| session.without_usd);
    let saved = dollars(|session| session.saved_usd);
    let sum = |of: fn(&Session) -> Option<u64>| -> u64 {
        rows.iter().filter_map(|row| of(&row.session)).sum()
    };
    let original = sum(|session| session.original_tokens);
    let sent = sum(|session| session.sent_tokens);
    let passes: u32 = rows.iter().map(|row| row.session.passes).sum();
    let left_out = percent(original.saturating_sub(sent), original).unwrap_or(0);
    html! {
        dl.tiles {
            div { dt { "Listed here" } dd { (rows.len()) } }
            div {
                dt { "Spent" }
                dd { (maybe_dollars(paid)) }
                dd.more { "without Longhaul " (maybe_dollars(without)) }
            }
            div { dt { "Saved, net" } dd.bad[is_loss(saved)] { (maybe_dollars(saved)) } }
            div { dt { "Left out of the last prompts" } dd { (left_out) "%" } }
            div { dt { "Passes" } dd { (passes) } }
        }
    }
}

fn line(Row { session, usable }: &Row, now: Moment) -> Markup {
    let filled = session.sent_tokens.and_then(|sent| percent(sent, *usable));
    html! {
        tr data-row {
            td {
                a.name href={ "/longhaul/page/" (session.id) } { (frame::name(session)) }
                span.dim { " " (session.model) }
                (troubles(session))
            }
            td { @if let Some(filled) = filled { (bar(filled)) } @else { span.dim { "not known yet" } } }
            td.number { (session.original_tokens.map_or_else(|| "–".to_owned(), short)) }
            td.number { (session.sent_tokens.map_or_else(|| "–".to_owned(), short)) }
            td.number { (maybe_dollars(session.spent_usd)) }
            td.number { (maybe_dollars(session.without_usd)) }
            td.number.bad[is_loss(session.saved_usd)] { (maybe_dollars(session.saved_usd)) }
            td.number { (session.passes) }
            td.number { (grouped(session.messages.into())) }
            td.number { time datetime=(session.seen_at) title=(clock(&session.seen_at)) { (ago(session.seen, now)) } }
        }
    }
}

/// Whether passes have cost more than they saved.
pub(super) fn is_loss(saved: Option<f64>) -> bool {
    saved.is_some_and(|saved| saved < 0.0)
}

/// What somebody should look at.
pub(super) fn troubles(session: &Session) -> Markup {
    html! {
        @if session.breaker != "closed" {
            " " span.chip.truncate title="Summaries are not asked for at the moment" {
                "breaker " (session.breaker.replace('_', " "))
            }
        }
        @if session.thrashing {
            " " span.chip.trim title="Passes are refilled at once, so none is made" { "thrash" }
        }
    }
}

/// How full something is.
pub(super) fn bar(percent: u64) -> Markup {
    let level = match percent {
        0..60 => "calm",
        60..95 => "high",
        _ => "full",
    };
    html! {
        span.filled {
            svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="8" {}
                rect class=(level) width=(percent.min(100)) height="8" {}
            }
            span.share { (percent) "%" }
        }
    }
}
