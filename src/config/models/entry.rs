//! One model: as written in a table, where every key is optional, and as the
//! rest of Longhaul sees it, where every question has an answer.
//!
//! Prices depend on the size of the prompt, so they are asked for with it; a
//! step changes only the prices it names.

use super::price::{PriceStep, Prices, WrittenPrices};

/// One `[models."NAME"]` as written: every key is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelEntry {
    /// Tokens in its window.
    pub window: Option<u64>,
    /// Tokens a conversation may occupy; 0: as for every model.
    pub budget: Option<u64>,
    /// Whether thinking is bound to its prefix.
    pub binds_thinking: Option<bool>,
    /// Smallest prefix that is cached.
    pub min_cacheable: Option<u64>,
    /// What its tokens cost.
    pub prices: WrittenPrices,
    /// Other prices for larger prompts.
    pub price_steps: Option<Vec<PriceStep>>,
}

/// What is known of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Tokens in its window.
    pub window: u64,
    /// Tokens a conversation may occupy, if less than the window.
    pub budget: Option<u64>,
    /// Whether thinking is bound to its prefix.
    pub binds_thinking: bool,
    /// Smallest prefix that is cached.
    pub min_cacheable: u64,
    pub(super) prices: Option<Prices>,
    pub(super) price_steps: Vec<PriceStep>,
}

impl Model {
    /// What tokens cost in a request whose prompt, cached parts included, has
    /// this many; nothing for a model without known prices.
    pub fn prices(&self, prompt_tokens: u64) -> Option<Prices> {
        let mut steps = self.price_steps.iter();
        let step = steps.rfind(|step| step.above < prompt_tokens);
        match step {
            Some(step) => step.prices.or(self.prices?.into()).complete(),
            None => self.prices,
        }
    }

    /// The prompt sizes beyond which tokens get another price, ascending.
    pub fn price_steps(&self) -> impl Iterator<Item = u64> {
        self.price_steps.iter().map(|step| step.above)
    }
}

impl ModelEntry {
    /// These keys, and the ones below where these say nothing.
    pub(super) fn over(&self, below: Self) -> Self {
        Self {
            window: self.window.or(below.window),
            budget: self.budget.or(below.budget),
            binds_thinking: self.binds_thinking.or(below.binds_thinking),
            min_cacheable: self.min_cacheable.or(below.min_cacheable),
            prices: self.prices.or(below.prices),
            price_steps: self.price_steps.clone().or(below.price_steps),
        }
    }
}
