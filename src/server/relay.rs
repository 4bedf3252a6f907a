//! The answer on its way to the client: untouched, and observed.
//!
//! Frames go out as they come in; the observer sees each one afterwards. Only
//! the first may have to wait, until every replica can know of it. One thing may
//! be put in: what was cleared for a client that asked for it. The client's pace is upstream's pace, because a frame is fetched only when the
//! last one was taken. An answer that breaks off upstream breaks off for the
//! client too, never with a proper end. However it ends, also by the client's
//! going away, the outcome is reported exactly once.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::line::Flight;
use crate::upstream::{ResponseBody, reason};
use crate::views::observe::Sealing;
use crate::wire::observe::Observer;
use crate::wire::reply::Reply;
use crate::wire::rewrite::Rewriter;

/// How long what came before a cut may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With its last byte.
    Whole,
    /// Upstream broke off, and this is why.
    Cut(String),
    /// The client went away first.
    Abandoned,
}

/// What passed.
#[derive(Debug)]
pub struct Outcome {
    /// What the answer said about itself.
    pub reply: Reply,
    /// Bytes of the body, as they came over the wire.
    pub bytes: u64,
    /// How it ended.
    pub ended: Ended,
}

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// Upstream lost the connection or sent what is not HTTP.
    #[error("upstream broke off: {0}")]
    Cut(String),
    /// Nothing came for too long.
    #[error("upstream was silent for {0:?}")]
    Silent(Duration),
    /// It has to be unfolded for something to be put in, and cannot be.
    #[error("upstream's answer is not packed as it says")]
    Unreadable,
}

/// Who is told of an answer.
pub trait Witness: Unpin {
    /// Its first bytes have come; this is what they said. They go on when what
    /// is returned has ended.
    fn began(&mut self, reply: &Reply) -> Option<Sealing>;

    /// It has ended.
    fn ended(self, outcome: Outcome);
}

/// A body that passes.
pub struct Relay<W: Witness> {
    body: ResponseBody,
    observer: Option<Observer>,
    bytes: u64,
    silence: Duration,
    last: Instant,
    alarm: Pin<Box<Sleep>>,
    flight: Option<Flight>,
    /// Why it broke off, and what had been written when all was handed over.
    broken: Option<(Broken, Option<u64>)>,
    begun: bool,
    /// What the first frame waits for, and the frame.
    sealing: Option<Sealing>,
    first: Option<Frame<Bytes>>,
    rewriter: Option<Rewriter>,
    /// What follows when all that was held has gone out.
    trailers: Option<Frame<Bytes>>,
    /// Upstream has ended.
    is_over: bool,
    witness: Option<W>,
}

impl<W: Witness> Relay<W> {
    /// Relays `body`, whose headers are `headers`, as the answer of `flight`, and
    /// tells of its beginning and its end.
    pub fn new(
        body: ResponseBody,
        headers: &HeaderMap,
        silence: Duration,
        flight: Option<Flight>,
        witness: W,
    ) -> Self {
        let last = Instant::now();
        Self {
            body,
            observer: Some(Observer::new(headers)),
            bytes: 0,
            silence,
            last,
            alarm: Box::pin(tokio::time::sleep_until(last + silence)),
            flight,
            broken: None,
            begun: false,
            sealing: None,
            first: None,
            rewriter: None,
            trailers: None,
            is_over: false,
            witness: Some(witness),
        }
    }

    /// Puts something into the body on its way.
    #[must_use]
    pub fn rewriting(mut self, rewriter: Option<Rewriter>) -> Self {
        self.rewriter = rewriter;
        self
    }

    fn finish(&mut self, ended: Ended) {
        if let (Some(witness), Some(observer)) = (self.witness.take(), self.observer.take()) {
            witness.ended(Outcome {
                reply: observer.finish(),
                bytes: self.bytes,
                ended,
            });
        }
    }

