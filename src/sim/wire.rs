//! Answers on the wire: a body that is played step by step.
//!
//! A script says what is sent, when to wait and how it ends: properly, with a
//! cut connection or not at all. The connection itself is ended through a
//! handle that the accept loop put into the request.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::Notify;
use tokio::time::Sleep;

/// Time for what was written to leave before a connection is ended.
const FLUSH: Duration = Duration::from_millis(20);

/// How a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With a reset.
    Reset,
    /// Closed in the middle of the body.
    Close,
}

/// Ends the connection a request came on.
#[derive(Debug, Clone, Default)]
pub struct Kill(Arc<KillState>);

#[derive(Debug, Default)]
struct KillState {
    ending: AtomicU8,
    notify: Notify,
}

impl Kill {
    /// Ends the connection.
    pub fn now(&self, ending: Ending) {
        let code = if ending == Ending::Reset { 1 } else { 2 };
        self.0.ending.store(code, Ordering::SeqCst);
        self.0.notify.notify_one();
    }

    /// Waits until the connection is to be ended.
    pub async fn wait(&self) {
        self.0.notify.notified().await;
    }

    /// Whether the connection is to be reset.
    pub fn is_reset(&self) -> bool {
        self.0.ending.load(Ordering::SeqCst) == 1
    }
}

/// A step of a script.
#[derive(Debug)]
pub enum Step {
    /// Send these bytes.
    Send(Bytes),
    /// Wait.
    Wait(Duration),
    /// End the connection.
    End(Ending),
    /// Send nothing more and leave the body open.
    Stall,
}

/// A body that plays a script.
#[derive(Debug)]
pub struct Script {
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
    kill: Option<Kill>,
}

impl Script {
    /// A body that plays these steps.
    pub fn new(steps: impl IntoIterator<Item = Step>, kill: Option<Kill>) -> Self {
        let mut all = VecDeque::new();
        for step in steps {
            if matches!(step, Step::End(_)) {
                all.push_back(Step::Wait(FLUSH));
            }
            all.push_back(step);
        }
        Self {
            steps: all,
            sleep: None,
            kill,
        }
    }
}

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.sleep = None;
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Wait(duration)) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep(duration)));
                }
                Some(Step::Stall) => {
                    // Nobody wakes this body again; the connection ends with the client.
                    self.steps.push_front(Step::Stall);
                    return Poll::Pending;
                }
                Some(Step::End(ending)) => match &self.kill {
                    Some(kill) => {
                        kill.now(ending);
                        self.steps.push_front(Step::Stall);
                    }
                    // Without a handle the next best thing is a broken body.
                    None => return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
                },
            }
        }
    }
}
