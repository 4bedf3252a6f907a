//! `POST /longhaul/sessions/{id}/compact`: a pass at the session's next request.
//!
//! The history is the client's, so nothing can be done before it comes again.
//! What is answered here is that the wish is noted.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::response::IntoResponse;
use http::{Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::state::{Admin, finish};
use crate::config::{Choice as _, Mode};
use crate::engine::ids::LineageId;
use crate::server::connection::Peer;
use crate::server::guard::Refusal;

/// The longest instructions, in bytes.
pub(super) const INSTRUCTIONS: usize = 16 << 10;
/// The longest body: each byte of the instructions may be written as six.
const BODY: usize = 6 * INSTRUCTIONS + 1024;

/// Why the wish is not noted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Declined {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Malformed(String),
    #[error(
        "no session {0:?} is known here: a session is known from its first request on, until a restart"
    )]
    Unknown(String),
    #[error("policy.mode is {:?}: no pass is ever made", .0.word())]
    Off(Mode),
}

impl Declined {
    pub(super) fn facts(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Refused(refusal) => refusal.facts(),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "invalid_request_error"),
            Self::Unknown(_) => (StatusCode::NOT_FOUND, "not_found_error"),
            Self::Off(_) => (StatusCode::CONFLICT, "invalid_request_error"),
        }
    }
}

/// Notes the wish for a pass.
pub async fn compact(
    State(admin): State<Arc<Admin>>,
    id: Result<Path<String>, PathRejection>,
    peer: Option<Extension<Peer>>,
    request: Request<Body>,
) -> Response<Body> {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let peer = peer.map(|Extension(peer)| peer);
    let response = match note(&admin, &id, peer, request).await {
        Ok(()) => {
            let body = json!({ "session": id, "compaction": "at the next request" });
            (StatusCode::ACCEPTED, Json(body)).into_response()
        }
        Err(declined) => {
            let (status, kind) = declined.facts();
            let error = json!({ "type": kind, "message": format!("longhaul: {declined}") });
            let body = json!({ "type": "error", "error": error });
            (status, Json(body)).into_response()
        }
    };
    finish(&admin, response)
}

async fn note(
    admin: &Admin,
    id: &str,
    peer: Option<Peer>,
    request: Request<Body>,
) -> Result<(), Declined> {
    admin.admit(peer, request.uri(), request.headers()).await?;
    let body = read(admin, request.into_body()).await?;
    let instructions = instructions(&body).map_err(Declined::Malformed)?;
    wish(admin, id, instructions).await
}

/// Notes the wish for a pass of whoever may have one.
pub(super) async fn wish(
    admin: &Admin,
    id: &str,
    instructions: Option<String>,
) -> Result<(), Declined> {
    let views = &admin.shared.views;
    let unknown = || Declined::Unknown(id.chars().take(64).collect());
    let lineage = LineageId::from_text(id).ok_or_else(unknown)?;
    let mode = views.config().policy.mode;
    if mode != Mode::On {
        return Err(Declined::Off(mode));
    }
    if !views.wish(lineage, instructions).await {
        return Err(unknown());
    }
    tracing::info!(session = %lineage, "a pass is wished for at the next request");
    Ok(())
}

/// A body that is not too long and comes in time.
pub(super) async fn read(admin: &Admin, body: Body) -> Result<Vec<u8>, Declined> {
    let patience = admin.shared.limits.body_idle;
    let read = timeout(patience, to_bytes(body, BODY)).await;
    let read = read.map_err(|_| format!("the body did not arrive within {patience:?}"));
    let read = read.and_then(|read| {
        read.map_err(|error| format!("the body, at most {BODY} bytes, cannot be read: {error}"))
    });
    read.map(Vec::from).map_err(Declined::Malformed)
}

/// What a summary should mind; or what is wrong with the body.
fn instructions(body: &[u8]) -> Result<Option<String>, String> {
    if body.is_empty() {
        return Ok(None);
    }
    let fields: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| format!("the body must be empty or a JSON object: {error}"))?;
    let mut instructions = None;
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("instructions", Value::String(text)) => instructions = Some(text),
            ("instructions", Value::Null) => {}
            ("instructions", _) => return Err("instructions must be a string".to_owned()),
            _ => return Err(format!("{name:?} is not known: only \"instructions\" is")),
        }
    }
    within_bounds(instructions)
}

/// What a summary should mind, if it is not too much; nothing if it says nothing.
pub(super) fn within_bounds(instructions: Option<String>) -> Result<Option<String>, String> {
    match &instructions {
        Some(text) if text.len() > INSTRUCTIONS => Err(format!(
            "instructions have {} bytes: at most {INSTRUCTIONS} are allowed",
            text.len()
        )),
        Some(text) if text.trim().is_empty() => Ok(None),
        _ => Ok(instructions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_empty_or_says_what_a_summary_should_mind() {
        let most = format!("{{\"instructions\":\"{}\"}}", "x".repeat(INSTRUCTIONS));
        let rows = [
            ("", Ok(None)),
            ("{}", Ok(None)),
            (r#" {"instructions": null} "#, Ok(None)),
            (r#"{"instructions": " "}"#, Ok(None)),
            (
                r#"{"instructions": "keep \u0041"}"#,
                Ok(Some("keep A".to_owned())),
            ),
            (&most, Ok(Some("x".repeat(INSTRUCTIONS)))),
        ];
        for (body, expected) in rows {
            assert_eq!(instructions(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_body_is_said() {
        let more = format!("{{\"instructions\":\"{}\"}}", "x".repeat(INSTRUCTIONS + 1));
        let rows = [
            ("[]", "JSON object"),
            ("null", "JSON object"),
            ("{", "JSON object"),
            ("instructions=x", "JSON object"),
            (r#"{"instructions": 1}"#, "must be a string"),
            (r#"{"instruction": "x"}"#, "\"instruction\" is not known"),
            (&more, "16385 bytes: at most 16384"),
        ];
        for (body, expected) in rows {
            let wrong = instructions(body.as_bytes()).unwrap_err();
            assert!(wrong.contains(expected), "{wrong}");
        }
    }
}