    /// The silence is measured from the last frame, but the timer is set again
    /// only when it goes off: a stream of small frames would else spend its time
    /// on timers.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.alarm.as_mut().poll(context).is_ready() {
            let due = self.last + self.silence;
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(due);
        }
        Poll::Pending
    }

    /// Notes the failure. It is told only when what came before it has been
    /// written: hyper would throw away what it still holds.
    fn break_off(&mut self, broken: Broken, context: &Context<'_>) {
        self.finish(Ended::Cut(broken.to_string()));
        let flushes = self.flight.as_ref().and_then(Flight::flushes_at_once);
        self.broken = Some((broken, flushes));
        self.alarm.as_mut().reset(Instant::now() + LAST_WORDS);
        context.waker().wake_by_ref();
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<Option<Broken>> {
        if let (Some((_, before)), Some(flight)) = (&mut self.broken, &self.flight)
            && let before = *before.get_or_insert_with(|| {
                self.alarm.as_mut().reset(Instant::now() + LAST_WORDS);
                flight.flushes()
            })
            && flight.poll_flushed(before, context).is_pending()
            && self.alarm.as_mut().poll(context).is_pending()
        {
            return Poll::Pending;
        }
        Poll::Ready(self.broken.take().map(|(broken, _)| broken))
    }

    /// Shows the observer what has come.
    fn observe(&mut self, data: &Bytes) {
        self.bytes += data.len() as u64;
        if let Some(observer) = &mut self.observer {
            observer.push(data);
            if !std::mem::replace(&mut self.begun, true)
                && let Some(witness) = &mut self.witness
            {
                self.sealing = witness.began(observer.reply());
            }
        }
    }

    /// What goes out of what has come; nothing, if all of it is held.
    fn rewrite(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, Broken> {
        let Some(rewriter) = &mut self.rewriter else {
            return Ok(Some(frame));
        };
        let Some(data) = frame.data_ref() else {
            let held = self.rewriter.take().and_then(|r| filled(r.finish()));
            if held.is_some() {
                self.trailers = Some(frame);
                return Ok(held);
            }
            return Ok(Some(frame));
        };
        rewriter.push(data).map(filled).ok_or(Broken::Unreadable)
    }
}

/// A frame, if there is anything in it.
fn filled(data: Vec<u8>) -> Option<Frame<Bytes>> {
    (!data.is_empty()).then(|| Frame::data(data.into()))
}

impl<W: Witness> Body for Relay<W> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.as_mut().get_mut();
        if this.broken.is_some() {
            return this.poll_broken(context).map(|broken| broken.map(Err));
        }
        if let Some(trailers) = this.trailers.take() {
            return Poll::Ready(Some(Ok(trailers)));
        }
        while !this.is_over {
            if let Some(sealing) = &mut this.sealing {
                ready!(sealing.as_mut().poll(context));
                this.sealing = None;
            }
            if let Some(first) = this.first.take() {
                return Poll::Ready(Some(Ok(first)));
            }
            let broken = match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        this.observe(data);
                    }
                    this.last = Instant::now();
                    match this.rewrite(frame) {
                        Ok(frame) if this.sealing.is_some() => {
                            this.first = frame;
                            if this.body.is_end_stream() {
                                // Its figures go with the seal.
                                this.finish(Ended::Whole);
                            }
                            continue;
                        }
                        Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                        Ok(None) => continue,
                        Err(broken) => broken,
                    }
                }
                Poll::Ready(None) => {
                    this.is_over = true;
                    this.finish(Ended::Whole);
                    let held = this.rewriter.take().and_then(|r| filled(r.finish()));
                    return Poll::Ready(held.map(Ok));
                }
                Poll::Ready(Some(Err(error))) => Broken::Cut(reason(&error)),
                Poll::Pending if this.poll_silence(context).is_ready() => {
                    Broken::Silent(this.silence)
                }
                Poll::Pending => return Poll::Pending,
            };
            this.break_off(broken, context);
            let held = this.rewriter.take().and_then(|r| filled(r.broken()));
            return held.map_or(Poll::Pending, |held| Poll::Ready(Some(Ok(held))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        let holds = self.rewriter.is_some() || self.trailers.is_some() || self.first.is_some();
        self.broken.is_none() && !holds && self.body.is_end_stream()
    }

    /// Unknown, always: where upstream declared a length it stands in the
    /// headers, and where it did not none must be made up.
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl<W: Witness> Drop for Relay<W> {
    fn drop(&mut self) {
        // A body of known length is not asked again after its last byte.
        let ended = if self.body.is_end_stream() {
            Ended::Whole
        } else {
            Ended::Abandoned
        };
        self.finish(ended);
    }
}
