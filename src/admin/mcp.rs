//! `/mcp`: the tools by which a model gets back what its view leaves out.
//!
//! Streamable HTTP without sessions: every call stands for itself, so that any
//! process that shares the store can answer it. Who may ask at all is settled by
//! `guard`; what may be seen is settled by the reference in the call, or by the
//! admin token. The library that speaks the protocol sees only bodies that are
//! whole and not too large, and they take their room like all other bodies.

mod arguments;
mod offered;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::IntoResponse;
use axum::routing::any;
use http::{Request, Response};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::problem::Problem;
use super::state::Admin;
use crate::server::connection::Peer;
use crate::server::guard;
use crate::server::intake;
use crate::server::limits::Limits;
use crate::server::respond::Failure;
use tools::Tools;

/// The largest body: every argument has a limit of its own far below it.
const BODY: usize = 2 << 20;

/// The caller has shown the admin token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trusted(bool);

struct Desk {
    admin: Arc<Admin>,
    service: StreamableHttpService<Tools, NeverSessionManager>,
}

/// The route.
pub fn route(admin: Arc<Admin>) -> Router {
    // Host and origin are looked at here, by what the configuration says.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY);
    let tools = Tools::new(admin.clone());
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(tools.clone()), sessions, config);
    let desk = Arc::new(Desk { admin, service });
    Router::new().route("/mcp", any(answer)).with_state(desk)
}

async fn answer(
    State(desk): State<Arc<Desk>>,
    peer: Option<Extension<Peer>>,
    request: Request<Body>,
) -> Response<Body> {
    let peer = peer.map(|Extension(peer)| peer);
    let response = match admitted(&desk.admin, peer, request).await {
        Ok(request) => desk.service.handle(request).await.map(Body::new),
        Err(problem) => problem.into_response(),
    };
    desk.admin.shared.metrics.answered("mcp", response.status());
    response
}

/// The request with all of its body, if it may be made.
async fn admitted(
    admin: &Admin,
    peer: Option<Peer>,
    request: Request<Body>,
) -> Result<Request<Full<bytes::Bytes>>, Problem> {
    let (mut parts, body) = request.into_parts();
    let (token, headers) = (admin.token(), &parts.headers);
    admin.slow_down(peer, headers).await;
    guard::admit_with_reference(token, &admin.listen, peer, &parts.uri, headers)
        .map_err(|refusal| admin.refused(peer, refusal))?;
    let trusted = Trusted(guard::has_token(token, headers));
    parts.extensions.insert(trusted);
    let limits = Limits {
        body_bytes: BODY as u64,
        ..admin.shared.limits.clone()
    };
    let body = intake::receive(body, &limits, &admin.shared.room).await;
    let body = body.map_err(|failure| {
        let message = match &failure {
            Failure::BodyTooLarge { limit } => format!("the body has more than {limit} bytes"),
            other => other.to_string(),
        };
        Problem::new(failure.status(), message)
    })?;
    Ok(Request::from_parts(parts, Full::new(body)))
}
