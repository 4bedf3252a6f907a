//! What has gone by in this process, in sums: for whoever tells it at the end.
//!
//! Metrics cannot tell how large one conversation became, and the store holds
//! what other processes have seen as well. No content is in it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::engine::ids::LineageId;
use crate::wire::body::{Body, Kind, Role};

/// The most sessions that are told apart.
const SESSIONS: usize = 1_024;

/// The sums of this process.
#[derive(Default)]
pub struct Tally(Mutex<Held>);

#[derive(Default)]
struct Held {
    sums: Sums,
    sessions: HashMap<LineageId, Size>,
}

/// A session, as far as it has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Turns that began in this process.
    pub turns: u64,
    /// Tokens of the history, when it was largest.
    pub original: u64,
    /// Tokens of the view that went in its place.
    pub sent: u64,
}

/// What has gone by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests that were answered and whose conversation is known.
    pub requests: u64,
    /// Sessions.
    pub sessions: u64,
    /// The largest of them.
    pub largest: Size,
    /// Passes that were committed.
    pub passes: u64,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Gone {
    /// Whose it was.
    pub lineage: LineageId,
    /// A turn began with it.
    pub opens_turn: bool,
    /// Tokens of the history.
    pub original: u64,
    /// Tokens of the view.
    pub sent: u64,
}

impl Tally {
    /// A request was answered.
    pub fn note(&self, gone: &Gone) {
        let mut held = self.held();
        held.sums.requests += 1;
        if held.sessions.len() >= SESSIONS && !held.sessions.contains_key(&gone.lineage) {
            return;
        }
        let size = held.sessions.entry(gone.lineage).or_default();
        size.turns += u64::from(gone.opens_turn);
        if gone.original >= size.original {
            (size.original, size.sent) = (gone.original, gone.sent);
        }
    }

    /// A pass was committed.
    pub fn passed(&self) {
        self.held().sums.passes += 1;
    }

    /// Everything so far.
    pub fn sums(&self) -> Sums {
        let held = self.held();
        let largest = held.sessions.values().max_by_key(|size| size.original);
        Sums {
            sessions: u64::try_from(held.sessions.len()).unwrap_or(u64::MAX),
            largest: largest.copied().unwrap_or_default(),
            ..held.sums
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a turn begins with a request: its last message is the user's and not
/// only results.
pub fn opens_turn(body: &Body) -> bool {
    let mut said = body.messages().iter().rev();
    let last = said.find(|message| message.role != Role::System);
    last.is_some_and(|message| {
        let blocks = body.blocks(message);
        let result = |kind| kind == Kind::ToolResult;
        let only_results = !blocks.is_empty() && blocks.iter().all(|block| result(block.kind));
        message.role == Role::User && !only_results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(number: u8, original: u64, sent: u64) -> Gone {
        Gone {
            lineage: LineageId::beginning(&[number; 32]),
            opens_turn: original.is_multiple_of(2),
            original,
            sent,
        }
    }

    #[test]
    fn the_largest_session_is_told_at_its_largest() {
        let tally = Tally::default();
        assert_eq!(tally.sums(), Sums::default());
        for (number, original, sent) in [(1, 10, 10), (2, 21, 21), (1, 50, 20), (1, 40, 40)] {
            tally.note(&gone(number, original, sent));
        }
        tally.passed();
        let sums = tally.sums();
        assert_eq!((sums.requests, sums.sessions, sums.passes), (4, 2, 1));
        let largest = Size {
            turns: 3,
            original: 50,
            sent: 20,
        };
        assert_eq!(sums.largest, largest);
    }

    #[test]
    fn results_open_no_turn_and_words_do() {
        let rows = [
            (r#"{"role":"user","content":"go"}"#, true),
            (
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b"}]}"#,
                false,
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b"},{"type":"text","text":"stop"}]}"#,
                true,
            ),
            (r#"{"role":"assistant","content":"{"}"#, false),
        ];
        for (message, expected) in rows {
            let body = format!(r#"{{"model":"m","messages":[{message}]}}"#);
            let split = Body::split(body.as_bytes()).unwrap();
            assert_eq!(opens_turn(&split), expected, "{message}");
        }
    }
}
