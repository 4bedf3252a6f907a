//! Where cache marks stand in a view.
//!
//! The client's own marks stay where they survive; ours are added to them, never
//! for a client that uses none. The API takes four in all, its automatic one
//! included, longer lifetimes first, and looks back twenty positions from a mark
//! for something it has cached. So on the request that brings a new overlay one
//! of ours stands where the old prefix ends and the new begins, and later, when
//! a turn has added more than the look-back, one stands where the request before
//! had its last. Marks are no part of a conversation's identity: the API ignores
//! them when it compares, and so do we.
//!
//! Placement depends on nothing but the body, the overlay and two facts kept
//! with the plan, so that the same request sent again is marked the same.

mod fixed;
mod kept;
mod lifetime;

pub use kept::{Held, Stable};
pub use lifetime::Lifetime;

use fixed::{fixed, keep_for_longer};

use super::conversation::Conversation;
use super::overlay::{Change, Overlay};
use crate::wire::body::{Block, Body, Kind, Mark, Message};
use crate::wire::scan::Span;
use crate::wire::splice::Splice;

/// The most marks of a request.
pub const MOST: usize = 4;
/// A turn that adds more positions than this gets a mark in its middle: two
/// less than the API looks back, for what it may count that we do not.
const LOOK_BACK: usize = 18;
/// A mark that is none, spelled out.
const NONE: &[u8] = b"null";

/// A block of the client's history: message and block.
pub type Place = (usize, usize);

/// What placement goes by, besides the body and the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Basis {
    /// This is the first request with its overlay.
    pub swap: bool,
    /// Where the request before had its last mark; on the first request with its
    /// overlay, where the cache can still be read up to.
    pub previous: Option<Place>,
    /// Where the part of the view ends that later passes leave as it is.
    pub stable: Option<Stable>,
    /// The part of the view that no pass changes, system, tools and segments, is
    /// kept for an hour.
    pub long: bool,
}

/// Where marks go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// The mark at the end of the last segment, or nothing.
    pub segment: &'static str,
    /// The other changes to the body.
    pub changes: Vec<Splice>,
    /// Where the last mark of the view stands.
    pub last: Option<Place>,
    /// Where ours stands, if there is one; the end of the segments is behind the
    /// last message that they hide.
    pub ours: Option<Place>,
    /// The longest lifetime in use; none if the client has no messages cached,
    /// which then cost the same whether they were sent before or not.
    pub lifetime: Option<Lifetime>,
}

/// A mark of the client's that the view shows.
struct Shown {
    place: Place,
    lifetime: Lifetime,
    mark: Mark,
    /// It stood inside a result that the view shows trimmed, and goes on that
    /// result: what a trimmed result holds carries no marks.
    moves: bool,
}

impl Shown {
    /// Where it goes, if it does not stay where it is.
    fn moved(&self, conversation: &Conversation<'_>) -> Option<Splice> {
        let holder = conversation.block_at(self.place).filter(|_| self.moves)?;
        let mut mark = br#","cache_control":"#.to_vec();
        mark.extend_from_slice(self.mark.value.of(conversation.bytes()));
        Some(Splice::insert(holder.span.end().checked_sub(1)?, mark))
    }
}

/// The mark that the client leaves to the API to place.
fn automatic(bytes: &[u8], body: &Body) -> Option<Lifetime> {
    let value = body.field(bytes, "cache_control")?.of(bytes);
    (value != NONE).then(|| Lifetime::of(value))
}

/// How many marks a body has, wherever they stand.
pub fn count(bytes: &[u8], body: &Body) -> usize {
    let marks = body.messages().iter().flat_map(|m| body.marks(m));
    let in_messages = marks.filter(|mark| mark.value.of(bytes) != NONE).count();
    fixed(bytes, body).len() + in_messages + usize::from(automatic(bytes, body).is_some())
}

/// Places the marks of a view.
pub fn place(conversation: &Conversation<'_>, overlay: &Overlay, basis: Basis) -> Placement {
    let mut placement = place_ours(conversation, overlay, basis);
    if basis.long {
        keep_for_longer(conversation, overlay, &mut placement);
    }
    placement
}

