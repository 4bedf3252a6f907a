//! One call to a model that writes a summary.
//!
//! Nobody streams these answers and nobody is in a hurry, so an ordinary client
//! does. Each of its conveniences is switched off: no redirects, because a
//! credential goes where the operator said and nowhere else; no retries, because
//! what to try next is decided elsewhere; no proxy but the one that the proxy's
//! own requests take.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use hyper_util::client::proxy::matcher::Matcher;
use serde_json::Value;

use crate::upstream;
use crate::wire::refusal::Refusal;
use crate::wire::reply::{Reply, Usage};

/// The longest answer that is read.
const LONGEST: usize = 16 << 20;

/// What a model said.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Its blocks.
    pub content: Vec<Value>,
    /// Why it stopped.
    pub stop_reason: String,
    /// What it is billed as.
    pub usage: Usage,
}

impl Said {
    fn read(body: &[u8]) -> Option<Self> {
        let mut message: Value = serde_json::from_slice(body).ok()?;
        let mut reply = Reply::default();
        reply.read_message(body);
        let usage = usage(&message).unwrap_or(reply.usage);
        let content = message.get_mut("content")?.as_array_mut()?;
        Some(Self {
            content: std::mem::take(content),
            stop_reason: reply.stop_reason?,
            usage,
        })
    }

    /// Its words, without its thoughts.
    pub fn text(&self) -> String {
        let texts = self
            .content
            .iter()
            .filter(|block| block.get("type").is_some_and(|kind| kind == "text"))
            .filter_map(|block| block.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The API's own summary, as it came.
    pub fn compaction(&self) -> Option<&Value> {
        let mut blocks = self.content.iter();
        let is = |block: &Value, kind: &str| block.get("type").is_some_and(|it| it == kind);
        blocks.find(|block| {
            is(block, "compaction") && block.get("content").is_some_and(Value::is_string)
        })
    }
}

/// What an answer of several rounds is billed as: the usage names only some.
fn usage(message: &Value) -> Option<Usage> {
    let rounds = message.pointer("/usage/iterations")?.as_array()?;
    let sum = |name: &str| {
        let counts = rounds.iter().filter_map(|round| round.get(name)?.as_u64());
        Some(counts.sum())
    };
    Some(Usage {
        input: sum("input_tokens"),
        cache_write: sum("cache_creation_input_tokens"),
        cache_write_1h: None,
        cache_read: sum("cache_read_input_tokens"),
        output: sum("output_tokens"),
    })
}

/// Why a call brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The API does not take the request.
    #[error("it was refused with {status}: {refusal:?}")]
    Refused {
        /// The status.
        status: u16,
        /// Why.
        refusal: Refusal,
    },
    /// The API fails, or wants to be left alone.
    #[error("the API answered {status}")]
    Failing {
        /// The status.
        status: u16,
        /// For how long it wants to be left alone.
        asked: Option<Duration>,
    },
    /// There was no answer.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// There was none in time.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// What came is not an answer.
    #[error("the answer is not a message")]
    Garbled,
}

/// A call, ready to be made. It holds a credential, and is not to be shown.
#[derive(Clone)]
pub struct Call {
    /// Where it goes.
    pub to: Uri,
    /// With which headers.
    pub headers: HeaderMap,
    /// What is asked.
    pub body: Bytes,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a client for summaries: {0}")]
pub struct NoClient(String);

/// What makes calls.
#[derive(Debug, Clone)]
pub struct Client(reqwest::Client);

impl Client {
    /// A client for calls to these addresses, by way of the proxies that the
    /// environment names for them.
    pub fn new(bases: &[Uri], proxies: &Matcher, connect: Duration) -> Result<Self, NoClient> {
        let failed = |error: reqwest::Error| NoClient(upstream::reason(&error));
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(upstream::client_config())
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(connect)
            .no_proxy();
        for base in bases
            .iter()
            .filter(|base| base.scheme_str() == Some("https"))
        {
            let Some(proxy) = proxies.intercept(base) else {
                continue;
            };
            let (host, uri) = (base.host().map(str::to_owned), proxy.uri().to_string());
            let to = reqwest::Url::parse(&uri).map_err(|error| NoClient(error.to_string()))?;
            let mut route = reqwest::Proxy::custom(move |url| {
                (url.host_str() == host.as_deref()).then(|| to.clone())
            });
            if let Some(credentials) = proxy.basic_auth() {
                route = route.custom_http_auth(credentials.clone());
            }
            builder = builder.proxy(route);
        }
        Ok(Self(builder.build().map_err(failed)?))
    }

    /// Makes a call.
    pub async fn call(&self, call: &Call, within: Duration) -> Result<Said, CallError> {
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                CallError::Late(within)
            } else {
                CallError::Unreachable(upstream::reason(&error.without_url()))
            }
        };
        let request = self
            .0
            .post(call.to.to_string())
            .headers(call.headers.clone())
            .body(call.body.clone())
            .timeout(within);
        let mut answer = request.send().await.map_err(failed)?;
        let (status, asked) = (answer.status(), left_alone(answer.headers()));
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST {
                return Err(CallError::Garbled);
            }
        }
        judge(status, asked, &body)
    }
}

fn judge(status: StatusCode, asked: Option<Duration>, body: &[u8]) -> Result<Said, CallError> {
    let code = status.as_u16();
    match code {
        200..=299 => Said::read(body).ok_or(CallError::Garbled),
        408 | 409 | 429 | 500.. => Err(CallError::Failing {
            status: code,
            asked,
        }),
        _ => Err(CallError::Refused {
            status: code,
            refusal: Refusal::read(code, body),
        }),
    }
}

/// For how long an API wants to be left alone.
pub fn left_alone(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms")
        .map(|milliseconds| milliseconds / 1000.0)
        .or_else(|| number(header::RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_or_told_by_its_status() {
        let message = br#"{"type":"message","id":"m","model":"x","content":[
            {"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"text","text":"a"},{"type":"text","text":"b"}],
            "stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}"#;
        let said = judge(StatusCode::OK, None, message).unwrap();
        assert_eq!(said.text(), "a\nb");
        assert_eq!(
            (said.usage.input, said.stop_reason.as_str()),
            (Some(3), "end_turn")
        );
        for body in [&b""[..], b"{}", b"[1]", br#"{"content":5}"#] {
            let outcome = judge(StatusCode::OK, None, body);
            assert_eq!(outcome.err(), Some(CallError::Garbled));
        }
        let pause = Some(Duration::from_secs(2));
        for status in [408, 429, 500, 529] {
            let code = StatusCode::from_u16(status).unwrap();
            let expected = CallError::Failing {
                status,
                asked: pause,
            };
            assert_eq!(judge(code, pause, b"{}").err(), Some(expected));
        }
        let long = br#"{"error":{"message":"prompt is too long: 212345 tokens > 200000 maximum"}}"#;
        let refused = judge(StatusCode::BAD_REQUEST, None, long).err();
        assert!(matches!(
            refused,
            Some(CallError::Refused {
                status: 400,
                refusal: Refusal::ContextExceeded {
                    window: Some(200_000),
                    ..
                }
            })
        ));
    }

    #[test]
    fn a_failed_compaction_is_none() {
        let said = |block: &str| Said {
            content: vec![serde_json::from_str(block).unwrap()],
            ..Said::default()
        };
        assert!(
            said(r#"{"type":"compaction","content":"x"}"#)
                .compaction()
                .is_some()
        );
        assert!(
            said(r#"{"type":"compaction","content":null}"#)
                .compaction()
                .is_none()
        );
    }
}
