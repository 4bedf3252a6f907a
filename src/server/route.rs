//! Which requests are read, and which pass unread.

use http::{Method, Uri};

/// What kind of request it is: the label of metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A message is wanted.
    Messages,
    /// The tokens of one are to be counted.
    CountTokens,
    /// Anything else.
    Other,
}

impl Route {
    /// The kind of a request, by method and path.
    pub fn of(method: &Method, uri: &Uri) -> Self {
        match (method, uri.path()) {
            (&Method::POST, "/v1/messages") => Self::Messages,
            (&Method::POST, "/v1/messages/count_tokens") => Self::CountTokens,
            _ => Self::Other,
        }
    }

    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::Other => "other",
        }
    }

    /// Whether the body has to be read before it can be forwarded.
    pub fn reads_body(self) -> bool {
        self != Self::Other
    }
}
