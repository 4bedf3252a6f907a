//! Under which conditions a replay was made, told with its figures so that
//! anybody can make it again: what the configuration came to in each run, and
//! where it came from. Values of variables are not told, because some are secret.

use std::path::PathBuf;

use super::settings::{BadSettings, FIXED, Set, Settings};
use crate::config::{Choice, Config};
use crate::sim::models;

/// What a configuration comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effective {
    /// The window that the proxy reckons with.
    pub window: u64,
    /// The budget, where there is one.
    pub budget: Option<u64>,
    /// Tokens beyond which a view must be made smaller.
    pub hard_at: u64,
    /// `policy.mode`.
    pub mode: &'static str,
    /// `policy.style`.
    pub style: &'static str,
    /// `summarizer.mode`.
    pub summarizer: &'static str,
}

/// The conditions of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// As configured, then each variation.
    pub runs: Vec<Effective>,
    /// The configuration file, where one was read.
    pub config_file: Option<PathBuf>,
    /// The environment variables that set something.
    pub variables: Vec<String>,
    /// The configuration has other prices than those that are billed.
    pub other_prices: bool,
}

impl Conditions {
    /// The conditions of runs under these settings.
    pub fn of(settings: &Settings, variations: &[Vec<Set>]) -> Result<Self, BadSettings> {
        let nowhere = ([127, 0, 0, 1], 1).into();
        let as_it_is = settings.loaded(&[], nowhere)?;
        let mut runs = vec![effective(settings, &as_it_is.config)];
        for set in variations {
            let config = settings.confined(set, nowhere)?;
            runs.push(effective(settings, &config));
        }
        Ok(Self {
            runs,
            config_file: settings.sources.config_file(),
            variables: as_it_is.origins.variables(&FIXED),
            other_prices: has_other_prices(settings, &as_it_is.config),
        })
    }

    /// The run as configured.
    pub fn configured(&self) -> Effective {
        self.runs.first().cloned().unwrap_or_default()
    }
}

fn effective(settings: &Settings, config: &Config) -> Effective {
    let model = config.models.lookup(&settings.model);
    Effective {
        window: model.window.min(settings.window),
        budget: model.budget,
        hard_at: settings.hard_at(config),
        mode: config.policy.mode.word(),
        style: config.policy.style.word(),
        summarizer: config.summarizer.mode.word(),
    }
}

fn has_other_prices(settings: &Settings, config: &Config) -> bool {
    let configured = config.models.lookup(&settings.model).prices(0);
    let billed = models::find(&settings.model).map(|model| model.prices);
    let (Some(configured), Some(billed)) = (configured, billed) else {
        return false;
    };
    let pairs = [
        (configured.input, billed.input),
        (configured.write_5m, billed.write_5m),
        (configured.write_1h, billed.write_1h),
        (configured.read, billed.read),
        (configured.output, billed.output),
    ];
    // A micro-dollar for a million tokens is a pico-dollar for one.
    let differ =
        |(one, other): &(crate::config::Price, u64)| one.pico_dollars_per_token() != *other;
    pairs.iter().any(differ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let sources = Sources {
            environment: variables.iter().map(own).collect(),
            ..Sources::default()
        };
        Settings::new("claude-opus-4-8", Some(100_000), None, sources).unwrap()
    }

    #[test]
    fn what_is_told_is_what_held_and_who_said_so() {
        let settings = settings(&[
            ("LONGHAUL_WINDOW__BUDGET", "60000"),
            ("LONGHAUL_POLICY__MODE", "observe"),
            ("LONGHAUL_UPSTREAM", "https://example.com"),
            ("LONGHAUL_ADMIN__LISTEN", "127.0.0.1:1"),
            ("HOME", "/me"),
        ]);
        let varied = vec![("window.budget".to_owned(), "40000".to_owned())];
        let conditions = Conditions::of(&settings, &[varied]).unwrap();
        let told: Vec<_> = conditions
            .runs
            .iter()
            .map(|run| (run.window, run.budget, run.hard_at, run.mode))
            .collect();
        assert_eq!(
            told,
            [
                (100_000, Some(60_000), 57_000, "observe"),
                (100_000, Some(40_000), 38_000, "observe"),
            ]
        );
        let expected = ["LONGHAUL_POLICY__MODE", "LONGHAUL_WINDOW__BUDGET"];
        assert_eq!(conditions.variables, expected);
        assert_eq!(conditions.config_file, None);
        assert!(!conditions.other_prices);
    }

    #[test]
    fn prices_that_are_not_the_billed_ones_are_noticed() {
        let variable = "{\"claude-opus-4-8\" = { prices = { input = 3 } }}";
        let settings = settings(&[("LONGHAUL_MODELS", variable)]);
        let conditions = Conditions::of(&settings, &[]).unwrap();
        assert!(conditions.other_prices);
    }
}
