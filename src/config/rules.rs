//! Rules between keys: each value is fine alone, together they are not.
//!
//! A rule is skipped when one of its keys was already refused, because what it
//! would then compare is a default the user never chose. The mistake is
//! reported at the first of its keys that somebody set.

use super::Config;
use super::choice::Style;
use super::environment;
use super::given::Applied;
use super::path::{Path, Place};
use super::problem::{Mistake, Problem, Source, one_line};
use super::sources::CONFIG_VARIABLE;
use std::path::PathBuf;

struct Rule {
    keys: &'static [&'static str],
    /// What is wrong, if anything is.
    broken: fn(&Config) -> Option<String>,
}

static RULES: &[Rule] = &[
    Rule {
        keys: &["policy.clear_at", "policy.summarize_at"],
        broken: |config| {
            let (clear, summarize) = (config.policy.clear_at?, config.policy.summarize_at?);
            (clear > summarize)
                .then(|| format!("clear_at ({clear}) must not be above summarize_at ({summarize})"))
        },
    },
    Rule {
        keys: &["policy.summarize_at", "policy.hard_at"],
        broken: |config| {
            let (summarize, hard) = (config.policy.summarize_at?, config.policy.hard_at);
            (summarize > hard)
                .then(|| format!("summarize_at ({summarize}) must not be above hard_at ({hard})"))
        },
    },
    Rule {
        keys: &["policy.hard_at"],
        broken: |config| {
            let hard = config.policy.hard_at;
            (hard >= super::Ratio::ONE).then(|| format!("hard_at ({hard}) must be below 1"))
        },
    },
    Rule {
        keys: &["policy.floor", "policy.summarize_at"],
        broken: |config| {
            let (floor, most) = (config.policy.floor, config.policy.summarize_at?.half());
            (floor > most)
                .then(|| format!("floor ({floor}) must not be above half of summarize_at ({most})"))
        },
    },
    Rule {
        keys: &["policy.floor", "policy.clear_at"],
        broken: |config| {
            let (floor, clear) = (config.policy.floor, config.policy.clear_at?);
            (floor >= clear).then(|| format!("floor ({floor}) must be below clear_at ({clear})"))
        },
    },
    Rule {
        keys: &["policy.floor", "policy.hard_at"],
        broken: |config| {
            let (floor, hard) = (config.policy.floor, config.policy.hard_at);
            (floor >= hard).then(|| format!("floor ({floor}) must be below hard_at ({hard})"))
        },
    },
    Rule {
        keys: &["policy.style", "journal.enabled"],
        broken: |config| {
            (config.policy.style == Style::Journal && !config.journal.enabled).then(|| {
                "style \"journal\" needs the journal: set journal.enabled = true".to_owned()
            })
        },
    },
    Rule {
        keys: &["summarizer.upstream", "summarizer.api_key_env", "upstream"],
        broken: |config| {
            let elsewhere = config.summarizer.upstream.as_ref()?;
            let keyless = config.summarizer.api_key_env.is_none();
            (keyless && *elsewhere != config.upstream).then(|| {
                "a summarizer at another upstream needs summarizer.api_key_env: \
                 a client's credential is never sent elsewhere"
                    .to_owned()
            })
        },
    },
    Rule {
        keys: &["store.url"],
        broken: |config| config.store.url.wrong(),
    },
    Rule {
        keys: &["summarizer.replace_prompt", "summarizer.instructions"],
        broken: |config| {
            let empty = config.summarizer.instructions.trim().is_empty();
            (config.summarizer.replace_prompt && empty)
                .then(|| "replace_prompt needs summarizer.instructions".to_owned())
        },
    },
    Rule {
        keys: &["limits.body_bytes", "limits.buffered_bytes"],
        broken: |config| {
            (config.limits.body_bytes > config.limits.buffered_bytes)
                .then(|| "body_bytes must not be above buffered_bytes".to_owned())
        },
    },
    Rule {
        keys: &["admin.listen", "listen"],
        broken: |config| {
            let same = config.admin.listen.as_ref() == Some(&config.listen);
            (same && config.listen.port() != 0)
                .then(|| "admin.listen and listen are the same address".to_owned())
        },
    },
    Rule {
        keys: &["upstream", "listen"],
        broken: |config| {
            let (upstream, listen) = (&config.upstream, &config.listen);
            let host = upstream.authority().host().trim_matches(['[', ']']);
            (host.eq_ignore_ascii_case(listen.host()) && upstream.port() == listen.port())
                .then(|| "upstream is the address Longhaul itself listens on".to_owned())
        },
    },
    Rule {
        keys: &["tls.cert", "tls.key"],
        broken: |config| {
            (config.tls.cert.is_some() != config.tls.key.is_some())
                .then(|| "tls.cert and tls.key must be given together".to_owned())
        },
    },
    Rule {
        keys: &["tls.cert"],
        broken: |config| missing_file(config.tls.cert.as_ref()),
    },
    Rule {
        keys: &["tls.key"],
        broken: |config| missing_file(config.tls.key.as_ref()),
    },
];

