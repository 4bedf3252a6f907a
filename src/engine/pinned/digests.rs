//! Lines of the results of a span, of what it wrote into files and of what the
//! assistant said: what is most likely to be needed again of them, word for word
//! (`digest.rs`).
//!
//! Each begins with where it is from. Most results are small: of these, and of what
//! the assistant said, those leave a line that say something nobody could guess,
//! such as an id, an address or an error. Of the others, those that are needed most
//! have the most room: files before searches before output, and the newer before
//! the older. What several of them say is said once.

use std::collections::HashSet;

use super::decode;
use super::quote::{self, DATA};
use super::result_text;
use crate::engine::acts::Act;
use crate::engine::candidates::{self, Deed, Fate};
use crate::engine::conversation::Conversation;
use crate::engine::digest::{
    Kind, Shown, Want, digest, in_segment, quoted, share, specific, written,
};
use crate::wire::body::{self, Role};

/// Bytes that a digest must have to be worth a line that says whose it is.
const LEAST: usize = 60;
/// Bytes of the digest of a small result.
const LINE: usize = 200;
/// Bytes of what a small result was asked for.
const CALL: usize = 48;
/// What the assistant said has an eighth of the room, small results a quarter.
const SAID: usize = 8;
const SMALL: usize = 4;

/// Something that is left out, and leaves lines.
struct Source {
    /// Its message and block.
    at: (usize, usize),
    /// Where it is from.
    label: String,
    kind: Kind,
    text: String,
}

impl Source {
    /// Its digest in so much room, quoted behind where it is from.
    fn digest(&self, room: usize, shown: &mut Shown) -> String {
        let label = format!("[{}]", self.label);
        let heading = quote::length(DATA, &label) + 1;
        let Some(room) = room.checked_sub(heading).filter(|room| *room >= LEAST) else {
            return String::new();
        };
        let digest = digest(self.kind, &self.text, room, shown);
        if digest.is_empty() {
            return digest;
        }
        let mut text = String::new();
        quote::quote(&mut text, DATA, &label);
        text + &quoted(&digest)
    }
}

/// Digests with the place of what they are from.
type Digests = Vec<((usize, usize), String)>;

/// The digests of these messages and calls, quoted, in at most `room` bytes.
pub(super) fn text(
    conversation: &Conversation<'_>,
    span: std::ops::Range<usize>,
    deeds: &[Deed<'_>],
    room: usize,
) -> String {
    if room == 0 {
        return String::new();
    }
    let mut shown = Shown::default();
    let mut digests = most_specific(said(conversation, span), room / SAID, &mut shown);
    let newest = newest(deeds);
    let (small, large): (Vec<&Deed<'_>>, Vec<&Deed<'_>>) =
        newest.iter().partition(|deed| in_segment(bytes(deed)) == 0);
    let small = small.into_iter().filter_map(|deed| source(deed, CALL));
    let confirmed = deeds.iter().filter_map(confirmation);
    let small = small.chain(confirmed).collect();
    digests.extend(most_specific(small, room / SMALL, &mut shown));
    let left = room.saturating_sub(digests.iter().map(|(_, text)| text.len()).sum());
    digests.extend(by_need(&large, left, &mut shown));
    digests.sort_by_key(|(at, _)| *at);
    digests.into_iter().map(|(_, text)| text).collect()
}

/// The calls without those that were made again later: what they showed is old.
fn newest<'d, 'a>(deeds: &'d [Deed<'a>]) -> Vec<&'d Deed<'a>> {
    let mut asked: HashSet<(&str, String)> = HashSet::new();
    let mut newest = Vec::with_capacity(deeds.len());
    for deed in deeds.iter().rev() {
        let differs = matches!(deed.act, Act::Writes(_) | Act::Opaque);
        if differs || asked.insert((&deed.tool, deed.act.subject())) {
            newest.push(deed);
        }
    }
    newest.reverse();
    newest
}

