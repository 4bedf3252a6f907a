//! What a replay found, told in three ways: a table for a person, JSON for a
//! program, a picture for a page.

mod aims;
mod html;
mod json;
mod layout;
mod quality;
mod svg;
mod table;

pub use html::html;
pub use json::json;
pub use svg::svg;
pub use table::table;

use super::all::Told;
use super::conditions::Conditions;
use super::figures::{Figures, Outcome};
use super::read::plain_text;
use super::recording::NotPlayed;
use super::settings::Set;
use crate::sim::models::find;
use crate::sim::prices::Prices;

/// Everything that a report tells of.
pub struct Report<'a> {
    /// The model.
    pub model: &'a str,
    /// Its window.
    pub window: u64,
    /// What was configured, in each run.
    pub conditions: &'a Conditions,
    /// Seconds that pass where no time was recorded.
    pub pause: f64,
    /// What was set in each further run.
    pub variations: &'a [Vec<Set>],
    /// How many of those, the last ones, are the presets of `policy.aim`.
    pub aims: usize,
    /// The sessions.
    pub told: &'a [Told],
}

impl Report<'_> {
    /// The figures of all sessions without the proxy.
    fn alone(&self) -> Figures {
        let none = Figures {
            completed: true,
            ..Figures::default()
        };
        let each = self.told.iter().map(|told| &told.alone.0);
        each.fold(none, Figures::plus)
    }

    /// What became of all sessions with the proxy, by variation; the first is
    /// the configuration as it is.
    fn total(&self, variation: usize) -> Outcome {
        let each = self.told.iter().filter_map(|told| told.with.get(variation));
        each.fold(Outcome::none(), |sum, (outcome, _)| sum.plus(outcome))
    }

    /// What was set in the further runs that were asked for by key.
    fn set(&self) -> &[Vec<Set>] {
        let count = self.variations.len().saturating_sub(self.aims);
        self.variations.get(..count).unwrap_or(&[])
    }

    /// The presets that were played, each with the number of its run.
    fn aims(&self) -> impl Iterator<Item = (&str, usize)> {
        let runs = self.variations.iter().zip(1..).skip(self.set().len());
        runs.filter_map(|(set, run)| Some((set.first()?.1.as_str(), run)))
    }

    /// Requests of all sessions that were not played, by reason.
    fn not_played(&self) -> Vec<NotPlayed> {
        let mut all: Vec<NotPlayed> = Vec::new();
        for one in self.told.iter().flat_map(|told| &told.not_played) {
            match all.iter_mut().find(|known| known.why == one.why) {
                Some(known) => known.requests += one.requests,
                None => all.push(*one),
            }
        }
        all
    }

    /// What a run is called.
    fn title(&self, variation: usize) -> String {
        let set = variation
            .checked_sub(1)
            .and_then(|at| self.variations.get(at));
        set.map_or_else(
            || "as configured".to_owned(),
            |set| {
                let set = set.iter().map(|(key, value)| format!("{key}={value}"));
                set.collect::<Vec<_>>().join(" ")
            },
        )
    }

    /// The conditions in a line.
    fn heading(&self) -> String {
        let held = self.conditions.configured();
        let budget = held.budget.map_or_else(String::new, |budget| {
            format!(", budget {}", thousands(budget))
        });
        let mode = match held.mode {
            "on" | "" => String::new(),
            mode => format!(", mode {mode}"),
        };
        format!(
            "{}, window {}{budget}{mode}",
            self.model,
            thousands(self.window)
        )
    }

    /// Where the conditions come from, and what a million tokens cost.
    fn origins(&self) -> Vec<String> {
        let held = self.conditions;
        let file = held.config_file.as_ref();
        let file = file.map(|file| plain_text(&format!("configuration {}", file.display())));
        let variables = held.variables.iter().cloned();
        let prices = find(self.model).map(|model| {
            let Prices { input, write_5m, read, output, .. } = model.prices;
            let [input, write, read, output] = [input, write_5m, read, output].map(per_million);
            format!("${input} input, ${write} cache write, ${read} cache read, ${output} output a million tokens")
        });
        file.into_iter().chain(variables).chain(prices).collect()
    }
}

/// A price as it is usually written: dollars for a million tokens.
#[allow(clippy::cast_precision_loss, reason = "prices are far below 2^52")]
fn per_million(micro_dollars: u64) -> f64 {
    micro_dollars as f64 / 1e6
}

/// Dollars and cents, never minus nothing.
fn cents(dollars: f64) -> String {
    let shown = format!("{dollars:.2}");
    if shown == "-0.00" {
        "0.00".to_owned()
    } else {
        shown
    }
}

/// A count of tokens, in short.
pub fn thousands(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        _ => format!("{}K", (tokens + 500) / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_in_short() {
        assert_eq!(thousands(9_999), "9999");
        assert_eq!(thousands(200_499), "200K");
        let shown = [-0.001, 0.0, -0.006, 1.234].map(cents);
        assert_eq!(shown, ["0.00", "0.00", "-0.01", "1.23"]);
    }
}
