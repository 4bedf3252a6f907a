//! Hides old messages behind a segment: a summary, or a notice where there is
//! none.
//!
//! Segments cover what is hidden from the head to the cut, one behind the other.
//! A new one is added behind the last, so that the bytes before it stay as they
//! are; one that covers earlier ones takes their place, and stands for the
//! messages themselves, not for what was said of them.

use std::ops::Range;

use super::super::native::Native;
use super::super::opening::Opening;
use super::super::overlay::{Change, Origin, Segment};
use super::super::{split, stub};
use super::{Evicted, Work, count, reference_of_span};
use crate::wire::body::Role;

impl Work<'_> {
    /// Where what is hidden so far ends.
    fn hidden_to(&self) -> usize {
        self.overlay.cut.max(count(self.conversation.head())) as usize
    }

    /// Puts a summary in the place of what it sums up, if that is where it
    /// belongs: it begins and ends with a segment, or at the edge of the tail.
    pub(super) fn close(&mut self, segment: &Segment) -> bool {
        let (from, to) = (segment.from as usize, segment.to as usize);
        let (head, hidden) = (self.conversation.head(), self.hidden_to());
        let segments = &self.overlay.segments;
        let begins =
            from == head || from == hidden || segments.iter().any(|s| s.from == segment.from);
        let ends = to == hidden
            || segments.iter().any(|s| s.to == segment.to)
            || (to > hidden && self.is_cut(to));
        if head == 0 || from < head || from >= to || !begins || !ends {
            return false;
        }
        // A notice promises all that it stands for by one name, a summary has its
        // own.
        let gone = match segment.origin {
            Origin::Truncated => from.min(hidden)..to,
            Origin::Summary => hidden..to,
        };
        self.leave_out(gone);
        self.cover(segment.clone());
        true
    }

    /// Puts the API's own summary in the place of everything before the tail.
    pub(super) fn close_natively(&mut self, native: &Native) -> bool {
        let (to, hidden) = (native.to as usize, self.hidden_to());
        if to <= hidden || !self.is_cut(to) || self.opening(to).is_some() {
            return false;
        }
        let role = |at: usize| self.conversation.message(at).map(|message| message.role);
        let last = self.conversation.len().checked_sub(1);
        let last = last.filter(|last| *last >= to && role(*last) == Some(Role::User));
        let shown = self.overlay.native.is_none();
        if shown {
            self.leave_out(0..self.conversation.head());
        }
        self.leave_out(hidden..to);
        let weighs = |text: &str| {
            let (weight, bytes) = self.orders.text;
            i64::try_from(text.len() as u64 * weight / bytes.max(1)).unwrap_or(i64::MAX)
        };
        let before = self.overlay.native.iter().map(|block| weighs(block));
        let segments = self.overlay.segments.iter();
        let before: i64 = before
            .chain(segments.map(|segment| weighs(&segment.block)))
            .sum();
        self.segments = weighs(&native.block) + weighs(&native.note) - before;
        self.overlay.native = Some(native.block.clone());
        self.overlay.head = 0;
        self.overlay.cut = native.to;
        self.overlay.segments.clear();
        self.overlay.before.clear();
        self.overlay.after.clear();
        self.edits.retain(|(message, _), _| *message >= native.to);
        if let Some(last) = last.filter(|_| !native.note.is_empty()) {
            let place = (count(last), u32::MAX);
            self.edits
                .insert(place, Change::Append(native.note.clone()));
        }
        self.changes_at((0, 0));
        true
    }

    fn is_cut(&self, at: usize) -> bool {
        let manual = self.orders.manual_thinking;
        let is_point = self.conversation.is_cut_point(at, manual) || self.opening(at).is_some();
        at <= self.conversation.first_indispensable() && is_point
    }

    /// The opening of the turn, where a tail that starts here needs it.
    fn opening(&self, at: usize) -> Option<Opening> {
        let conversation = self.conversation;
        let needs = self.orders.manual_thinking && !conversation.is_cut_point(at, true);
        let opening = needs.then(|| Opening::of(conversation)).flatten()?;
        opening.may_precede(conversation, at).then_some(opening)
    }

    /// What messages of ours weigh.
    fn weighs(&self, messages: &[String]) -> i64 {
        let (weight, bytes) = self.orders.text;
        let length: u64 = messages.iter().map(|message| message.len() as u64).sum();
        i64::try_from(length * weight / bytes.max(1)).unwrap_or(i64::MAX)
    }

    /// Hides old messages behind a notice: as many as it takes, and no more.
    pub(super) fn hide_old(&mut self) -> bool {
        let conversation = self.conversation;
        if conversation.head() == 0 {
            return false;
        }
        let points = conversation.cut_points(self.orders.manual_thinking);
        let hidden = self.hidden_to();
        let head: u64 = (0..conversation.head()).map(|at| self.weight(at)).sum();
        let ours = u64::try_from(self.segments).unwrap_or(0);
        let target = self.orders.hide_to.unwrap_or(0);
        let carried = self.orders.manual_thinking.then(|| {
            let opening = Opening::of(conversation)?;
            u64::try_from(self.weighs(&opening.messages)).ok()
        });
        let ours = ours.saturating_add(carried.flatten().unwrap_or(0));
        let room = target.saturating_sub(head).saturating_sub(ours);
        let latest = split::latest(conversation, &self.weights, &points, &self.orders.split);
        let Some(cut) = split::cut(&points, &self.weights, hidden, room, latest) else {
            return false;
        };
        let (notice, overlay) = (&self.orders.notice, &self.overlay);
        // What this pass has hidden already, and what it hides now, is one.
        let begun =
            self.orders.closing.as_ref().filter(|closing| {
                closing.origin == Origin::Truncated && closing.to as usize == hidden
            });
        let from = begun.map_or_else(
            || notice.begins(conversation, overlay),
            |begun| begun.from as usize,
        );
        let segment = notice.segment(conversation, overlay, self.seed, from..cut);
        // Older ones that the notice stands for too are promised once more.
        self.leave_out(from..cut);
        self.cover(segment);
        true
    }

    fn leave_out(&mut self, messages: Range<usize>) {
        if !messages.is_empty() {
            let (from, to) = (count(messages.start), count(messages.end));
            self.evicted.push(Evicted {
                reference: reference_of_span(self.seed, from, to),
                messages,
                block: None,
            });
        }
    }

    fn cover(&mut self, segment: Segment) {
        let conversation = self.conversation;
        let role = |at: usize| conversation.message(at).map(|message| message.role);
        let head = conversation.head();
        let from = segment.from as usize;
        // A summary of the API's own may have come since, behind what is hidden:
        // it is the head now, and what stands before it is dead, shown or not.
        let native = self.overlay.native.take().is_some();
        if native || self.overlay.segments.is_empty() || count(head) > self.overlay.cut {
            let before = (0..head)
                .rev()
                .filter_map(role)
                .find(|r| *r != Role::System);
            self.overlay.segments.clear();
            self.overlay.before.clear();
            if before == Some(Role::User) {
                self.overlay.before.push(stub::BEFORE.to_owned());
            }
            self.overlay.head = count(head);
        }
        let text = |segment: &Segment| {
            let (weight, bytes) = self.orders.text;
            let whole = segment.block.len() as u64 * weight / bytes.max(1);
            i64::try_from(whole).unwrap_or(i64::MAX)
        };
        let covered = |held: &Segment| held.from >= segment.from && held.to <= segment.to;
        let segments = self.overlay.segments.iter();
        let went: i64 = segments.filter(|held| covered(held)).map(text).sum();
        self.segments = self.segments.saturating_add(text(&segment)) - went;
        let to = segment.to;
        let segments = &mut self.overlay.segments;
        segments.retain(|held| !(held.from >= segment.from && held.to <= to));
        segments.push(segment);
        segments.sort_by_key(|segment| segment.from);
        self.overlay.cut = self.overlay.cut.max(to);
        let cut = self.overlay.cut as usize;
        let opening = self.opening(cut);
        let carried = opening.map_or_else(Vec::new, |opening| opening.messages.into());
        let went = self.weighs(self.overlay.carried());
        self.segments = self.segments.saturating_add(self.weighs(&carried)) - went;
        self.overlay.after = carried;
        if role(cut) == Some(Role::User) {
            self.overlay.after.push(stub::AFTER.to_owned());
        }
        let (head, cut) = (self.overlay.head, self.overlay.cut);
        self.edits
            .retain(|(message, _), _| *message < head || *message >= cut);
        self.changes_at((from, 0));
    }
}
