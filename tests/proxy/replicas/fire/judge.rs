//! Holds what upstream saw against what the clients had.
//!
//! Every view must be of one piece: the history itself, or its head, segments
//! that stand without a gap for what follows, and the rest of the history. It is
//! then told by its segments. A session's view may change when an answer tells
//! of a pass, when an answer was lost with its replica, and where the database
//! was away; at no other time, and above all never back, unless a pass heals what
//! was left out while the database was away. When a summary may be asked for
//! again is told in `again`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use longhaul::sim::{Entry, Kind};
use serde_json::Value;

use super::again;
use super::client::{Attempt, Session, now};
use super::told::Told;
use crate::views::cast::unmarked;

/// How long may be between the last word of the database and what it allowed, in
/// milliseconds, besides what the machine is late.
const UNDER_WAY: u64 = 500;
/// The same for what a replica knows itself.
const AT_ONCE: u64 = 50;

/// The database was away.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    /// It is told to stop.
    pub since: u64,
    /// It has stopped.
    pub gone: u64,
    /// It is told to start.
    pub until: u64,
    /// It has started.
    pub back: u64,
    /// The last replica has put there all that was done meanwhile.
    pub found: u64,
}

/// What upstream saw of an attempt.
struct Seen {
    session: usize,
    attempt: usize,
    messages: Vec<Value>,
}

/// A summary that was asked for.
struct Summary {
    digest: blake3::Hash,
}

#[derive(Default)]
pub struct Judge {
    seen: Vec<Seen>,
    summaries: Vec<Summary>,
    kills: Vec<u64>,
    away: Vec<Outage>,
    /// The most that the machine was late, in milliseconds.
    late: u64,
}

/// What became of it all.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Views that were sent, and of these the history itself.
    views: usize,
    raw: usize,
    /// New views that an answer told of.
    passes: usize,
    /// Passes while the database was away, as replicas tell of them.
    passes_away: usize,
    /// The longest that replicas took to use the database again, and to put
    /// there what was done meanwhile.
    used_after: Duration,
    settled_after: Duration,
    /// Views that changed without a word, because the word was lost or the
    /// database away.
    after_loss: usize,
    while_away: usize,
    /// Requests that were sent again.
    again: usize,
    summaries: usize,
    /// Of these the ones that were asked for again after a kill.
    summaries_again: usize,
    longest: Duration,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} views, none mixed ({} of them the history as it was), {} passes, {} of them while the \
             database was away, all past hard_at; {} views changed with an answer that was lost, {} \
             because the database was away, none otherwise; {} requests sent again after a kill, \
             all answered, the slowest after {:.1} s; {} summaries, none asked for while the \
             database was away, {} asked for again after a kill; the database used again after at \
             most {:.1} s, and told of all that was done meanwhile after {:.1} s",
            self.views,
            self.raw,
            self.passes,
            self.passes_away,
            self.after_loss,
            self.while_away,
            self.again,
            self.longest.as_secs_f64(),
            self.summaries,
            self.summaries_again,
            self.used_after.as_secs_f64(),
            self.settled_after.as_secs_f64(),
        )
    }
}

impl Judge {
    /// A replica is dead by now, and asks for nothing more.
    pub fn killed(&mut self) {
        self.kills.push(now());
    }

    /// The database was away.
    pub fn away(&mut self, outage: Outage) {
        self.away.push(outage);
    }

    /// The machine was late by so much.
    pub fn late(&mut self, late: Duration) {
        self.late = self.late.max(u64::try_from(late.as_millis()).unwrap());
    }

