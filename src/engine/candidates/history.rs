//! The calls of a history, and what comes later that may stand for them.

use std::collections::HashMap;

use super::outcome::{self, Outcome};
use super::{How, content, places};
use crate::engine::acts::{self, Act, Base, File, Part};
use crate::engine::conversation::Conversation;
use crate::engine::overlay::Overlay;
use memchr::memmem;

/// How many later calls about the same thing are looked at, nearest to the end
/// first or nearest to the call first: a bound on the work, not on what is true.
const LOOKS: usize = 32;

/// A call that has a result.
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
    /// Clearing the result would unload tools.
    pub(super) holds_tools: bool,
}

impl Item<'_> {
    fn is_good(&self) -> bool {
        self.is_shown && self.outcome == Outcome::Good
    }

    fn text(&self) -> &[u8] {
        self.payload.unwrap_or_default()
    }

    /// Whether the result says that something was not there.
    pub(super) fn misses(&self) -> bool {
        let first = self.text().get(..300).unwrap_or(self.text());
        let says = |text: &[u8]| memmem::find(first, text).is_some();
        says(b"o such file") || says(b"not a directory")
    }
}

/// The calls that have results, in order.
pub(super) fn items<'a>(conversation: &Conversation<'a>, current: &Overlay) -> Vec<Item<'a>> {
    let bytes = conversation.bytes();
    let is_shown = |place: (usize, usize)| {
        current.shows(place.0) && current.change_at(place.0, place.1).is_none()
    };
    let item = |call: crate::engine::conversation::Call| {
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
            holds_tools: block.has_tool_references,
        })
    };
    conversation.calls().into_iter().filter_map(item).collect()
}

/// What the calls are about, and in what order.
pub(super) struct Later<'i, 'a> {
    items: &'i [Item<'a>],
    places: Vec<Option<String>>,
    /// The calls that read or write a file, in order.
    files: HashMap<String, Vec<usize>>,
    /// The calls that run or ask the same, in order.
    asked: HashMap<String, Vec<usize>>,
}

