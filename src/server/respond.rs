//! What goes wrong on our side, and how a client is told.
//!
//! The only place where an error becomes HTTP. Upstream's own errors never come
//! here: they pass byte for byte. Ours have the shape of the API, because that
//! is what the client understands, and say what was wrong, with which value, and
//! what to do. The reason is a closed word for logs.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::upstream::UpstreamError;

/// The status of a provider under too much load; it has no name in the standard.
pub const OVERLOADED: u16 = 529;

/// Why a request got no answer from upstream.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request's first lines are not HTTP.
    #[error("request is not valid HTTP/1.1: check the client, or what stands between it and here")]
    BadHead,
    /// The request's first lines are too long.
    #[error("request headers are too large: at most 100 headers and 128 KiB")]
    HeadTooLarge,
    /// The request's target is too long.
    #[error("request target is too long: at most 65534 bytes")]
    TargetTooLong,
    /// The request's first lines took too long.
    #[error(
        "request headers did not arrive within {0:?}: send them faster, or raise limits.header_timeout"
    )]
    HeadTimeout(Duration),
    /// The body is larger than allowed.
    #[error("request body is larger than {limit} bytes: send less, or raise limits.body_bytes")]
    BodyTooLarge {
        /// The most bytes that are allowed.
        limit: u64,
    },
    /// The body is larger than allowed once it is decoded.
    #[error(
        "request body is larger than {limit} bytes once decoded: send less, or raise limits.body_bytes"
    )]
    DecodedTooLarge {
        /// The most bytes that are allowed.
        limit: u64,
    },
    /// The body stopped arriving.
    #[error(
        "request body stalled for {0:?} after {1} bytes: send it faster, or raise limits.body_idle"
    )]
    BodyStalled(Duration, u64),
    /// The body ended before it was complete.
    #[error("request body broke off after {0} bytes: {1}")]
    BodyBroken(u64, String),
    /// There is no room for the body.
    #[error("no room for the request body within {0:?}: try again, or raise limits.buffered_bytes")]
    NoRoom(Duration),
    /// A transfer coding besides `chunked`.
    #[error("transfer-encoding {0:?} is not supported: use chunked, or content-encoding")]
    TransferCoding(String),
    /// A method that makes no sense here.
    #[error("CONNECT is not supported: this proxy forwards to one upstream only")]
    Tunnel,
    /// A socket for an API that is reached by requests.
    #[error(
        "WebSocket is not supported: send {0} as POST with \"stream\": true instead; Codex does so \
         by itself after this answer"
    )]
    WebSocket(String),
    /// A web page of another host sends it without a key.
    #[error(
        "the request comes from a web page of another origin and carries no key: send x-api-key or authorization, or leave the origin header out"
    )]
    ForeignPage,
    /// A history that the server would hold.
    #[error(
        "threads held by the server are not managed here: send the whole history, or set threads = \"pass\""
    )]
    ThreadDeclined,
    /// Upstream refused a request in every form.
    #[error("upstream refused the request in every form that was tried")]
    Refused,
    /// Upstream gave no answer.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The client.
    Client,
    /// Upstream, or the way to it.
    Upstream,
    /// This process.
    Us,
}

impl Failure {
    /// Origin, status, the API's type of error, and the word for logs.
    fn facts(&self) -> (Origin, u16, &'static str, &'static str) {
        use Origin::{Client, Upstream, Us};
        let invalid = "invalid_request_error";
        match self {
            Self::BadHead => (Client, 400, invalid, "bad_head"),
            Self::HeadTooLarge => (Client, 431, invalid, "head_too_large"),
            Self::TargetTooLong => (Client, 414, invalid, "target_too_long"),
            Self::HeadTimeout(_) => (Client, 408, "timeout_error", "head_timeout"),
            Self::BodyTooLarge { .. } => (Client, 413, "request_too_large", "body_too_large"),
            Self::DecodedTooLarge { .. } => (Client, 413, "request_too_large", "decoded_too_large"),
            Self::BodyStalled(..) => (Client, 408, "timeout_error", "body_stalled"),
            Self::BodyBroken(..) => (Client, 400, invalid, "body_broken"),
            Self::NoRoom(_) => (Us, OVERLOADED, "overloaded_error", "no_room"),
            Self::TransferCoding(_) => (Client, 501, invalid, "transfer_coding"),
            Self::Tunnel => (Client, 405, invalid, "tunnel"),
            Self::WebSocket(_) => (Client, 426, invalid, "websocket"),
            Self::ForeignPage => (Client, 403, "permission_error", "foreign_page"),
            Self::ThreadDeclined => (Us, 400, invalid, "thread_declined"),
            Self::Refused => (Upstream, 502, "api_error", "refused"),
            Self::Upstream(error) => match error {
                UpstreamError::Connect(_) => (Upstream, 502, "api_error", "connect"),
                UpstreamError::ConnectTimeout(_) => {
                    (Upstream, 504, "timeout_error", "connect_timeout")
                }
                UpstreamError::Lost { .. } => (Upstream, 502, "api_error", "lost"),
                UpstreamError::Garbled(_) => (Upstream, 502, "api_error", "garbled"),
                UpstreamError::Silent(_) => (Upstream, 504, "timeout_error", "silent"),
                UpstreamError::RequestBody(_) => (Client, 400, invalid, "request_body"),
                UpstreamError::RequestStalled(_) => {
                    (Client, 408, "timeout_error", "request_stalled")
                }
                UpstreamError::Target(_) => (Client, 400, invalid, "target"),
            },
        }
    }

