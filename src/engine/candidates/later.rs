//! What comes later that stands for an earlier result.
//!
//! A file that is read thirty times is held against itself some hundred times,
//! so what it takes to compare a result is made out once for each.

use std::cell::OnceCell;

use super::How;
use super::content::{self, View};
use super::items::Item;
use super::outcome::Outcome;
use super::topics::Topics;
use crate::engine::acts::{Act, Command, Part};

/// How many later calls about the same thing are looked at, from the newest and
/// from the nearest on: a bound on the work, not on what is true.
const LOOKS: usize = 8;

/// In what way, and by which call.
type By = (How, (usize, usize));

/// The calls of a history, in view of what comes after each.
pub(super) struct Later<'i, 'a> {
    items: &'i [Item<'a>],
    topics: Topics<'i>,
    looks: Vec<Look<'i>>,
}

/// What is known of a result once it was looked at.
#[derive(Default)]
struct Look<'i> {
    view: OnceCell<View<'i>>,
    is_complete: OnceCell<bool>,
}

impl<'i, 'a> Later<'i, 'a> {
    pub(super) fn new(items: &'i [Item<'a>]) -> Self {
        Self {
            items,
            topics: Topics::new(items),
            looks: items.iter().map(|_| Look::default()).collect(),
        }
    }

    fn number(&self, item: &Item<'_>) -> usize {
        self.items.partition_point(|other| other.used < item.used)
    }

    /// Whether the result of a call is sure to show all of a file.
    fn is_complete(&self, item: &'i Item<'a>) -> bool {
        let is_complete = || content::is_complete(item.text());
        let look = self.looks.get(self.number(item));
        look.map_or_else(is_complete, |look| {
            *look.is_complete.get_or_init(is_complete)
        })
    }

    /// What the result of a call shows of a file.
    fn view(&self, item: &'i Item<'a>) -> Option<&View<'i>> {
        let look = self.looks.get(self.number(item))?;
        Some(look.view.get_or_init(|| View::of(item.text())))
    }

    /// Whether a later result shows what an earlier one showed.
    fn shows(&self, later: &'i Item<'a>, earlier: &'i Item<'a>) -> bool {
        let views = self.view(earlier).zip(self.view(later));
        views.is_some_and(|(earlier, later)| earlier.is_in(later))
    }

    /// The calls about a topic that worked, are shown, and were made when the
    /// result of this call was known; newest first.
    fn after(
        &self,
        item: &Item<'_>,
        topic: usize,
    ) -> impl DoubleEndedIterator<Item = &'i Item<'a>> + use<'_, 'i, 'a> {
        let items = self.items;
        let worked = self.topics.worked(topic);
        let known = item.result.0;
        let used = |number: &usize| items.get(*number).map_or(0, |later| later.used.0);
        let from = worked.partition_point(|number| used(number) <= known);
        let behind = worked.get(from..).unwrap_or_default();
        behind.iter().rev().filter_map(move |at| items.get(*at))
    }

    /// The call that has made the result of this one worthless.
    pub(super) fn superseded(&self, number: usize) -> Option<By> {
        let item = self.items.get(number)?;
        match (&item.act, item.outcome) {
            (_, Outcome::Failed) => self.made_good(number),
            (_, Outcome::Refused | Outcome::Unchanged) => None,
            // A run that did not finish is made good by one that did.
            (Act::Runs(command), _) if command.reading.is_none() => {
                self.run_again(number, item, command)
            }
            (Act::Opaque, _) | (_, Outcome::Absent) => None,
            (Act::Writes(_), _) => {
                let topics = self.topics.of(number).iter();
                let over: Option<Vec<By>> = topics.map(|t| self.overwritten(item, *t)).collect();
                over?.into_iter().max_by_key(|(_, by)| *by)
            }
            (Act::Asks(_), _) => {
                let mut again = self.after(item, self.topic(number)?).take(LOOKS);
                let by = again.find(|later| !later.is_scant_beside(item))?;
                Some((How::RunAgain, by.used))
            }
            (Act::Plans, _) => {
                let by = self.after(item, self.topic(number)?).next()?;
                Some((How::RunAgain, by.used))
            }
            (Act::Reads(_) | Act::Runs(_), _) => self.read_again(number, item),
        }
    }

    /// What a call reads, runs or asks.
    fn topic(&self, number: usize) -> Option<usize> {
        self.topics.of(number).first().copied()
    }

    /// The later run of the same command, if it shows what this one would now.
    fn run_again(&self, number: usize, item: &Item<'_>, command: &Command) -> Option<By> {
        let mut again = self.after(item, self.topic(number)?).take(LOOKS).peekable();
        again.peek()?;
        if command.is_record() {
            return None;
        }
        let differs = command.shows_differences();
        let shows = |later: &&'i Item<'a>| {
            let most = match &later.act {
                Act::Runs(again) => again.most,
                _ => return false,
            };
            let has_room = most == command.most || (most.is_some() && most > command.most);
            (has_room || self.is_complete(later)) && !(differs && later.is_scant_beside(item))
        };
        Some((How::RunAgain, again.find(shows)?.used))
    }

    /// The later call that shows, or has written, all of a file.
    fn overwritten(&self, item: &Item<'_>, topic: usize) -> Option<By> {
        let full = |later: &'i Item<'a>| match &later.act {
            Act::Writes(_) => self
                .writes_all(later, topic)
                .then_some((How::WrittenLater, later.used)),
            act => {
                let is_whole = act.reading()?.part == Part::Whole;
                let all = is_whole && self.is_complete(later);
                all.then_some((How::ReadAgain, later.used))
            }
        };
        self.after(item, topic).take(LOOKS).find_map(full)
    }

    /// Whether a call has written all of the file of this topic.
    fn writes_all(&self, later: &Item<'_>, topic: usize) -> bool {
        let topics = self.topics.of(self.number(later)).iter();
        let mut pairs = topics.zip(later.act.writings());
        pairs.any(|(of, writing)| *of == topic && writing.is_full)
    }

    fn read_again(&self, number: usize, item: &'i Item<'a>) -> Option<By> {
        let topic = self.topic(number)?;
        let part = &item.act.reading()?.part;
        let covers = |later: &'i Item<'a>| {
            if let Act::Writes(_) = &later.act {
                let is_full = self.writes_all(later, topic);
                return is_full.then_some((How::WrittenLater, later.used));
            }
            let again = match (part, &later.act.reading()?.part) {
                _ if later.is_scant_beside(item) => false,
                (Part::Other(one), Part::Other(other)) => one == other && later.tool == item.tool,
                (Part::Other(_), _)
                | (_, Part::Other(_))
                | (Part::Whole | Part::Lines(..), Part::Tail(_)) => false,
                (Part::Whole | Part::Lines(..), Part::Whole) if self.is_complete(later) => true,
                _ => self.shows(later, item),
            };
            again.then_some((How::ReadAgain, later.used))
        };
        let newest = self.after(item, topic).take(LOOKS).find_map(covers);
        newest.or_else(|| self.after(item, topic).rev().take(LOOKS).find_map(covers))
    }

    /// The later call in which what failed here worked.
    pub(super) fn made_good(&self, number: usize) -> Option<By> {
        let item = self.items.get(number)?;
        let mut after = self.after(item, self.topic(number)?);
        match &item.act {
            // The same edit need not be tried again for the file to be right.
            Act::Writes(_) | Act::Opaque => None,
            act if act.reading().is_some() => {
                let reads =
                    |later: &&Item<'_>| later.tool == item.tool && later.act.reading().is_some();
                let by = after.take(LOOKS).find(reads)?;
                Some((How::ReadAgain, by.used))
            }
            _ => Some((How::RunAgain, after.next()?.used)),
        }
    }

    /// Whether every file that this call failed to change was changed later.
    pub(super) fn changed_later(&self, number: usize) -> bool {
        let Some(item) = self.items.get(number) else {
            return false;
        };
        let changed = |topic: &usize| {
            let mut after = self.after(item, *topic).take(LOOKS);
            after.any(|later| !later.act.writings().is_empty())
        };
        !item.act.writings().is_empty() && self.topics.of(number).iter().all(changed)
    }

    /// How many later calls are about the same thing.
    pub(super) fn touches(&self, number: usize) -> usize {
        self.worked_on(number)
            .iter()
            .filter(|later| **later > number)
            .count()
    }

    /// The message of the newest call about the same thing, this one included.
    pub(super) fn last_touch(&self, number: usize) -> Option<usize> {
        let newest = self.worked_on(number).last().copied();
        let newest = newest.map_or(number, |newest| newest.max(number));
        self.items.get(newest).map(|item| item.used.0)
    }

    fn worked_on(&self, number: usize) -> &[usize] {
        let topic = self.topic(number);
        topic.map_or(&[], |topic| self.topics.worked(topic))
    }

    /// The results that a later one points back at.
    pub(super) fn pointed_at(&self) -> Vec<usize> {
        let mut pointed = Vec::new();
        for (number, item) in self.items.iter().enumerate() {
            if item.outcome != Outcome::Unchanged || item.act.reading().is_none() {
                continue;
            }
            let worked = self
                .topic(number)
                .map_or(&[][..], |t| self.topics.worked(t));
            let before = worked.partition_point(|other| *other < number);
            let reads = |other: &&usize| {
                let other = self.items.get(**other);
                other.is_some_and(|other| other.act.reading().is_some())
            };
            let before = worked.get(..before).unwrap_or_default();
            pointed.extend(before.iter().rev().take(LOOKS).find(reads));
        }
        pointed.sort_unstable();
        pointed
    }
}
