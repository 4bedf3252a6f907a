//! What must hold for every request of an episode, whatever befell it.
//!
//! Each request is judged from both sides: by what its client saw, and by what
//! upstream got under its tag. Trouble excuses only what it touched. A view may
//! part from the one before only with a pass that the answer tells of, after an
//! answer that never came, or where the store was in trouble; dying is no excuse.
//! The numbers are those of the design's invariants.

use std::collections::{BTreeSet, HashMap};

use longhaul::sim::{Entry, Kind, Outcome};
use memchr::memmem;

use crate::agent::{Agent, credential, secret};
use crate::attempt::Attempt;
use crate::look::{bare, explain};
use crate::moments::{Moments, Trouble};
use crate::support::http::Message;
use crate::world::World;

/// Characters of what is told of one violation.
const LONGEST: usize = 1_500;

/// What is said of a message that cannot be explained.
const CHANGED: &str = "it is not as it was";

/// What was seen of an episode.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub requests: usize,
    pub answered: usize,
    pub passes: usize,
    /// Views that upstream refused first and took at another try.
    pub corrected: usize,
    pub references: usize,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.answered += other.answered;
        self.passes += other.passes;
        self.corrected += other.corrected;
        self.references += other.references;
    }
}

/// Judges an episode; adds what is wrong to `wrong`.
pub struct Judge<'a> {
    pub moments: &'a Moments,
    /// What upstream was asked, by tag.
    pub entries: HashMap<&'a str, Vec<&'a Entry>>,
    /// What upstream answered, by tag.
    pub answers: HashMap<String, Vec<Message>>,
    pub tally: Tally,
    pub wrong: Vec<String>,
    /// Owners and models of which it is known that what thinking is bound to is
    /// enforced. By account, as the proxy learns it: to ask for thinking to be
    /// dropped switches the check on, so what one account has shown is no reason
    /// to ask on another.
    learned: BTreeSet<(usize, &'static str)>,
}

/// What upstream got last on a branch of a history.
#[derive(Clone)]
struct Last<'a> {
    view: Vec<String>,
    attempt: &'a Attempt,
    bytes: &'a [u8],
    /// Since then something was asked of which nothing is known: a pass may have
    /// been made that neither side has heard of.
    unsure: bool,
}

impl<'a> Judge<'a> {
    pub fn new(world: &'a World, entries: &'a [Entry]) -> Self {
        let mut by_tag: HashMap<&str, Vec<&Entry>> = HashMap::new();
        let ours = |entry: &&Entry| matches!(entry.kind, Kind::Message | Kind::Count);
        for entry in entries.iter().filter(ours) {
            if let Some(tag) = entry.header("x-tag") {
                by_tag.entry(tag).or_default().push(entry);
            }
        }
        Self {
            moments: &world.moments,
            entries: by_tag,
            answers: world.answers(),
            tally: Tally::default(),
            wrong: Vec::new(),
            learned: BTreeSet::new(),
        }
    }

    pub fn wrong(&mut self, attempt: &Attempt, what: &str) {
        let story = format!(
            "request {}, {} after {:?}, {:?}: {what}",
            attempt.tag, attempt.model, attempt.fault, attempt.manner
        );
        self.wrong.push(story.chars().take(LONGEST).collect());
    }

    /// Every request of an agent.
    pub fn agent(&mut self, agent: &'a Agent) {
        let mut lasts: HashMap<usize, Last<'a>> = HashMap::new();
        for attempt in &agent.log {
            self.tally.requests += 1;
            self.tally.answered += usize::from(attempt.is_good());
            let passed = attempt.compaction().is_some_and(|pass| pass != "none");
            self.tally.passes += usize::from(passed);
            let entries = self.entries.get(attempt.tag.as_str());
            let entries: Vec<&'a Entry> = entries.cloned().unwrap_or_default();
            self.outcome(attempt, &entries);
            self.owner(agent, attempt, &entries);
            if attempt.counts {
                continue;
            }
            self.refusals(agent, attempt, &entries, passed);
            if attempt.anew {
                lasts.remove(&attempt.branch);
            }
            let inherited = lasts.get(&attempt.branch).or(lasts.get(&0)).cloned();
            let inherited = inherited.filter(|_| !attempt.anew);
            if let Some(mut last) = self.view(attempt, &entries, inherited) {
                last.unsure |= attempt.compaction().is_none();
                lasts.insert(attempt.branch, last);
            }
        }
    }

