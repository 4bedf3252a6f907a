//! The routes of the simulated API and of its control surface.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::StatusCode;
use serde_json::json;

use super::error::ApiError;
use super::exchange::Arrival;
use super::request::Endpoint;
use super::respond::{plain, refusal, respond, stamp};
use super::state::Sim;
use super::wire::Kill;
use super::{catalog, control, encoding};

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

    fn request_id(&self) -> String {
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
    let at = sim.clock().now();
    let request_id = sim.request_id();
    let (parts, body) = request.into_parts();
    let limit = sim.options().body_limit;
    let Ok(body) = axum::body::to_bytes(body, limit).await else {
        let mut response = refusal(&encoding::too_large(), &request_id);
        stamp(&mut response, &request_id, None, at);
        return response;
    };
    let path = parts
        .uri
        .path_and_query()
        .map_or("", |path| path.as_str())
        .to_owned();
    let arrival = Arrival {
        endpoint,
        request_id,
        path,
        headers: parts.headers,
        body,
        at,
    };
    respond(sim, &arrival, kill.map(|Extension(kill)| kill)).await
}

async fn models(State(sim): State<Sim>) -> Response {
    plain(StatusCode::OK, &catalog::list(sim.options()))
}

async fn model(State(sim): State<Sim>, Path(id): Path<String>) -> Response {
    match catalog::one(sim.options(), &id) {
        Some(item) => plain(StatusCode::OK, &item),
        None => refusal(
            &ApiError::new(404, format!("model: {id}")),
            &sim.request_id(),
        ),
    }
}

/// Clients ask this before anything else, to see whether the address is right.
async fn hello() -> Response {
    plain(StatusCode::OK, &json!({"message": "hello"}))
}

async fn unknown(State(sim): State<Sim>) -> Response {
    refusal(&ApiError::new(404, "Not Found"), &sim.request_id())
}