/// Places the marks of a view, all with the lifetimes that the client asks for.
fn place_ours(conversation: &Conversation<'_>, overlay: &Overlay, basis: Basis) -> Placement {
    let (bytes, body) = (conversation.bytes(), conversation.body());
    let fixed = fixed(bytes, body);
    let automatic = automatic(bytes, body);
    let shown = shown(conversation, overlay);
    let used = fixed.len() + shown.len() + usize::from(automatic.is_some());
    let in_messages = shown.iter().map(|mark| mark.lifetime);
    let of_fixed = |mark: &Span| Lifetime::of(mark.of(bytes));
    let all: Vec<Lifetime> = fixed
        .iter()
        .map(of_fixed)
        .chain(in_messages)
        .chain(automatic)
        .collect();
    let in_use = automatic.is_some() || !shown.is_empty();
    let end = last_place(conversation, overlay);
    let last = match automatic {
        Some(_) => end,
        None => shown.last().map(|mark| mark.place),
    };
    let moved = |shown: &[Shown]| -> Vec<Splice> {
        let marks = shown.iter();
        marks.filter_map(|mark| mark.moved(conversation)).collect()
    };
    let mut placement = Placement {
        segment: "",
        changes: moved(&shown),
        last,
        ours: None,
        lifetime: all.iter().copied().max().filter(|_| in_use),
    };
    let needed = needed(conversation, overlay, basis, last);
    let lasting = || lasting(conversation, overlay, basis);
    let Some(wanted) = needed.or_else(lasting) else {
        return placement;
    };
    let needed = needed.is_some();
    if all.is_empty() {
        return placement;
    }
    // Ours lives as long as the client's next one, so that the order stays legal.
    let before = |mark: &&Shown| match (wanted, mark.place) {
        (Wanted::Segment, (message, _)) => message < overlay.cut as usize,
        (Wanted::Block(place), other) => other < place,
    };
    let passed = fixed.len() + shown.iter().take_while(before).count();
    let lifetime = all.get(passed).or(all.last()).copied();
    let Some(lifetime) = lifetime else {
        return placement;
    };
    if used >= MOST && !needed {
        return placement;
    }
    let mut changes = placement.changes.clone();
    if used >= MOST {
        // The earlier mark of two in messages gives way.
        let Some((first, others)) = shown.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            return placement;
        };
        changes = moved(others);
        if !first.moves {
            changes.push(Splice::remove(first.mark.cut.range()));
        }
    }
    match wanted {
        Wanted::Segment => {
            placement.segment = lifetime.mark();
            let hidden = (overlay.cut as usize).checked_sub(1);
            placement.ours = hidden.map(|last| (last, usize::MAX));
        }
        Wanted::Block(place) => {
            let Some(marked) = mark_block(conversation, place, lifetime) else {
                return placement;
            };
            changes.extend(marked);
            placement.ours = Some(place);
        }
    }
    Placement {
        changes,
        ..placement
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Segment,
    Block(Place),
}

/// Where a mark of ours keeps the stable part of the view in the cache: without
/// it the entry would die while the session goes on, and the next pass would
/// write that part once more.
fn lasting(conversation: &Conversation<'_>, overlay: &Overlay, basis: Basis) -> Option<Wanted> {
    match basis.stable.filter(|_| !basis.swap)? {
        Stable::Segments => overlay.hides().then_some(Wanted::Segment),
        Stable::Block(message, block) => {
            let place = (message, block);
            let place = Some(place).filter(|place| overlay.shows(place.0))?;
            let place = eligible_up_to(conversation, overlay, place)?;
            unmarked(conversation, place).then_some(Wanted::Block(place))
        }
    }
}

/// Where a mark of ours is needed to read what is cached.
fn needed(
    conversation: &Conversation<'_>,
    overlay: &Overlay,
    basis: Basis,
    last: Option<Place>,
) -> Option<Wanted> {
    if basis.swap {
        // What is cached behind the segments is read from there.
        let behind = |place: &Place| place.0 >= overlay.cut as usize;
        if overlay.hides() && !basis.previous.is_some_and(|place| behind(&place)) {
            return Some(Wanted::Segment);
        }
        let living = basis.previous.filter(|place| overlay.shows(place.0));
        if let Some(place) = living.and_then(|at| eligible_up_to(conversation, overlay, at)) {
            return unmarked(conversation, place).then_some(Wanted::Block(place));
        }
        let first = overlay.edits.first()?;
        let before = (first.message as usize).checked_sub(1)?;
        let place = eligible_up_to(conversation, overlay, (before, usize::MAX))?;
        return unmarked(conversation, place).then_some(Wanted::Block(place));
    }
    let previous = basis.previous?;
    let last = last?;
    if !overlay.shows(previous.0) || positions(conversation, overlay, previous, last) <= LOOK_BACK {
        return None;
    }
    let place = eligible_up_to(conversation, overlay, previous)?;
    unmarked(conversation, place).then_some(Wanted::Block(place))
}

/// The client's marks that the view shows.
fn shown(conversation: &Conversation<'_>, overlay: &Overlay) -> Vec<Shown> {
    let (bytes, body) = (conversation.bytes(), conversation.body());
    let mut found = Vec::new();
    for (at, message) in body.messages().iter().enumerate() {
        if body.marks(message).is_empty() || !overlay.shows(at) {
            continue;
        }
        for mark in body.marks(message) {
            let block = body.index_in(message, mark);
            let (survives, moves) = match overlay.change_at(at, block) {
                None | Some(Change::Append(_)) => (true, false),
                Some(Change::Payload(_)) if !mark.is_nested => (true, false),
                Some(change @ Change::Payload(_)) => {
                    let moves = change.is_trim() && is_last_of_block(bytes, body, message, mark);
                    (moves, moves)
                }
                Some(Change::Block(_) | Change::Gone) => (false, false),
            };
            if survives && mark.value.of(bytes) != NONE {
                found.push(Shown {
                    place: (at, block),
                    lifetime: Lifetime::of(mark.value.of(bytes)),
                    mark: *mark,
                    moves,
                });
            }
        }
    }
    found
}