/// Notes every rule that is broken.
pub(super) fn check(applied: &mut Applied) {
    for rule in RULES {
        let refused = |key: &&str| applied.problems.iter().any(|problem| problem.key == **key);
        if rule.keys.iter().any(refused) {
            continue;
        }
        if let Some(message) = (rule.broken)(&applied.config) {
            let problem = conflict(applied, rule.keys, message);
            applied.problems.push(problem);
        }
    }
    for name in applied.config.models.without_prices() {
        let key = Path::dotted("models").join(&name).join("prices");
        let origins = applied.origins.iter();
        let mut sources = origins.filter(|(path, _)| path.section() == key);
        applied.problems.push(Problem {
            source: sources.next().map_or(Source::Default, |(_, it)| it.clone()),
            key: one_line(&key.to_string()),
            value: None,
            mistake: Mistake::Conflict(
                "a model that no table knows needs at least prices for input and output".to_owned(),
            ),
        });
    }
}

/// Notes a secret that a proxy needs and that is not there.
pub(super) fn check_secrets(applied: &mut Applied, variables: &[(String, String)]) {
    let summarizer = &applied.config.summarizer;
    let Some(name) = &summarizer.api_key_env else {
        return;
    };
    let mut set = variables.iter().filter(|(known, _)| known == name.as_str());
    let key = set.next().map(|(_, key)| key).filter(|key| !key.is_empty());
    let wrong = match key {
        None if summarizer.upstream.is_some() => "which is not set",
        Some(key) if http::HeaderValue::from_str(key).is_err() => "which holds no key",
        _ => return,
    };
    let message = format!("it names {name}, {wrong}: set it to the key of the summarizer");
    let problem = conflict(applied, &["summarizer.api_key_env"], message);
    applied.problems.push(problem);
}

/// What looks wrong but stops nothing.
pub(super) fn warnings(config: &Config, variables: &[(String, String)]) -> Vec<String> {
    let mut silent = vec![CONFIG_VARIABLE, "LONGHAUL_ADMIN_TOKEN"];
    let named = [&config.admin.token_env, &config.summarizer.api_key_env];
    silent.extend(named.into_iter().flatten().map(super::VariableName::as_str));
    let mut warnings = environment::unknown(variables, &silent);
    if let Some(name) = &config.summarizer.api_key_env {
        let set = |(known, value): &(String, String)| known == name.as_str() && !value.is_empty();
        if !variables.iter().any(set) {
            warnings.push(format!(
                "summarizer.api_key_env names {name}, which is not set"
            ));
        }
    }
    warnings
}

fn conflict(applied: &Applied, keys: &[&str], message: String) -> Problem {
    let origin = |key: &&&str| applied.origins.contains_key(&Path::dotted(key));
    let key = keys.iter().find(origin).or_else(|| keys.first());
    let path = Path::dotted(key.copied().unwrap_or_default());
    let value = match path.place() {
        Place::Key(known, name) => (known.write)(&applied.config, name),
        Place::Section | Place::Unknown => None,
    };
    Problem {
        source: applied
            .origins
            .get(&path)
            .map_or(Source::Default, Source::clone),
        key: path.to_string(),
        value: value.map(|value| one_line(&value.to_string())),
        mistake: Mistake::Conflict(message),
    }
}