    /// Who is to blame.
    pub fn origin(&self) -> Origin {
        self.facts().0
    }

    /// The status the client sees.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.facts().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// One word for logs.
    pub fn reason(&self) -> &'static str {
        self.facts().3
    }

    /// The body, in the API's shape.
    pub fn body(&self, request: &str) -> String {
        let (kind, message) = (self.facts().2, format!("longhaul: {self}"));
        let error = if matches!(self, Self::ThreadDeclined) {
            // The official SDKs go on with the whole history when they see this.
            let details = json!({ "error_code": "thread_unsupported_request" });
            json!({ "type": kind, "message": message, "details": details })
        } else {
            json!({ "type": kind, "message": message })
        };
        json!({ "type": "error", "error": error, "request_id": request }).to_string()
    }

    /// The response.
    pub fn response(&self, request: &str) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body(request)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if matches!(self, Self::NoRoom(_)) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if matches!(self, Self::WebSocket(_)) {
            // The standard wants to know what is spoken here.
            headers.insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
        }
        response
    }

    /// The whole response as bytes, for a connection that HTTP has given up on.
    pub fn raw_response(&self, request: &str) -> String {
        let body = self.body(request);
        let status = self.status();
        format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\nx-longhaul-request: {request}\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            status.as_str(),
            status.canonical_reason().unwrap_or("Error"),
            body.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::too_many_lines, reason = "one table")]
    fn every_failure_has_the_api_s_shape_and_names_its_value() {
        let second = Duration::from_secs(1);
        let rows = [
            (Failure::BadHead, 400, "invalid_request_error", "HTTP/1.1"),
            (
                Failure::HeadTooLarge,
                431,
                "invalid_request_error",
                "128 KiB",
            ),
            (
                Failure::TargetTooLong,
                414,
                "invalid_request_error",
                "65534",
            ),
            (Failure::HeadTimeout(second), 408, "timeout_error", "1s"),
            (
                Failure::WebSocket("/v1/responses".into()),
                426,
                "invalid_request_error",
                "/v1/responses",
            ),
            (
                Failure::BodyTooLarge { limit: 77 },
                413,
                "request_too_large",
                "77",
            ),
            (
                Failure::DecodedTooLarge { limit: 77 },
                413,
                "request_too_large",
                "77",
            ),
            (
                Failure::BodyStalled(second, 5),
                408,
                "timeout_error",
                "5 bytes",
            ),
            (
                Failure::BodyBroken(5, "x".into()),
                400,
                "invalid_request_error",
                "5 bytes",
            ),
            (
                Failure::NoRoom(second),
                529,
                "overloaded_error",
                "buffered_bytes",
            ),
            (Failure::Tunnel, 405, "invalid_request_error", "CONNECT"),
            (Failure::ForeignPage, 403, "permission_error", "x-api-key"),
            (
                UpstreamError::Connect("refused".into()).into(),
                502,
                "api_error",
                "refused",
            ),
            (
                UpstreamError::ConnectTimeout(second).into(),
                504,
                "timeout_error",
                "1s",
            ),
            (
                UpstreamError::Lost {
                    reason: "reset".into(),
                    untouched: false,
                }
                .into(),
                502,
                "api_error",
                "reset",
            ),
            (
                UpstreamError::Silent(second).into(),
                504,
                "timeout_error",
                "1s",
            ),
            (
                UpstreamError::RequestBody("x".into()).into(),
                400,
                "invalid_request_error",
                "x",
            ),
            (
                UpstreamError::Target("x".into()).into(),
                400,
                "invalid_request_error",
                "x",
            ),
        ];
        for (failure, status, kind, value) in rows {
            assert_eq!(failure.status().as_u16(), status, "{failure}");
            let body: serde_json::Value = serde_json::from_str(&failure.body("r1")).unwrap();
            assert_eq!(body["type"], "error");
            assert_eq!(body["error"]["type"], kind);
            assert_eq!(body["request_id"], "r1");
            assert!(
                body["error"]["message"].as_str().unwrap().contains(value),
                "{body}"
            );
        }
    }
}
