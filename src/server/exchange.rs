//! The life of a request, a step a line.
//!
//! Client, server, upstream, client: this file knows all the steps and does none
//! of them itself. What it forwards are the client's own bytes. Whatever
//! happens, a request is counted once, logged once, and answered with the id
//! that stands in the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};

use super::headers::{self, REQUEST_ID};
use super::intake::{self, Limits, Passing, Room};
use super::respond::Failure;
use crate::config::models::Models;
use crate::metrics::{Metrics, Phase};
use crate::upstream::relay::{Ended, Outcome, Relay};
use crate::upstream::{RequestBody, ResponseBody, Upstream};
use crate::wire::encoding::Coding;

/// What one worker needs to carry requests.
pub struct Worker {
    /// The way to the API.
    pub upstream: Upstream,
    /// What is shared with the other workers.
    pub shared: Arc<Shared>,
}

/// What all workers share.
pub struct Shared {
    /// The metrics.
    pub metrics: Metrics,
    /// Limits on what is taken in.
    pub limits: Limits,
    /// Room for request bodies.
    pub room: Room,
    /// The model table.
    pub models: Models,
}

/// What kind of request it is: the label of metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Messages,
    CountTokens,
    Other,
}

impl Route {
    fn of(method: &Method, uri: &Uri) -> Self {
        match (method, uri.path()) {
            (&Method::POST, "/v1/messages") => Self::Messages,
            (&Method::POST, "/v1/messages/count_tokens") => Self::CountTokens,
            _ => Self::Other,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::Other => "other",
        }
    }

    /// Whether the body has to be read before it can be forwarded.
    fn reads_body(self) -> bool {
        self != Self::Other
    }
}

/// A new id for a request.
pub fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// An id as the value of a header.
pub fn id_header(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// Carries one request to upstream and the answer back.
pub async fn exchange(State(worker): State<Arc<Worker>>, request: Request<Body>) -> Response<Body> {
    let story = Story::begin(&worker.shared, &request);
    let id = story.id.clone();
    let mut response = match carry(&worker, story, request).await {
        Ok(response) => response,
        Err((failure, story)) => story.fail(&failure),
    };
    response.headers_mut().insert(REQUEST_ID, id_header(&id));
    response
}

async fn carry(
    worker: &Worker,
    mut story: Story,
    request: Request<Body>,
) -> Result<Response<Body>, (Failure, Story)> {
    let (parts, body) = request.into_parts();
    let received = receive(worker, story.route, &parts, body).await;
    let body = match received {
        Ok(body) => body,
        Err(failure) => return Err((failure, story)),
    };
    story.received();
    let outbound = match address(worker, parts, body) {
        Ok(outbound) => outbound,
        Err(failure) => return Err((failure, story)),
    };
    story.forwarding();
    match worker.upstream.send(outbound).await {
        Ok(response) => Ok(relay(worker, story, response)),
        Err(error) => Err((error.into(), story)),
    }
}

/// Takes the body in, whole if it must be read.
async fn receive(
    worker: &Worker,
    route: Route,
    parts: &Parts,
    body: Body,
) -> Result<RequestBody, Failure> {
    let Shared { limits, room, .. } = worker.shared.as_ref();
    if parts.method == Method::CONNECT {
        return Err(Failure::Tunnel);
    }
    if !route.reads_body() {
        let passing = Passing::new(body, limits.body_idle);
        return Ok(RequestBody::Stream(Body::new(passing)));
    }
    let body = intake::receive(body, limits, room).await?;
    let coding = Coding::declared(&parts.headers);
    if let Some(coding) = coding.filter(|coding| *coding != Coding::Identity) {
        intake::check_decoded(coding, &body, limits.body_bytes).await?;
    }
    Ok(RequestBody::from(body))
}

/// Readdresses the request: same method, path, query, end-to-end headers, body.
fn address(
    worker: &Worker,
    parts: Parts,
    body: RequestBody,
) -> Result<Request<RequestBody>, Failure> {
    let mut outbound = Request::new(body);
    *outbound.uri_mut() = worker.upstream.target(&parts.uri)?;
    *outbound.method_mut() = parts.method;
    *outbound.headers_mut() = parts.headers;
    // Holds how the client spelled its header names.
    *outbound.extensions_mut() = parts.extensions;
    headers::strip_request(outbound.headers_mut());
    Ok(outbound)
}

/// Hands the answer on as it comes.
fn relay(worker: &Worker, story: Story, response: Response<ResponseBody>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    headers::strip_response(&mut parts.headers);
    let silence = worker.upstream.idle_limit();
    let report = story.answered(parts.status);
    let relay = Relay::new(body, &parts.headers, silence, report);
    Response::from_parts(parts, Body::new(relay))
}

/// What is to be told of a request afterwards.
struct Story {
    shared: Arc<Shared>,
    id: String,
    route: Route,
    method: Method,
    begun: Instant,
    received: Instant,
    forwarded: Instant,
}

impl Story {
    fn begin(shared: &Arc<Shared>, request: &Request<Body>) -> Self {
        shared.metrics.in_flight.inc();
        let now = Instant::now();
        Self {
            shared: shared.clone(),
            id: new_id(),
            route: Route::of(request.method(), request.uri()),
            method: request.method().clone(),
            begun: now,
            received: now,
            forwarded: now,
        }
    }

    fn received(&mut self) {
        self.received = Instant::now();
    }

    fn forwarding(&mut self) {
        self.forwarded = Instant::now();
        self.shared.metrics.overhead(self.forwarded - self.received);
    }

    fn fail(self, failure: &Failure) -> Response<Body> {
        let route = self.route.label();
        self.shared.metrics.answered(route, failure.status());
        tracing::warn!(
            request = self.id,
            route,
            method = %self.method,
            status = failure.status().as_u16(),
            origin = ?failure.origin(),
            reason = failure.reason(),
            error = %failure,
            milliseconds = milliseconds(self.begun.elapsed()),
            "request failed"
        );
        failure.response(&self.id)
    }

    /// Counts the answer's head; what is returned tells of its end.
    fn answered(self, status: StatusCode) -> impl FnOnce(Outcome) + Send + Unpin + 'static {
        let first_byte = self.forwarded.elapsed();
        let metrics = &self.shared.metrics;
        metrics.answered(self.route.label(), status);
        metrics.upstream(Phase::FirstByte, first_byte);
        move |outcome| self.finish(status, first_byte, &outcome)
    }

    fn finish(self, status: StatusCode, first_byte: Duration, outcome: &Outcome) {
        let Outcome {
            reply,
            bytes,
            ended,
        } = outcome;
        let metrics = &self.shared.metrics;
        metrics.upstream(Phase::Total, self.forwarded.elapsed());
        let model = self
            .shared
            .models
            .label(reply.model.as_deref().unwrap_or(""));
        metrics.tokens(model, &reply.usage);
        tracing::info!(
            request = self.id,
            route = self.route.label(),
            method = %self.method,
            status = status.as_u16(),
            model,
            input = reply.usage.input,
            cache_read = reply.usage.cache_read,
            cache_write = reply.usage.cache_write,
            output = reply.usage.output,
            stop = reply.stop_reason,
            error = reply.error,
            tool_calls = reply.tool_calls.len(),
            bytes,
            ended = match ended {
                Ended::Whole => "whole",
                Ended::Cut(reason) => reason,
                Ended::Abandoned => "abandoned by the client",
            },
            first_byte_milliseconds = milliseconds(first_byte),
            milliseconds = milliseconds(self.begun.elapsed()),
            "request"
        );
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        self.shared.metrics.in_flight.dec();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
