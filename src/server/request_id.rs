//! The id of a request: it stands in the log and in the answer.

use http::HeaderValue;

/// A new id for a request.
pub fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// An id as the value of a header.
pub fn id_header(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}