    /// Takes in what upstream saw.
    pub fn see(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            assert!(entry.is_answered(), "{:?}", entry.outcome);
            let body = entry.body.as_ref().unwrap();
            if entry.kind == Kind::Summary {
                let digest = blake3::hash(body);
                self.summaries.push(Summary { digest });
                continue;
            }
            let mut headers = entry.headers.iter();
            let (_, attempt) = headers.find(|(name, _)| name == "x-attempt").unwrap();
            let (session, attempt) = attempt.split_once('.').unwrap();
            self.seen.push(Seen {
                session: session.parse().unwrap(),
                attempt: attempt.parse().unwrap(),
                messages: unmarked(&entry.json().unwrap()["messages"]),
            });
        }
    }

    /// Whether the database was away at some time of an attempt.
    fn is_troubled(&self, attempt: &Attempt) -> bool {
        let mut away = self.away.iter();
        away.any(|outage| attempt.began <= outage.found && attempt.ended >= outage.since)
    }

    /// Whether the database was gone at this moment, and not just before.
    fn is_gone(&self, at: u64) -> bool {
        let known = UNDER_WAY + self.late;
        let mut away = self.away.iter();
        away.any(|outage| at > outage.gone + known && at < outage.until)
    }

    pub fn verdict(&self, sessions: &[Session], told: &[Told]) -> Verdict {
        let mut verdict = Verdict::default();
        let mut before: HashMap<usize, (&Attempt, blake3::Hash)> = HashMap::new();
        let mut known: HashMap<(usize, blake3::Hash), usize> = HashMap::new();
        for seen in &self.seen {
            let session = &sessions[seen.session];
            assert_eq!(session.number, seen.session);
            let attempt = &session.attempts[seen.attempt];
            let overlay = whole(&seen.messages, &session.history[..attempt.messages]);
            verdict.views += 1;
            verdict.raw += usize::from(seen.messages.len() == attempt.messages);
            let last = before.insert(seen.session, (attempt, overlay));
            let shown_last = known.insert((seen.session, overlay), seen.attempt);
            let is_new = shown_last.is_none();
            // What was left out without a database is healed afterwards, and may
            // then be as it was before.
            let healed = shown_last.is_some_and(|since| {
                let mut since_then = session.attempts[since..=seen.attempt].iter();
                since_then.any(|attempt| self.is_troubled(attempt))
            });
            let Some((earlier, shown)) = last else {
                continue;
            };
            let told = attempt.pass.as_deref().is_some_and(|pass| pass != "none");
            let away = self.is_troubled(attempt);
            verdict.passes += usize::from(told);
            if shown == overlay {
                continue;
            }
            // Whoever committed a view and died has told nobody.
            let same = session.attempts.iter();
            let mut same = same.filter(|other| other.messages == attempt.messages);
            let died = is_new && same.any(|other| other.pass.is_none());
            match (
                told && (is_new || healed),
                died,
                away || self.is_troubled(earlier),
            ) {
                (true, _, _) => {}
                (false, true, _) => verdict.after_loss += 1,
                (false, false, true) => verdict.while_away += 1,
                (false, false, false) => panic!(
                    "session {} changed its view without a word, new: {is_new}: {attempt:?} after {:#?}; kills {:?}, away {:?}",
                    seen.session,
                    self.story(seen.session, sessions, attempt.messages),
                    self.kills,
                    self.away,
                ),
            }
        }
        verdict.again = sessions
            .iter()
            .flat_map(|session| &session.attempts)
            .filter(|attempt| attempt.pass.is_none())
            .count();
        verdict.longest = sessions.iter().map(|s| s.longest).max().unwrap();
        self.count_summaries(&mut verdict, told);
        self.count_told(&mut verdict, told);
        let settled = self.away.iter().map(|outage| outage.found - outage.back);
        verdict.settled_after = Duration::from_millis(settled.max().unwrap_or(0));
        let used = told.iter().flat_map(|told| &told.away);
        let used = used.filter_map(|(_, until)| {
            let mut away = self.away.iter();
            let of = away.find(|outage| (outage.back..=outage.found).contains(until))?;
            Some(until - of.back)
        });
        verdict.used_after = Duration::from_millis(used.max().unwrap_or(0));
        verdict
    }

    /// What went before, for whoever looks for a mistake.
    fn story(&self, session: usize, sessions: &[Session], until: usize) -> Vec<String> {
        let seen = self.seen.iter().filter(|seen| seen.session == session);
        let told = seen.filter_map(|seen| {
            let attempt = &sessions[session].attempts[seen.attempt];
            let overlay = whole(
                &seen.messages,
                &sessions[session].history[..attempt.messages],
            );
            let near = attempt.messages <= until && attempt.messages + 16 > until;
            near.then(|| format!("{} {attempt:?}", &overlay.to_hex()[..6]))
        });
        told.collect()
    }

    /// Without a database no model is asked, and passes are made only where
    /// nothing else is left.
    fn count_told(&self, verdict: &mut Verdict, told: &[Told]) {
        let mut asked = 0;
        for told in told {
            for pass in &told.passes {
                let known = pass.away || !self.is_gone(pass.at);
                assert!(known, "without a database: {pass:?}, {:?}", self.away);
                let full = !pass.away || pass.projected >= pass.hard_at;
                assert!(full, "there was room: {pass:?}");
                verdict.passes_away += usize::from(pass.away);
            }
            for at in &told.asked {
                let mut away = told.away.iter();
                let knew =
                    away.any(|(since, until)| *at > since + AT_ONCE + self.late && at < until);
                let late = self.late;
                assert!(
                    !knew && !self.is_gone(*at),
                    "a model was asked at {at}, late {late}: {:?}, {:?}",
                    told.away,
                    self.away
                );
            }
            asked += told.asked.len();
        }
        assert!(asked >= verdict.summaries, "{asked}");
        let passes: usize = told.iter().map(|told| told.passes.len()).sum();
        assert!(passes >= verdict.passes, "{passes}");
    }

    fn count_summaries(&self, verdict: &mut Verdict, told: &[Told]) {
        let away: Vec<(u64, u64)> = self.away.iter().map(|o| (o.since, o.found)).collect();
        let excused = again::count(told, &away)
            .unwrap_or_else(|why| panic!("{why}; kills {:?}, away {away:?}", self.kills));
        let different: HashSet<&blake3::Hash> = self.summaries.iter().map(|s| &s.digest).collect();
        verdict.summaries = self.summaries.len();
        verdict.summaries_again = verdict.summaries - different.len();
        // What upstream was asked twice, replicas have begun twice.
        let again = verdict.summaries_again;
        assert!(
            again <= excused,
            "{again} asked for again, {excused} begun again"
        );
    }
}

/// Asserts that a view is of one piece; what tells it from others of its session.
fn whole(view: &[Value], history: &[Value]) -> blake3::Hash {
    if view == history {
        return blake3::hash(b"");
    }
    assert_eq!(view[0], history[0], "the head");
    let mut next = 1;
    for segment in view[2]["content"].as_array().unwrap() {
        let text = segment["text"].as_str().unwrap();
        assert!(text.starts_with("[longhaul: "), "{text}");
        let numbers = text.split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<usize> = numbers.filter_map(|n| n.parse().ok()).take(2).collect();
        assert_eq!(numbers[0], next + 1, "{text}");
        next = numbers[1];
    }
    // A bridge stands before a tail that begins with the user.
    let bridge = usize::from(history[next]["role"] == "user");
    assert_eq!(view[3 + bridge..], history[next..], "the tail");
    blake3::hash(
        Value::from(view[1..3 + bridge].to_vec())
            .to_string()
            .as_bytes(),
    )
}
