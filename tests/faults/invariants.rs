//! What must hold for every request of an episode, whatever befell it.
//!
//! Each request is judged from both sides: by what its client saw, and by what
//! upstream got under its tag. Trouble excuses only what it touched. A view may
//! part from the one before only with a pass that the answer tells of, after an
//! answer that never came, or where the store was in trouble; dying is no excuse.
//! The numbers are those of the design's invariants.

use std::collections::HashMap;
use std::time::Duration;

use longhaul::sim::{Entry, Kind, Outcome};

use crate::agent::Agent;
use crate::attempt::{Attempt, Manner};
use crate::grown::grown;
use crate::look::{bare, explain};
use crate::moments::{Moments, Trouble};
use crate::story::story;
use crate::support::http::Message;
use crate::world::World;

/// What a store may take; the plan of every world says so. One that takes longer,
/// on a machine that is busy with something else, is in trouble.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Characters of what is told of one violation.
const LONGEST: usize = 1_500;

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
    /// Proxies side by side.
    replicas: usize,
    /// No pass may be made.
    quiet: bool,
    pub tally: Tally,
    pub wrong: Vec<String>,
    /// When owners and models first showed that what thinking is bound to is
    /// enforced. By account, as the proxy learns it: to ask for thinking to be
    /// dropped switches the check on, so what one account has shown is no reason
    /// to ask on another.
    learned: HashMap<(usize, &'static str), u64>,
    /// How many losses of long ago have shown themselves to each agent.
    shown: HashMap<usize, usize>,
    /// When the requests of clients that went away were done with, at the latest.
    done: HashMap<&'a str, u64>,
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

/// What upstream got last of an agent.
#[derive(Default)]
struct Lasts<'a> {
    of_branches: HashMap<usize, Last<'a>>,
    of_histories: HashMap<Vec<String>, Last<'a>>,
}

