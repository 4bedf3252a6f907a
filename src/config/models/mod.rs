//! What is known of each model: its window, its cache, its prices.
//!
//! The built-in table is compiled in; the user's entries override it key by
//! key, the most specific last, so that a pattern for all models still leaves
//! room for one. A model nobody knows gets the default window and no prices.

mod entry;
mod name;
mod price;

pub use entry::{Model, ModelEntry};
pub use price::{Price, PriceStep, Prices, WrittenPrices};

use super::compaction::Window;
use super::file;
use super::given::Applied;
use name::{base, matches, specificity};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// The built-in table, `config/models.toml`.
const TABLE: &str = include_str!("../../../config/models.toml");

static BUILT_IN: LazyLock<BTreeMap<String, ModelEntry>> = LazyLock::new(|| {
    // Mistakes in it are ours and stop the tests, not the users.
    read(TABLE).config.models.written
});

/// The label of a model no table knows.
const OTHER: &str = "other";

/// The usual smallest prefix that is cached, taken for unknown models.
const MIN_CACHEABLE: u64 = 1_024;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn models(text: &str) -> Models {
        let applied = read(text);
        assert_eq!(applied.problems, []);
        applied.config.models
    }

    fn price(dollars: f64) -> Price {
        Price::from_dollars_per_million(dollars).unwrap()
    }

    #[test]
    fn the_built_in_table_has_no_mistakes() {
        let built_in = models(TABLE);
        assert_eq!(built_in.written.len(), 22);
        for (name, entry) in &built_in.written {
            assert_eq!(base(name), name, "names are base names");
            assert!(
                entry.window.is_some() && entry.min_cacheable.is_some(),
                "{name}"
            );
            assert!(entry.binds_thinking.is_some(), "{name}");
            // What a write costs is the same multiple of input for all.
            if let Some(prices) = entry.prices.complete() {
                let input = prices.input.pico_dollars_per_token();
                assert_eq!(
                    prices.write_5m.pico_dollars_per_token() * 4,
                    input * 5,
                    "{name}"
                );
                assert_eq!(
                    prices.write_1h.pico_dollars_per_token(),
                    input * 2,
                    "{name}"
                );
                assert!(
                    prices.read < prices.input && prices.input < prices.output,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn known_models_have_the_published_figures() {
        let models = Models::default();
        for (name, window, binds, minimum, input, read, output) in [
            ("claude-opus-5-5", 1_000_000, true, 512, 4.0, 0.2, 20.0),
            ("claude-fable-5-2", 1_000_000, true, 512, 8.0, 0.2, 40.0),
            ("claude-mythos-5-1", 1_000_000, true, 512, 10.0, 0.25, 50.0),
            ("claude-fable-5", 1_000_000, false, 512, 10.0, 1.0, 50.0),
            ("claude-opus-4-7", 1_000_000, false, 2_048, 5.0, 0.5, 25.0),
            ("claude-opus-4-5", 200_000, false, 4_096, 5.0, 0.5, 25.0),
            ("claude-sonnet-5-5", 1_000_000, true, 512, 2.0, 0.1, 10.0),
            (
                "claude-sonnet-4-5-20250929",
                200_000,
                false,
                1_024,
                3.0,
                0.3,
                15.0,
            ),
            (
                "claude-haiku-4-5@20251001",
                200_000,
                false,
                4_096,
                1.0,
                0.1,
                5.0,
            ),
        ] {
            let model = models.lookup(name);
            assert_eq!(model.window, window, "{name}");
            assert_eq!(model.binds_thinking, binds, "{name}");
            assert_eq!(model.min_cacheable, minimum, "{name}");
            let prices = model.prices(0).unwrap();
            assert_eq!(prices.input, price(input), "{name}");
            assert_eq!(prices.read, price(read), "{name}");
            assert_eq!(prices.output, price(output), "{name}");
        }
    }

    #[test]
    fn a_price_step_holds_beyond_its_size_only() {
        let haiku = Models::default().lookup("claude-haiku-5-5");
        assert_eq!(haiku.price_steps().collect::<Vec<u64>>(), [100_000]);
        for (tokens, input) in [(0, 0.1), (100_000, 0.1), (100_001, 0.5), (900_000, 0.5)] {
            assert_eq!(
                haiku.prices(tokens).unwrap().input,
                price(input),
                "{tokens}"
            );
        }
        let own = models(
            r#"[models."m"]
            prices = { input = 3, output = 15 }
            price_steps = [{ above = 2000, input = 6 }, { above = 9000, input = 12 }]"#,
        );
        let model = own.lookup("m");
        assert_eq!(model.prices(5_000).unwrap().input, price(6.0));
        assert_eq!(model.prices(9_001).unwrap().input, price(12.0));
        assert_eq!(model.prices(9_001).unwrap().output, price(15.0));
    }

    #[test]
    fn an_unknown_model_has_the_default_window_and_no_prices() {
        let mut models = Models::default();
        models.fall_back_to(&Window {
            default: 32_000,
            budget: Some(20_000),
            ..Window::default()
        });
        let model = models.lookup("local-model");
        assert_eq!((model.window, model.budget), (32_000, Some(20_000)));
        assert_eq!(model.prices(0), None);
    }

    #[test]
    fn the_most_specific_entry_wins_key_by_key() {
        let models = models(
            r#"[models."*"]
            window = 50000
            budget = 40000
            [models."claude-opus-*"]
            window = 60000
            [models."claude-opus-5"]
            budget = 0
            [models."claude-opus-5-20260724"]
            window = 70000"#,
        );
        for (name, window, budget) in [
            ("anything", 50_000, Some(40_000)),
            ("claude-opus-4-8", 60_000, Some(40_000)),
            ("anthropic.claude-opus-4-8-v1:0", 60_000, Some(40_000)),
            ("claude-opus-5", 60_000, None),
            ("claude-opus-5-20260724", 70_000, None),
        ] {
            let model = models.lookup(name);
            assert_eq!((model.window, model.budget), (window, budget), "{name}");
        }
        assert_eq!(
            models.lookup("claude-opus-5").prices(0).unwrap().input,
            price(5.0)
        );
    }

    #[test]
    fn a_label_is_a_table_entry_or_other() {
        let models = models(
            r#"[models."local-*"]
            window = 50000
            [models."claude-*"]
            window = 50000
            [models."gpt-5.6"]
            window = 50000"#,
        );
        for (name, label) in [
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("us.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8"),
            ("claude-unheard-of", "claude-*"),
            ("local-llama", "local-*"),
            ("gpt-5.6-20260101", "gpt-5.6"),
            ("made-up-by-a-client", "other"),
            ("", "other"),
        ] {
            assert_eq!(models.label(name), label, "{name}");
        }
    }
}
