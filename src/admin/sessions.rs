//! The admin API about sessions: what there is, how it went, what was left out.
//!
//! All of it is looked at by `guard` first. Sizes and times are told freely, the
//! words of a conversation only where they are asked for. Each answer is JSON, but
//! for the hand-off, which is a text to be read.

mod journal;
pub(super) mod query;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, header};
use serde_json::{Value, json};

use super::problem::Problem;
use super::state::{Admin, finish};
use crate::engine::ids::LineageId;
use crate::recall::Trouble;
use crate::server::connection::Peer;
use query::Asked;

/// How many of the messages there are in an export.
const MESSAGES: HeaderName = HeaderName::from_static("x-longhaul-messages");

/// The routes.
pub fn routes(admin: Arc<Admin>) -> Router {
    let one = "/longhaul/sessions/{id}";
    Router::new()
        .route("/longhaul/sessions", get(list))
        .route(one, get(show).delete(forget))
        .route(&format!("{one}/export"), get(export))
        .route(&format!("{one}/handoff"), get(handoff))
        .route(&format!("{one}/journal"), get(journal::search))
        .route(&format!("{one}/journal/{{ref}}"), get(journal::page))
        .with_state(admin)
}

/// An order that may be given: whoever takes one has passed the guard.
struct Ordered {
    asked: Asked,
    /// What stands in the path: the session, and a reference.
    path: Vec<String>,
}

impl FromRequestParts<Arc<Admin>> for Ordered {
    type Rejection = Response<Body>;

    async fn from_request_parts(
        parts: &mut Parts,
        admin: &Arc<Admin>,
    ) -> Result<Self, Self::Rejection> {
        let refused = |problem: Problem| finish(admin, problem.into_response());
        let peer = parts.extensions.get::<Peer>().copied();
        let admitted = admin.admit(peer, &parts.uri, &parts.headers).await;
        admitted.map_err(|refusal| refused(refusal.into()))?;
        let path: Result<Path<Vec<(String, String)>>, PathRejection> =
            Path::from_request_parts(parts, admin).await;
        let query: Result<Query<Vec<(String, String)>>, QueryRejection> =
            Query::from_request_parts(parts, admin).await;
        let path = path.map(|Path(named)| named).unwrap_or_default();
        let asked = query
            .map_err(|error| Problem::malformed(error.to_string()))
            .and_then(|Query(pairs)| Asked::read(&pairs).map_err(Problem::malformed))
            .map_err(refused)?;
        Ok(Self {
            asked,
            path: path.into_iter().map(|(_, value)| value).collect(),
        })
    }
}

impl Ordered {
    /// The session in the path.
    fn session(&self) -> Result<LineageId, Problem> {
        let id = self.path.first().map(String::as_str).unwrap_or_default();
        let unknown = || Trouble::UnknownSession(id.chars().take(64).collect());
        Ok(LineageId::from_text(id).ok_or_else(unknown)?)
    }
}

/// Counts an answer in JSON.
fn answered(admin: &Admin, answer: Result<Value, Problem>) -> Response<Body> {
    let response = match answer {
        Ok(value) => Json(value).into_response(),
        Err(problem) => problem.into_response(),
    };
    finish(admin, response)
}

async fn list(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let Asked { limit, behind, .. } = ordered.asked;
    let listed = admin.recall.sessions(behind, limit).await;
    let listed = listed.map_err(Problem::from).map(|(sessions, next)| {
        let next = next.map(query::written);
        json!({ "sessions": sessions, "next": next })
    });
    answered(&admin, listed)
}

async fn show(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let shown = async {
        let timeline = admin.recall.timeline(ordered.session()?).await?;
        Ok(json!(timeline))
    };
    answered(&admin, shown.await)
}

async fn forget(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let forgotten = async {
        let session = ordered.session()?;
        Ok(admin.recall.forget(session).await?.json(session))
    };
    answered(&admin, forgotten.await)
}

async fn handoff(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let written = async { Ok(admin.recall.handoff(ordered.session()?).await?) };
    let response = match written.await {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, "text/markdown; charset=utf-8")];
            (kind, text).into_response()
        }
        Err::<_, Problem>(problem) => problem.into_response(),
    };
    finish(&admin, response)
}

async fn export(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let as_of = ordered.asked.as_of;
    let exported = async { Ok(admin.recall.export(ordered.session()?, as_of).await?) };
    let response = match exported.await {
        Ok(exported) => {
            let count = format!("{} of {}", exported.messages, exported.of);
            let count = HeaderValue::from_str(&count).unwrap_or(HeaderValue::from_static(""));
            let kind = HeaderValue::from_static("application/json");
            let headers = [(header::CONTENT_TYPE, kind), (MESSAGES, count)];
            (headers, exported.json).into_response()
        }
        Err::<_, Problem>(problem) => problem.into_response(),
    };
    finish(&admin, response)
}
