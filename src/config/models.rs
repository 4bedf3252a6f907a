//! What is known of each model: its window, its cache, its prices.
//!
//! The built-in table is compiled in; the user's entries override it key by
//! key, the most specific last, so that a pattern for all models still leaves
//! room for one. A model nobody knows gets the default window and no prices.

use super::compaction::Window;
use super::file;
use super::given::Applied;
use super::model_name::{base, matches, specificity};
use super::price::{PriceStep, Prices, WrittenPrices};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// The built-in table, `config/models.toml`.
const TABLE: &str = include_str!("../../config/models.toml");

static BUILT_IN: LazyLock<BTreeMap<String, ModelEntry>> = LazyLock::new(|| {
    // Mistakes in it are ours and stop the tests, not the users.
    read(TABLE).config.models.written
});

/// The label of a model no table knows.
const OTHER: &str = "other";

/// Tokens below which no known model caches; taken for unknown ones.
const MIN_CACHEABLE: u64 = 1_024;

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
    prices: Option<Prices>,
    price_steps: Vec<PriceStep>,
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

/// The model table with the user's overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    written: BTreeMap<String, ModelEntry>,
    default_window: u64,
    default_budget: Option<u64>,
}

impl Default for Models {
    fn default() -> Self {
        let window = Window::default();
        Self {
            written: BTreeMap::new(),
            default_window: window.default,
            default_budget: window.budget,
        }
    }
}

impl Models {
    /// What is known of the model a request names.
    pub fn lookup(&self, name: &str) -> Model {
        let mut merged = BUILT_IN.get(base(name)).cloned().unwrap_or_default();
        for (_, entry) in self.overrides(name) {
            merged = entry.over(merged);
        }
        Model {
            window: merged.window.unwrap_or(self.default_window),
            budget: merged
                .budget
                .filter(|budget| *budget > 0)
                .or(self.default_budget),
            binds_thinking: merged.binds_thinking.unwrap_or(false),
            min_cacheable: merged.min_cacheable.unwrap_or(MIN_CACHEABLE),
            prices: merged.prices.complete(),
            price_steps: merged.price_steps.unwrap_or_default(),
        }
    }

    /// The model as a metric label: the name of its table entry or `other`, so
    /// that what clients send cannot make new series.
    pub fn label(&self, name: &str) -> &str {
        let best = self.overrides(name).pop().map(|(pattern, _)| pattern);
        let exact = best.filter(|pattern| !pattern.contains('*'));
        let known = BUILT_IN.get_key_value(base(name));
        let built_in = known.map(|(name, _)| name.as_str());
        exact.or(built_in).or(best).unwrap_or(OTHER)
    }

    /// The entries of the user's that match, the most specific last.
    fn overrides(&self, name: &str) -> Vec<(&str, &ModelEntry)> {
        let fits = |pattern: &str| matches(pattern, name) || matches(pattern, base(name));
        let mut fitting: Vec<(&str, &ModelEntry)> = self
            .written
            .iter()
            .map(|(pattern, entry)| (pattern.as_str(), entry))
            .filter(|(pattern, _)| fits(pattern))
            .collect();
        fitting.sort_by_key(|(pattern, _)| (specificity(pattern), *pattern == name));
        fitting
    }

    /// The names and patterns the user wrote.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.written.keys().map(String::as_str)
    }

    /// The user's entry of a name or pattern.
    pub(super) fn written(&self, name: &str) -> Option<&ModelEntry> {
        self.written.get(name)
    }

    /// The same, made if there is none.
    pub(super) fn entry(&mut self, name: &str) -> &mut ModelEntry {
        self.written.entry(name.to_owned()).or_default()
    }

    /// Takes what holds for models that no table knows.
    pub(super) fn fall_back_to(&mut self, window: &Window) {
        self.default_window = window.default;
        self.default_budget = window.budget;
    }

    /// Entries with some prices, but too few for any model they match.
    pub(super) fn without_prices(&self) -> Vec<String> {
        let known = |pattern: &str| BUILT_IN.keys().any(|name| matches(pattern, name));
        self.written
            .iter()
            .filter(|(_, entry)| !entry.prices.is_empty())
            .filter(|(name, _)| !known(name) && self.lookup(name).prices.is_none())
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl ModelEntry {
    fn over(&self, below: Self) -> Self {
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

fn read(table: &str) -> Applied {
    let (given, problems) = file::parse(Path::new("models.toml"), table);
    let mut applied = Applied {
        problems,
        ..Applied::default()
    };
    for given in given {
        applied.apply(given);
    }
    applied
}
