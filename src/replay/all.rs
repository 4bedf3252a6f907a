//! Plays many sessions in every way that is asked for, as many at a time as
//! there are processors.
//!
//! A session without the proxy and the same session with it are two pieces of
//! work, so that even a single one keeps two processors busy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::conditions::Conditions;
use super::figures::{Figures, Outcome};
use super::hindsight::{Means, STUB, Sent, WORTH_CLEARING, hindsight};
use super::play::{PlayError, Played, Run, Seen, Stage, Way};
use super::recording::{NotPlayed, kind};
use super::session::{Session, Step};
use super::settings::{BadSettings, Set, Settings};
use crate::sim::models::{self, Model};
use crate::sim::tokens::Counter;

/// What is played.
pub struct Plan {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// The conditions.
    pub settings: Settings,
    /// Keys that are set in further runs with the proxy, a set for each.
    pub variations: Vec<Vec<Set>>,
}

/// A session that was played in every way.
#[derive(Debug)]
pub struct Told {
    /// What it is called.
    pub name: String,
    /// Its messages.
    pub messages: usize,
    /// Its turns.
    pub turns: usize,
    /// Requests of the recording that were not played.
    pub not_played: Vec<NotPlayed>,
    /// Without the proxy.
    pub alone: (Figures, Run),
    /// With the proxy: as it is configured, then each variation.
    pub with: Vec<(Outcome, Run)>,
}

impl Plan {
    /// How many requests will be sent in all.
    pub fn requests(&self) -> usize {
        let steps = self.sessions.iter().map(|session| session.steps.len());
        steps.sum::<usize>() * (2 + self.variations.len())
    }

    /// What the configuration and every variation come to, if they are right.
    pub fn conditions(&self) -> Result<Conditions, BadSettings> {
        Conditions::of(&self.settings, &self.variations)
    }

    /// Plays everything; `progress` is called after each request, with the way in
    /// which it is played (the first is without the proxy), `forced` says with
    /// which requests a pass is asked for.
    pub fn play(
        &self,
        forced: &(dyn Fn(usize) -> bool + Sync),
        progress: &(dyn Fn(usize, &Seen) + Sync),
    ) -> Result<Vec<Told>, PlayError> {
        let configured = std::iter::once(Way::Through(Vec::new()));
        let variations = self.variations.iter().cloned().map(Way::Through);
        let ways: Vec<Way> = std::iter::once(Way::Alone)
            .chain(configured)
            .chain(variations)
            .collect();
        let sessions = self.sessions.iter().enumerate();
        let mut work: Vec<(usize, usize)> = sessions
            .flat_map(|(session, _)| (0..ways.len()).map(move |way| (session, way)))
            .collect();
        // The longest first, so that nobody waits for it at the end.
        work.sort_by_key(|(session, _)| {
            let steps = self.sessions.get(*session).map_or(0, |it| it.steps.len());
            std::cmp::Reverse(steps)
        });
        let counter = Arc::new(Counter::new(1.0));
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let labour = || -> Result<(), PlayError> {
            while let Some((at, way)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (Some(session), Some(kind)) = (self.sessions.get(*at), ways.get(*way)) else {
                    continue;
                };
                let progress = |seen: &Seen| progress(*way, seen);
                let stage = Stage {
                    session,
                    settings: &self.settings,
                    counter: counter.clone(),
                    forced,
                    progress: &progress,
                };
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let run = runtime.block_on(stage.play(kind))?;
                // What is left on it is an idle connection or two.
                runtime.shutdown_background();
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push(((*at, *way), run));
            }
            Ok(())
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let hands = (0..cores.min(work.len())).map(|_| scope.spawn(labour));
            let hands: Vec<_> = hands.collect();
            hands.into_iter().try_for_each(|hand| {
                let gone = |_| std::io::Error::other("a run broke off");
                hand.join().map_err(gone)?
            })
        })?;
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(place, _)| *place);
        Ok(self.told(done, &counter)?)
    }

    /// The means that each run with the proxy had.
    fn means(&self, model: &'static Model) -> Result<Vec<Means>, BadSettings> {
        let nowhere = ([127, 0, 0, 1], 1).into();
        let configured = Vec::new();
        let sets = std::iter::once(&configured).chain(&self.variations);
        sets.map(|set| {
            let config = self.settings.confined(set, nowhere)?;
            Ok(Means::configured(model, &config))
        })
        .collect()
    }

    fn told(
        &self,
        done: Vec<((usize, usize), Run)>,
        counter: &Counter,
    ) -> Result<Vec<Told>, BadSettings> {
        let mut done = done.into_iter().peekable();
        let mut told = Vec::new();
        let Some(model) = models::find(&self.settings.model) else {
            return Ok(told);
        };
        let means = self.means(model)?;
        let window = self.settings.window;
        for (at, session) in self.sessions.iter().enumerate() {
            let mut runs = Vec::new();
            while let Some((_, run)) = done.next_if(|((of, _), _)| *of == at) {
                runs.push(run);
            }
            let mut runs = runs.into_iter();
            let Some(alone) = runs.next() else {
                continue;
            };
            let pairs = alone.played.iter().zip(&session.steps);
            let sent: Vec<Sent> = pairs
                .map(|(played, step)| sent(played, step, counter))
                .collect();
            let with = runs.zip(&means).map(|(run, means)| {
                let mut outcome = Outcome::of(session, &alone, &run, window, model);
                let compared = sent.get(..outcome.compared.requests).unwrap_or(&[]);
                outcome.hindsight = hindsight(compared, means);
                (outcome, run)
            });
            told.push(Told {
                name: session.name.clone(),
                messages: session.messages(),
                turns: session.turns(),
                not_played: session.not_played.clone(),
                with: with.collect(),
                alone: (Figures::of(&alone, session, window), alone),
            });
        }
        Ok(told)
    }
}

/// A request without the proxy, as [`hindsight`] wants it.
fn sent(played: &Played, step: &Step, counter: &Counter) -> Sent {
    let blocks = step.asked.get("content").and_then(Value::as_array);
    let blocks = blocks.into_iter().flatten();
    let sizes: Vec<(bool, u64)> = blocks
        .filter_map(|block| {
            Some((
                kind(block) == "tool_result",
                counter.block(block.as_object()?),
            ))
        })
        .collect();
    let large = sizes
        .iter()
        .filter(|(is_result, tokens)| *is_result && *tokens >= WORTH_CLEARING);
    Sent {
        fresh: played.fresh,
        tokens: played.tokens,
        asked: sizes.iter().map(|(_, tokens)| tokens).sum(),
        clearable: large.map(|(_, tokens)| tokens - STUB).sum(),
    }
}
