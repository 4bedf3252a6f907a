//! One session: where it stands, how it went, and the button for a pass.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect};
use http::Response;
use maud::{Markup, html};

use super::frame::{Tab, heading, name, page};
use super::sessions::{bar, is_loss, troubles};
use super::words::{ago, maybe, maybe_dollars, percent, short};
use super::{Visit, answered, chart, entry, requests};
use crate::admin::compact::{self, Declined};
use crate::admin::problem::Problem;
use crate::admin::state::{Admin, finish};
use crate::config::Mode;
use crate::engine::ids::LineageId;
use crate::engine::money::sentence;
use crate::engine::numerals::grouped;
use crate::recall::{Session, Timeline};

/// `GET /longhaul/page/{id}`
pub(super) async fn show(State(admin): State<Arc<Admin>>, visit: Visit) -> Response<Body> {
    let shown = async {
        let id = visit.session()?;
        let timeline = admin.recall.timeline(id).await?;
        let name = name(&timeline.session);
        let main = html! {
            (heading(&name, id, Tab::Timeline))
            (standing(&admin, &timeline))
            (order(&admin, id))
            section.card {
                h2 { "How it went" }
                (chart::chart(&timeline, admin.shared.views.usable_by_table(&timeline.session.model)))
            }
            (requests::passes(&timeline))
            (requests::requests(&timeline, id, visit.asked.page))
        };
        Ok(page(&name, visit.by, visit.asked.page == 1, &main))
    };
    answered(&admin, visit.by, shown.await)
}

/// `POST /longhaul/page/{id}/compact`
pub(super) async fn compact(
    State(admin): State<Arc<Admin>>,
    visit: Visit,
    request: Request,
) -> Response<Body> {
    let noted = async {
        let id = visit.session()?;
        let body = compact::read(&admin, request.into_body()).await?;
        let words = compact::within_bounds(entry::field(&body, "instructions"));
        let words = words.map_err(Problem::malformed)?;
        compact::wish(&admin, &id.to_string(), words).await?;
        Ok(id)
    };
    match noted.await {
        // A page that is loaded again must not ask again.
        Ok(id) => {
            let to = format!("/longhaul/page/{id}");
            finish(&admin, Redirect::to(&to).into_response())
        }
        Err(problem) => answered(&admin, visit.by, Err(problem)),
    }
}

impl From<Declined> for Problem {
    fn from(declined: Declined) -> Self {
        Self::new(declined.facts().0, declined.to_string())
    }
}

/// Where it stands, in numbers.
fn standing(admin: &Admin, Timeline { session, timeline }: &Timeline) -> Markup {
    let usable = admin.shared.views.usable_by_table(&session.model);
    let sent = session.sent_tokens;
    let filled = sent.and_then(|sent| percent(sent, usable));
    let left_out = session.original_tokens.zip(sent);
    let left_out =
        left_out.and_then(|(original, sent)| percent(original.saturating_sub(sent), original));
    let read = sent.zip(session.cache_read_tokens);
    let read = read.and_then(|(sent, read)| percent(read, sent));
    let began = timeline.first().map(|step| step.seen_at.as_str());
    html! {
        dl.tiles {
            div {
                dt { "Last prompt" }
                dd { (sent.map_or_else(|| "–".to_owned(), short)) small { " of " (short(usable)) } }
                @if let Some(filled) = filled { dd.more { (bar(filled)) } }
            }
            div {
                dt { "Whole history" }
                dd { (session.original_tokens.map_or_else(|| "–".to_owned(), short)) small { " tokens" } }
                @if let Some(left_out) = left_out { dd.more { (left_out) "% left out" } }
            }
            div {
                dt { "Read from the cache" }
                dd { (read.map_or_else(|| "–".to_owned(), |read| format!("{read}%"))) }
                dd.more { (maybe(session.cache_read_tokens)) " tokens" }
            }
            div {
                dt { "Saved, net" }
                dd.bad[is_loss(session.saved_usd)] { (maybe_dollars(session.saved_usd)) }
                dd.more { (session.passes) @if session.passes == 1 { " pass" } @else { " passes" } }
            }
            div {
                dt { "The view has" }
                dd { (session.segments) small { @if session.segments == 1 { " segment" } @else { " segments" } } }
                dd.more { (session.stubs) @if session.stubs == 1 { " stub" } @else { " stubs" } }
            }
            div {
                dt { "Requests" }
                dd { (grouped(session.requests.into())) }
                dd.more { (grouped(session.messages.into())) " messages" }
            }
        }
        p.dim {
            (spending(session))
            " "
            (session.model) ", "
            @if let Some(turns) = session.turns { (turns) @if turns == 1 { " turn, " } @else { " turns, " } }
            "last seen "
            time datetime=(session.seen_at) { (ago(session.seen, admin.now())) }
            @if let Some(began) = began { ", remembered since " time datetime=(began) { (super::words::clock(began)) } }
            (troubles(session))
        }
    }
}

/// What it cost, and what it would have cost, in a sentence.
fn spending(session: &Session) -> String {
    let both = session.spent_usd.zip(session.without_usd);
    both.map_or_else(
        || "What it cost is not known: a model of this session has no price.".to_owned(),
        |(spent, without)| format!("So far {}.", sentence(spent, without)),
    )
}

/// The button for a pass.
fn order(admin: &Admin, id: LineageId) -> Markup {
    let views = &admin.shared.views;
    html! {
        @if views.config().policy.mode == Mode::Off {
            p.notice { "policy.mode is \"off\": no pass is ever made." }
        } @else if views.config().policy.mode == Mode::Observe {
            p.notice { "policy.mode is \"observe\": passes are only counted (" code { "longhaul_compactions_total" } " with outcome " code { "abandoned" } ") and logged, and none is made." }
        } @else if views.is_wished(id) {
            p.notice.good role="status" { "A pass is asked for. It is made with the session's next request, because the history is the client's." }
        } @else if views.takes_wishes(id) {
            details.order {
                summary.button { "Compact now" }
                form method="post" action={ "/longhaul/page/" (id) "/compact" } {
                    label for="instructions" { "What a summary should mind " span.dim { "(may be empty)" } }
                    textarea #instructions name="instructions" rows="2" maxlength=(compact::INSTRUCTIONS / 4) {}
                    button.primary type="submit" { "Make it smaller with the next request" }
                }
            }
        } @else {
            p.dim { "This process has not seen the session since it started, so no pass can be asked for." }
        }
    }
}
