//! Invariant 9: what is one owner's stays that owner's, in requests, answers,
//! summaries, files and logs.

use std::collections::{BTreeSet, HashMap};

use longhaul::sim::Entry;
use memchr::memmem;

use crate::agent::{Agent, credential, secret};
use crate::attempt::Attempt;
use crate::invariants::Judge;
use crate::world::LOG;

impl Judge<'_> {
    /// Invariant 9: nothing of another owner's.
    pub fn owner(&mut self, agent: &Agent, attempt: &Attempt, entries: &[&Entry]) {
        let theirs = secret(1 - agent.owner);
        let finder = memmem::Finder::new(theirs.as_bytes());
        let bodies = entries.iter().filter_map(|entry| entry.body.as_deref());
        let answer = attempt.answer().map(|answer| answer.body.as_slice());
        for bytes in bodies.chain(answer) {
            if finder.find(bytes).is_some() {
                self.wrong(attempt, "invariant 9: words of somebody else's");
            }
        }
    }

    /// Invariant 9 for calls of the proxy's own: a summary is made of one owner's
    /// words, and paid for by that owner.
    pub fn summaries(&mut self, entries: &[Entry]) {
        for entry in entries {
            let Some(body) = entry.body.as_deref() else {
                continue;
            };
            let names = |owner: usize| memmem::find(body, secret(owner).as_bytes()).is_some();
            if names(0) && names(1) {
                self.wrong
                    .push("invariant 9: words of two owners in one request".to_owned());
            }
        }
        let mut payers: HashMap<usize, BTreeSet<&str>> = HashMap::new();
        for entry in entries {
            let body = entry.body.as_deref().unwrap_or_default();
            for owner in 0..2 {
                if memmem::find(body, secret(owner).as_bytes()).is_some() {
                    let payer = entry.header("x-api-key").unwrap_or("nobody");
                    payers.entry(owner).or_default().insert(payer);
                }
            }
        }
        if payers.values().any(|payers| payers.len() != 1) {
            self.wrong.push(format!(
                "invariant 9: words go out in whose name? {payers:?}"
            ));
        }
    }

    /// Invariant 9: no credential in any file, and nobody's words in the log.
    pub fn files(&mut self, folder: &std::path::Path) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap_or_default();
                let has = |text: &str| memmem::find(&bytes, text.as_bytes()).is_some();
                let is_log = path.file_name().is_some_and(|name| name == LOG);
                for owner in 0..2 {
                    if has(&credential(owner)) || is_log && has(&secret(owner)) {
                        let what = format!("invariant 9: a secret is in {}", path.display());
                        self.wrong.push(what);
                    }
                }
            }
        }
    }
}