/// Whether no mark stands behind this one in its block, and none on the block
/// itself.
fn is_last_of_block(bytes: &[u8], body: &Body, message: &Message, mark: &Mark) -> bool {
    let marks = body.marks(message).iter();
    let mut others = marks.filter(|other| {
        other.block == mark.block && *other != mark && other.value.of(bytes) != NONE
    });
    others.all(|other| other.is_nested && other.value.start() < mark.value.start())
}

/// The last block that is shown.
fn last_place(conversation: &Conversation<'_>, overlay: &Overlay) -> Option<Place> {
    let last = conversation.len().checked_sub(1)?;
    eligible_up_to(conversation, overlay, (last, usize::MAX))
}

/// The nearest block at or before a place that may carry a mark, in the same
/// stretch of shown messages.
fn eligible_up_to(
    conversation: &Conversation<'_>,
    overlay: &Overlay,
    (message, block): Place,
) -> Option<Place> {
    for at in (0..=message).rev().take(LOOK_BACK) {
        if !overlay.shows(at) {
            return None;
        }
        let shown = conversation.message(at)?;
        if shown.is_string && !overlay.edits_of(at).is_empty() {
            // It is a block already, made by the overlay.
            continue;
        }
        if shown.is_string {
            let is_empty = is_blank(shown.content.of(conversation.bytes()));
            if !is_empty {
                return Some((at, 0));
            }
            continue;
        }
        let limit = if at == message { block } else { usize::MAX };
        let may = |(index, candidate): &(usize, &Block)| {
            let changed = overlay.change_at(at, *index);
            let stands = !matches!(changed, Some(Change::Block(_) | Change::Gone));
            stands && *index <= limit && is_eligible(conversation.bytes(), candidate)
        };
        let found = conversation.blocks(at).iter().enumerate().rfind(may);
        if let Some((index, _)) = found {
            return Some((at, index));
        }
    }
    None
}

fn is_eligible(bytes: &[u8], block: &Block) -> bool {
    match block.kind {
        Kind::Text => block.payload.is_some_and(|text| !is_blank(text.of(bytes))),
        Kind::Image | Kind::Document | Kind::ToolUse | Kind::ToolResult => true,
        Kind::Thinking | Kind::Compaction | Kind::Other => false,
    }
}

/// Whether a JSON string has nothing but white space in it. An escape may stand
/// for white space too, so only what is certainly more counts.
fn is_blank(string: &[u8]) -> bool {
    let inner = string
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
        .unwrap_or(string);
    let mut escaped = false;
    !inner.iter().any(|byte| {
        let plain = !escaped && *byte != b'\\' && byte.is_ascii_graphic();
        escaped = *byte == b'\\' && !escaped;
        plain
    })
}

fn unmarked(conversation: &Conversation<'_>, (message, block): Place) -> bool {
    let body = conversation.body();
    let Some(holder) = conversation.message(message) else {
        return false;
    };
    let here = |mark: &Mark| body.index_in(holder, mark) == block;
    !body.marks(holder).iter().any(here)
}

/// Positions from one block to a later one, as a view shows them.
fn positions(conversation: &Conversation<'_>, overlay: &Overlay, from: Place, to: Place) -> usize {
    let gone = |at: usize| {
        let edits = overlay.edits_of(at).iter();
        edits.filter(|edit| edit.change == Change::Gone).count()
    };
    let between: usize = (from.0..to.0)
        .filter(|at| overlay.shows(*at))
        .map(|at| {
            conversation
                .blocks(at)
                .len()
                .max(1)
                .saturating_sub(gone(at))
        })
        .sum();
    (between + to.1).saturating_sub(from.1)
}

/// Puts a mark on a block; a string becomes the block that it stands for.
fn mark_block(
    conversation: &Conversation<'_>,
    (message, block): Place,
    lifetime: Lifetime,
) -> Option<Vec<Splice>> {
    let holder = conversation.message(message)?;
    if holder.is_string {
        let string = holder.content;
        return Some(vec![
            Splice::insert(string.start(), r#"[{"type":"text","text":"#),
            Splice::insert(string.end(), format!("{}}}]", lifetime.mark())),
        ]);
    }
    let marked = conversation.block_at((message, block))?;
    let brace = marked.span.end().checked_sub(1)?;
    Some(vec![Splice::insert(brace, lifetime.mark())])
}

#[cfg(test)]
#[path = "cache_marks_tests.rs"]
mod tests;
