//! How much of what goes stays as a digest, and what of it.
//!
//! The room for digests is shared out among all that may go before anything is
//! decided, so that an offer says what clearing really frees: what is not taken
//! leaves its room to a later pass. Where the room is used up, what goes now has that
//! of old stubs which the pass writes once more in any case.

use super::{Close, Survey};
use crate::engine::acts;
use crate::engine::candidates::{Candidate, How, Reason};
use crate::engine::digest::{Kind, Shown, Want, digest, share, without_digest};
use crate::engine::overlay::Change;
use crate::engine::pinned;
use crate::engine::reduce::Replacement;
use crate::engine::trim::{Cut, Keep};
use crate::engine::weigh::pictures;

/// Requests within which a result may be needed again.
const HORIZON: u32 = 30;
/// The part of what is usual that an outcome has which a later run replaces, and
/// a confirmation.
const LITTLE: usize = 3;
/// The part of what is kept of a trimmed result that its digest may take.
const BESIDE: usize = 6;
/// With less kept of a result than this, there is no room for a digest.
const SHORT: usize = 8_000;

/// Bytes of the digests of results and of inputs, by candidate.
#[derive(Debug, Clone, Default)]
pub(super) struct Rooms {
    results: Vec<usize>,
    inputs: Vec<usize>,
    /// Bytes that are left for what is trimmed.
    left: usize,
}

impl Rooms {
    /// Those of a candidate's result and of its input.
    pub(super) fn of(&self, at: usize) -> (usize, usize) {
        let room = |rooms: &[usize]| rooms.get(at).copied().unwrap_or(0);
        (room(&self.results), room(&self.inputs))
    }

    /// Bytes for what is trimmed at once: results are, as they arrive and once
    /// more where a view must become smaller.
    pub(super) fn for_trims(&self) -> usize {
        self.left / 2
    }
}

