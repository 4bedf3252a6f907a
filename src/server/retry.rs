//! Sends a view, and sends it changed if upstream refuses it.
//!
//! A refusal comes before the first byte of a reply, so nothing has been shown
//! to the client and another try costs it nothing but time. If no try helps, the
//! client sees what upstream says to its own request, or else the first refusal,
//! word for word. If upstream is out of reach before that is known, the client
//! hears so and asks again: a refusal it would take for the last word.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::outbound::address_view;
use super::respond::Failure;
use super::worker::Worker;
use crate::upstream::ResponseBody;
use crate::views::prepare::Prepared;
use crate::wire::encoding::{Coding, Decoder};
use crate::wire::refusal::Refusal;

/// The longest refusal that is read.
const REFUSAL: usize = 256 * 1024;
/// How long it may take to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a request is sent at most: more than there are things to try.
const TRIES: usize = 8;

/// Sends a view until upstream takes it or nothing is left to try.
pub async fn deliver(
    worker: &Worker,
    parts: &Parts,
    own: &Bytes,
    prepared: &mut Prepared,
) -> Result<Response<ResponseBody>, Failure> {
    let views = &worker.shared.views;
    let mut first: Option<Response<ResponseBody>> = None;
    for left in (0..TRIES).rev() {
        let outbound = address_view(worker, parts, own, prepared)?;
        let answer = match worker.upstream.send(outbound).await {
            Ok(answer) => answer,
            Err(error) => {
                views.give_up(prepared).await;
                return Err(error.into());
            }
        };
        if !is_refusal(answer.status()) {
            if !answer.status().is_success() {
                // It says nothing of what was tried.
                views.give_up(prepared).await;
            }
            return Ok(answer);
        }
        let (answer, said) = keep(answer).await;
        let refusal = said.map(|said| Refusal::read(answer.status().as_u16(), &said));
        // What it says to the client's own request is what the client would have
        // heard without us.
        let theirs = !prepared.view.edited;
        let again = match &refusal {
            Some(refusal) if left > 0 => views.refused(prepared, refusal).await,
            _ => false,
        };
        if !again {
            views.give_up(prepared).await;
            return Ok(match first {
                Some(first) if !theirs => first,
                _ => answer,
            });
        }
        first = first.or(Some(answer));
    }
    first.ok_or(Failure::Refused)
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 413 | 422)
}

/// Reads a refusal whole, so that it can be acted on and still be handed on. If
/// it is too long or too slow, what has come goes on as it is.
async fn keep(answer: Response<ResponseBody>) -> (Response<ResponseBody>, Option<Vec<u8>>) {
    let (parts, mut body) = answer.into_parts();
    let mut kept = BytesMut::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return false;
            };
            if let Ok(data) = frame.into_data() {
                kept.extend_from_slice(&data);
            }
            if kept.len() > REFUSAL {
                return false;
            }
        }
        true
    };
    let whole = matches!(timeout(PATIENCE, reading).await, Ok(true));
    let kept: Bytes = kept.freeze();
    let said = whole.then(|| readable(&parts.headers, &kept)).flatten();
    let body = if whole {
        ResponseBody::Kept(Some(kept))
    } else {
        ResponseBody::Begun(Some(kept), Box::new(body))
    };
    (Response::from_parts(parts, body), said)
}

fn readable(headers: &http::HeaderMap, body: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(Coding::declared(headers)?);
    let mut text = Vec::new();
    decoder.push(body, |piece| {
        if text.len() < REFUSAL {
            text.extend_from_slice(piece);
        }
    });
    Some(text)
}
