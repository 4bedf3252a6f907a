//! The record of one request: counted once, logged once, however it ends.
//!
//! A record starts when the request arrives and ends with the answer's last byte,
//! with a failure, or, if neither came, when it is dropped because the client left.
//! It holds no content and no credential. It only writes down: the steps
//! themselves are in `exchange.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Method, Response, StatusCode};

use super::relay::{Ended, Outcome};
use super::request_id::new_id;
use super::respond::Failure;
use super::route::Route;
use super::worker::Shared;
use crate::engine::accounts::cost;
use crate::engine::money::Money;
use crate::metrics::Phase;
use crate::views::observe::Sent;
use crate::wire::reply::Reply;

/// The record of a request.
pub struct RequestLog {
    shared: Arc<Shared>,
    id: String,
    route: Route,
    method: Method,
    begun: Instant,
    received: Instant,
    forwarded: Instant,
    /// Status and time of the first byte of the answer that is being relayed.
    answer: Option<(StatusCode, Duration)>,
    is_counted: bool,
}

impl RequestLog {
    /// Starts the record of a request that has just arrived.
    pub fn begin(shared: &Arc<Shared>, route: Route, method: &Method) -> Self {
        shared.metrics.in_flight.inc();
        let now = Instant::now();
        Self {
            shared: shared.clone(),
            id: new_id(),
            route,
            method: method.clone(),
            begun: now,
            received: now,
            forwarded: now,
            answer: None,
            is_counted: false,
        }
    }

    /// The request's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The kind of request.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The method, if it is short enough to be one.
    fn method(&self) -> &str {
        let name = self.method.as_str();
        if name.len() <= 16 { name } else { "other" }
    }

    /// Notes that the body has been read, as far as it is needed.
    pub fn body_received(&mut self) {
        self.received = Instant::now();
    }

    /// Notes that the request is sent upstream now.
    pub fn forwarding(&mut self) {
        self.forwarded = Instant::now();
        self.shared.metrics.overhead(self.forwarded - self.received);
    }

    /// Counts and logs a request that upstream did not answer; returns the answer
    /// that the client gets instead.
    pub fn fail(mut self, failure: &Failure) -> Response<Body> {
        self.is_counted = true;
        let route = self.route.label();
        self.shared.metrics.answered(route, failure.status());
        tracing::warn!(
            request = self.id,
            route,
            method = self.method(),
            status = failure.status().as_u16(),
            origin = ?failure.origin(),
            reason = failure.reason(),
            error = %failure,
            milliseconds = milliseconds(self.begun.elapsed()),
            "request failed"
        );
        failure.response(&self.id)
    }

    /// Counts the head of upstream's answer.
    pub fn answered(&mut self, status: StatusCode) {
        self.is_counted = true;
        let first_byte = self.forwarded.elapsed();
        self.answer = Some((status, first_byte));
        let metrics = &self.shared.metrics;
        metrics.answered(self.route.label(), status);
        metrics.upstream(Phase::FirstByte, first_byte);
    }

    /// Whether upstream answered with success.
    pub fn is_success(&self) -> bool {
        self.answer.is_some_and(|(status, _)| status.is_success())
    }

    /// Counts and logs an answer that has ended.
    pub fn finish(&self, outcome: &Outcome, sent: Option<&Sent>) {
        let Outcome {
            reply,
            bytes,
            ended,
        } = outcome;
        let (status, first_byte) = self.answer.unwrap_or_default();
        let metrics = &self.shared.metrics;
        metrics.upstream(Phase::Total, self.forwarded.elapsed());
        let model = self
            .shared
            .models
            .label(reply.model.as_deref().unwrap_or(""));
        metrics.tokens(model, &reply.usage);
        if sent.is_none() {
            self.count_cost(reply);
        }
        tracing::info!(
            request = self.id,
            route = self.route.label(),
            method = self.method(),
            status = status.as_u16(),
            model,
            input = reply.usage.input,
            cache_read = reply.usage.cache_read,
            cache_write = reply.usage.cache_write,
            output = reply.usage.output,
            stop = reply.stop_reason,
            error = reply.error,
            tool_calls = reply.tool_calls.len(),
            session = sent.map(|sent| sent.session.as_str()),
            view = sent.map(|sent| sent.shape.as_str()),
            compaction = sent.map(|sent| sent.compaction.as_str()),
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

    /// Counts the cost of a request that went out unchanged: the same as it would
    /// have been without Longhaul.
    fn count_cost(&self, reply: &Reply) {
        let Shared {
            models, metrics, ..
        } = &*self.shared;
        let (Some(model), Some(prompt)) = (&reply.model, reply.usage.prompt()) else {
            return;
        };
        if let Some(prices) = models.lookup(model).prices(prompt) {
            let money = Money::of_request(cost(&reply.usage, &prices), 0);
            metrics.paid(models.label(model), money);
        }
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        if !self.is_counted {
            let route = self.route.label();
            self.shared.metrics.answered(route, client_left());
            tracing::info!(
                request = self.id,
                route,
                milliseconds = milliseconds(self.begun.elapsed()),
                "the client left before there was an answer"
            );
        }
        self.shared.metrics.in_flight.dec();
    }
}

/// The status by which proxies count a client that did not wait. It is never sent.
fn client_left() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
