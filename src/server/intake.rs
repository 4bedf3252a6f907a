//! Takes a request's body in, within limits.
//!
//! A body that must be read is received whole, into one buffer of the declared
//! size. Room for it comes out of one account for the whole process, taken as
//! bytes arrive, so that a client's promise costs nothing, and given back when
//! the last reference to the buffer goes. Other bodies are passed on as they
//! arrive. In both cases silence is limited.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, timeout, timeout_at};

use super::respond::Failure;
use crate::upstream::Stalled;
use crate::wire::encoding::{self, Coding, Decoder};

/// Room is counted in pieces of this many bytes.
const ROOM_UNIT: usize = 16 * 1024;
/// What must arrive within `body_idle`, in bytes: a byte now and then must not
/// hold room for ever.
const PROGRESS: u64 = 4096;
/// What must have come of a body before its promised length is believed.
const EARNEST: usize = ROOM_UNIT;
/// Decoding rests after this many bytes.
const REST_AFTER: usize = 1 << 20;

/// How much may be taken in, and how slowly.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest body.
    pub body_bytes: u64,
    /// Longest silence within a body.
    pub body_idle: Duration,
    /// Longest wait for room.
    pub buffer_wait: Duration,
}

/// The memory that all bodies share.
#[derive(Clone)]
pub struct Room {
    units: Arc<Semaphore>,
    held: IntGauge,
}

impl Room {
    /// Room for `bytes` in all; `held` shows how much of it is in use.
    pub fn new(bytes: u64, held: IntGauge) -> Self {
        let units = usize::try_from(bytes).unwrap_or(usize::MAX) / ROOM_UNIT;
        Self {
            units: Arc::new(Semaphore::new(units.clamp(1, Semaphore::MAX_PERMITS))),
            held,
        }
    }

    fn share(&self) -> Share {
        Share {
            room: self.clone(),
            permit: None,
            units: 0,
        }
    }
}

/// One body's part of the room.
struct Share {
    room: Room,
    permit: Option<OwnedSemaphorePermit>,
    units: usize,
}

impl Share {
    /// Makes sure that the share covers `bytes`.
    async fn cover(&mut self, bytes: usize, wait: Duration) -> Result<(), Failure> {
        let missing = bytes.div_ceil(ROOM_UNIT).saturating_sub(self.units);
        if missing == 0 {
            return Ok(());
        }
        let count = u32::try_from(missing).map_err(|_| Failure::NoRoom(wait))?;
        let permit = timeout(wait, self.room.units.clone().acquire_many_owned(count))
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(Failure::NoRoom(wait))?;
        match &mut self.permit {
            Some(held) => held.merge(permit),
            None => self.permit = Some(permit),
        }
        self.units += missing;
        self.room.held.add(gauge_bytes(missing));
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.held.sub(gauge_bytes(self.units));
    }
}

fn gauge_bytes(units: usize) -> i64 {
    i64::try_from(units * ROOM_UNIT).unwrap_or(i64::MAX)
}

/// A buffer and the room it occupies.
struct Held {
    buffer: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

/// Receives a whole body.
pub async fn receive(mut body: Body, limits: &Limits, room: &Room) -> Result<Bytes, Failure> {
    let limit = limits.body_bytes;
    let hint = body.size_hint();
    if hint.lower() > limit {
        return Err(Failure::BodyTooLarge { limit });
    }
    let declared = usize::try_from(hint.lower()).unwrap_or(0);
    let mut share = room.share();
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
        make_room(&mut buffer, data.len()).ok_or(Failure::NoRoom(limits.buffer_wait))?;
        // A promised length costs nothing until there is earnest of it; then all
        // of it is taken at once, so that many large bodies come one after
        // another and do not wait for each other half received.
        let held = if total > declared {
            buffer.capacity()
        } else if total >= EARNEST || total == declared {
            declared
        } else {
            0
        };
        share.cover(held, limits.buffer_wait).await?;
        buffer.extend_from_slice(&data);
    }
    Ok(Bytes::from_owner(Held {
        buffer,
        _share: share,
    }))
}

/// Makes a buffer able to take so many bytes more, if the system can give them.
fn make_room(buffer: &mut Vec<u8>, more: usize) -> Option<()> {
    buffer.try_reserve(more).ok()
}