/// A line or two of each of those that are most specific, until there is no room.
fn most_specific(sources: Vec<Source>, room: usize, shown: &mut Shown) -> Digests {
    let worth = |source: &Source| specific(&source.digest(LINE, &mut Shown::default()));
    let mut sources: Vec<(u32, Source)> = sources.into_iter().map(|it| (worth(&it), it)).collect();
    sources.retain(|(worth, _)| *worth > 0);
    sources.sort_by_key(|(worth, source)| std::cmp::Reverse((*worth, source.at)));
    let mut left = room;
    let mut digests = Vec::new();
    for (_, source) in sources {
        let text = source.digest(LINE.min(left), shown);
        left = left.saturating_sub(text.len());
        if !text.is_empty() {
            digests.push((source.at, text));
        }
        if left < LEAST * 2 {
            break;
        }
    }
    digests
}

/// Of each as much as its size and how much it is needed ask for.
fn by_need(deeds: &[&Deed<'_>], room: usize, shown: &mut Shown) -> Digests {
    let count = deeds.len().max(1);
    let wants: Vec<Want> = deeds
        .iter()
        .enumerate()
        .map(|(at, deed)| Want {
            bytes: in_segment(bytes(deed)),
            need: need(deed) * (count + at) as u64 / count as u64,
        })
        .collect();
    // The newest first: an earlier result need not say it again.
    let rooms = deeds.iter().zip(share(&wants, room)).rev();
    rooms
        .filter_map(|(deed, room)| {
            let source = source(deed, usize::MAX)?;
            let text = source.digest(room, shown);
            (!text.is_empty()).then_some((source.at, text))
        })
        .collect()
}

/// Bytes of what a call leaves lines of.
fn bytes(deed: &Deed<'_>) -> usize {
    match deed.act {
        _ if deed.fate != Fate::Worked => 0,
        Act::Plans => 0,
        Act::Writes(_) => deed.input.len(),
        _ => deed.payload.len(),
    }
}

/// How much its lines are needed, by kind.
fn need(deed: &Deed<'_>) -> u64 {
    match deed.act {
        Act::Writes(_) => 200,
        _ if deed.act.reading().is_some() => 200,
        Act::Asks(_) => 140,
        Act::Runs(_) => 80,
        Act::Plans => 0,
        Act::Reads(_) | Act::Opaque => 130,
    }
}

/// What a call leaves lines of; its label has at most `subject` bytes of what was
/// asked for.
fn source(deed: &Deed<'_>, subject: usize) -> Option<Source> {
    let (kind, text) = match deed.act {
        _ if bytes(deed) == 0 => return None,
        Act::Writes(_) => (Kind::Written, written(deed.input)),
        _ => (Kind::of_result(&deed.act), result_text(deed.payload)),
    };
    Some(Source {
        at: deed.used,
        label: label(deed, subject),
        kind,
        text,
    })
}

/// What the result of a change says, or that of a call that failed and was made good
/// since.
fn confirmation(deed: &Deed<'_>) -> Option<Source> {
    let changed = matches!(deed.act, Act::Writes(_)) && deed.fate == Fate::Worked;
    let confirms = changed || deed.fate == Fate::MadeGood;
    confirms.then(|| Source {
        at: deed.result,
        label: label(deed, CALL),
        kind: Kind::Output,
        text: result_text(deed.payload),
    })
}

/// A call in one line, with at most `subject` bytes of what it asked for.
fn label(deed: &Deed<'_>, subject: usize) -> String {
    let about = deed.act.subject();
    let end = about.floor_char_boundary(subject.min(about.len()));
    let about = about.get(..end).unwrap_or_default();
    candidates::line(&format!("{}: {about}", deed.tool))
}

/// What the assistant said in these messages.
fn said(conversation: &Conversation<'_>, span: std::ops::Range<usize>) -> Vec<Source> {
    let bytes = conversation.bytes();
    let spoken = span.filter(|at| {
        let message = conversation.message(*at);
        message.is_some_and(|message| message.role == Role::Assistant)
    });
    let texts = spoken.flat_map(|at| {
        let blocks = conversation.blocks(at).iter().enumerate();
        let texts = blocks.filter(|(_, block)| block.kind == body::Kind::Text);
        texts.filter_map(move |(index, block)| Some(((at, index), block.payload?)))
    });
    texts
        .map(|(at, text)| Source {
            at,
            label: "assistant".to_owned(),
            kind: Kind::Other,
            text: decode::string(text.of(bytes)).unwrap_or_default(),
        })
        .collect()
}
