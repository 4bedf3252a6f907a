//! One request as its client saw it, kept until the episode is judged.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use longhaul::sim::Fault;
use serde_json::Value;

use crate::support::http::{Message, Reader};

/// Longer than anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long a client waits where it knows that nothing will come.
const SHORT: Duration = Duration::from_millis(150);

/// How a client behaves while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It waits for the whole answer.
    Waits,
    /// It goes away right after asking.
    LeavesAtOnce,
    /// It goes away when something has come.
    LeavesInBetween,
}

/// What came back.
#[derive(Debug)]
pub enum Seen {
    /// Nothing at all.
    Nothing,
    /// An answer, whole or not.
    Answer(Message),
}

/// A request, and what became of it.
#[derive(Debug)]
pub struct Attempt {
    /// Stands in a header, so that upstream's side of it can be found.
    pub tag: String,
    /// Which history of its client it continues.
    pub branch: usize,
    /// The client has changed its past since the last one.
    pub anew: bool,
    /// What the client has cleared by itself: the call, and what stood there.
    pub cleared: Vec<(Value, Value)>,
    /// It only counts tokens.
    pub counts: bool,
    pub model: &'static str,
    pub streams: bool,
    /// The body.
    pub own: Vec<u8>,
    /// What the simulator was asked to do wrong.
    pub fault: Option<Fault>,
    pub manner: Manner,
    /// When it began and ended, in the world's moments.
    pub begun: u64,
    pub ended: u64,
    pub took: Duration,
    pub seen: Seen,
}

impl Attempt {
    /// The body, with what the client has cleared put back wherever a view shows
    /// something else: what an overlay shows a part of stays as it is until
    /// something before it changes, because upstream has it in its cache.
    pub fn as_shown(&self, view: &[u8]) -> Vec<u8> {
        if self.cleared.is_empty() {
            return self.own.clone();
        }
        let mut own: Value = serde_json::from_slice(&self.own).unwrap();
        let mut view: Value = serde_json::from_slice(view).unwrap();
        for (call, before) in &self.cleared {
            let shown = results(&mut view).find(|result| result["tool_use_id"] == *call);
            let shown = shown.map(|result| result["content"].clone());
            let mine = results(&mut own).find(|result| result["tool_use_id"] == *call);
            if let (Some(mine), Some(shown)) = (mine, shown)
                && mine["content"] != shown
            {
                mine["content"] = before.clone();
            }
        }
        own.to_string().into_bytes()
    }

    /// The answer, if it has at least a head.
    pub fn answer(&self) -> Option<&Message> {
        match &self.seen {
            Seen::Answer(answer) => Some(answer),
            Seen::Nothing => None,
        }
    }

    /// What the answer says of a pass.
    pub fn compaction(&self) -> Option<&str> {
        self.answer()?.header("x-longhaul-compaction")
    }

    /// Whether the client can go on with what it got.
    pub fn is_good(&self) -> bool {
        let spoils = matches!(
            self.fault,
            Some(
                Fault::EndAfter { .. }
                    | Fault::ErrorAfter { .. }
                    | Fault::GarbageAfter { .. }
                    | Fault::Garbage
            )
        );
        let whole = |answer: &Message| answer.status() == 200 && answer.complete;
        !spoils && self.manner == Manner::Waits && self.answer().is_some_and(whole)
    }
}

/// The results in a body.
fn results(body: &mut Value) -> impl Iterator<Item = &mut Value> {
    let messages = body["messages"].as_array_mut().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array_mut());
    blocks.flatten().filter(|b| b["type"] == "tool_result")
}

/// Whether nothing will come of a fault but silence.
fn is_silent(fault: Option<&Fault>) -> bool {
    matches!(fault, Some(Fault::Hang | Fault::StallAfter { .. }))
}

/// Sends a request and waits as its client does; what came.
pub fn send(to: SocketAddr, request: &[u8], fault: Option<&Fault>, manner: Manner) -> Seen {
    let Ok(mut stream) = TcpStream::connect(to) else {
        return Seen::Nothing;
    };
    let limit = if is_silent(fault) { SHORT } else { PATIENCE };
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(limit)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    if stream.write_all(request).is_err() || manner == Manner::LeavesAtOnce {
        return Seen::Nothing;
    }
    let mut reader = Reader::new(stream);
    let Ok(Some(mut answer)) = reader.head() else {
        return Seen::Nothing;
    };
    if manner == Manner::Waits {
        let _ = reader.body(&mut answer, true);
    } else {
        answer.body = reader.some().unwrap_or_default();
    }
    Seen::Answer(answer)
}

/// Measures how long something takes.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed())
}
