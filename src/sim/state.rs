//! The simulator's state and the handles by which a test controls it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::binding::Issued;
use super::cache::Cache;
use super::canonical::Digest;
use super::diagnostics::Sent;
use super::fault::{Fault, Queued, Target};
use super::ledger::{Entry, Ledger};
use super::options::Options;
use super::persona::Persona;
use super::reply::Reply;
use super::rule::{Progress, Rule};
use super::threads::Threads;
use super::tokens::Counter;
use crate::clock::Clock;

/// A simulated upstream; clones are the same one.
#[derive(Debug, Clone)]
pub struct Sim(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    counter: Arc<Counter>,
    state: Mutex<State>,
}

/// Everything that changes.
#[derive(Debug, Default)]
pub(super) struct State {
    pub cache: Cache,
    pub replies: VecDeque<Reply>,
    pub rule: Rule,
    pub progress: Progress,
    pub faults: VecDeque<Queued>,
    pub persona: Persona,
    pub personas: VecDeque<Persona>,
    pub issued: Issued,
    pub threads: Threads,
    /// The positions of the newest prompt of each conversation.
    pub prompts: HashMap<String, Vec<Digest>>,
    /// Tool calls made by summarizers; what answers them is still about the summary.
    pub summary_calls: HashSet<String>,
    /// Prompts that later requests may ask about.
    pub sent: Sent,
    pub entries: Vec<Entry>,
    pub serial: u64,
}

impl Sim {
    /// A simulator.
    pub fn new(options: Options) -> Self {
        let counter = Arc::new(Counter::new(options.drift));
        Self::counting(options, counter)
    }

    /// The same with a counter that others use too: what one has counted, the
    /// others need not. Its drift holds, whatever the settings say.
    pub fn counting(options: Options, counter: Arc<Counter>) -> Self {
        Self(Arc::new(Inner {
            options,
            counter,
            state: Mutex::default(),
        }))
    }

    /// Its settings.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Its token counter.
    pub fn counter(&self) -> &Counter {
        &self.0.counter
    }

    /// The clock that cache lifetimes are measured with.
    pub fn clock(&self) -> &Clock {
        &self.0.options.clock
    }

    /// Scripts the next reply; several are given in order. Requests for a
    /// summary do not use them up.
    pub fn push_reply(&self, reply: Reply) {
        self.state().replies.push_back(reply);
    }

    /// What is answered when nothing is scripted.
    pub fn set_rule(&self, rule: Rule) {
        let mut state = self.state();
        state.rule = rule;
        state.progress = Progress::default();
    }

    /// Makes the next request for a message go wrong.
    pub fn push_fault(&self, fault: Fault) {
        self.queue_fault(Queued {
            fault,
            target: Target::Any,
            times: 1,
        });
    }

    /// Makes certain requests go wrong, so many times.
    pub fn queue_fault(&self, fault: Queued) {
        self.state().faults.push_back(fault);
    }

    /// How requests for a summary are answered from now on.
    pub fn set_persona(&self, persona: Persona) {
        self.state().persona = persona;
    }

    /// How the next request for a summary is answered; several are taken in order.
    pub fn push_persona(&self, persona: Persona) {
        self.state().personas.push_back(persona);
    }

    /// Forgets scripted replies that nobody has heard.
    pub fn drop_replies(&self) {
        self.state().replies.clear();
    }

    /// What was seen so far, and what it cost.
    pub fn ledger(&self) -> Ledger {
        Ledger::new(self.state().entries.clone())
    }

    /// What was seen from a number of entries on.
    pub fn entries_from(&self, seen: usize) -> Vec<Entry> {
        let state = self.state();
        state.entries.get(seen..).unwrap_or_default().to_vec()
    }

    /// What was seen since this was last asked, which is then forgotten.
    pub fn take_entries(&self) -> Vec<Entry> {
        std::mem::take(&mut self.state().entries)
    }

    /// Forgets everything but the settings.
    pub fn reset(&self) {
        *self.state() = State::default();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked while holding the lock left nothing half done.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next number for ids.
    pub fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Takes the fault that waits for a request of this kind.
    pub fn take_fault(&mut self, wanted: &[Target]) -> Option<Fault> {
        let at = self
            .faults
            .iter()
            .position(|queued| wanted.contains(&queued.target))?;
        let queued = self.faults.get_mut(at)?;
        let fault = queued.fault.clone();
        queued.times = queued.times.saturating_sub(1);
        if queued.times == 0 {
            self.faults.remove(at);
        }
        Some(fault)
    }

    /// The persona for the next summary.
    pub fn take_persona(&mut self) -> Persona {
        self.personas.pop_front().unwrap_or(self.persona)
    }
}
