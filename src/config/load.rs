//! Configuration from its sources: flags over environment over file over
//! defaults.
//!
//! Apart from reading the files that are named, loading is a function of its
//! argument, so tests need no process environment. All mistakes come back at
//! once.

use super::given::Applied;
use super::path::Path;
use super::problem::{Mistake, Problem, Problems, Source};
use super::sources::Sources;
use super::{Config, environment, file, rules};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A valid configuration and what is worth knowing about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What looks wrong but stops nothing.
    pub warnings: Vec<String>,
    /// Where each value that is not a default came from.
    pub origins: Origins,
}

/// Where values came from, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(pub(super) BTreeMap<Path, Source>);

impl Origins {
    /// Whether a key was given anywhere, and is not just its default.
    pub fn gives(&self, key: &str) -> bool {
        self.0.contains_key(&Path::dotted(key))
    }

    /// The environment variables that something came from, other than these keys.
    pub fn variables(&self, but: &[&str]) -> Vec<String> {
        let but: Vec<Path> = but.iter().map(|key| Path::dotted(key)).collect();
        let given = self.0.iter().filter(|(path, _)| !but.contains(path));
        let names = given.filter_map(|(_, source)| match source {
            Source::Environment(name) => Some(name.clone()),
            _ => None,
        });
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Reads, checks and resolves a configuration.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    load_with(sources, |_| ())
}

/// The same for a proxy, which also needs the secrets that the configuration
/// names; whoever only looks into a store may not have them.
pub fn load_to_serve(sources: &Sources) -> Result<Loaded, Problems> {
    load_with(sources, |applied| {
        rules::check_secrets(applied, &sources.environment);
    })
}

fn load_with(sources: &Sources, more: impl FnOnce(&mut Applied)) -> Result<Loaded, Problems> {
    let mut applied = Applied::default();
    if let Some(path) = sources.config_file() {
        apply_file(&mut applied, path);
    }
    let variables = environment::parse(&sources.environment);
    for given in variables.into_iter().chain(sources.flags.given()) {
        applied.apply(given);
    }
    rules::check(&mut applied);
    more(&mut applied);
    let Applied {
        mut config,
        origins,
        problems,
        warnings: removed,
    } = applied;
    Problems::check(problems)?;
    let mut warnings = removed;
    warnings.extend(rules::warnings(&config, &sources.environment));
    if config.data_dir.as_os_str().is_empty() {
        config.data_dir = sources.data_folder().unwrap_or_else(|| {
            warnings.push(
                "neither data_dir, XDG_DATA_HOME nor HOME is set: \
                 using ./longhaul-data"
                    .to_owned(),
            );
            PathBuf::from("longhaul-data")
        });
    }
    config.models.fall_back_to(&config.window);
    Ok(Loaded {
        config,
        warnings,
        origins: Origins(origins),
    })
}

fn apply_file(applied: &mut Applied, path: PathBuf) {
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            applied.problems.push(Problem {
                source: Source::File(path, None),
                key: String::new(),
                value: None,
                mistake: Mistake::Unreadable(error.to_string()),
            });
            return;
        }
    };
    let (given, syntax) = file::parse(&path, &text);
    let broken: Vec<Source> = syntax.iter().map(|it| it.source.clone()).collect();
    applied.problems.extend(syntax);
    // What was made of a broken line is a guess, and no mistake of the user's.
    for given in given.into_iter().filter(|it| !broken.contains(&it.source)) {
        applied.apply(given);
    }
    applied
        .problems
        .sort_by_key(|problem| match problem.source {
            Source::File(_, line) => line,
            _ => None,
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;
    use proptest::prelude::*;
    use std::io::Write as _;
    use tempfile::NamedTempFile;

    fn file(text: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn variables(given: &[(&str, &str)]) -> Vec<(String, String)> {
        let given = given.iter();
        given
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    /// The problems of a file, without the name of the file.
    fn problems(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let file = file(text);
        let name = file.path().to_string_lossy().into_owned();
        let sources = Sources {
            file: Some(file.path().to_owned()),
            environment: variables(environment),
            flags: Flags::default(),
        };
        let problems = load(&sources).err();
        let problems = problems.iter().flat_map(Problems::iter);
        problems
            .map(|it| it.to_string().replace(&name, "file"))
            .collect()
    }

    #[test]
    fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
        let file = file("listen = 'host:1'\nthreads = 'pass'\n[limits]\ndrain = '1s'\n");
        let sources = Sources {
            file: Some(file.path().to_owned()),
            environment: variables(&[
                ("LONGHAUL_LISTEN", "host:2"),
                ("LONGHAUL_LIMITS__DRAIN", "2s"),
            ]),
            flags: Flags {
                listen: Some("host:3".to_owned()),
                ..Flags::default()
            },
        };
        let loaded = load(&sources).unwrap();
        assert_eq!(loaded.config.listen.port(), 3);
        assert_eq!(loaded.config.limits.drain.as_secs(), 2);
        assert_eq!(loaded.config.threads, crate::config::Threads::Pass);
        assert_eq!(loaded.config.store, crate::config::Store::default());
    }

    #[test]
    fn every_mistake_is_reported_at_once_with_its_line() {
        let text = "listen = 5\n\
            upstrem = 'https://host'\n\
            [limits]\n\
            body_bytes = 'lots'\n\
            drain = \"2d\"\n\
            [polcy]\n\
            mode = 'on'\n\
            [models.\"a.b\"]\n\
            windw = 1\n\
            prices = { input = -1 }\n";
        let environment = [("LONGHAUL_STORE__POOL", "none")];
        let expected = [
            "file:1: listen = 5: expected HOST:PORT such as \"127.0.0.1:4180\" or \"[::1]:4180\"",
            "file:2: upstrem: unknown key, did you mean upstream?",
            "file:4: limits.body_bytes = 'lots': \
             expected a size such as \"64MiB\" between 1KiB and 4GiB",
            "file:5: limits.drain = \"2d\": expected a duration such as \"60s\" between 0s and 1d",
            "file:6: polcy: unknown key, did you mean policy?",
            "file:9: models.\"a.b\".windw: unknown key, did you mean models.*.window?",
            "file:10: models.\"a.b\".prices.input = -1: \
             expected dollars per million tokens, a number between 0 and 4000",
            "environment LONGHAUL_STORE__POOL: store.pool = none: \
             expected a whole number between 1 and 1000",
        ];
        assert_eq!(problems(text, &environment), expected);
    }

    #[test]
    fn a_syntax_error_has_its_line_and_column_and_hides_nothing() {
        let found = problems("[log]\nlevel = \"info\nformat = 'loud'\n", &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("file:2: not valid TOML at column "),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("file:3: log.format = 'loud': "),
            "{found:?}"
        );
    }

    #[test]
    fn a_key_that_was_removed_only_warns() {
        let file = file("[log]\ncontent = false\nlevel = 'debug'\n");
        let sources = Sources {
            file: Some(file.path().to_owned()),
            ..Sources::default()
        };
        let loaded = load(&sources).unwrap();
        assert_eq!(loaded.config.log.level, crate::config::LogLevel::Debug);
        let warning = loaded.warnings.first().map_or("", String::as_str);
        let end = ":2: log.content has no effect any more and can be deleted";
        assert!(warning.ends_with(end), "{:?}", loaded.warnings);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_mistake() {
        let missing = Sources {
            environment: variables(&[("LONGHAUL_CONFIG", "/nowhere/longhaul.toml")]),
            ..Sources::default()
        };
        let line = load(&missing).unwrap_err().to_string();
        let start = "/nowhere/longhaul.toml: cannot read the configuration file: ";
        assert!(line.starts_with(start), "{line}");
    }

    #[test]
    fn a_mistake_never_shows_a_secret() {
        let text = "api_key = 'sk-secret'\n\
            upstream = 'https://me:secret@host'\n\
            [store]\nurl = 'mysql://me:secret@host'\n\
            [summarizer]\napi_key_env = 'sk-secret'\n";
        let found = problems(text, &[]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(!found.join("\n").contains("secret"), "{found:?}");
    }

    #[test]
    fn an_unknown_variable_only_warns() {
        let environment = variables(&[
            ("HOME", "/me"),
            ("LONGHAUL_PORT_4180_TCP", "tcp://10.0.0.1"),
            ("LONGHAUL_LIMIT__DRAIN", "1s"),
            ("LONGHAUL_ADMIN_TOKEN", "t"),
            ("LONGHAUL_OWN_TOKEN", "t"),
            ("LONGHAUL_ADMIN__TOKEN_ENV", "LONGHAUL_OWN_TOKEN"),
            ("LONGHAUL_SUMMARIZER__API_KEY_ENV", "NOT_THERE"),
        ]);
        let loaded = load(&Sources {
            environment,
            ..Sources::default()
        })
        .unwrap();
        let expected = [
            "unknown environment variable LONGHAUL_PORT_4180_TCP",
            "unknown environment variable LONGHAUL_LIMIT__DRAIN, \
             did you mean LONGHAUL_LIMITS__DRAIN?",
            "summarizer.api_key_env names NOT_THERE, which is not set",
        ];
        assert_eq!(loaded.warnings, expected);
    }

    fn keys() -> Vec<&'static str> {
        let keys = crate::config::keys::KEYS.iter();
        keys.map(|key| key.path).collect()
    }

    /// Pieces of configurations, right and wrong, in any order.
    fn toml() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            "[a-z_.\\[\\]\"'={},0-9 \n#-]{0,40}",
            proptest::sample::select(vec![
                "[limits]\n",
                "[models.\"a*\"]\n",
                "[[trim.tools]]\n",
                "price_steps = ",
                "[{ above = 5000, input = 1e9 }]\n",
                "drain = ",
                "'1s'\n",
                "listen = ",
                "\"",
                "\"\"\"",
                "nan\n",
                "-9223372036854775808\n",
                "1979-05-27\n",
                "prices = { input = ",
                "[1, 2]\n",
                "turn_clamp = ",
                "[split]\n",
            ])
            .prop_map(str::to_owned),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_text_makes_loading_panic(
            text in toml(),
            name in "[A-Z_]{0,12}",
            value in toml(),
            key in proptest::sample::select(keys()),
        ) {
            let file = file(&text);
            let sources = Sources {
                file: Some(file.path().to_owned()),
                environment: vec![
                    (format!("LONGHAUL_{name}"), value.clone()),
                    (environment::variable(key), value.clone()),
                    ("LONGHAUL_MODELS".to_owned(), value.clone()),
                ],
                flags: Flags { listen: Some(value.clone()), store: Some(value), ..Flags::default() },
            };
            if let Err(problems) = load(&sources) {
                for problem in &problems {
                    prop_assert_eq!(problem.to_string().lines().count(), 1);
                }
            }
        }
    }
}
