//! What a request, the next ones and a summary cost a session: what the accounts
//! of the policy are kept with.

use std::time::Duration;

use super::Views;
use super::prepare::Prepared;
use crate::config::{Aim, Model, SummarizerMode};
use crate::engine::policy::{Bill, Means, Pico, Summaries};
use crate::engine::request::Treatment;

impl Views {
    /// What a request and the next ones cost, and what may be spent.
    pub(super) fn bill_of(
        &self,
        prepared: &Prepared,
        model: Model,
        lifetime: Option<Duration>,
    ) -> Bill {
        let course = &prepared.figures.course;
        let sending = &prepared.sending;
        let policy = &self.config.policy;
        // A model that has never had this conversation has nothing of it cached.
        let fresh = prepared.figures.new_model;
        Bill {
            base: self.base_tokens(prepared),
            keep: policy.keep_tokens(),
            cached: (sending.cached > 0).then_some(sending.cached),
            removed: prepared.figures.removed,
            lifetime,
            summaries: self.summaries(prepared),
            factor: policy.factor(),
            faithful: policy.aim == Aim::Faithful,
            fetches: course.fetches(prepared.figures.fetched.len()) * self.bareness() / 100,
            invalidated: !course.distrusts() && (sending.invalidated || fresh),
            model: model.prices(0).is_some().then_some(model),
        }
    }

    /// How much more often something is fetched again where no digest is left of it,
    /// in percent.
    fn bareness(&self) -> u32 {
        if self.config.clear.digest == Some(0) {
            120
        } else {
            100
        }
    }

    /// What a summary would cost the session now; none: none can be written.
    pub(super) fn summaries(&self, prepared: &Prepared) -> Option<Summaries> {
        let compactor = self.summarizer()?;
        let sender = prepared.sender.as_ref()?;
        let (figures, facts) = (&prepared.figures, &prepared.recognised.facts);
        let now = figures.requests.into();
        if !figures.breaker.admits(now, &self.breaker_settings())
            || compactor.gates.is_hushed(&sender.digest())
            || prepared.recognised.treatment != Treatment::Ordinary
        {
            return None;
        }
        let (models, summarizer) = (&self.config.models, &self.config.summarizer);
        let native = self.asks_the_api(&prepared.recognised);
        let forks = summarizer.mode != SummarizerMode::Model;
        let records = !native && summarizer.mode != SummarizerMode::Fork;
        Some(Summaries {
            other: records.then(|| models.lookup(&summarizer.model)),
            own: forks.then(|| models.lookup(&facts.model)),
            output: summarizer.max_tokens / 2,
        })
    }
}

/// Charges a session with what its summaries have cost.
pub(super) fn charge(prepared: &mut Prepared, spent: Pico, wasted: bool) {
    let course = &mut prepared.figures.course;
    course.charged(spent);
    if wasted {
        course.accounts.wasted(Means::Closing, spent);
    }
}
