//! What the operator asks of this process: metrics, alive, ready.
//!
//! Alive says that the process answers. Ready says that it is not about to stop:
//! a load balancer takes it out before its connections end. `/metrics` is open
//! unless the operator wants a token for it; the comparison takes the same time
//! however much of the token is right.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use super::connection::Peer;
use super::exchange::Shared;

/// What the admin surface needs.
pub struct Admin {
    /// What the workers share.
    pub shared: Arc<Shared>,
    /// Whether `/metrics` needs no token.
    pub metrics_open: bool,
    /// The token, if there is one.
    pub token: Option<String>,
    /// Set once the process is about to stop.
    pub draining: CancellationToken,
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
        .with_state(admin)
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
    let body = json!({ "status": word });
    finish(&admin, (status, Json(body)).into_response())
}

async fn metrics(
    State(admin): State<Arc<Admin>>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response<Body> {
    let local = peer.is_some_and(|Extension(Peer(peer))| peer.ip().to_canonical().is_loopback());
    if !(admin.metrics_open || local || admits(admin.token.as_deref(), &headers)) {
        let message = "the admin token is needed: authorization: Bearer TOKEN";
        let refusal = (StatusCode::UNAUTHORIZED, message).into_response();
        return finish(&admin, refusal);
    }
    let response = match admin.shared.metrics.render() {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)];
            (StatusCode::OK, kind, text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    };
    finish(&admin, response)
}

fn admits(token: Option<&str>, headers: &HeaderMap) -> bool {
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    match (token, given) {
        (Some(token), Some(given)) => token.as_bytes().ct_eq(given).into(),
        _ => false,
    }
}

fn finish(admin: &Admin, response: Response<Body>) -> Response<Body> {
    admin.shared.metrics.answered("admin", response.status());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_admits() {
        let rows = [
            (Some("secret"), Some("Bearer secret"), true),
            (Some("secret"), Some("Bearer secre"), false),
            (Some("secret"), Some("secret"), false),
            (Some("secret"), None, false),
            (None, Some("Bearer "), false),
            (None, None, false),
        ];
        for (token, given, expected) in rows {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert(header::AUTHORIZATION, given.parse().unwrap());
            }
            assert_eq!(admits(token, &headers), expected, "{token:?} {given:?}");
        }
    }
}
