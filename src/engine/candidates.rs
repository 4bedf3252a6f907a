//! Which old tool results could give way, and for what reason.
//!
//! A result may go because a later one tells the same or newer (superseded),
//! because the very same bytes stand further down (duplicate), or only because
//! it is old. The first two take nothing from the agent, so they must be certain:
//! what was not read again in full, what failed the second time, or what is no
//! longer shown itself, supersedes nothing. An edit alone does not supersede the
//! read before it: agents read a file once and edit it several times, and what
//! they did not touch they still go by. A file written in full does, because all
//! of it stands in the call.
//!
//! This only lists; what is taken of the list is decided elsewhere.

mod content;
mod fates;
mod items;
mod later;
mod outcome;
mod places;
mod topics;

use std::collections::HashMap;

use super::acts::Act;
use super::conversation::Conversation;
use super::overlay::Overlay;
pub(super) use fates::{Deed, Fate, answered, deeds};
use items::Item;
use later::Later;
pub(super) use outcome::Outcome;

/// Shorter results are not worth comparing.
const DUPLICATE: usize = 256;
/// Later calls about the same thing beyond which more say nothing new.
const MOST_TOUCHES: usize = 4;
/// Bytes of a subject, about.
const SUBJECT: usize = 117;

/// What the choice goes by.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The newest calls whose results are never given up.
    pub keep_tool_uses: usize,
    /// Tools whose results are never given up.
    pub exclude_tools: &'a [String],
    /// Whether to look for results that later ones have made worthless.
    pub supersede: bool,
    /// Bytes from which a result is trimmed, so that it stands for no other.
    pub oversized: usize,
}

/// A result that could give way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where the model asks: message and block.
    pub used: (usize, usize),
    /// Where the answer stands.
    pub result: (usize, usize),
    /// The tool.
    pub tool: String,
    /// What was asked for, in one short line; empty if nothing is known.
    pub subject: String,
    /// Why it could go.
    pub reason: Reason,
    /// It tells of a failure that was made good since.
    pub is_error: bool,
    /// Bytes of what the result holds.
    pub bytes: usize,
    /// How likely it is to be needed again, in thousandths per request, at the
    /// age of one.
    pub hazard: u32,
    /// The message of the newest call that reads or changes the file that it
    /// shows; none: it shows no file.
    pub file_used: Option<usize>,
}

/// Why a result could go, the best reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A later call has made it worthless.
    Superseded {
        /// In what way.
        how: How,
        /// Where that call stands.
        by: (usize, usize),
    },
    /// The same bytes are shown further down.
    Duplicate {
        /// Where: the later result.
        of: (usize, usize),
    },
    /// The agent has gone on since.
    Old,
}

/// In what way a result was made worthless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The file was read again.
    ReadAgain,
    /// The file was written in full.
    WrittenLater,
    /// The same was run or asked again.
    RunAgain,
}

/// The results that could give way, in order of place.
pub fn candidates(
    conversation: &Conversation<'_>,
    current: &Overlay,
    settings: &Choice<'_>,
) -> Vec<Candidate> {
    let items = items::items(conversation, current, settings.oversized);
    let later = Later::new(&items);
    let end = conversation.last_assistant().unwrap_or(0);
    let count = items.len().saturating_sub(settings.keep_tool_uses);
    let superseded: Vec<_> = (0..items.len())
        .map(|number| later.superseded(number).filter(|_| settings.supersede))
        .collect();
    let duplicates = if settings.supersede {
        duplicates(&items, |number| {
            superseded.get(number).is_some_and(Option::is_some)
        })
    } else {
        HashMap::new()
    };
    let pointed_at = later.pointed_at();
    let reason = |number: usize, item: &Item<'_>| {
        if let Some((how, by)) = superseded.get(number).copied().flatten() {
            return Some(Reason::Superseded { how, by });
        }
        match item.outcome {
            Outcome::Refused => return None,
            Outcome::Failed => {
                let is_good = later.made_good(number).is_some() || later.changed_later(number);
                return is_good.then_some(Reason::Old);
            }
            Outcome::Good | Outcome::Unchanged | Outcome::Absent => {}
        }
        if let Some(of) = duplicates.get(&number) {
            return Some(Reason::Duplicate { of: *of });
        }
        pointed_at
            .binary_search(&number)
            .is_err()
            .then_some(Reason::Old)
    };
    let candidate = |(number, item): (usize, &Item<'_>)| {
        let may_go = (item.is_shown || item.is_trimmed)
            && (conversation.head()..end).contains(&item.result.0)
            && !item.holds_tools
            && !settings.exclude_tools.contains(&item.tool);
        let bytes = item.payload.filter(|_| may_go)?.len();
        Some(Candidate {
            used: item.used,
            result: item.result,
            tool: item.tool.clone(),
            subject: line(&item.act.subject()),
            reason: reason(number, item)?,
            is_error: item.outcome == Outcome::Failed,
            bytes,
            hazard: hazard(&item.act, later.touches(number)),
            file_used: item.act.reading().and_then(|_| later.last_touch(number)),
        })
    };
    let old = items.iter().enumerate().take(count);
    let mut found: Vec<Candidate> = old.filter_map(candidate).collect();
    found.sort_by_key(|candidate| candidate.result);
    found
}

/// How likely the result of a call is to be needed again at the age of one
/// request, in thousandths: measured on recordings, by kind. What later calls have
/// gone back to is needed more often.
fn hazard(act: &Act, touches: usize) -> u32 {
    let by_kind = match act {
        _ if act.reading().is_some() => 200,
        Act::Asks(_) => 140,
        Act::Runs(_) => 50,
        Act::Writes(_) | Act::Plans => 0,
        Act::Reads(_) | Act::Opaque => 130,
    };
    let touches = u32::try_from(touches.min(MOST_TOUCHES)).unwrap_or(0);
    by_kind * (2 + touches) / 2
}

/// Results whose bytes stand further down as well, in a result that is not
/// itself worthless, and where.
fn duplicates(
    items: &[Item<'_>],
    is_superseded: impl Fn(usize) -> bool,
) -> HashMap<usize, (usize, usize)> {
    let mut long: Vec<(&[u8], usize)> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let payload = item.payload.unwrap_or_default();
        if payload.len() >= DUPLICATE && item.is_good() {
            long.push((payload, number));
        }
    }
    // By length first: most are told apart without a look at what they say.
    long.sort_unstable_by_key(|(payload, number)| (payload.len(), *payload, *number));
    let mut found = HashMap::new();
    for alike in long.chunk_by(|one, other| one.0 == other.0) {
        let kept = alike
            .iter()
            .rev()
            .find(|(_, number)| !is_superseded(*number));
        let Some((_, kept)) = kept else {
            continue;
        };
        let Some(of) = items.get(*kept).map(|item| item.result) else {
            continue;
        };
        let earlier = alike.iter().filter(|(_, number)| number < kept);
        found.extend(earlier.map(|(_, number)| (*number, of)));
    }
    found
}

/// A text as one short line.
pub(super) fn line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SUBJECT {
            break;
        }
    }
    line.retain(|letter| !letter.is_control());
    if line.len() > SUBJECT {
        line.truncate(line.floor_char_boundary(SUBJECT));
        line.push('…');
    }
    line
}

#[cfg(test)]
#[path = "candidates_tests.rs"]
mod tests;
