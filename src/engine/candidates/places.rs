//! Where the shell stands when a command runs.
//!
//! `cat notes` is another file in another folder. Some shells remember a `cd`
//! from one call to the next, others begin anew each time, and nothing says which
//! is which. To believe that it remembers is the safe side: two commands are then
//! the same only if all the moves before them lead to one place. A shell in which
//! `cd FOLDER` works twice in a row has shown that it begins anew.

use std::collections::HashMap;

use super::items::Item;
use super::outcome::Outcome;
use crate::engine::acts::{Act, Move};

/// How often a shell must have shown it.
const PROOFS: usize = 2;

/// A place, by number; the first is where the shell began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Place(usize);

/// Where each call finds the shell of its tool.
pub(super) fn places(items: &[Item<'_>]) -> Vec<Place> {
    let mut shells: HashMap<&str, Shell<'_>> = HashMap::new();
    let mut names = Names::default();
    let mut places = Vec::with_capacity(items.len());
    for item in items {
        let Act::Runs(command) = &item.act else {
            places.push(Place::default());
            continue;
        };
        let shell = shells.entry(&item.tool).or_default();
        places.push(shell.place);
        if command.moves != Move::Stays {
            let worked = item.outcome == Outcome::Good && !item.misses();
            shell.moved(&command.moves, worked, &mut names);
        }
    }
    shells.retain(|_, shell| shell.proofs >= PROOFS);
    if !shells.is_empty() {
        for (place, item) in places.iter_mut().zip(items) {
            if shells.contains_key(item.tool.as_str()) {
                *place = Place::default();
            }
        }
    }
    places
}

/// The places that have been seen, so that one reached again is known again.
#[derive(Default)]
struct Names<'i> {
    within: HashMap<(Option<Place>, &'i str), Place>,
    count: usize,
}

impl<'i> Names<'i> {
    /// A place that is like no other.
    fn unknown(&mut self) -> Place {
        self.count += 1;
        Place(self.count)
    }

    /// A folder within a place, or of its own if it is absolute.
    fn folder(&mut self, place: Place, folder: &'i str) -> Place {
        let from = (!folder.starts_with('/')).then_some(place);
        let count = &mut self.count;
        *self.within.entry((from, folder)).or_insert_with(|| {
            *count += 1;
            Place(*count)
        })
    }
}

/// A shell, believed to remember.
#[derive(Default)]
struct Shell<'i> {
    place: Place,
    /// The folder that the last move led into.
    entered: Option<&'i str>,
    proofs: usize,
}

impl<'i> Shell<'i> {
    fn moved(&mut self, moves: &'i Move, worked: bool, names: &mut Names<'i>) {
        match moves {
            Move::Enters(folder) if worked => {
                let is_plain = !folder.starts_with(['/', '~', '.']) && !folder.contains("..");
                if is_plain && self.entered == Some(folder) {
                    self.proofs += 1;
                }
                self.place = names.folder(self.place, folder);
                self.entered = Some(folder);
            }
            Move::Stays => {}
            // It may have moved before it failed.
            Move::Enters(_) | Move::Lost => {
                self.place = names.unknown();
                self.entered = None;
            }
        }
    }
}
