//! What is told of a request: one count, one log line, however it ends.
//!
//! A story begins with the request and goes with its answer. It ends with the
//! answer's last byte, with a failure, or, if neither came, when it is dropped
//! because the client left. Nothing of the content is in it, and no credential.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{HeaderValue, Method, Response, StatusCode};

use super::exchange::{Route, Shared};
use super::relay::{Ended, Outcome, Witness};
use super::respond::Failure;
use crate::engine::accounts::cost;
use crate::engine::money::Money;
use crate::metrics::Phase;
use crate::views::observe::{Sealing, Sent};
use crate::wire::reply::Reply;

/// A new id for a request.
pub fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// An id as the value of a header.
pub fn id_header(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// What is to be told of a request afterwards.
pub struct Story {
    shared: Arc<Shared>,
    id: String,
    route: Route,
    method: Method,
    begun: Instant,
    received: Instant,
    forwarded: Instant,
    told: bool,
}

impl Story {
    /// A request has arrived.
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
            told: false,
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What kind of request it is.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The method, if it is one that anybody knows.
    fn method(&self) -> &str {
        let name = self.method.as_str();
        if name.len() <= 16 { name } else { "other" }
    }

    /// Its body is there, as far as it is needed.
    pub fn received(&mut self) {
        self.received = Instant::now();
    }

    /// It goes upstream now.
    pub fn forwarding(&mut self) {
        self.forwarded = Instant::now();
        self.shared.metrics.overhead(self.forwarded - self.received);
    }

    /// It got no answer from upstream; this is the one it gets.
    pub fn fail(mut self, failure: &Failure) -> Response<Body> {
        self.told = true;
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

    /// Counts the answer's head; what is returned tells of the rest.
    pub fn answered(mut self, status: StatusCode, sent: Option<Sent>) -> Telling {
        self.told = true;
        let first_byte = self.forwarded.elapsed();
        let metrics = &self.shared.metrics;
        metrics.answered(self.route.label(), status);
        metrics.upstream(Phase::FirstByte, first_byte);
        Telling {
            story: self,
            status,
            first_byte,
            sent,
        }
    }

    fn finish(
        &self,
        status: StatusCode,
        first_byte: Duration,
        outcome: &Outcome,
        sent: Option<&Sent>,
    ) {
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
}

impl Story {
    /// Counts what a request cost that went out as it came: the same as it would
    /// have without Longhaul.
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

/// Tells of an answer that is on its way.
pub struct Telling {
    story: Story,
    status: StatusCode,
    first_byte: Duration,
    sent: Option<Sent>,
}

impl Witness for Telling {
    fn began(&mut self, reply: &Reply) -> Option<Sealing> {
        let sent = self.sent.as_mut().filter(|_| self.status.is_success())?;
        self.story.shared.views.began(sent, reply)
    }

    fn ended(mut self, outcome: Outcome) {
        if let (true, Some(sent)) = (self.status.is_success(), &mut self.sent) {
            let views = &self.story.shared.views;
            views.ended(sent, &outcome.reply);
            if let Some(preparation) = sent.preparation(&outcome.reply) {
                views.prepare_summary(preparation);
            }
        }
        let sent = self.sent.as_ref();
        self.story
            .finish(self.status, self.first_byte, &outcome, sent);
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if !self.told {
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

/// The status by which proxies count a client that did not wait; nobody sees it.
fn client_left() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
