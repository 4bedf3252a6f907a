//! Where the shell stands when a command runs.
//!
//! `cat notes` is another file in another folder. Some shells remember a `cd`
//! from one call to the next, others begin anew each time, and nothing says which
//! is which. To believe that it remembers is the safe side: two commands are then
//! the same only if all the moves before them lead to one place. A shell in which
//! `cd FOLDER` works twice in a row has shown that it begins anew.

use std::collections::HashMap;

use super::history::Item;
use super::outcome::Outcome;
use crate::engine::acts::{Act, Move};

/// How often a shell must have shown it.
const PROOFS: usize = 2;

/// Where each command finds the shell, by the number of its item. Nothing for
/// what is no command.
pub(super) fn places(items: &[Item<'_>]) -> Vec<Option<String>> {
    let mut shells: HashMap<&str, Shell> = HashMap::new();
    let mut places = Vec::with_capacity(items.len());
    for (number, item) in items.iter().enumerate() {
        let Act::Runs(command) = &item.act else {
            places.push(None);
            continue;
        };
        let shell = shells.entry(&item.tool).or_default();
        places.push(Some(shell.place.clone()));
        shell.run(
            number,
            &command.moves,
            item.outcome == Outcome::Good && !item.misses(),
        );
    }
    for (place, item) in places.iter_mut().zip(items) {
        let begins_anew = |shell: &Shell| shell.proofs >= PROOFS;
        if shells.get(item.tool.as_str()).is_some_and(begins_anew)
            && let Some(place) = place
        {
            place.clear();
        }
    }
    places
}

/// A shell, believed to remember.
#[derive(Default)]
struct Shell {
    place: String,
    /// The folder that the last move led into.
    entered: Option<String>,
    proofs: usize,
}

impl Shell {
    fn run(&mut self, number: usize, moves: &Move, worked: bool) {
        match moves {
            Move::Stays => {}
            Move::Enters(folder) if worked => {
                let named = !folder.starts_with(['/', '~', '.', '$']) && !folder.contains("..");
                if named && self.entered.as_ref() == Some(folder) {
                    self.proofs += 1;
                }
                if folder.starts_with('/') {
                    self.place.clone_from(folder);
                } else {
                    self.place.push('/');
                    self.place.push_str(folder);
                }
                self.entered = Some(folder.clone());
            }
            // It may have moved before it failed.
            Move::Enters(_) | Move::Lost => {
                self.place = format!("?{number}");
                self.entered = None;
            }
        }
    }
}
