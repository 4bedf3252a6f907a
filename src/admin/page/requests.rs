//! The tables below a session's chart: its passes with their reasons and numbers,
//! and its requests, a page at a time.

use maud::{Markup, html};

use super::frame::pager;
use super::words::{class, clock, kind, maybe, percent, reason};
use crate::engine::ids::LineageId;
use crate::engine::numerals::grouped;
use crate::recall::{Step, Timeline};

/// Requests of a page.
const PAGE: usize = 25;
/// The newest passes that are listed.
const PASSES: usize = 100;

/// The passes, the newest first.
pub(super) fn passes(Timeline { timeline, .. }: &Timeline) -> Markup {
    let numbered = timeline.iter().enumerate();
    let passes: Vec<_> = numbered
        .filter_map(|(at, step)| Some((at, step, step.pass.as_ref()?)))
        .collect();
    let on_arrival = passes.iter().filter(|(_, _, pass)| pass.is_on_arrival());
    let arrivals = on_arrival.count();
    html! {
        section.card {
            h2 { "Compactions" }
            @if passes.is_empty() {
                p.dim { "None so far: the view is the history as it came." }
            } @else {
                div.scroll {
                    table {
                        thead {
                            tr {
                                th.number { "Messages" }
                                th { "When" }
                                th { "Why" }
                                th { "What it did" }
                                th.number { "Before" }
                                th.number { "After" }
                                th.number { "Freed" }
                            }
                        }
                        tbody {
                            @for (at, step, pass) in passes.iter().rev().take(PASSES) {
                                tr id={ "pass-" (at) } data-row {
                                    td.number { (step.messages) }
                                    td { time datetime=(step.seen_at) { (clock(&step.seen_at)) } }
                                    td { (reason(&pass.trigger)) " " span.dim { (pass.trigger) } }
                                    td {
                                        @for did in &pass.kinds {
                                            span.chip.(class(&did.kind)) title=(kind(&did.kind)) {
                                                (did.kind) " " (grouped(did.tokens))
                                            } " "
                                        }
                                    }
                                    td.number { (grouped(pass.before_tokens)) }
                                    td.number { (grouped(pass.after_tokens)) }
                                    td.number { (freed(pass.before_tokens, pass.after_tokens)) }
                                }
                            }
                        }
                    }
                }
                @if arrivals > 0 {
                    p.dim { "Results that were trimmed as they arrived are listed here too (" (arrivals) "), but not counted as passes." }
                }
                @if passes.len() > PASSES { p.dim { "The newest " (PASSES) " of " (passes.len()) "." } }
            }
        }
    }
}

fn freed(before: u64, after: u64) -> String {
    let share = percent(before.saturating_sub(after), before);
    share.map_or_else(|| "–".to_owned(), |share| format!("{share}%"))
}

/// The requests, the newest first.
pub(super) fn requests(
    Timeline { session, timeline }: &Timeline,
    id: LineageId,
    page: u32,
) -> Markup {
    let pages = timeline.len().div_ceil(PAGE).max(1);
    let page = (page as usize).clamp(1, pages);
    let steps = timeline.iter().enumerate().rev();
    let steps = steps.skip((page - 1) * PAGE).take(PAGE);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    html! {
        section.card #requests {
            h2 { "Requests" }
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "When" }
                            th.number { "Messages" }
                            th.number { "History" }
                            th.number { "Sent" }
                            th.number { "From cache" }
                            th.number { "Reply" }
                            th { "Pass" }
                        }
                    }
                    tbody { @for (at, step) in steps { (line(at, step, &session.model)) } }
                }
            }
            (pager(&format!("/longhaul/page/{id}?"), number(page), number(pages)))
            @if session.requests as usize > timeline.len() {
                p.dim { "Of " (grouped(session.requests.into())) " requests so far the newest " (timeline.len()) " are remembered here." }
            }
        }
    }
}

fn line(at: usize, step: &Step, model: &str) -> Markup {
    let read = step.sent_tokens.zip(step.cache_read_tokens);
    let read = read.and_then(|(sent, read)| percent(read, sent));
    html! {
        tr data-row {
            td {
                time datetime=(step.seen_at) { (clock(&step.seen_at)) }
                @if step.model != model { " " span.dim { (step.model) } }
            }
            td.number { (step.messages) }
            td.number { (maybe(step.original_tokens)) }
            td.number { (maybe(step.sent_tokens)) }
            td.number { (read.map_or_else(|| "–".to_owned(), |read| format!("{read}%"))) }
            td.number { (maybe(step.output_tokens)) }
            td {
                @if let Some(pass) = &step.pass {
                    a href={ "#pass-" (at) } {
                        @for did in &pass.kinds { span.chip.(class(&did.kind)) { (did.kind) } " " }
                    }
                }
                @if step.breaker != "closed" { span.chip.truncate { "breaker " (step.breaker.replace('_', " ")) } }
            }
        }
    }
}
