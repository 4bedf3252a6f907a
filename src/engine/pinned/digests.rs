//! Lines of the results of a span, and of what it wrote into files: what is most
//! likely to be needed again of them, word for word (`digest.rs`).
//!
//! Each begins with the call that it belongs to. Where there is not room for all,
//! what is needed most has it: files before searches before output, and the
//! newer before the older. What several of them say is said once.

use super::quote::{self, DATA};
use super::result_text;
use crate::engine::acts::Act;
use crate::engine::candidates::{self, Deed, Fate};
use crate::engine::digest::{Kind, Shown, Want, digest, in_segment, quoted, share, written};

/// Bytes that a digest must have to be worth a line that says whose it is.
const LEAST: usize = 60;

/// The digests of these calls, quoted, in no more than so many bytes.
pub(super) fn text(deeds: &[Deed<'_>], room: usize) -> String {
    if room == 0 {
        return String::new();
    }
    let count = deeds.len().max(1);
    let wants: Vec<Want> = deeds
        .iter()
        .enumerate()
        .map(|(at, deed)| want(deed, at, count))
        .collect();
    let rooms = share(&wants, room);
    let mut shown = Shown::default();
    let mut texts: Vec<String> = Vec::new();
    // The newest first: an earlier result need not say it again.
    for (deed, room) in deeds.iter().zip(rooms).rev() {
        texts.push(one(deed, room, &mut shown));
    }
    texts.reverse();
    texts.concat()
}

/// What the digest of a call should have, and how much it is needed.
fn want(deed: &Deed<'_>, at: usize, count: usize) -> Want {
    let (bytes, kind) = match deed.act {
        _ if deed.fate != Fate::Worked => (0, 0),
        Act::Writes(_) => (deed.input.len(), 200),
        Act::Plans => (0, 0),
        _ if deed.act.reading().is_some() => (deed.payload.len(), 200),
        Act::Asks(_) => (deed.payload.len(), 140),
        Act::Runs(_) => (deed.payload.len(), 80),
        Act::Reads(_) | Act::Opaque => (deed.payload.len(), 130),
    };
    Want {
        bytes: in_segment(bytes),
        need: kind * (count + at) as u64 / count as u64,
    }
}

/// The digest of a call, quoted.
fn one(deed: &Deed<'_>, room: usize, shown: &mut Shown) -> String {
    let subject = deed.act.subject();
    let call = candidates::line(&format!("{}: {subject}", deed.tool));
    let call = format!("[{call}]");
    let heading = quote::length(DATA, &call) + 1;
    let Some(room) = room.checked_sub(heading).filter(|room| *room >= LEAST) else {
        return String::new();
    };
    let (kind, said) = match deed.act {
        Act::Writes(_) => (Kind::Written, written(deed.input)),
        _ => (Kind::of_result(&deed.act), result_text(deed.payload)),
    };
    let digest = digest(kind, &said, room, shown);
    if digest.is_empty() {
        return digest;
    }
    let mut text = String::new();
    quote::quote(&mut text, DATA, &call);
    text + &quoted(&digest)
}
