//! Carries an answer out: headers, delays, faults.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::account::Account;
use super::arrival::Arrival;
use super::error::ApiError;
use super::exchange::{Answer, Said};
use super::fault::Fault;
use super::request::Endpoint;
use super::state::Sim;
use super::stream;
use super::wire::{Ending, Kill, Script, Step};
use crate::clock::Moment;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
const PAGE: &str = "<html><body><h1>502 Bad Gateway</h1></body></html>";

/// Pieces of an unstreamed answer that a fault can count.
const PIECES: usize = 8;

/// Answers a request.
pub(super) async fn respond(
    sim: &Sim,
    endpoint: Endpoint,
    arrival: &Arrival,
    kill: Option<Kill>,
) -> Response {
    let (answer, account) = sim.answer(endpoint, arrival);
    let mut response = match answer {
        Answer::Refusal(error) => refusal(&error, &arrival.request_id),
        Answer::Count(count) => plain(StatusCode::OK, &count),
        Answer::Broken(fault) => broken(&fault, &arrival.request_id, kill).await,
        Answer::Message(said) => {
            wait(said.first_byte_delay).await;
            sim.first_byte(&said, arrival.at);
            message(sim, &said, &arrival.request_id, kill)
        }
    };
    stamp(
        &mut response,
        &arrival.request_id,
        account.as_ref(),
        arrival.at,
    );
    response
}

/// An error answer.
pub(super) fn refusal(error: &ApiError, request_id: &str) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, &error.body(request_id));
    if let Some(seconds) = error.retry_after {
        set(&mut response, "retry-after", &seconds.to_string());
    }
    if let Some(retry) = error.should_retry {
        set(
            &mut response,
            "x-should-retry",
            if retry { "true" } else { "false" },
        );
    }
    response
}

/// A JSON answer.
pub(super) fn plain(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

async fn broken(fault: &Fault, request_id: &str, kill: Option<Kill>) -> Response {
    match (fault, fault.error(), kill) {
        (_, Some(error), _) => refusal(&error, request_id),
        (Fault::Reset, None, Some(kill)) => {
            kill.now(Ending::Reset);
            std::future::pending().await
        }
        (Fault::Hang, None, _) => std::future::pending().await,
        _ => {
            let mut response = Response::new(Body::from(PAGE));
            set(&mut response, "content-type", "text/html");
            response
        }
    }
}

fn message(sim: &Sim, said: &Said, request_id: &str, kill: Option<Kill>) -> Response {
    let pieces = if said.stream {
        stream::events(&said.message, sim.options().delta_chars)
    } else {
        let body = Bytes::from(said.message.json().to_string());
        if said.fault.is_none() {
            vec![body]
        } else {
            pieces(&body)
        }
    };
    let body = match &said.fault {
        None if said.event_delay.is_zero() && !said.stream => {
            Body::from(pieces.into_iter().next().unwrap_or_default())
        }
        fault => Body::new(Script::new(
            script(pieces, said, fault.as_ref(), request_id),
            kill,
        )),
    };
    let mut response = Response::new(body);
    let kind = if said.stream { EVENTS } else { JSON };
    let wrong = said.fault == Some(Fault::WrongContentType);
    set(
        &mut response,
        "content-type",
        if wrong { "text/html" } else { kind },
    );
    if said.stream {
        set(&mut response, "cache-control", "no-cache");
    }
    if let Some(place) = &said.mismatch {
        let value = format!("block={place}; kind=prefix");
        set(&mut response, "anthropic-thinking-prefix-mismatch", &value);
    }
    response
}

fn pieces(body: &Bytes) -> Vec<Bytes> {
    let size = body.len().div_ceil(PIECES).max(1);
    body.chunks(size).map(Bytes::copy_from_slice).collect()
}

fn script(pieces: Vec<Bytes>, said: &Said, fault: Option<&Fault>, request_id: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (after, ending) = match fault {
        Some(Fault::ResetAfter { events }) => (*events, Some(vec![Step::End(Ending::Reset)])),
        Some(Fault::CutAfter { events }) => (*events, Some(vec![Step::End(Ending::Close)])),
        Some(Fault::EndAfter { events }) => (*events, Some(Vec::new())),
        Some(Fault::StallAfter { events }) => (*events, Some(vec![Step::Stall])),
        Some(Fault::ErrorAfter { events, error }) => {
            let inner = json!({"type": error, "message": error_text(error)});
            (
                *events,
                Some(vec![Step::Send(stream::error(&inner, request_id))]),
            )
        }
        Some(Fault::GarbageAfter { events }) => (*events, None),
        _ => (usize::MAX, None),
    };
    for (number, piece) in pieces.into_iter().enumerate() {
        if number == after {
            match ending {
                Some(ending) => {
                    steps.extend(ending);
                    return steps;
                }
                None => steps.push(Step::Send(Bytes::from_static(
                    b"\x00\xff{]not an event\n\n",
                ))),
            }
        }
        if number > 0 && !said.event_delay.is_zero() {
            steps.push(Step::Wait(said.event_delay));
        }
        steps.push(Step::Send(piece));
    }
    // A fault that waits for more events than there are strikes at the end.
    steps.extend(ending.into_iter().flatten());
    steps
}

fn error_text(kind: &str) -> &'static str {
    if kind == "overloaded_error" {
        "Overloaded"
    } else {
        "Internal server error"
    }
}

async fn wait(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// The headers every answer carries.
pub(super) fn stamp(
    response: &mut Response,
    request_id: &str,
    account: Option<&Account>,
    now: Moment,
) {
    set(response, "request-id", request_id);
    let Some(account) = account else { return };
    set(response, "anthropic-organization-id", &account.organization);
    set(response, "anthropic-workspace-id", &account.workspace);
    let reset = rfc3339(now.after(Duration::from_mins(1)));
    let limits = [
        ("requests", 4_000),
        ("tokens", 2_400_000),
        ("input-tokens", 2_000_000),
        ("output-tokens", 400_000),
    ];
    for (name, limit) in limits {
        // What remains is rounded to thousands, so it hardly moves.
        let values = [
            ("limit", limit.to_string()),
            ("remaining", limit.to_string()),
            ("reset", reset.clone()),
        ];
        for (part, value) in values {
            set(
                response,
                &format!("anthropic-ratelimit-{name}-{part}"),
                &value,
            );
        }
    }
}

fn set(response: &mut Response, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        response.headers_mut().insert(name, value);
    }
}

/// A moment as `2026-11-16T12:00:00Z`.
fn rfc3339(moment: Moment) -> String {
    let seconds = moment.as_millis() / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, so that leap days come last in their year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Clock;

    /// Fact: the reset of a rate limit is an RFC 3339 time.
    #[test]
    fn moments_are_written_as_dates() {
        let epoch = Moment::at_millis(0);
        let table = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_794_787_199, "2026-11-15T23:59:59Z"),
        ];
        for (seconds, text) in table {
            let clock = Clock::frozen(epoch);
            clock.advance(Duration::from_secs(seconds));
            assert_eq!(rfc3339(clock.now()), text);
        }
    }
}
