//! What the operator asks of this process: metrics, alive, ready, and orders.
//!
//! Alive says that the process answers. Ready says that it is not about to stop:
//! a load balancer takes it out before its connections end. `/metrics` is open
//! unless the operator wants a token for it. Orders are looked at by `guard`
//! before they are taken.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::{HeaderMap, Response, StatusCode, Uri, header};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::compact::compact;
use super::connection::Peer;
use super::exchange::Shared;
use super::problem::Problem;
use super::{guard, mcp, page, sessions};
use crate::config::Listen;
use crate::recall::Recall;
use crate::store::Moment;

/// What the admin surface needs.
pub struct Admin {
    /// What the workers share.
    pub shared: Arc<Shared>,
    /// What gets back what views have left out.
    pub recall: Arc<Recall>,
    /// Whether `/metrics` needs no token.
    pub metrics_open: bool,
    /// The address it listens on, as it is configured.
    pub listen: Listen,
    /// The token, if there is one.
    pub token: Option<String>,
    /// Whether the listener encrypts.
    pub encrypts: bool,
    /// Set once the process is about to stop.
    pub draining: CancellationToken,
}

impl Admin {
    /// The moment it is.
    pub(super) fn now(&self) -> Moment {
        self.shared.views.now()
    }
}

/// Alive and ready.
pub fn health(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .with_state(admin)
}

/// The rest of the admin surface.
pub fn surface(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/longhaul/sessions/{id}/compact", post(compact))
        .with_state(admin.clone())
        .merge(sessions::routes(admin.clone()))
        .merge(page::routes(admin.clone()))
        .merge(mcp::route(admin))
}

/// What else is asked for under our own names. It is never forwarded: whoever asks
/// means this process, and may have sent its token along.
pub fn nothing_else(admin: Arc<Admin>, moved: bool) -> Router {
    let router = Router::new().route("/longhaul/{*rest}", any(nowhere));
    let router = if moved {
        let names = ["/longhaul", "/longhaul/", "/metrics", "/mcp"];
        names
            .into_iter()
            .fold(router, |router, name| router.route(name, any(moved_away)))
    } else {
        router
    };
    router.with_state(admin)
}

async fn nowhere(State(admin): State<Arc<Admin>>, uri: Uri) -> Response<Body> {
    let message = format!("there is nothing at {}", uri.path());
    let problem = Problem::new(StatusCode::NOT_FOUND, message);
    finish(&admin, problem.into_response())
}

async fn moved_away(State(admin): State<Arc<Admin>>) -> Response<Body> {
    let message = "this is at the address that admin.listen names";
    let problem = Problem::new(StatusCode::NOT_FOUND, message);
    finish(&admin, problem.into_response())
}

async fn alive(State(admin): State<Arc<Admin>>) -> Response<Body> {
    let body = json!({ "status": "alive", "version": env!("CARGO_PKG_VERSION") });
    finish(&admin, (StatusCode::OK, Json(body)).into_response())
}

async fn ready(State(admin): State<Arc<Admin>>) -> Response<Body> {
    let (status, word) = if admin.draining.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else {
        (StatusCode::OK, "ready")
    };
    // A store that is away is no reason to send nobody here: every replica would
    // say so at once, and each can serve without.
    let store = admin.shared.views.store_state();
    let body = json!({ "status": word, "store": store });
    finish(&admin, (status, Json(body)).into_response())
}

async fn metrics(
    State(admin): State<Arc<Admin>>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response<Body> {
    let local = guard::is_local(peer.map(|Extension(peer)| peer), &headers);
    let token = admin.token.as_deref();
    if !(admin.metrics_open || local || guard::has_token(token, &headers)) {
        let message = "the admin token is needed: authorization: Bearer TOKEN";
        let refusal = (StatusCode::UNAUTHORIZED, message).into_response();
        return finish(&admin, refusal);
    }
    admin.shared.views.take_stock();
    let response = match admin.shared.metrics.render() {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)];
            (StatusCode::OK, kind, text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    };
    finish(&admin, response)
}

/// Counts an answer.
pub(super) fn finish(admin: &Admin, response: Response<Body>) -> Response<Body> {
    admin.shared.metrics.answered("admin", response.status());
    response
}