impl<'a> Lasts<'a> {
    /// What the view of a request has to continue. Two branches may have come to
    /// the very same history by chance: then that is it.
    fn before(&self, attempt: &Attempt) -> Option<Last<'a>> {
        if let Some(same) = self.of_histories.get(&bare(&attempt.own)) {
            return Some(same.clone());
        }
        let branches = &self.of_branches;
        let last = branches.get(&attempt.branch).or(branches.get(&0));
        last.filter(|_| !attempt.anew).cloned()
    }
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
            replicas: world.replicas(),
            quiet: world.is_quiet(),
            tally: Tally::default(),
            wrong: Vec::new(),
            learned: HashMap::new(),
            shown: HashMap::new(),
            done: HashMap::new(),
        }
    }

    /// When a request was done with, at the latest: that its client has gone away
    /// is no reason to hurry.
    fn done(&self, attempt: &Attempt) -> u64 {
        let done = self.done.get(attempt.tag.as_str());
        done.copied().unwrap_or(attempt.ended)
    }

    /// Whether the store was in trouble between the beginning of one request and
    /// the end of another.
    fn had_no_store(&self, first: &Attempt, last: &Attempt) -> bool {
        let slow = |attempt: &Attempt| attempt.took >= STORE_TIMEOUT;
        let done = self.done(first).max(self.done(last));
        slow(first) || slow(last) || self.moments.had(Trouble::Store, first.begun, done)
    }

    pub fn wrong(&mut self, attempt: &Attempt, what: &str) {
        let story = format!(
            "request {}, {} after {:?}, {:?}: {what}",
            attempt.tag, attempt.model, attempt.fault, attempt.manner
        );
        self.wrong.push(story.chars().take(LONGEST).collect());
    }

    /// Every request of an agent; the first violation is told with its story.
    pub fn agent(&mut self, agent: &'a Agent) {
        let mut lasts = Lasts::default();
        let fine = self.wrong.len();
        let left = |attempt: &&Attempt| attempt.manner != Manner::Waits;
        for (at, attempt) in agent.log.iter().enumerate().filter(|(_, held)| left(held)) {
            // By the time it has asked twice more.
            let done = agent.log.get(at + 2).map_or(u64::MAX, |later| later.ended);
            self.done.insert(&attempt.tag, done);
        }
        for attempt in &agent.log {
            let before = self.wrong.len();
            self.request(agent, attempt, &mut lasts);
            if before == fine && self.wrong.len() > fine {
                let story = story(self, agent, attempt);
                self.wrong[fine].push_str(&story);
            }
        }
    }

    fn request(&mut self, agent: &Agent, attempt: &'a Attempt, lasts: &mut Lasts<'a>) {
        self.tally.requests += 1;
        self.tally.answered += usize::from(attempt.is_good());
        let passed = attempt.compaction().is_some_and(|pass| pass != "none");
        self.tally.passes += usize::from(passed);
        let entries = self.entries.get(attempt.tag.as_str());
        let entries: Vec<&'a Entry> = entries.cloned().unwrap_or_default();
        self.outcome(attempt, &entries);
        self.owner(agent, attempt, &entries);
        if self.quiet {
            self.untouched(attempt, &entries);
            return;
        }
        let inherited = lasts.before(attempt);
        if attempt.counts {
            // What is counted is what would be sent, and nothing comes of it.
            self.view(attempt, &entries, inherited);
            return;
        }
        self.refusals(agent, attempt, &entries);
        if attempt.anew {
            lasts.of_branches.remove(&attempt.branch);
        }
        if let Some(mut last) = self.view(attempt, &entries, inherited) {
            last.unsure |= attempt.compaction().is_none();
            lasts.of_histories.insert(bare(&attempt.own), last.clone());
            lasts.of_branches.insert(attempt.branch, last);
        }
    }

    /// Invariants 2, 7 and 8: upstream takes what it gets, or the proxy puts it
    /// right before the client hears of it.
    fn refusals(&mut self, agent: &Agent, attempt: &Attempt, entries: &[&Entry]) {
        for entry in entries {
            let Outcome::Refused { message, .. } = &entry.outcome else {
                continue;
            };
            if entry.body.is_none() || self.is_torn(entry, attempt) {
                continue;
            }
            self.tally.corrected += 1;
            let account = (agent.owner, attempt.model);
            let known = self.learned.get(&account);
            let is_first = known.is_none_or(|known| *known >= attempt.begun);
            // What one proxy has learned, or sent last, the other one may not know
            // yet: it reads what is promised to be durable, and that is the overlay.
            let unknown = is_first || self.replicas > 1 || self.forgot(agent, attempt);
            // Without what it had learned a proxy may take a little too much for
            // something that fits, and puts that right.
            let (begun, ended) = (attempt.begun, attempt.ended);
            let blind = self.moments.had(Trouble::Store, begun, ended);
            let misjudged = blind && message.starts_with("prompt is too long");
            if !(is_bound(message) && unknown || misjudged) {
                let is_own = entry.body.as_deref() == Some(attempt.own.as_slice());
                let what = format!(
                    "invariants 2, 7 and 8: upstream refused a view (own: {is_own}, passed: {:?}): {message}",
                    attempt.compaction()
                );
                self.wrong(attempt, &what);
            }
        }
    }

    /// When each account first showed that it enforces what thinking is bound to.
    pub fn learn(&mut self, agents: &[Agent]) {
        for agent in agents {
            for attempt in &agent.log {
                let entries = self.entries.get(attempt.tag.as_str()).into_iter().flatten();
                let shows = |entry: &&Entry| match &entry.outcome {
                    Outcome::Refused { message, .. } => is_bound(message),
                    _ => false,
                };
                // A refusal that was lost on its way has taught nobody.
                if !self.is_broken(attempt) && entries.copied().any(|entry| shows(&entry)) {
                    let known = self.learned.entry((agent.owner, attempt.model));
                    let known = known.or_insert(u64::MAX);
                    *known = attempt.ended.min(*known);
                }
            }
        }
    }

    /// Whether a proxy may have forgotten under which view the thinking of this
    /// request was born: what it builds on was answered, and then, or while it
    /// was, something was lost. What was lost before may show later, but each loss
    /// only once to an agent.
    fn forgot(&mut self, agent: &Agent, attempt: &Attempt) -> bool {
        let history = bare(&attempt.own);
        let builds_on = |before: &&Attempt| {
            let is_answer = before.is_good() && !before.counts && before.ended < attempt.begun;
            is_answer && history.starts_with(&bare(&before.own))
        };
        let base = agent.log.iter().rfind(builds_on);
        let since = base.map_or(attempt.begun, |base| base.begun);
        let troubles = [Trouble::Store, Trouble::Forgotten];
        let had = |trouble| self.moments.had(trouble, since, attempt.ended);
        if troubles.into_iter().any(had) {
            return true;
        }
        let first = agent.log.first().map_or(0, |first| first.begun);
        let losses = self.moments.losses(first, attempt.ended);
        let shown = self.shown.entry(agent.number).or_default();
        *shown += 1;
        *shown <= losses
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

    /// Where no pass may be made, what was sent is what the client sent.
    fn untouched(&mut self, attempt: &Attempt, entries: &[&Entry]) {
        for entry in entries.iter().filter(|entry| !self.is_torn(entry, attempt)) {
            if entry.body.as_deref() != Some(attempt.own.as_slice()) {
                let body = entry.body.as_deref().unwrap_or_default();
                let body = String::from_utf8_lossy(body).into_owned();
                return self.wrong(attempt, &format!("invariant 10: it is changed: {body}"));
            }
        }
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
            if attempt.own != bytes
                && let Err(what) = explained(attempt, bytes)
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
        if self.had_no_store(earlier.attempt, attempt) {
            return;
        }
        let done = self.done(attempt);
        let forgot = self.moments.had(Trouble::Forgotten, since, done);
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
            if let Err(what) = grown(&earlier.attempt.own, earlier.bytes, bytes) {
                let before = &earlier.attempt.tag;
                self.wrong(
                    attempt,
                    &format!("invariants 1 and 4: after {before}, {what}"),
                );
            }
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
}

/// Whether a view can be explained by its history.
fn explained(attempt: &Attempt, bytes: &[u8]) -> Result<(), String> {
    let shape = explain(&attempt.as_shown(bytes), bytes)?;
    // Between turns even the latest reply's thinking goes, but only where it is
    // bound to what stood before it and a pass has changed that.
    let bound = attempt.model.contains("5-5");
    if shape.latest_gone && !bound {
        return Err("thinking of the latest reply is gone".to_owned());
    }
    Ok(())
}

/// Whether a refusal is for thinking that stands behind something else than it
/// was born behind.
fn is_bound(message: &str) -> bool {
    message.contains("bound to a different")
}
