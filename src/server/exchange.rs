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
use http::header::{AUTHORIZATION, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};

use super::guard;
use super::headers::{self, REQUEST_ID};
use super::intake::{self, Passing};
use super::line::Flight;
use super::outbound::address;
use super::relay::{Outcome, Relay, Witness};
use super::request_id::id_header;
use super::request_log::RequestLog;
use super::respond::Failure;
use super::retry;
use super::route::Route;
use super::tenant;
use super::worker::{Shared, Worker};
use crate::compactor::sender::Sender;
use crate::upstream::{RequestBody, ResponseBody};
use crate::views::observe::{Sealing, Sent};
use crate::views::prepare::{Asked, Prepared, Verdict};
use crate::wire::encoding::Coding;
use crate::wire::reply::Reply;
use crate::wire::rewrite::Rewriter;

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
    let mut log = RequestLog::begin(&worker.shared, route, &parts.method);
    let id = id_header(log.id());
    let mut response = match Box::pin(forward(&worker, &mut log, parts, body)).await {
        Ok((answer, prepared)) => relay(&worker, log, flight, answer, prepared),
        Err(failure) => log.fail(&failure),
    };
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// From the client's request to the head of upstream's answer.
async fn forward(
    worker: &Worker,
    log: &mut RequestLog,
    parts: Parts,
    body: Body,
) -> Result<(Response<ResponseBody>, Option<Box<Prepared>>), Failure> {
    let route = log.route();
    if route.reads_body() && comes_from_foreign_page(&parts) {
        return Err(Failure::ForeignPage);
    }
    let taken = receive(worker, route, &parts, body).await?;
    log.body_received();
    let (own, verdict) = match taken {
        Taken::Passing(body) => return pass(worker, log, parts, body).await,
        Taken::Whole(own, None) => (own, Verdict::AsSent),
        Taken::Whole(own, Some(readable)) => {
            let verdict = view(worker, route, &parts, readable).await;
            (own, verdict)
        }
    };
    match verdict {
        Verdict::Decline => Err(Failure::ThreadDeclined),
        Verdict::AsSent => pass(worker, log, parts, own.into()).await,
        Verdict::Send(mut prepared) => {
            log.forwarding();
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
    log: &mut RequestLog,
    parts: Parts,
    body: RequestBody,
) -> Result<(Response<ResponseBody>, Option<Box<Prepared>>), Failure> {
    let outbound = address(worker, parts, body)?;
    log.forwarding();
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

/// Hands the answer on as it comes.
fn relay(
    worker: &Worker,
    mut log: RequestLog,
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
    log.answered(parts.status);
    let witness = Answering {
        shared: worker.shared.clone(),
        log,
        sent,
    };
    let relay = Relay::new(body, &parts.headers, silence, flight, witness).rewriting(rewriter);
    if is_changed {
        headers::strip_rewritten(&mut parts.headers);
    }
    Response::from_parts(parts, Body::new(relay))
}

/// What is done while an answer is relayed, and after it. Summaries in the
/// background start here.
struct Answering {
    shared: Arc<Shared>,
    log: RequestLog,
    sent: Option<Sent>,
}

impl Witness for Answering {
    fn began(&mut self, reply: &Reply) -> Option<Sealing> {
        let sent = self.sent.as_mut().filter(|_| self.log.is_success())?;
        self.shared.views.began(sent, reply)
    }

    fn ended(mut self, outcome: Outcome) {
        let views = &self.shared.views;
        if let (true, Some(sent)) = (self.log.is_success(), &mut self.sent) {
            views.ended(sent, &outcome.reply);
            if let Some(preparation) = sent.preparation(&outcome.reply) {
                views.prepare_summary(preparation);
            }
        }
        self.log.finish(&outcome, self.sent.as_ref());
    }
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
