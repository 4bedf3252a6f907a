//! The web page at `/longhaul/`: sessions, how one went, what its view looks like
//! now, and what it has left out.
//!
//! Everything is rendered here and works without a script; the one small script
//! only refreshes and listens to keys. The data is that of the admin API, asked
//! for in the same way. Markup is made by a macro that escapes whatever is put
//! into it, and the policy that goes with every answer lets nothing run or load
//! but the two files that ship with the page. Lists and charts show sizes and
//! times; the words of a conversation are on the pages that somebody opens to
//! read them.

mod by;
mod chart;
mod entry;
mod found;
mod frame;
mod requests;
mod session;
mod sessions;
mod view;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::middleware::map_response;
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::{get, post};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use maud::Markup;

use self::by::By;
pub use self::entry::link;
use super::problem::Problem;
use super::sessions::query::Asked;
use super::state::{Admin, finish};
use crate::engine::ids::LineageId;
use crate::recall::Trouble;
use crate::server::connection::Peer;
use crate::server::guard::Refusal;

/// Nothing but what ships with the page, and nobody around it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
    img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// The routes.
pub fn routes(admin: Arc<Admin>) -> Router {
    let one = "/longhaul/page/{id}";
    Router::new()
        .route("/longhaul", get(front))
        .route("/longhaul/", get(sessions::list))
        .route("/longhaul/page.css", get(style))
        .route("/longhaul/page.js", get(script))
        .route("/longhaul/enter", get(entry::follow).post(entry::enter))
        .route("/longhaul/leave", post(entry::leave))
        .route(one, get(session::show))
        .route(&format!("{one}/compact"), post(session::compact))
        .route(&format!("{one}/view"), get(view::show))
        .route(&format!("{one}/message/{{number}}"), get(found::message))
        .route(&format!("{one}/search"), get(found::search))
        .route(&format!("{one}/ref/{{ref}}"), get(found::reference))
        .route_layer(map_response(with_policy))
        .with_state(admin)
}

/// Puts the policy on an answer. The referrer stays within the page: with none at
/// all a browser would not say of its forms which origin they are of.
async fn with_policy(mut response: Response<Body>) -> Response<Body> {
    let policy = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in policy {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn front(State(admin): State<Arc<Admin>>, _visit: Visit) -> Response<Body> {
    finish(&admin, Redirect::to("/longhaul/").into_response())
}

async fn style(State(admin): State<Arc<Admin>>) -> Response<Body> {
    asset(&admin, "text/css; charset=utf-8", include_str!("page.css"))
}

async fn script(State(admin): State<Arc<Admin>>) -> Response<Body> {
    let kind = "text/javascript; charset=utf-8";
    asset(&admin, kind, include_str!("page.js"))
}

/// A file of the page's: it tells nobody anything, and the form to sign in needs
/// it too.
fn asset(admin: &Admin, kind: &'static str, text: &'static str) -> Response<Body> {
    finish(
        admin,
        ([(header::CONTENT_TYPE, kind)], text).into_response(),
    )
}

/// Somebody who may look: whoever takes one has passed the guard.
struct Visit {
    by: By,
    asked: Asked,
    /// What stands in the path: the session, and what is asked of it.
    path: Vec<String>,
}

impl FromRequestParts<Arc<Admin>> for Visit {
    type Rejection = Response<Body>;

    async fn from_request_parts(
        parts: &mut Parts,
        admin: &Arc<Admin>,
    ) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<Peer>().copied();
        let by = entry::admit(admin, peer, parts).await;
        let by = by.map_err(|refusal| refused(admin, refusal))?;
        let path: Result<Path<Vec<(String, String)>>, PathRejection> =
            Path::from_request_parts(parts, admin).await;
        let query: Result<Query<Vec<(String, String)>>, QueryRejection> =
            Query::from_request_parts(parts, admin).await;
        let asked = query
            .map_err(|error| Problem::malformed(error.to_string()))
            .and_then(|Query(pairs)| Asked::read(&pairs).map_err(Problem::malformed))
            .map_err(|problem| answered(admin, by, Err(problem)))?;
        let path = path.map(|Path(named)| named).unwrap_or_default();
        Ok(Self {
            by,
            asked,
            path: path.into_iter().map(|(_, value)| value).collect(),
        })
    }
}

impl Visit {
    /// The session in the path.
    fn session(&self) -> Result<LineageId, Problem> {
        let id = self.path.first().map(String::as_str).unwrap_or_default();
        let unknown = || Trouble::UnknownSession(id.chars().take(64).collect());
        Ok(LineageId::from_text(id).ok_or_else(unknown)?)
    }

    /// What stands behind it.
    fn behind(&self) -> &str {
        self.path.get(1).map(String::as_str).unwrap_or_default()
    }
}

/// What somebody sees who may not look: the form to sign in, if that would help.
fn refused(admin: &Admin, refusal: Refusal) -> Response<Body> {
    let (status, _) = refusal.facts();
    let markup = if matches!(refusal, Refusal::NoToken | Refusal::WrongToken) {
        frame::sign_in(None)
    } else {
        frame::wrong(By::Nobody, status, &refusal.to_string())
    };
    finish(admin, html(status, markup))
}

/// Counts a page, or what is wrong.
fn answered(admin: &Admin, by: By, shown: Result<Markup, Problem>) -> Response<Body> {
    let response = match shown {
        Ok(markup) => html(StatusCode::OK, markup),
        Err(problem) => {
            let status = problem.status();
            html(status, frame::wrong(by, status, problem.message()))
        }
    };
    finish(admin, response)
}

fn html(status: StatusCode, markup: Markup) -> Response<Body> {
    (status, Html(markup.into_string())).into_response()
}
