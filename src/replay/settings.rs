//! Under which conditions a recording is played: the model and its window, and
//! the configuration of the proxy with its variations.
//!
//! Whatever a configuration says, the proxy of a replay can reach nothing but
//! the simulator beside it: [`Settings::confined`] sees to that.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::config::{Aim, Choice as _, Config, Flags, Loaded, Problems, Sources, TenantBy, load};
use crate::sim::models;

/// The room for one body, whatever is configured: histories without a limit are
/// played too.
const BODY: u64 = 1 << 30;

/// Keys that a replay decides itself, whatever is configured.
pub const FIXED: [&str; 11] = [
    "listen",
    "upstream",
    "data_dir",
    "store.url",
    "workers",
    "summarizer.upstream",
    "summarizer.api_key_env",
    "admin.listen",
    "tls.cert",
    "tls.key",
    "tenant.by",
];

/// The word for all presets of `policy.aim`.
pub const ALL_AIMS: &str = "all";

/// The conditions.
#[derive(Clone)]
pub struct Settings {
    /// The model that is asked.
    pub model: String,
    /// Its window.
    pub window: u64,
    /// Where the proxy's configuration comes from.
    pub sources: Sources,
}

/// A key and the value that it is set to.
pub type Set = (String, String);

/// Why there is no replay under such conditions.
#[derive(Debug, thiserror::Error)]
pub enum BadSettings {
    /// The simulator does not know the model.
    #[error("--model {0}: the simulator knows {known}", known = known())]
    Model(String),
    /// A setting without a value.
    #[error("--set {0}: expected KEY=VALUE, or KEY=VALUE,VALUE to compare several")]
    Set(String),
    /// A key that has no effect.
    #[error("--set {0}: a replay decides this itself, because it must reach nobody")]
    Fixed(String),
    /// A key or one of its values more than once.
    #[error("--set {0}: given twice; several values of a key are parted by commas")]
    Twice(String),
    /// The configuration has mistakes.
    #[error("{0}")]
    Config(Problems),
}

fn known() -> String {
    let names = models::all().iter().map(|model| model.id);
    names.collect::<Vec<_>>().join(", ")
}

impl Settings {
    /// The conditions; without a window it is the model's own.
    pub fn new(
        model: &str,
        window: Option<u64>,
        budget: Option<u64>,
        mut sources: Sources,
    ) -> Result<Self, BadSettings> {
        let known = models::find(model).ok_or_else(|| BadSettings::Model(model.to_owned()))?;
        if let Some(window) = window {
            let key = format!("models.\"{model}\".window");
            sources.flags.set.push((key, window.to_string()));
        }
        if let Some(budget) = budget {
            let key = "window.budget".to_owned();
            sources.flags.set.push((key, budget.to_string()));
        }
        Ok(Self {
            model: model.to_owned(),
            window: window.unwrap_or(known.window),
            sources,
        })
    }

    /// The configuration with these keys set, for a proxy in front of this
    /// simulator.
    pub fn confined(&self, set: &[Set], simulator: SocketAddr) -> Result<Config, BadSettings> {
        Ok(self.loaded(set, simulator)?.config)
    }

    /// The same, with where it came from.
    pub fn loaded(&self, set: &[Set], simulator: SocketAddr) -> Result<Loaded, BadSettings> {
        let mut sources = self.sources.clone();
        sources.flags.set.extend_from_slice(set);
        sources.flags = Flags {
            listen: Some("127.0.0.1:0".to_owned()),
            upstream: Some(format!("http://{simulator}")),
            data_dir: None,
            store: Some("memory".to_owned()),
            set: sources.flags.set,
        };
        let mut loaded = load(&sources).map_err(BadSettings::Config)?;
        let config = &mut loaded.config;
        // Nobody else is asked for summaries, nobody else is listened to.
        config.summarizer.upstream = None;
        config.summarizer.api_key_env = None;
        config.admin.listen = None;
        config.tls.cert = None;
        config.tls.key = None;
        config.tenant.by = TenantBy::None;
        config.workers = Some(1);
        config.limits.body_bytes = config.limits.body_bytes.max(BODY);
        config.limits.buffered_bytes = config.limits.buffered_bytes.max(8 * BODY);
        Ok(loaded)
    }

    /// Tokens beyond which a view must be made smaller.
    pub fn hard_at(&self, config: &Config) -> u64 {
        let model = config.models.lookup(&self.model);
        let window = self.window.min(model.window);
        let room = window - config.window.margin.of(window);
        let usable = model.budget.map_or(room, |budget| room.min(budget));
        config.policy.hard_at.of(usable)
    }
}

