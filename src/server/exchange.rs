//! The life of a request, a step a line.
//!
//! Client, server, view, upstream, client: this file knows all the steps and
//! does none of them itself. What it forwards is the view of the conversation,
//! or the client's own bytes where there is none. Whatever happens, a request is
//! counted once, logged once, and answered with the id that stands in the log.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};

use super::guard;
use super::headers::{self, REQUEST_ID};
use super::intake::{self, Limits, Passing, Room};
use super::line::Flight;
use super::relay::Relay;
use super::respond::Failure;
use super::retry;
use super::story::{Story, id_header};
use super::tenant;
use crate::compactor::sender::Sender;
use crate::config::models::Models;
use crate::metrics::Metrics;
use crate::upstream::{RequestBody, ResponseBody, Upstream};
use crate::views::Views;
use crate::views::observe::Sent;
use crate::views::prepare::{Asked, Prepared, Verdict};
use crate::wire::encoding::Coding;
use crate::wire::rewrite::Rewriter;

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
    pub metrics: Arc<Metrics>,
    /// What makes views of conversations.
    pub views: Arc<Views>,
    /// Limits on what is taken in.
    pub limits: Limits,
    /// Room for request bodies.
    pub room: Room,
    /// The model table.
    pub models: Models,
}

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
    fn of(method: &Method, uri: &Uri) -> Self {
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
    fn reads_body(self) -> bool {
        self != Self::Other
    }
}

/// A request that has been taken in.
enum Taken {
    /// It is passed on as it arrives.
    Passing(RequestBody),
    /// All of it is there; what it says, if that can be read.
    Whole(Bytes, Option<Bytes>),
}

