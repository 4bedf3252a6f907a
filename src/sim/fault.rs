//! Faults on demand.
//!
//! A fault is either an answer in place of the real one, or something that
//! happens to the real one on its way. It is queued for the next request that
//! matches, or named by a request header for that request alone.

use serde::{Deserialize, Serialize};

use super::error::ApiError;

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error status instead of an answer.
    Status {
        /// The status.
        status: u16,
        /// The text; each status has a usual one.
        #[serde(default)]
        message: Option<String>,
        /// `retry-after` in seconds.
        #[serde(default)]
        retry_after: Option<u64>,
        /// `x-should-retry`.
        #[serde(default)]
        should_retry: Option<bool>,
    },
    /// The connection is reset before any header.
    Reset,
    /// No header ever comes.
    Hang,
    /// The connection is reset after so many events.
    ResetAfter {
        /// Events, or pieces of a plain answer.
        events: usize,
    },
    /// The connection is closed after so many events, in the middle of the body.
    CutAfter {
        /// Events, or pieces of a plain answer.
        events: usize,
    },
    /// The body ends properly, but after so many events.
    EndAfter {
        /// Events, or pieces of a plain answer.
        events: usize,
    },
    /// Silence after so many events.
    StallAfter {
        /// Events, or pieces of a plain answer.
        events: usize,
    },
    /// An error event after so many events.
    ErrorAfter {
        /// Events, or pieces of a plain answer.
        events: usize,
        /// `error.type`.
        #[serde(default = "overloaded")]
        error: String,
    },
    /// Bytes that are no event after so many events, then the rest.
    GarbageAfter {
        /// Events, or pieces of a plain answer.
        events: usize,
    },
    /// The right answer under the wrong content type.
    WrongContentType,
    /// A page of somebody else's, with status 200.
    Garbage,
}

fn overloaded() -> String {
    "overloaded_error".to_owned()
}

/// Which requests a queued fault waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The next request for a message, of whatever kind.
    #[default]
    Any,
    /// The next one that does not ask for a summary.
    Main,
    /// The next one that asks for a summary.
    Summary,
    /// The next request to count tokens.
    Count,
}

/// A fault in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    /// What goes wrong.
    pub fault: Fault,
    /// For which requests.
    #[serde(default)]
    pub target: Target,
    /// How many times.
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

impl Fault {
    /// An error status with its usual text.
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            message: None,
            retry_after: None,
            should_retry: None,
        }
    }

    /// Reads the short form of a header: `529`, `429:7` (with retry-after),
    /// `reset`, `reset-after:3`, `error-after:2:api_error`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':');
        let name = parts.next()?;
        let number = parts.next();
        let last = parts.next();
        if let Ok(status) = name.parse() {
            let retry_after = number.and_then(|number| number.parse().ok());
            return Some(Self::Status {
                status,
                message: None,
                retry_after,
                should_retry: None,
            });
        }
        let events = number.map_or(Some(2), |number| number.parse().ok())?;
        Some(match name {
            "reset" => Self::Reset,
            "hang" => Self::Hang,
            "reset-after" => Self::ResetAfter { events },
            "cut-after" => Self::CutAfter { events },
            "end-after" => Self::EndAfter { events },
            "stall-after" => Self::StallAfter { events },
            "garbage-after" => Self::GarbageAfter { events },
            "error-after" => Self::ErrorAfter {
                events,
                error: last.map_or_else(overloaded, str::to_owned),
            },
            "wrong-content-type" => Self::WrongContentType,
            "garbage" => Self::Garbage,
            _ => return None,
        })
    }

    /// The error that is answered instead of a message, if the fault is one.
    pub fn error(&self) -> Option<ApiError> {
        let Self::Status {
            status,
            message,
            retry_after,
            should_retry,
        } = self
        else {
            return None;
        };
        let text = message
            .clone()
            .unwrap_or_else(|| usual_text(*status).to_owned());
        let mut error = ApiError::new(*status, text);
        error.retry_after = *retry_after;
        error.should_retry = *should_retry;
        Some(error)
    }
}

/// The usual text of an error status.
pub fn usual_text(status: u16) -> &'static str {
    match status {
        401 => "invalid x-api-key",
        403 => "Your account does not have access to this resource.",
        404 => "Not found",
        413 => "Request exceeds the maximum size",
        429 => "This request would exceed your account's rate limit. Please try again later.",
        529 => "Overloaded",
        status if status >= 500 => "Internal server error",
        _ => "Bad request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_names_every_fault() {
        let table = [
            ("529", Fault::status(529)),
            (
                "429:7",
                Fault::Status {
                    status: 429,
                    message: None,
                    retry_after: Some(7),
                    should_retry: None,
                },
            ),
            ("reset", Fault::Reset),
            ("hang", Fault::Hang),
            ("reset-after:3", Fault::ResetAfter { events: 3 }),
            ("cut-after:3", Fault::CutAfter { events: 3 }),
            ("end-after:3", Fault::EndAfter { events: 3 }),
            ("stall-after:3", Fault::StallAfter { events: 3 }),
            ("garbage-after", Fault::GarbageAfter { events: 2 }),
            (
                "error-after:1:api_error",
                Fault::ErrorAfter {
                    events: 1,
                    error: "api_error".to_owned(),
                },
            ),
            ("wrong-content-type", Fault::WrongContentType),
            ("garbage", Fault::Garbage),
        ];
        for (text, fault) in table {
            assert_eq!(Fault::parse(text), Some(fault), "{text}");
        }
        assert_eq!(Fault::parse("nonsense"), None);
    }

    /// Fact: 429 comes with retry-after, 529 is `overloaded_error` with the text "Overloaded".
    #[test]
    fn error_statuses_have_their_texts() {
        let error = Fault::parse("429:7").unwrap().error().unwrap();
        assert_eq!(
            (error.kind, error.retry_after),
            ("rate_limit_error", Some(7))
        );
        let error = Fault::status(529).error().unwrap();
        assert_eq!(
            (error.kind, error.message.as_str()),
            ("overloaded_error", "Overloaded")
        );
    }
}