impl<'i, 'a> Later<'i, 'a> {
    pub(super) fn new(items: &'i [Item<'a>]) -> Self {
        let mut later = Self {
            items,
            places: places::places(items),
            files: HashMap::new(),
            asked: HashMap::new(),
        };
        for (number, item) in items.iter().enumerate() {
            let read = item.act.reading().map(|reading| &reading.file);
            let written = item.act.writings().iter().map(|writing| &writing.file);
            for file in read.into_iter().chain(written) {
                let name = later.file_name(number, file);
                later.files.entry(name).or_default().push(number);
            }
            if let Some(topic) = later.topic(number) {
                later.asked.entry(topic).or_default().push(number);
            }
        }
        later
    }

    /// A file's name, together with where it is relative to.
    fn file_name(&self, number: usize, file: &File) -> String {
        let from = match file.base {
            Base::Root => String::new(),
            Base::Session => "session".to_owned(),
            Base::Shell => {
                let place = self.places.get(number).and_then(Option::as_deref);
                let tool = self.items.get(number).map_or("", |item| &item.tool);
                format!("{tool}\0{}", place.unwrap_or_default())
            }
        };
        format!("{}\0{from}\0{}", file.world, file.path)
    }

    /// What a command or a question is, with all that must be the same.
    fn topic(&self, number: usize) -> Option<String> {
        let item = self.items.get(number)?;
        let tool = &item.tool;
        match &item.act {
            Act::Runs(command) if command.reading.is_none() => {
                let place = self.places.get(number).and_then(Option::as_deref);
                let directory = command.directory.as_deref().or(place).unwrap_or_default();
                Some(format!("run\0{tool}\0{directory}\0{}", command.text))
            }
            Act::Asks(query) => Some(format!("ask\0{tool}\0{}", query.arguments)),
            Act::Plans => Some(format!("plan\0{tool}")),
            _ => None,
        }
    }

    fn same_topic(&self, number: usize) -> &[usize] {
        let topic = self.topic(number);
        let same = topic.and_then(|topic| self.asked.get(&topic));
        same.map_or(&[], Vec::as_slice)
    }

    fn same_file(&self, number: usize, file: &File) -> &[usize] {
        let same = self.files.get(&self.file_name(number, file));
        same.map_or(&[], Vec::as_slice)
    }

    /// The calls among these that worked, are shown, and were made when the
    /// result of this one was known; newest first.
    fn after<'s>(
        &'s self,
        number: usize,
        same: &'s [usize],
    ) -> impl DoubleEndedIterator<Item = &'i Item<'a>> + 's {
        let known = self
            .items
            .get(number)
            .map_or(usize::MAX, |item| item.result.0);
        let from = same.partition_point(|other| *other <= number);
        let behind = same.get(from..).unwrap_or_default();
        let items = behind
            .iter()
            .rev()
            .filter_map(|other| self.items.get(*other));
        items.filter(move |item| item.is_good() && item.used.0 > known)
    }

    /// The call that has made the result of this one worthless.
    pub(super) fn superseded(&self, number: usize) -> Option<(How, (usize, usize))> {
        let item = self.items.get(number)?;
        match (&item.act, item.outcome) {
            (_, Outcome::Failed) => self.made_good(number),
            (_, Outcome::Refused | Outcome::Absent | Outcome::Unchanged) => None,
            (Act::Writes(writings), _) => {
                let over = writings
                    .iter()
                    .map(|writing| self.overwritten(number, &writing.file));
                let over: Option<Vec<_>> = over.collect();
                over?.into_iter().max_by_key(|(_, by)| *by)
            }
            (Act::Runs(command), _) if command.reading.is_none() => {
                if command.is_record() {
                    return None;
                }
                let shows_less = |later: &&Item<'_>| match &later.act {
                    Act::Runs(later) if later.most == command.most => false,
                    Act::Runs(later) => later.most.is_none() || later.most < command.most,
                    _ => true,
                };
                let mut again = self.after(number, self.same_topic(number)).take(LOOKS);
                let by = again.find(|later| !shows_less(later))?;
                Some((How::RunAgain, by.used))
            }
            (Act::Asks(_) | Act::Plans, _) => {
                let by = self.after(number, self.same_topic(number)).next()?;
                Some((How::RunAgain, by.used))
            }
            _ => self.read_again(number),
        }
    }

    /// The later call that shows, or has written, all of a file.
    fn overwritten(&self, number: usize, file: &File) -> Option<(How, (usize, usize))> {
        let same = self.same_file(number, file);
        let full = |later: &Item<'_>| {
            let writes = later.act.writings().iter();
            let mut here = writes.filter(|writing| writing.file == *file);
            if here.any(|writing| writing.is_full) {
                return Some((How::WrittenLater, later.used));
            }
            let reading = later.act.reading()?;
            let all = reading.part == Part::Whole && content::is_complete(later.text());
            all.then_some((How::ReadAgain, later.used))
        };
        self.after(number, same).take(LOOKS).find_map(full)
    }

    fn read_again(&self, number: usize) -> Option<(How, (usize, usize))> {
        let item = self.items.get(number)?;
        let reading = item.act.reading()?;
        let same = self.same_file(number, &reading.file);
        let covers = |later: &Item<'_>| {
            let written = later
                .act
                .writings()
                .iter()
                .find(|w| w.file.path == reading.file.path);
            if let Some(written) = written {
                return written.is_full.then_some((How::WrittenLater, later.used));
            }
            let again = Some((How::ReadAgain, later.used));
            let part = &later.act.reading()?.part;
            match (&reading.part, part) {
                (Part::Other(one), Part::Other(other)) => {
                    again.filter(|_| one == other && later.tool == item.tool)
                }
                (Part::Other(_), _) | (_, Part::Other(_)) => None,
                // A file that has shrunk to less than half is rather a notice.
                _ if later.text().len() * 2 < item.text().len() => None,
                (_, Part::Whole) if content::is_complete(later.text()) => again,
                _ => again.filter(|_| content::covers(later.text(), item.text())),
            }
        };
        let newest = self.after(number, same).take(LOOKS).find_map(covers);
        newest.or_else(|| self.after(number, same).rev().take(LOOKS).find_map(covers))
    }

    /// The later call in which what failed here worked.
    pub(super) fn made_good(&self, number: usize) -> Option<(How, (usize, usize))> {
        let item = self.items.get(number)?;
        if let Some(reading) = item.act.reading() {
            let same = self.same_file(number, &reading.file);
            let mut after = self.after(number, same);
            let by =
                after.find(|later| later.tool == item.tool && later.act.reading().is_some())?;
            return Some((How::ReadAgain, by.used));
        }
        let by = self.after(number, self.same_topic(number)).next()?;
        Some((How::RunAgain, by.used))
    }

    /// Whether every file that this call failed to change was changed later.
    pub(super) fn changed_later(&self, number: usize) -> bool {
        let writings = self
            .items
            .get(number)
            .map_or(&[][..], |item| item.act.writings());
        let changed = |file: &File| {
            let same = self.same_file(number, file);
            self.after(number, same)
                .any(|later| !later.act.writings().is_empty())
        };
        !writings.is_empty() && writings.iter().all(|writing| changed(&writing.file))
    }

    /// The results that a later one points back at.
    pub(super) fn pointed_at(&self) -> Vec<usize> {
        let mut pointed = Vec::new();
        for (number, item) in self.items.iter().enumerate() {
            let Some(reading) = item
                .act
                .reading()
                .filter(|_| item.outcome == Outcome::Unchanged)
            else {
                continue;
            };
            let same = self.same_file(number, &reading.file);
            let before = same.partition_point(|other| *other < number);
            let reads = |other: &&usize| {
                let other = self.items.get(**other);
                other.is_some_and(|other| {
                    other.act.reading().is_some() && other.outcome == Outcome::Good
                })
            };
            let before = same.get(..before).unwrap_or_default();
            pointed.extend(before.iter().rev().take(LOOKS).find(reads));
        }
        pointed.sort_unstable();
        pointed
    }
}
