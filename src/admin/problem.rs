//! What the admin surface answers when it cannot do what it was asked: the API's
//! shape of an error, with a status that fits.

use axum::Json;
use axum::body::Body;
use axum::response::IntoResponse;
use http::{Response, StatusCode};
use serde_json::json;

use crate::recall::Trouble;
use crate::server::guard::Refusal;
use crate::server::respond::OVERLOADED;
use crate::store::StoreError;

/// A status and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    message: String,
}

impl Problem {
    /// With this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The request is not understood.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.facts().0, refusal.to_string())
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        let status = match &trouble {
            Trouble::UnknownReference | Trouble::UnknownSession(_) | Trouble::NotKept => {
                StatusCode::NOT_FOUND
            }
            Trouble::Ambiguous { .. } => StatusCode::CONFLICT,
            Trouble::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Trouble::Store(StoreError::Slow(_) | StoreError::Away(_)) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Trouble::Store(StoreError::Failed(_) | StoreError::Full { .. })
            | Trouble::Damaged(_)
            | Trouble::Bug => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::warn!(error = %trouble, "the journal could not be read");
        }
        Self::new(status, trouble.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
            StatusCode::REQUEST_TIMEOUT => "timeout_error",
            status if status.as_u16() == OVERLOADED => "overloaded_error",
            status if status.is_server_error() => "api_error",
            _ => "invalid_request_error",
        };
        let message = format!("longhaul: {}", self.message);
        let error = json!({ "type": kind, "message": message });
        let body = json!({ "type": "error", "error": error });
        (self.status, Json(body)).into_response()
    }
}