/// Every combination of the values given, in the order in which they were.
pub fn variations(given: &[String]) -> Result<Vec<Vec<Set>>, BadSettings> {
    let mut all: Vec<Vec<Set>> = vec![Vec::new()];
    for text in given {
        let wrong = || BadSettings::Set(text.clone());
        let (key, values) = text.split_once('=').ok_or_else(wrong)?;
        let values = values_of(values);
        let key = key.trim();
        if key.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(wrong());
        }
        if FIXED.contains(&key) {
            return Err(BadSettings::Fixed(key.to_owned()));
        }
        let again = all.iter().flatten().any(|(known, _)| known == key);
        let distinct: BTreeSet<&str> = values.iter().copied().collect();
        if again || distinct.len() < values.len() {
            return Err(BadSettings::Twice(key.to_owned()));
        }
        let with = |before: &Vec<Set>| {
            let each = values.iter().map(|value| {
                let mut set = before.clone();
                set.push((key.to_owned(), (*value).to_owned()));
                set
            });
            each.collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all.retain(|set| !set.is_empty());
    Ok(all)
}

/// The presets of `policy.aim` that a word names, as variations: one, or all.
pub fn presets(word: &str) -> Vec<Vec<Set>> {
    let named = Aim::WORDS.iter().map(|(aim, _)| *aim);
    let named = named.filter(|aim| word == ALL_AIMS || word == *aim);
    named
        .map(|aim| vec![("policy.aim".to_owned(), aim.to_owned())])
        .collect()
}

/// The values, parted by commas that stand in no list, table or text.
fn values_of(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut from) = (0_i32, None, 0);
    let mut values = Vec::new();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(text.get(from..at).unwrap_or_default().trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    values.push(text.get(from..).unwrap_or_default().trim());
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &[(&str, &str)]) -> Settings {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let sources = Sources {
            environment: more.iter().map(own).collect(),
            ..Sources::default()
        };
        Settings::new("claude-opus-4-8", Some(100_000), Some(50_000), sources).unwrap()
    }

    fn address() -> SocketAddr {
        "127.0.0.1:4181".parse().unwrap()
    }

    #[test]
    fn whatever_is_configured_only_the_simulator_is_reached() {
        let settings = settings(&[
            ("LONGHAUL_UPSTREAM", "https://example.com"),
            ("LONGHAUL_SUMMARIZER__UPSTREAM", "https://example.org"),
            ("LONGHAUL_SUMMARIZER__API_KEY_ENV", "KEY"),
            ("LONGHAUL_ADMIN__LISTEN", "0.0.0.0:1"),
        ]);
        let set = [("listen".to_owned(), "0.0.0.0:80".to_owned())];
        let config = settings.confined(&set, address()).unwrap();
        assert_eq!(config.upstream.to_string(), "http://127.0.0.1:4181");
        assert!(config.listen.is_loopback());
        assert_eq!(config.summarizer.upstream, None);
        assert_eq!(config.summarizer.api_key_env, None);
        assert_eq!(config.admin.listen, None);
    }

    #[test]
    fn window_and_budget_are_the_ones_asked_for() {
        let settings = settings(&[]);
        let config = settings.confined(&[], address()).unwrap();
        let model = config.models.lookup("claude-opus-4-8");
        assert_eq!((model.window, model.budget), (100_000, Some(50_000)));
        assert_eq!(settings.hard_at(&config), 47_500);
    }

    #[test]
    fn a_key_that_does_not_exist_is_told_with_the_nearest() {
        let set = [("policy.flor".to_owned(), "0.3".to_owned())];
        let told = settings(&[]).confined(&set, address()).unwrap_err();
        let expected = "flag --set: policy.flor: unknown key, did you mean policy.floor?";
        assert_eq!(told.to_string(), expected);
    }

    #[test]
    fn values_side_by_side_are_combined() {
        let given = ["a.b=1,2", "c=[3,4]", "d=\"5,6\",7"].map(str::to_owned);
        let all = variations(&given).unwrap();
        let shown: Vec<String> = all
            .iter()
            .map(|set| {
                set.iter()
                    .map(|(_, value)| value.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1 [3,4] \"5,6\"",
                "1 [3,4] 7",
                "2 [3,4] \"5,6\"",
                "2 [3,4] 7"
            ]
        );
        assert!(variations(&[]).unwrap().is_empty());
        for wrong in ["a", "=1", "a=", "a=1,"] {
            assert!(variations(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn presets_are_played_one_or_all() {
        let words = |word: &str| {
            let sets = presets(word).into_iter().flatten();
            sets.map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
        };
        let all = [
            "policy.aim=faithful",
            "policy.aim=balanced",
            "policy.aim=thrifty",
        ];
        assert_eq!(words(ALL_AIMS), all);
        assert_eq!(words("thrifty"), all[2..]);
        for set in presets(ALL_AIMS) {
            settings(&[]).confined(&set, address()).unwrap();
        }
    }

    #[test]
    fn what_would_only_look_like_a_variation_is_refused() {
        for (given, expected) in [
            (
                &["upstream=https://example.com"][..],
                "a replay decides this itself",
            ),
            (
                &["a=1,2", " listen =0.0.0.0:1"],
                "--set listen: a replay decides",
            ),
            (&["a=1", "b=1", "a=1"], "--set a: given twice"),
            (&["a=1", "a=2"], "--set a: given twice"),
            (&["a=1,1"], "--set a: given twice"),
        ] {
            let given: Vec<String> = given.iter().map(|it| (*it).to_owned()).collect();
            let told = variations(&given).unwrap_err().to_string();
            assert!(told.contains(expected), "{told}");
        }
    }
}