fn missing_file(path: Option<&PathBuf>) -> Option<String> {
    let found = path?.metadata().is_ok_and(|found| found.is_file());
    (!found).then(|| "there is no such file".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::config::{Sources, load, load_to_serve};

    fn mistakes(variables: &[(&str, &str)]) -> Vec<String> {
        let own = |(name, value): &(&str, &str)| (format!("LONGHAUL_{name}"), (*value).to_owned());
        let sources = Sources {
            environment: variables.iter().map(own).collect(),
            ..Sources::default()
        };
        let problems = load(&sources).err();
        let problems = problems.iter().flat_map(|problems| problems.iter());
        problems
            .map(|problem| problem.mistake.to_string())
            .collect()
    }

    #[test]
    fn values_that_do_not_go_together_are_mistakes() {
        for (variables, start) in [
            (
                &[("POLICY__CLEAR_AT", "0.8"), ("POLICY__SUMMARIZE_AT", "0.7")][..],
                "clear_at (0.8) must not be above summarize_at",
            ),
            (
                &[("POLICY__SUMMARIZE_AT", "0.96")],
                "summarize_at (0.96) must not be above hard_at",
            ),
            (&[("POLICY__HARD_AT", "1")], "hard_at (1) must be below 1"),
            (
                &[("POLICY__FLOOR", "0.4"), ("POLICY__SUMMARIZE_AT", "0.7")],
                "floor (0.4) must not be above half of summarize_at",
            ),
            (
                &[("POLICY__CLEAR_AT", "0.3")],
                "floor (0.35) must be below clear_at (0.3)",
            ),
            (
                &[("SUMMARIZER__UPSTREAM", "https://host")],
                "a summarizer at another upstream",
            ),
            (
                &[(
                    "SUMMARIZER__UPSTREAM",
                    "https://api.anthropic.com:443/other",
                )],
                "a summarizer at another upstream",
            ),
            (
                &[("STORE__URL", "postgres://u:pw@h/d?sslmode=zzz")],
                "sslmode must be one of",
            ),
            (
                &[("SUMMARIZER__REPLACE_PROMPT", "true")],
                "replace_prompt needs",
            ),
            (
                &[("LIMITS__BUFFERED_BYTES", "1MiB")],
                "body_bytes must not be above",
            ),
            (
                &[("ADMIN__LISTEN", "127.0.0.1:4180")],
                "admin.listen and listen are the same",
            ),
            (
                &[("LISTEN", "[::1]:80"), ("UPSTREAM", "http://[::1]")],
                "upstream is the address",
            ),
            (
                &[("TLS__CERT", "Cargo.toml")],
                "tls.cert and tls.key must be given together",
            ),
            (
                &[
                    ("TLS__CERT", "Cargo.toml"),
                    ("TLS__KEY", "/nowhere/key.pem"),
                ],
                "there is no such file",
            ),
            (
                &[("POLICY__STYLE", "journal"), ("JOURNAL__ENABLED", "false")],
                "style \"journal\" needs the journal",
            ),
            (
                &[("MODELS", "{ new = { prices.input = 3 } }")],
                "a model that no table knows needs at least prices for input and output",
            ),
        ] {
            let found = mistakes(variables);
            let [only] = found.as_slice() else {
                panic!("{variables:?}: {found:?}");
            };
            assert!(only.starts_with(start), "{variables:?}: {only}");
        }
    }

    #[test]
    fn values_that_go_together_are_none() {
        for variables in [
            &[("SUMMARIZER__UPSTREAM", "https://api.anthropic.com/")][..],
            &[("STORE__URL", "postgres://u:pw@h/d?sslmode=require")],
            &[
                ("SUMMARIZER__UPSTREAM", "https://host"),
                ("SUMMARIZER__API_KEY_ENV", "KEY"),
            ],
            &[("LISTEN", "[::1]:0"), ("ADMIN__LISTEN", "[::1]:0")],
            &[("TLS__CERT", "Cargo.toml"), ("TLS__KEY", "Cargo.toml")],
            &[("MODELS", "{ \"claude-*\" = { prices = { read = 0.1 } } }")],
        ] {
            assert_eq!(mistakes(variables), Vec::<String>::new(), "{variables:?}");
        }
    }

    #[test]
    fn a_proxy_needs_the_key_of_a_summarizer_elsewhere_and_nobody_else_does() {
        let elsewhere = ("LONGHAUL_SUMMARIZER__UPSTREAM", "https://host");
        let named = ("LONGHAUL_SUMMARIZER__API_KEY_ENV", "KEY");
        for (variables, expected) in [
            (&[elsewhere, named][..], "it names KEY, which is not set"),
            (
                &[elsewhere, named, ("KEY", "")],
                "it names KEY, which is not set",
            ),
            (
                &[elsewhere, named, ("KEY", "a\nb")],
                "it names KEY, which holds no key",
            ),
            (
                &[named, ("KEY", "a\nb")],
                "it names KEY, which holds no key",
            ),
            (&[elsewhere, named, ("KEY", "key")], ""),
            (&[named], ""),
        ] {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let sources = Sources {
                environment: variables.iter().map(own).collect(),
                ..Sources::default()
            };
            assert!(load(&sources).is_ok(), "{variables:?}");
            let told = load_to_serve(&sources).err();
            let told = told.map_or_else(String::new, |problems| problems.to_string());
            assert!(told.contains(expected), "{variables:?}: {told}");
            assert_eq!(told.is_empty(), expected.is_empty(), "{told}");
        }
    }

    #[test]
    fn a_rule_is_silent_about_a_value_already_refused() {
        let found = mistakes(&[
            ("POLICY__CLEAR_AT", "much"),
            ("POLICY__SUMMARIZE_AT", "0.5"),
        ]);
        let expected = [
            "expected 0 or a number between 0 and 1",
            "floor (0.35) must not be above half of summarize_at (0.25)",
        ];
        assert_eq!(found, expected);
    }
}