/// What a body says once it is decoded; `None` if it does not decode, which is
/// upstream's to judge.
pub async fn decode(
    coding: Coding,
    body: &[u8],
    limits: &Limits,
    room: &Room,
) -> Result<Option<Bytes>, Failure> {
    let limit = limits.body_bytes;
    let mut decoder = Decoder::new(coding);
    let mut share = room.share();
    let mut buffer: Vec<u8> = Vec::new();
    let mut rested = 0;
    for piece in body.chunks(encoding::STEP) {
        decoder.push(piece, |readable| buffer.extend_from_slice(readable));
        if buffer.len() as u64 > limit || decoder.burst() {
            return Err(Failure::DecodedTooLarge { limit });
        }
        if buffer.len() > rested + REST_AFTER {
            rested = buffer.len();
            share.cover(buffer.capacity(), limits.buffer_wait).await?;
            // The other connections of this thread want to go on too.
            tokio::task::yield_now().await;
        }
    }
    share.cover(buffer.capacity(), limits.buffer_wait).await?;
    let held = Held {
        buffer,
        _share: share,
    };
    Ok((!decoder.failed()).then(|| Bytes::from_owner(held)))
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
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            body_bytes: 1000,
            body_idle: Duration::from_millis(20),
            buffer_wait: Duration::from_millis(20),
        }
    }

    fn room(bytes: u64) -> Room {
        Room::new(bytes, IntGauge::new("held", "held").unwrap())
    }

    #[tokio::test]
    async fn room_is_held_until_the_last_reference_is_dropped() {
        let room = room(ROOM_UNIT as u64);
        let body = receive(Body::from("abc"), &limits(), &room).await.unwrap();
        assert_eq!(body, "abc");
        assert_eq!(room.held.get(), gauge_bytes(1));
        let second = receive(Body::from("abc"), &limits(), &room).await;
        assert!(matches!(second, Err(Failure::NoRoom(_))));
        let slice = body.slice(1..);
        drop(body);
        assert!(receive(Body::from("abc"), &limits(), &room).await.is_err());
        drop(slice);
        assert!(receive(Body::from("abc"), &limits(), &room).await.is_ok());
        assert_eq!(room.held.get(), 0);
    }

    #[tokio::test]
    async fn a_promise_costs_no_room_until_it_is_kept_and_an_impossible_one_is_refused() {
        let room = room(1 << 20);
        let limits = Limits {
            body_bytes: u64::MAX,
            ..limits()
        };
        let outcome = receive(Body::new(Silent(64 << 20)), &limits, &room).await;
        assert!(matches!(outcome, Err(Failure::BodyStalled(_, 0))));
        let outcome = receive(Body::new(Silent(1 << 60)), &limits, &room).await;
        assert!(matches!(outcome, Err(Failure::NoRoom(_))));
        assert_eq!(room.held.get(), 0);
    }

    /// Guards against bodies that each have some of the room and none enough.
    #[tokio::test]
    async fn bodies_that_do_not_all_fit_come_one_after_another() {
        let room = room(1 << 20);
        let limits = Limits {
            body_bytes: 1 << 20,
            buffer_wait: Duration::from_secs(20),
            body_idle: Duration::from_secs(20),
        };
        let one = || async {
            let pieces = Body::new(Declared(vec![100_000; 9], false));
            receive(pieces, &limits, &room).await.map(|body| body.len())
        };
        let all = tokio::join!(one(), one(), one(), one());
        for length in [all.0, all.1, all.2, all.3] {
            assert_eq!(length.unwrap(), 900_000);
        }
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_declared_or_not() {
        let room = room(1 << 20);
        let declared = Body::from(vec![0; 1001]);
        let streamed = Body::new(Pieces(vec![600, 600]));
        for body in [declared, streamed] {
            let outcome = receive(body, &limits(), &room).await;
            assert!(matches!(
                outcome,
                Err(Failure::BodyTooLarge { limit: 1000 })
            ));
        }
        assert_eq!(room.held.get(), 0);
    }

    #[tokio::test]
    async fn a_body_that_falls_silent_is_given_up() {
        let room = room(1 << 20);
        let silent = Body::new(Silent(10));
        let outcome = receive(silent, &limits(), &room).await;
        assert!(matches!(outcome, Err(Failure::BodyStalled(_, 0))));
    }

    /// Promises a length and sends nothing.
    struct Silent(u64);

    impl http_body::Body for Silent {
        type Data = Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    /// Says how long it is, and comes piece by piece with others in between.
    struct Declared(Vec<usize>, bool);

    impl http_body::Body for Declared {
        type Data = Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.1 = !self.1;
            if self.1 {
                // The others go on first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let size = self.0.pop();
            Poll::Ready(size.map(|size| Ok(Frame::data(vec![0; size].into()))))
        }
        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0.iter().sum::<usize>() as u64)
        }
    }

    struct Pieces(Vec<usize>);

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Ready(
                self.0
                    .pop()
                    .map(|size| Ok(Frame::data(vec![0; size].into()))),
            )
        }
    }
}
