//! The calls of a history that have results, with what there is to know of each.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::outcome::{self, Outcome};
use crate::engine::acts::{self, Act};
use crate::engine::conversation::{Call, Conversation};
use crate::engine::overlay::{Change, Overlay};

/// How far into a result is looked for a word of what was not there.
const BEGINNING: usize = 300;

/// Such words.
static MISSING: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| ["o such file", "not a directory"].map(Finder::new));

/// A call that has a result.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the call"
)]
pub(super) struct Item<'a> {
    pub(super) used: (usize, usize),
    pub(super) result: (usize, usize),
    pub(super) tool: String,
    pub(super) act: Act,
    /// What the result holds, as JSON.
    pub(super) payload: Option<&'a [u8]>,
    pub(super) outcome: Outcome,
    /// Call and result are shown as they came.
    pub(super) is_shown: bool,
    /// It is not so large that it is trimmed before it is sent.
    pub(super) is_whole: bool,
    /// A part of the result is shown.
    pub(super) is_trimmed: bool,
    /// Clearing the result would unload tools.
    pub(super) holds_tools: bool,
}

impl Item<'_> {
    /// Whether it may supersede: it worked, and all of it is there to be seen.
    pub(super) fn is_good(&self) -> bool {
        self.is_shown && self.is_whole && self.outcome == Outcome::Good
    }

    pub(super) fn text(&self) -> &[u8] {
        self.payload.unwrap_or_default()
    }

    /// Whether the result says that something was not there.
    pub(super) fn misses(&self) -> bool {
        let first = self.text().get(..BEGINNING).unwrap_or(self.text());
        MISSING.iter().any(|text| text.find(first).is_some())
    }

    /// Whether an earlier result of the same thing holds so much more that this
    /// one is rather a notice, or about what is gone.
    pub(super) fn is_scant_beside(&self, earlier: &Item<'_>) -> bool {
        self.text().len() * 2 < earlier.text().len()
    }
}

/// The calls that have results, in order.
pub(super) fn items<'a>(
    conversation: &Conversation<'a>,
    current: &Overlay,
    oversized: usize,
) -> Vec<Item<'a>> {
    let calls = conversation.calls().into_iter();
    calls
        .filter_map(|call| item(conversation, call, current, oversized))
        .collect()
}

/// What there is to know of a call; `None` if it has no result.
pub(super) fn item<'a>(
    conversation: &Conversation<'a>,
    call: Call,
    current: &Overlay,
    oversized: usize,
) -> Option<Item<'a>> {
    let bytes = conversation.bytes();
    let is_shown = |place: (usize, usize)| {
        current.shows(place.0) && current.change_at(place.0, place.1).is_none()
    };
    let is_trimmed = |place: (usize, usize)| {
        let change = current.change_at(place.0, place.1);
        current.shows(place.0) && change.is_some_and(Change::is_trim)
    };
    let result = call.result?;
    let asked = conversation.block_at(call.used)?;
    let block = conversation.block_at(result)?;
    let tool: String = serde_json::from_slice(asked.name?.of(bytes)).ok()?;
    let input = asked.payload.map_or(&b"{}"[..], |input| input.of(bytes));
    let payload = block.payload.map(|payload| payload.of(bytes));
    Some(Item {
        act: acts::act(&tool, input),
        used: call.used,
        result,
        tool,
        payload,
        outcome: outcome::outcome(block.is_error, payload.unwrap_or_default()),
        is_shown: is_shown(call.used) && is_shown(result),
        is_whole: payload.map_or(0, <[u8]>::len) <= oversized,
        is_trimmed: is_shown(call.used) && is_trimmed(result),
        holds_tools: block.has_tool_references,
    })
}
