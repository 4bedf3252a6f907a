//! What the operator asks of this process: metrics, alive, ready, and orders.
//!
//! Alive says that the process answers. Ready says that it is not about to stop:
//! a load balancer takes it out before its connections end. `/metrics` is open
//! unless the operator wants a token for it. Everything else is looked at by
//! `guard` first; who is refused is counted, and who tries tokens is slowed down.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::{HeaderMap, Response, StatusCode, Uri, header};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::compact::compact;
use super::connection::Peer;
use super::exchange::Shared;
use super::guard::Refusal;
use super::guesses::Guesses;
use super::problem::Problem;
use super::{guard, mcp, own_paths, page, sessions};
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
    /// Wrong tokens that were sent lately.
    pub guesses: Guesses,
}

impl Admin {
    /// The moment it is.
    pub(super) fn now(&self) -> Moment {
        self.shared.views.now()
    }

    /// The configured token.
    pub(super) fn token(&self) -> Option<&str> {
        guard::configured(self.token.as_deref())
    }

    /// Whether the admin surface may be used. Who is refused is counted.
    pub(super) async fn admit(
        &self,
        peer: Option<Peer>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        self.slow_down(peer, headers).await;
        let admitted = guard::admit(self.token(), &self.listen, peer, uri, headers);
        admitted.map_err(|refusal| self.refused(peer, refusal))
    }

    /// Waits before a token is looked at, if its sender has sent wrong ones.
    pub(super) async fn slow_down(&self, peer: Option<Peer>, headers: &HeaderMap) {
        if self.token().is_some() && guard::sends_token(headers) {
            self.slow_down_guess(peer).await;
        }
    }

    /// The same where the token comes by another way.
    pub(super) async fn slow_down_guess(&self, peer: Option<Peer>) {
        let delay = self.guesses.delay(address(peer), Instant::now());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Counts a refusal; a wrong token is logged and slows its sender down.
    pub(super) fn refused(&self, peer: Option<Peer>, refusal: Refusal) -> Refusal {
        self.shared.metrics.admin_refused(refusal.reason());
        if refusal == Refusal::WrongToken {
            let address = address(peer);
            let count = self.guesses.count(address, Instant::now());
            tracing::warn!(%address, count, "a wrong admin token was sent");
        }
        refusal
    }
}

/// Where a request comes from, as far as wrong tokens are counted.
fn address(peer: Option<Peer>) -> IpAddr {
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |Peer(peer)| peer.ip())
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

/// Counts an answer.
pub(super) fn finish(admin: &Admin, response: Response<Body>) -> Response<Body> {
    admin.shared.metrics.answered("admin", response.status());
    response
}
