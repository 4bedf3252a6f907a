//! The errors of the simulated API.
//!
//! Clients read the wording: some parse numbers out of it, some decide from it
//! whether to retry. So the texts are the API's own wherever they are known,
//! and the body has the API's shape. An error here is an answer, not a failure
//! of the simulator.

use serde_json::{Value, json};

/// A refusal as the API words it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{status} {kind}: {message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// `error.type` of the body.
    pub kind: &'static str,
    /// `error.message` of the body.
    pub message: String,
    /// `error.details.error_code` of the body, for the refusals that carry one.
    pub code: Option<&'static str>,
    /// Value of the `retry-after` header in seconds.
    pub retry_after: Option<u64>,
    /// Value of the `x-should-retry` header.
    pub should_retry: Option<bool>,
}

/// What a check answers: nothing, or the refusal.
pub type Checked<T = ()> = Result<T, ApiError>;

impl ApiError {
    /// An error with the type that belongs to its status.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: kind_of(status),
            message: message.into(),
            code: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// 400: the request breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// 400 for a field that the API does not know, or not without its beta.
    pub fn extra(path: impl std::fmt::Display) -> Self {
        Self::invalid(format!("{path}: Extra inputs are not permitted"))
    }

    /// 400 for a field that is missing.
    pub fn required(path: impl std::fmt::Display) -> Self {
        Self::invalid(format!("{path}: Field required"))
    }

    /// 401: no credential, or one that is not accepted.
    pub fn authentication(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// Adds a code that newer SDKs read from `error.details`.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The response body.
    pub fn body(&self, request_id: &str) -> Value {
        json!({ "type": "error", "error": self.inner(), "request_id": request_id })
    }

    /// The `error` object, which is also what an error event in a stream carries.
    pub fn inner(&self) -> Value {
        let mut inner = json!({ "type": self.kind, "message": self.message });
        if let (Some(code), Some(object)) = (self.code, inner.as_object_mut()) {
            object.insert("details".to_owned(), json!({ "error_code": code }));
        }
        inner
    }
}

fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        status if status >= 500 => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fact: the body is `{"type":"error","error":{type,message,details?},"request_id"}`.
    #[test]
    fn the_body_has_the_shape_of_the_api() {
        let body = ApiError::invalid("no")
            .with_code("thread_unsupported_request")
            .body("req_1");
        assert_eq!(
            body,
            json!({"type": "error", "request_id": "req_1", "error": {
                "type": "invalid_request_error", "message": "no",
                "details": {"error_code": "thread_unsupported_request"}}})
        );
    }

    /// Fact: each status has its own error type.
    #[test]
    fn each_status_has_its_type() {
        let table = [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (402, "billing_error"),
            (403, "permission_error"),
            (404, "not_found_error"),
            (409, "conflict_error"),
            (413, "request_too_large"),
            (429, "rate_limit_error"),
            (500, "api_error"),
            (504, "timeout_error"),
            (529, "overloaded_error"),
        ];
        for (status, kind) in table {
            assert_eq!(ApiError::new(status, "").kind, kind);
        }
    }
}
