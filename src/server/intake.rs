//! Takes a request's body in, within limits.
//!
//! A body that must be read is received whole, into one buffer of the declared
//! size. Room for it comes out of one account for the whole process (`room`), taken
//! as bytes arrive, so that a client's promise costs nothing, and given back when
//! the last reference to the buffer goes. Other bodies are passed on as they arrive.
//! In both cases silence is limited.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep, timeout_at};

use super::limits::Limits;
use super::respond::Failure;
use super::room::{ROOM_UNIT, Room, Share};
use super::unfold::unfold;
use crate::upstream::Stalled;
use crate::wire::encoding::Coding;

/// What must arrive within `body_idle`, in bytes: a byte now and then must not
/// hold room for ever.
const PROGRESS: u64 = 4096;
/// What must have come of a body before its promised length is believed.
const EARNEST: usize = ROOM_UNIT;
/// The room that a body of unknown length takes first; if it gets longer, it takes
/// as much as any body may have.
const FIRST: usize = 1 << 20;

/// Receives a whole body.
pub async fn receive(body: Body, limits: &Limits, room: &Room) -> Result<Bytes, Failure> {
    let mut share = room.share(limits.buffer_wait);
    let buffer = collect(body, limits, &mut share, false).await?;
    share.finish();
    Ok(share.hold(buffer))
}

/// Receives a whole body, and what it says once it is decoded: `None` if it does
/// not decode, or nobody knows how, which is upstream's to judge.
pub async fn receive_readable(
    body: Body,
    coding: Option<Coding>,
    limits: &Limits,
    room: &Room,
) -> Result<(Bytes, Option<Bytes>), Failure> {
    let coding = match coding {
        None => return Ok((receive(body, limits, room).await?, None)),
        Some(Coding::Identity) => {
            let body = receive(body, limits, room).await?;
            return Ok((body.clone(), Some(body)));
        }
        Some(coding) => coding,
    };
    let mut share = room.share(limits.buffer_wait);
    let buffer = collect(body, limits, &mut share, true).await?;
    let readable = unfold(coding, &buffer, limits, room).await?;
    share.finish();
    let body = share.hold(buffer);
    Ok((body, readable))
}

/// Collects a body. `unfolds` says that it will need more room when it is there.
async fn collect(
    mut body: Body,
    limits: &Limits,
    share: &mut Share,
    unfolds: bool,
) -> Result<Vec<u8>, Failure> {
    let limit = limits.body_bytes;
    let hint = body.size_hint();
    if hint.lower() > limit {
        return Err(Failure::BodyTooLarge { limit });
    }
    let declared = usize::try_from(hint.lower()).unwrap_or(0);
    let mut buffer = Vec::new();
    make_room(&mut buffer, declared).ok_or(Failure::NoRoom(limits.buffer_wait))?;
    // Silence is limited, and so is trickling: some progress must be made.
    let (mut counted, mut due) = (0, Instant::now() + limits.body_idle);
    loop {
        let received = buffer.len() as u64;
        if received >= counted + PROGRESS {
            counted = received;
            due = Instant::now() + limits.body_idle;
        }
        let frame = timeout_at(due, body.frame())
            .await
            .map_err(|_| Failure::BodyStalled(limits.body_idle, received))?;
        let data = match frame {
            None => break,
            Some(Err(error)) => return Err(Failure::BodyBroken(received, error.to_string())),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                Err(_trailers) => continue,
            },
        };
        let total = buffer.len() + data.len();
        if total as u64 > limit {
            return Err(Failure::BodyTooLarge { limit });
        }
        let (held, is_all) = wanted(total, declared, limit);
        if unfolds || !is_all {
            share.cover_for_now(held).await?;
        } else {
            share.cover(held).await?;
        }
        make_room(&mut buffer, data.len()).ok_or(Failure::NoRoom(limits.buffer_wait))?;
        buffer.extend_from_slice(&data);
    }
    if buffer.len() > declared {
        buffer.shrink_to_fit();
    }
    share.shrink(buffer.capacity());
    Ok(buffer)
}

/// The room for a body of which `total` bytes are there, and whether it will never
/// need more. A promised length costs nothing until there is earnest of it; then
/// all of it is taken at once, so that many large bodies come one after another
/// and do not wait for each other half received.
fn wanted(total: usize, declared: usize, limit: u64) -> (usize, bool) {
    if total <= declared {
        let begun = total >= EARNEST || total == declared;
        return (if begun { declared } else { 0 }, true);
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let steps = [EARNEST, FIRST];
    let step = steps.into_iter().find(|step| total <= *step);
    step.filter(|step| *step < limit)
        .map_or((limit, true), |step| (step, false))
}

/// Makes a buffer able to take so many bytes more, if the system can give them.
fn make_room(buffer: &mut Vec<u8>, more: usize) -> Option<()> {
    buffer.try_reserve(more).ok()
}

/// A body that is passed on as it arrives, unless it falls silent.
pub struct Passing {
    body: Body,
    silence: Duration,
    alarm: Pin<Box<Sleep>>,
}

impl Passing {
    /// Passes `body` on.
    pub fn new(body: Body, silence: Duration) -> Self {
        Self {
            body,
            silence,
            alarm: Box::pin(tokio::time::sleep(silence)),
        }
    }
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let silence = self.silence;
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                self.alarm.as_mut().reset(Instant::now() + silence);
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => self
                .alarm
                .as_mut()
                .poll(context)
                .map(|()| Some(Err(Stalled(silence).into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