/// Carries one request to upstream and the answer back.
pub async fn exchange(State(worker): State<Arc<Worker>>, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let flight = parts.extensions.remove::<Flight>();
    let route = Route::of(&parts.method, &parts.uri);
    let mut story = Story::begin(&worker.shared, route, &parts.method);
    let id = id_header(story.id());
    let mut response = match Box::pin(forward(&worker, &mut story, parts, body)).await {
        Ok((answer, prepared)) => relay(&worker, story, flight, answer, prepared),
        Err(failure) => story.fail(&failure),
    };
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// From the client's request to the head of upstream's answer.
async fn forward(
    worker: &Worker,
    story: &mut Story,
    parts: Parts,
    body: Body,
) -> Result<(Response<ResponseBody>, Option<Box<Prepared>>), Failure> {
    let route = story.route();
    if route.reads_body() && comes_from_foreign_page(&parts) {
        return Err(Failure::ForeignPage);
    }
    let taken = receive(worker, route, &parts, body).await?;
    story.received();
    let (own, verdict) = match taken {
        Taken::Passing(body) => return pass(worker, story, parts, body).await,
        Taken::Whole(own, None) => (own, Verdict::AsSent),
        Taken::Whole(own, Some(readable)) => {
            let verdict = view(worker, route, &parts, readable).await;
            (own, verdict)
        }
    };
    match verdict {
        Verdict::Decline => Err(Failure::ThreadDeclined),
        Verdict::AsSent => pass(worker, story, parts, own.into()).await,
        Verdict::Send(mut prepared) => {
            story.forwarding();
            let answer = retry::deliver(worker, &parts, &own, &mut prepared).await?;
            let views = &worker.shared.views;
            views.answered(&mut prepared, answer.status()).await;
            Ok((answer, Some(prepared)))
        }
    }
}

/// Whether a web page of another host has sent the request in the name of
/// whoever looks at it. One that brings a key of its own has had it from
/// somebody, as the pages inside editors have.
fn comes_from_foreign_page(parts: &Parts) -> bool {
    let has_key = [AUTHORIZATION.as_str(), "x-api-key"].iter().any(|name| {
        let given = parts.headers.get(*name);
        given.is_some_and(|given| !given.as_bytes().trim_ascii().is_empty())
    });
    let host = guard::host(&parts.uri, &parts.headers);
    !has_key && guard::no_foreign_page(host.as_ref(), &parts.headers).is_err()
}

/// Sends what the client sent.
async fn pass(
    worker: &Worker,
    story: &mut Story,
    parts: Parts,
    body: RequestBody,
) -> Result<(Response<ResponseBody>, Option<Box<Prepared>>), Failure> {
    let outbound = address(worker, parts, body)?;
    story.forwarding();
    Ok((worker.upstream.send(outbound).await?, None))
}

/// Takes the body in, whole if it must be read.
async fn receive(
    worker: &Worker,
    route: Route,
    parts: &Parts,
    body: Body,
) -> Result<Taken, Failure> {
    let Shared { limits, room, .. } = worker.shared.as_ref();
    if parts.method == Method::CONNECT {
        return Err(Failure::Tunnel);
    }
    // The upgrade would go no further than here, and what upstream says to a plain
    // GET makes Codex try again for seconds, or give up.
    if parts.uri.path().ends_with("/responses") && headers::asks_for_websocket(&parts.headers) {
        return Err(Failure::WebSocket(parts.uri.path().to_owned()));
    }
    if let Some(coding) = parts.headers.get(TRANSFER_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"chunked")
    {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(Failure::TransferCoding(coding));
    }
    if !route.reads_body() {
        let passing = Passing::new(body, limits.body_idle);
        return Ok(Taken::Passing(RequestBody::stream(Body::new(passing))));
    }
    let coding = Coding::declared(&parts.headers);
    let (body, readable) = intake::receive_readable(body, coding, limits, room).await?;
    Ok(Taken::Whole(body, readable))
}

/// Makes the view of the conversation that the request continues.
async fn view(worker: &Worker, route: Route, parts: &Parts, bytes: Bytes) -> Verdict {
    let views = &worker.shared.views;
    let tenant = tenant::of(worker, parts).await;
    let asked = Asked {
        hint: crate::views::tenants::hint(&tenant, &parts.headers),
        counts: route == Route::CountTokens,
        wish: headers::wish(&parts.headers),
        sender: Some(sender(parts)),
        instructions: headers::instructions(&parts.headers),
        label: headers::label(&parts.headers),
        credential: views.credential(&parts.headers).await,
        tenant,
        bytes,
    };
    views.prepare(asked).await
}

/// In whose name calls of our own may be made for a request.
fn sender(parts: &Parts) -> Sender {
    let mut headers = parts.headers.clone();
    headers::strip_request(&mut headers);
    Sender::new(headers, &parts.uri)
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

/// The same with a view: its own bytes, and what they need said in headers.
pub fn address_view(
    worker: &Worker,
    parts: &Parts,
    own: &Bytes,
    prepared: &Prepared,
) -> Result<Request<RequestBody>, Failure> {
    let view = &prepared.view;
    if !view.edited {
        return address(worker, parts.clone(), own.clone().into());
    }
    let body = RequestBody::pieces(view.pieces.clone());
    let mut outbound = address(worker, parts.clone(), body)?;
    let headers = outbound.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
    for beta in view.betas() {
        headers::announce_beta(headers, beta);
    }
    Ok(outbound)
}

/// Hands the answer on as it comes.
fn relay(
    worker: &Worker,
    story: Story,
    flight: Option<Flight>,
    answer: Response<ResponseBody>,
    prepared: Option<Box<Prepared>>,
) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    // The version is each connection's own.
    parts.version = Version::HTTP_11;
    headers::strip_response(&mut parts.headers);
    let silence = worker.upstream.idle_limit();
    // The request's bytes are not needed any more; the answer may take minutes.
    let views = &worker.shared.views;
    let sent = prepared.map(|prepared| views.sent(*prepared, parts.status, &parts.headers));
    if let Some(sent) = &sent {
        describe(&mut parts.headers, sent);
    }
    let report = sent.as_ref().and_then(|sent| sent.report);
    let rewriter = report
        .filter(|_| parts.status.is_success())
        .and_then(|report| Rewriter::new(report, &parts.headers));
    let is_changed = rewriter.is_some();
    let witness = story.answered(parts.status, sent);
    let relay = Relay::new(body, &parts.headers, silence, flight, witness).rewriting(rewriter);
    if is_changed {
        headers::strip_rewritten(&mut parts.headers);
    }
    Response::from_parts(parts, Body::new(relay))
}

/// Says in headers what became of the request.
fn describe(headers: &mut HeaderMap, sent: &Sent) {
    if let Some(notice) = sent.notice {
        headers.insert(headers::NOTICE, HeaderValue::from_static(notice));
    }
    if let Some(breaker) = sent.breaker {
        headers.insert(headers::BREAKER, HeaderValue::from_static(breaker));
    }
    let rows = [
        (headers::SESSION, &sent.session),
        (headers::VIEW, &sent.shape),
        (headers::COMPACTION, &sent.compaction),
    ];
    for (name, value) in rows {
        if let Ok(value) = value.parse() {
            headers.insert(name, value);
        }
    }
}
