//! The configuration: one validated value, made once at the start.
//!
//! [`load()`] puts it together from flags, environment, file and defaults and
//! reports every mistake at once. Nothing after it validates again: a
//! [`Config`] that exists is one that can be served.
//!
//! `keys` describes every key once; file, environment, flags and printing all
//! go through it. To add a key: a field with its default in a section, a line
//! in `keys`, a paragraph in `config/longhaul.toml`. The tests find the rest.

mod address;
mod choice;
mod compaction;
mod database;
mod environment;
mod file;
mod given;
mod keys;
mod kind;
mod load;
pub mod models;
mod names;
mod nearest;
mod path;
mod print;
mod problem;
mod ratio;
mod rules;
mod secret;
mod serving;
mod sources;
mod summarizer;
mod unit;

pub use address::{BadAddress, Listen, Upstream};
pub use choice::{
    Aim, Breakpoints, Choice, LogFormat, LogLevel, Mode, RecallMcp, SplitBy, Style, SummarizerMode,
    Threads,
};
pub use compaction::{Cache, Clamp, Clear, Pin, Policy, Split, Trim, TrimTool, Window};
pub use load::{Loaded, Origins, load, load_to_serve};
pub use models::{Model, Models, Price, Prices};
pub use names::{BadName, PostgresUrl, StoreUrl, TenantBy, VariableName};
pub use problem::{Mistake, Problem, Problems, Source};
pub use ratio::Ratio;
pub(crate) use secret::names_database;
pub use serving::{Admin, Journal, Limits, Log, Recall, Store, Tenant, Tls};
pub use sources::{Flags, Sources};
pub use summarizer::{Breaker, Summarizer};

use crate::wire::native::BETA as COMPACTION;
use crate::wire::report::CLEAR_TOOL_USES;
use std::path::PathBuf;

/// The whole configuration, valid and resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Listen,
    /// Where requests go.
    pub upstream: Upstream,
    /// Where files are kept. [`load()`] resolves it; in the defaults it is empty.
    pub data_dir: PathBuf,
    /// Worker threads; none: one per core.
    pub workers: Option<usize>,
    /// What happens to requests that open a thread held by the server.
    pub threads: Threads,
    /// Server-side edits the upstream supports; none: found out by asking.
    pub upstream_features: Option<Vec<String>>,
    /// `[store]`.
    pub store: Store,
    /// `[window]`.
    pub window: Window,
    /// `[models.*]` over the built-in table.
    pub models: Models,
    /// `[policy]`.
    pub policy: Policy,
    /// `[split]`.
    pub split: Split,
    /// `[clear]`.
    pub clear: Clear,
    /// `[trim]`.
    pub trim: Trim,
    /// `[summarizer]`.
    pub summarizer: Summarizer,
    /// `[pin]`.
    pub pin: Pin,
    /// `[breaker]`.
    pub breaker: Breaker,
    /// `[cache]`.
    pub cache: Cache,
    /// `[journal]`.
    pub journal: Journal,
    /// `[recall]`.
    pub recall: Recall,
    /// `[tenant]`.
    pub tenant: Tenant,
    /// `[limits]`.
    pub limits: Limits,
    /// `[admin]`.
    pub admin: Admin,
    /// `[tls]`.
    pub tls: Tls,
    /// `[log]`.
    pub log: Log,
}

impl Config {
    /// Whether old tool results that a client wants cleared are cleared here: only
    /// where upstream is said not to do it. Where nothing is said it is asked.
    pub fn performs_clear(&self) -> bool {
        let features = self.upstream_features.as_deref();
        features.is_some_and(|known| known.iter().all(|name| name != CLEAR_TOOL_USES))
    }

