//! The files that a span wrote and read.
//!
//! Each is named once, where it was last touched, newest last; a file that was
//! both written and read counts as written. A call that failed touched nothing.

use std::collections::HashMap;

use super::quote::{self, DATA};
use super::turns::Turns;
use crate::engine::acts::File;
use crate::engine::candidates::{Deed, Fate};

/// Bytes of all paths, at most: a bound against names made to be long.
const BYTES: usize = 64 * 1024;

/// The files that are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) written: Vec<String>,
    pub(super) read: Vec<String>,
    /// How many older ones are not.
    pub(super) left_out: usize,
}

impl Files {
    /// The files that these calls touched, at most so many.
    pub(super) fn new<'d>(deeds: impl Iterator<Item = &'d Deed<'d>>, most: usize) -> Self {
        if most == 0 {
            return Self::default();
        }
        // When a file was last touched, and whether it was ever written.
        let mut touched: HashMap<(&str, &str), (usize, bool)> = HashMap::new();
        let mut count = 0;
        let mut touch = |file: &'d File, writes: bool| {
            count += 1;
            let entry = touched.entry((&file.path, &file.world)).or_default();
            if writes || !entry.1 {
                *entry = (count, writes);
            }
        };
        for deed in deeds.filter(|deed| deed.fate == Fate::Worked) {
            for writing in deed.act.writings() {
                touch(&writing.file, true);
            }
            if let Some(reading) = deed.act.reading() {
                touch(&reading.file, false);
            }
        }
        let mut newest: Vec<_> = touched.into_iter().collect();
        newest.sort_unstable_by_key(|(_, (when, _))| std::cmp::Reverse(*when));
        let mut files = Self::default();
        let mut room = BYTES;
        let all = newest.len();
        for ((path, world), (_, writes)) in newest.into_iter().take(most) {
            let name = name(path, world);
            let Some(rest) = room.checked_sub(name.len()) else {
                break;
            };
            room = rest;
            let list = if writes {
                &mut files.written
            } else {
                &mut files.read
            };
            list.push(name);
        }
        files.left_out = all - files.written.len() - files.read.len();
        files.written.reverse();
        files.read.reverse();
        files
    }

    /// How many are not named, in a line.
    pub(super) fn rest(&self) -> String {
        match self.left_out {
            0 => String::new(),
            count => quote::notice(&format!("{count} more are not named")),
        }
    }
}

/// A file in hand: its name, and in which turns it was last written and read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InHand {
    name: String,
    /// The turn, and whether all of it was written.
    written: Option<(usize, bool)>,
    read: Option<usize>,
    /// Counts up with every touch.
    touched: usize,
}

impl InHand {
    /// Its name and its state, in a line.
    pub(super) fn line(&self) -> String {
        let written = self.written.map(|(turn, is_full)| {
            let verb = if is_full { "written" } else { "edited" };
            format!("{verb} in turn {turn}")
        });
        let read = self.read.map(|turn| format!("read in turn {turn}"));
        let state: Vec<String> = written.into_iter().chain(read).collect();
        format!("{}: {}", self.name, state.join(", "))
    }
}

/// The files that these calls touched last, newest first, at most so many.
pub(super) fn in_hand(deeds: &[Deed<'_>], turns: &Turns, most: usize) -> Vec<InHand> {
    let mut files: HashMap<(&str, &str), InHand> = HashMap::new();
    let mut count = 0;
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Worked) {
        let turn = turns.of(deed.used.0);
        let writings = deed.act.writings().iter();
        let written = writings.map(|writing| (&writing.file, Some(writing.is_full)));
        let read = deed.act.reading().map(|reading| (&reading.file, None));
        for (file, writes) in written.chain(read) {
            count += 1;
            let entry = files.entry((&file.path, &file.world));
            let held = entry.or_insert_with(|| InHand {
                name: name(&file.path, &file.world),
                written: None,
                read: None,
                touched: 0,
            });
            held.touched = count;
            match writes {
                Some(is_full) => held.written = Some((turn, is_full)),
                None => held.read = Some(turn),
            }
        }
    }
    let mut files: Vec<InHand> = files.into_values().collect();
    files.sort_unstable_by_key(|file| std::cmp::Reverse(file.touched));
    files.truncate(most);
    files
}

fn name(path: &str, world: &str) -> String {
    match world {
        "" => path.to_owned(),
        world => format!("{path} ({world})"),
    }
}

/// The names of files, quoted.
pub(super) fn text(names: &[String]) -> String {
    let mut text = String::new();
    for name in names {
        quote::quote(&mut text, DATA, name);
    }
    text
}
