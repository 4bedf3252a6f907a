//! The routes of the simulated API and of its control surface.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::StatusCode;
use serde_json::{Value, json};

use super::account::Account;
use super::arrival::Arrival;
use super::error::{ApiError, Checked};
use super::ledger::Outcome;
use super::request::Endpoint;
use super::respond::{plain, refusal, respond, stamp};
use super::state::Sim;
use super::wire::Kill;
use super::{catalog, control};

impl Sim {
    /// The whole surface, for a server of one's own. Faults that end the
    /// connection need [`Sim::serve`].
    pub fn router(&self) -> Router {
        Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/messages/count_tokens", post(count_tokens))
            .route("/v1/models", get(models))
            .route("/v1/models/{id}", get(model))
            .route("/api/hello", get(hello))
            .route("/_sim/replies", post(control::replies))
            .route("/_sim/rule", post(control::rule))
            .route("/_sim/faults", post(control::faults))
            .route("/_sim/persona", post(control::persona))
            .route("/_sim/clock", post(control::clock))
            .route("/_sim/ledger", get(control::ledger))
            .route("/_sim/reset", post(control::reset))
            .fallback(unknown)
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(self.clone())
    }

    /// A fresh `request-id`.
    pub(super) fn request_id(&self) -> String {
        let serial = self.state().next_serial();
        format!("{}{serial:010}", self.options().request_id_prefix)
    }
}

async fn messages(
    State(sim): State<Sim>,
    kill: Option<Extension<Kill>>,
    request: Request,
) -> Response {
    exchange(&sim, Endpoint::Messages, kill, request).await
}

async fn count_tokens(
    State(sim): State<Sim>,
    kill: Option<Extension<Kill>>,
    request: Request,
) -> Response {
    exchange(&sim, Endpoint::CountTokens, kill, request).await
}

async fn exchange(
    sim: &Sim,
    endpoint: Endpoint,
    kill: Option<Extension<Kill>>,
    request: Request<Body>,
) -> Response {
    let arrival = Arrival::read(sim, request).await;
    respond(sim, endpoint, &arrival, kill.map(|Extension(kill)| kill)).await
}

async fn models(State(sim): State<Sim>, request: Request) -> Response {
    let list = Ok(catalog::list(sim.options()));
    other(&sim, request, true, list).await
}

async fn model(State(sim): State<Sim>, Path(id): Path<String>, request: Request) -> Response {
    let item = catalog::one(sim.options(), &id);
    let item = item.ok_or_else(|| ApiError::new(404, format!("model: {id}")));
    other(&sim, request, true, item).await
}

/// Clients ask this before anything else, to see whether the address is right.
async fn hello(State(sim): State<Sim>, request: Request) -> Response {
    other(&sim, request, false, Ok(json!({"message": "hello"}))).await
}

async fn unknown(State(sim): State<Sim>, request: Request) -> Response {
    other(&sim, request, false, Err(ApiError::new(404, "Not Found"))).await
}

/// Answers what has nothing to do with messages, and records it.
async fn other(sim: &Sim, request: Request, closed: bool, answer: Checked<Value>) -> Response {
    let arrival = Arrival::read(sim, request).await;
    let account = Account::of(&arrival.headers, sim.options());
    let mut entry = arrival.entry(sim, account.as_ref().ok());
    let refused = account.as_ref().err().filter(|_| closed).cloned();
    let mut response = match refused.map_or(answer, Err) {
        Ok(body) => plain(StatusCode::OK, &body),
        Err(error) => {
            entry.outcome = Outcome::refused(&error);
            refusal(&error, &arrival.request_id)
        }
    };
    sim.state().entries.push(entry);
    stamp(
        &mut response,
        &arrival.request_id,
        account.as_ref().ok(),
        arrival.at,
    );
    response
}
