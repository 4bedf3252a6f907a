//! Which calls are about the same thing.
//!
//! The same file is one name, in one world, relative to one place. The same
//! command is one line, of one tool, in one place, with no switch to other files
//! in between. The same question is one tool with the same arguments. Each such
//! topic has a number and a list of the calls about it that worked, in order.

use std::collections::HashMap;
use std::hash::Hash;

use super::items::Item;
use super::places::{self, Place};
use crate::engine::acts::{Act, Base, Command, File};

#[derive(PartialEq, Eq, Hash)]
enum Topic<'i> {
    /// A file: its world, what it is relative to, its path.
    File(&'i str, Where<'i>, &'i str),
    /// A command: its tool, where it runs, after how many switches, its line.
    Run(&'i str, Where<'i>, usize, &'i str),
    /// A question: its tool and arguments.
    Ask(&'i str, &'i str),
    /// A plan: its tool.
    Plan(&'i str),
}

#[derive(PartialEq, Eq, Hash)]
enum Where<'i> {
    Root,
    Session,
    Folder(&'i str),
    /// Where the shell of this tool stands.
    Shell(&'i str, Place),
}

/// The topics of all calls.
pub(super) struct Topics<'i> {
    numbers: HashMap<Topic<'i>, usize>,
    /// The topics of each call: what it reads, runs or asks first, then what it
    /// writes.
    of_calls: Vec<usize>,
    /// Where those of each call begin.
    begins: Vec<usize>,
    /// The calls that worked, by topic.
    worked: Vec<Vec<usize>>,
}

impl<'i> Topics<'i> {
    pub(super) fn new(items: &'i [Item<'_>]) -> Self {
        let mut topics = Self {
            numbers: HashMap::with_capacity(items.len() / 2),
            of_calls: Vec::with_capacity(items.len()),
            begins: Vec::with_capacity(items.len()),
            worked: Vec::new(),
        };
        let places = places::places(items);
        let mut era = 0;
        for (number, item) in items.iter().enumerate() {
            let place = places.get(number).copied().unwrap_or_default();
            let begins = topics.of_calls.len();
            topics.begins.push(begins);
            topics.add(item, place, era);
            if item.is_good() {
                for topic in topics.of_calls.get(begins..).unwrap_or_default() {
                    if let Some(worked) = topics.worked.get_mut(*topic) {
                        worked.push(number);
                    }
                }
            }
            if let Act::Runs(command) = &item.act {
                era += usize::from(command.switches());
            }
        }
        topics
    }

    fn add(&mut self, item: &'i Item<'_>, place: Place, era: usize) {
        let tool = item.tool.as_str();
        let topic = match &item.act {
            Act::Reads(reading) => self.file(tool, &reading.file, place),
            Act::Runs(command) => match &command.reading {
                Some(reading) => self.file(tool, &reading.file, place),
                None => self.command(tool, command, place, era),
            },
            Act::Asks(query) => self.number(Topic::Ask(tool, &query.arguments)),
            Act::Plans => self.number(Topic::Plan(tool)),
            Act::Writes(writings) => {
                for writing in writings {
                    let topic = self.file(tool, &writing.file, place);
                    self.of_calls.push(topic);
                }
                return;
            }
            Act::Opaque => return,
        };
        self.of_calls.push(topic);
    }

    fn file(&mut self, tool: &'i str, file: &'i File, place: Place) -> usize {
        let base = match file.base {
            Base::Root => Where::Root,
            Base::Session => Where::Session,
            Base::Shell => Where::Shell(tool, place),
        };
        self.number(Topic::File(&file.world, base, &file.path))
    }

    fn command(&mut self, tool: &'i str, command: &'i Command, place: Place, era: usize) -> usize {
        let folder = command.directory.as_deref().map(Where::Folder);
        let folder = folder.unwrap_or(Where::Shell(tool, place));
        self.number(Topic::Run(tool, folder, era, &command.text))
    }

    fn number(&mut self, topic: Topic<'i>) -> usize {
        let next = self.worked.len();
        let number = *self.numbers.entry(topic).or_insert(next);
        if number == next {
            self.worked.push(Vec::new());
        }
        number
    }

    /// The topics of a call.
    pub(super) fn of(&self, call: usize) -> &[usize] {
        let at = |call: usize| self.begins.get(call).copied();
        let end = at(call + 1).unwrap_or(self.of_calls.len());
        let range = at(call).map(|begin| begin..end);
        range
            .and_then(|range| self.of_calls.get(range))
            .unwrap_or(&[])
    }

    /// The calls about a topic that worked, in order.
    pub(super) fn worked(&self, topic: usize) -> &[usize] {
        self.worked.get(topic).map_or(&[], Vec::as_slice)
    }
}