impl Survey<'_> {
    /// Shares the room for digests out among the candidates.
    pub(super) fn share_digests(&self) -> Rooms {
        let size = self.settings.digest;
        let room = size.left(self.current);
        let results = self.candidates.iter().map(|candidate| self.want(candidate));
        let inputs = self
            .candidates
            .iter()
            .map(|candidate| self.want_of_input(candidate));
        let wants: Vec<Want> = results.chain(inputs).collect();
        let mut results = share(&wants, room);
        let left = room.saturating_sub(results.iter().sum());
        let inputs = results.split_off(self.candidates.len().min(results.len()));
        Rooms {
            results,
            inputs,
            left,
        }
    }

    /// Bytes of the digests of what is taken, results and inputs. Where they have
    /// less than they want, old stubs that are written once more in any case give
    /// theirs up, the oldest first, and half of all at the most.
    pub(super) fn rooms_for(
        &self,
        take: &[usize],
        close: Close<'_>,
    ) -> (Vec<(usize, usize)>, Vec<Replacement>) {
        let rooms: Vec<(usize, usize)> = take.iter().map(|at| self.digests.of(*at)).collect();
        let taken = || take.iter().filter_map(|at| self.candidates.get(*at));
        let wants: Vec<Want> = taken()
            .map(|it| self.want(it))
            .chain(taken().map(|it| self.want_of_input(it)))
            .collect();
        let wanted: usize = wants.iter().map(|want| want.bytes).sum();
        let had: usize = rooms.iter().map(|(result, input)| result + input).sum();
        let Some(missing) = wanted.checked_sub(had + 1) else {
            return (rooms, Vec::new());
        };
        let (given, gained) = self.given_up(self.first_change(take, close), missing);
        if given.is_empty() {
            return (rooms, given);
        }
        let mut results = share(&wants, had + gained);
        let inputs = results.split_off(take.len().min(results.len()));
        (results.into_iter().zip(inputs).collect(), given)
    }

    /// The first message that changes when these are taken.
    fn first_change(&self, take: &[usize], close: Close<'_>) -> usize {
        let closed = match close {
            Close::Nothing => None,
            Close::Summary => self.settings.closing.as_ref(),
            Close::Batch(batch) => Some(batch),
        };
        let closed = closed.map(|segment| segment.from as usize);
        let taken = take.iter().filter_map(|at| self.candidates.get(*at));
        let places = taken.map(|it| match self.input_of(it) {
            Some(_) => it.used.0.min(it.result.0),
            None => it.result.0,
        });
        places.chain(closed).min().unwrap_or(usize::MAX)
    }

    /// Stubs from a message on without their digests, and the bytes of these.
    fn given_up(&self, from: usize, missing: usize) -> (Vec<Replacement>, usize) {
        let mut given = Vec::new();
        let mut gained = 0;
        let stubs = self.current.edits.iter().filter_map(|edit| {
            let place = (edit.message as usize, edit.block as usize);
            let Change::Payload(with) = &edit.change else {
                return None;
            };
            let stands = place.0 >= from && self.current.shows(place.0) && !edit.change.is_trim();
            let (with, bytes) = without_digest(with).filter(|_| stands)?;
            Some((place, with, bytes))
        });
        let stubs: Vec<_> = stubs.collect();
        let held: usize = stubs.iter().map(|(_, _, bytes)| bytes).sum();
        for (place, with, bytes) in stubs {
            if gained >= missing || gained + bytes > held / 2 {
                break;
            }
            gained += bytes;
            given.push(Replacement {
                place,
                with,
                spares: self.weights.of_length(bytes),
                trims: false,
            });
        }
        (given, gained)
    }

    fn want_of_input(&self, candidate: &Candidate) -> Want {
        let input = self.input_of(candidate);
        Want {
            bytes: input.map_or(0, |input| self.settings.digest.in_stub(input.len())),
            need: self.need(candidate),
        }
    }

    fn need(&self, candidate: &Candidate) -> u64 {
        let need = crate::engine::policy::Need {
            hazard: candidate.hazard,
            age: self.requests_since(candidate.result.0),
        };
        need.within(HORIZON)
    }

    /// What the digest of a result should have.
    fn want(&self, candidate: &Candidate) -> Want {
        let usual = match pictures(self.conversation, candidate.result) {
            0 => self.settings.digest.in_stub(candidate.bytes),
            _ => 0,
        };
        let bytes = match candidate.reason {
            // What it said is shown elsewhere.
            Reason::Duplicate { .. }
            | Reason::Superseded {
                how: How::ReadAgain | How::WrittenLater,
                ..
            } => 0,
            Reason::Superseded {
                how: How::RunAgain, ..
            } => usual / LITTLE,
            Reason::Old if candidate.hazard == 0 => usual / LITTLE,
            Reason::Old => usual,
        };
        Want {
            bytes,
            need: self.need(candidate),
        }
    }

    /// The digests that the view shows already and goes on showing: those of
    /// segments, and of stubs but for the ones that are given up. What the newest
    /// messages show is not among them: it goes with a later pass.
    pub(super) fn stays_shown(&self, given: &[Replacement]) -> Shown {
        let segments = self.current.segments.iter().map(|it| it.block.as_str());
        let stubs = self.current.edits.iter().filter_map(|edit| {
            let place = (edit.message as usize, edit.block as usize);
            let is_dropped = given.iter().any(|it| it.place == place);
            match &edit.change {
                Change::Payload(with) if self.current.shows(place.0) && !is_dropped => Some(with),
                _ => None,
            }
        });
        Shown::in_texts(segments.chain(stubs.map(String::as_str)))
    }

    /// What the result of a call is.
    fn kind(&self, used: (usize, usize), tool: &str) -> Kind {
        let input = self.conversation.block_at(used).and_then(|it| it.payload);
        let bytes = self.conversation.bytes();
        let input = input.map_or(&b"{}"[..], |input| input.of(bytes));
        Kind::of_result(&acts::act(tool, input))
    }

    /// The digest of a result.
    pub(super) fn digest_result(
        &self,
        candidate: &Candidate,
        payload: &[u8],
        room: usize,
        shown: &mut Shown,
    ) -> String {
        if room == 0 {
            return String::new();
        }
        let text = pinned::result_text(payload);
        let kind = self.kind(candidate.used, &candidate.tool);
        digest(kind, &text, room.min(text.len() / 2), shown)
    }

    /// The digest of what is cut out of a result of a call, out of this room.
    /// Where little is kept of it, because a view must become small, there is
    /// none.
    pub(super) fn digest_cut(
        &self,
        (used, tool): ((usize, usize), &str),
        keep: Keep,
        cut: &Cut<'_>,
        left: &mut usize,
    ) -> String {
        let kept = keep.head.saturating_add(keep.tail);
        let room = self.settings.digest.in_stub(cut.cut_chars);
        let room = room.min(kept / BESIDE).min(*left / 2);
        if kept < SHORT || room == 0 {
            return String::new();
        }
        *left -= room;
        let kind = match self.kind(used, tool) {
            // Where the cut begins is not where the file does.
            Kind::File { .. } => Kind::File { first: None },
            other => other,
        };
        digest(kind, &cut.text(), room, &mut Shown::default())
    }
}

#[cfg(test)]
#[path = "digests_tests.rs"]
mod tests;
