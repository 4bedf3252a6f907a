//! What the operator asks of this process: metrics, alive, ready, and orders.
//!
//! Alive says that the process answers. Ready says that it is not about to stop:
//! a load balancer takes it out before its connections end. `/metrics` is open
//! unless the operator wants a token for it. Everything else is looked at by
//! `guard` first; who is refused is counted, and who tries tokens is slowed down.

mod compact;
pub mod guesses;
pub mod mcp;
pub mod own_paths;
pub mod page;
pub mod problem;
pub mod sessions;
pub mod state;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::{HeaderMap, Response, StatusCode, Uri, header};
use serde_json::json;

use crate::server::connection::Peer;
use crate::server::guard;
use compact::compact;
use problem::Problem;
use state::{Admin, finish};

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

/// What must stand before forwarding: requests whose path is almost one of ours are
/// answered here, because they may carry the admin token.
pub fn never_forward_own_paths(admin: Arc<Admin>, forwarding: Router) -> Router {
    forwarding.layer(from_fn_with_state(admin, answer_own_paths))
}

async fn answer_own_paths(
    State(admin): State<Arc<Admin>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    if own_paths::is_own(request.uri().path()) {
        return nowhere(State(admin), request.uri().clone()).await;
    }
    next.run(request).await
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
    let peer = peer.map(|Extension(peer)| peer);
    if !admin.metrics_open {
        admin.slow_down(peer, &headers).await;
        if let Err(refusal) = guard::admit_to_metrics(admin.token(), peer, &headers) {
            let problem = Problem::from(admin.refused(peer, refusal));
            return finish(&admin, problem.into_response());
        }
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