    /// Invariant 9: nothing of another owner's.
    fn owner(&mut self, agent: &Agent, attempt: &Attempt, entries: &[&Entry]) {
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

    /// Invariants 2, 7 and 8: upstream takes what it gets, or the proxy puts it
    /// right before the client hears of it.
    fn refusals(&mut self, agent: &Agent, attempt: &Attempt, entries: &[&Entry], passed: bool) {
        for entry in entries {
            let Outcome::Refused { message, .. } = &entry.outcome else {
                continue;
            };
            if entry.body.is_none() || self.is_torn(entry, attempt) {
                continue;
            }
            self.tally.corrected += 1;
            let too_long =
                message.contains("prompt is too long") || message.contains("exceed context limit");
            let bound = message.contains("bound to a different");
            let forgot = self.moments.had(Trouble::Store, 0, attempt.ended)
                || self.moments.had(Trouble::Forgotten, 0, attempt.ended);
            let account = (agent.owner, attempt.model);
            let learns = bound && (passed || forgot || self.learned.insert(account));
            if !too_long && !learns {
                let what = format!("invariants 2 and 8: upstream refused a view: {message}");
                self.wrong(attempt, &what);
            }
        }
    }

    /// Whether a connection broke that carried this very request.
    pub fn is_broken(&self, attempt: &Attempt) -> bool {
        let Attempt { begun, ended, .. } = *attempt;
        self.moments.broke_for(&attempt.tag, begun, ended)
    }

    /// Whether a request arrived only in part.
    fn is_torn(&self, entry: &Entry, attempt: &Attempt) -> bool {
        let whole = entry.body.as_deref();
        self.is_broken(attempt)
            && whole.is_none_or(|body| serde_json::from_slice::<serde_json::Value>(body).is_err())
    }

    /// Invariants 1, 3 and 4: every view is explained and continues the one
    /// before. What upstream got last, if anything.
    fn view(
        &mut self,
        attempt: &'a Attempt,
        entries: &[&'a Entry],
        last: Option<Last<'a>>,
    ) -> Option<Last<'a>> {
        let mut newest = None;
        let mut refused = false;
        for entry in entries {
            let Some(bytes) = entry.body.as_deref() else {
                continue;
            };
            if self.is_torn(entry, attempt) {
                continue;
            }
            // What a client clears behind an overlay stays as the overlay shows it,
            // and that may be a part of what it was: until something before it
            // changes, upstream has it in its cache.
            let excused = |what: &String| attempt.cleared && what.contains(CHANGED);
            let explained = if attempt.own == bytes {
                Ok(())
            } else {
                explain(&attempt.own, bytes).map(drop)
            };
            if let Err(what) =
                explained.or_else(|what| if excused(&what) { Ok(()) } else { Err(what) })
            {
                self.wrong(attempt, &format!("invariant 3: {what}"));
                continue;
            }
            let view = bare(bytes);
            let earlier: Option<&Last<'_>> = newest.as_ref().or(last.as_ref());
            if let Some(earlier) = earlier.filter(|_| !refused) {
                self.continues(attempt, earlier, &view, bytes);
            }
            refused |= matches!(entry.outcome, Outcome::Refused { .. });
            newest = Some(Last {
                view,
                attempt,
                bytes,
                unsure: false,
            });
        }
        newest.or(last)
    }

    fn continues(&mut self, attempt: &Attempt, earlier: &Last<'_>, view: &[String], bytes: &[u8]) {
        let since = earlier.attempt.begun;
        if self.moments.had(Trouble::Store, since, attempt.ended) {
            return;
        }
        let forgot = self.moments.had(Trouble::Forgotten, since, attempt.ended);
        // The same request again, of whose answer something was seen.
        let same = earlier.attempt.own == attempt.own && earlier.attempt.tag != attempt.tag;
        let begun = earlier.attempt.answer();
        let begun = begun.is_some_and(|answer| answer.status() == 200 && !answer.body.is_empty());
        if same && begun && !forgot && earlier.bytes != bytes {
            let what = format!(
                "invariant 1: asked again, after {}, it is another view:\n{}\n{}",
                earlier.attempt.tag,
                String::from_utf8_lossy(earlier.bytes),
                String::from_utf8_lossy(bytes)
            );
            return self.wrong(attempt, &what);
        }
        let passed = attempt.compaction().is_none_or(|pass| pass != "none");
        if passed || earlier.unsure {
            return;
        }
        let same = earlier.view.iter().zip(view).take_while(|(a, b)| a == b);
        let at = same.count();
        if at < earlier.view.len().min(view.len()) || earlier.view.len() > view.len() {
            let what = format!(
                "invariant 1: it parts from {} at message {at} of {}:\n{:?}\n{:?}",
                earlier.attempt.tag,
                earlier.view.len(),
                earlier.view.get(at),
                view.get(at)
            );
            self.wrong(attempt, &what);
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

    /// Invariant 9: no credential in any file.
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
                let holds = |owner| memmem::find(&bytes, credential(owner).as_bytes()).is_some();
                if holds(0) || holds(1) {
                    self.wrong.push(format!(
                        "invariant 9: a credential is in {}",
                        path.display()
                    ));
                }
            }
        }
    }
}