    /// Whether upstream may be asked for a summary of its own. Where nothing is
    /// said it is tried.
    pub fn has_compaction(&self) -> bool {
        let features = self.upstream_features.as_deref();
        features.is_none_or(|known| known.iter().any(|name| name == COMPACTION))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::new("127.0.0.1", 4180),
            upstream: Upstream::anthropic(),
            data_dir: PathBuf::new(),
            workers: None,
            threads: Threads::Decline,
            upstream_features: None,
            store: Store::default(),
            window: Window::default(),
            models: Models::default(),
            policy: Policy::default(),
            split: Split::default(),
            clear: Clear::default(),
            trim: Trim::default(),
            summarizer: Summarizer::default(),
            pin: Pin::default(),
            breaker: Breaker::default(),
            cache: Cache::default(),
            journal: Journal::default(),
            recall: Recall::default(),
            tenant: Tenant::default(),
            limits: Limits::default(),
            admin: Admin::default(),
            tls: Tls::default(),
            log: Log::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::keys::KEYS;
    use super::path::{Path, Place};
    use super::*;
    use std::collections::BTreeSet;

    const DOCUMENTED: &str = include_str!("../../config/longhaul.toml");

    /// The keys a text sets, as the key table spells them.
    fn keys_of(text: &str) -> BTreeSet<String> {
        let (given, problems) = file::parse(std::path::Path::new("test"), text);
        assert_eq!(problems, []);
        given.iter().map(|given| given.path.pattern()).collect()
    }

    #[test]
    fn what_a_client_wants_cleared_is_cleared_here_only_if_upstream_is_said_not_to() {
        let rows: [(Option<&[&str]>, bool); 4] = [
            (None, false),
            (Some(&[]), true),
            (Some(&["clear_thinking_20251015"]), true),
            (Some(&["compact_20260112", CLEAR_TOOL_USES]), false),
        ];
        for (features, expected) in rows {
            let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
            let config = Config {
                upstream_features: features.map(words),
                ..Config::default()
            };
            assert_eq!(config.performs_clear(), expected, "{features:?}");
        }
    }

    #[test]
    fn the_documented_file_says_exactly_the_defaults() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config/longhaul.toml");
        let sources = Sources {
            environment: vec![("HOME".to_owned(), "/home/me".to_owned())],
            ..Sources::default()
        };
        let defaults = load(&sources).unwrap();
        let file = Some(path);
        let documented = load(&Sources { file, ..sources }).unwrap();
        assert_eq!(documented.config, defaults.config);
        assert_eq!(documented.warnings, Vec::<String>::new());
        let data_dir = PathBuf::from("/home/me/.local/share/longhaul");
        assert_eq!(
            defaults.config,
            Config {
                data_dir,
                ..Config::default()
            }
        );
    }

    #[test]
    fn the_documented_file_has_every_key_and_no_other() {
        // Lines that begin with `#` and no space are settings switched off.
        let switched_on: Vec<&str> = DOCUMENTED
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting,
                _ => line,
            })
            .collect();
        let known: BTreeSet<String> = KEYS.iter().map(|key| key.path.to_owned()).collect();
        assert_eq!(keys_of(&switched_on.join("\n")), known);
        let unnamed = known.iter().filter(|key| !key.starts_with("models."));
        assert_eq!(keys_of(DOCUMENTED), unnamed.cloned().collect());
    }

    #[test]
    fn every_documented_key_has_an_explanation_above_it() {
        let mut explained = false;
        for line in DOCUMENTED.lines() {
            // One explanation may stand over several keys.
            explained = line.starts_with("# ") || (explained && !line.is_empty());
            assert!(explained || !line.contains(" = "), "{line}");
        }
    }

    #[test]
    fn every_key_takes_what_it_gives() {
        let mut config = Config::default();
        config.models.entry("m").window = Some(5_000);
        for key in KEYS {
            let name = if key.path.starts_with("models") {
                "m"
            } else {
                "Bash"
            };
            let Some(value) = (key.write)(&config, name) else {
                continue;
            };
            let before = config.clone();
            assert!(
                (key.read)(&mut config, name, &value).is_some(),
                "{}",
                key.path
            );
            assert_eq!(config, before, "{}", key.path);
        }
    }

    #[test]
    fn every_key_is_found_under_its_own_path_only() {
        for key in KEYS {
            let path = Path::of(key, "any name");
            let Place::Key(found, _) = path.place() else {
                panic!("{} is not found", key.path);
            };
            assert_eq!(found.path, key.path);
            assert!(matches!(path.section().place(), Place::Section) || !key.path.contains('.'));
        }
    }
}
