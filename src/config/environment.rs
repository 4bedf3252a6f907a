//! The process environment as a list of given values.
//!
//! `limits.body_bytes` is `LONGHAUL_LIMITS__BODY_BYTES`. Sections whose names
//! are the user's own (`models`, `trim.tools`) are given whole, as an inline
//! table, because a variable's name can hold neither small letters nor dashes.
//! A variable nobody knows is no mistake: container platforms inject some.

use super::file::parse_inline;
use super::given::Given;
use super::keys::KEYS;
use super::nearest::nearest_of;
use super::path::Path;
use super::problem::Source;
use toml::{Table, Value};

const PREFIX: &str = "LONGHAUL_";
const SECTIONS: [&str; 2] = ["models", "trim.tools"];

/// The environment variable of a key.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase().replace('.', "__"))
}

/// What the known variables give.
pub(super) fn parse(environment: &[(String, String)]) -> Vec<Given> {
    let known = environment
        .iter()
        .filter_map(|(name, text)| Some((name, text, known(name)?)));
    known
        .flat_map(|(name, text, key)| {
            let source = Source::Environment(name.clone());
            let path = Path::dotted(key);
            let whole = SECTIONS.contains(&key);
            let inline = whole.then(|| parse_inline(&path, text, &source)).flatten();
            inline.unwrap_or_else(|| {
                vec![Given {
                    path,
                    readings: readings(text),
                    written: text.clone(),
                    source,
                }]
            })
        })
        .collect()
}

/// What to say of variables that look like ours and are not.
pub(super) fn unknown(environment: &[(String, String)], silent: &[&str]) -> Vec<String> {
    let names = environment.iter().map(|(name, _)| name.as_str());
    names
        .filter(|name| name.starts_with(PREFIX) && known(name).is_none() && !silent.contains(name))
        .map(|name| {
            let key = name.trim_start_matches(PREFIX).to_ascii_lowercase();
            match nearest_of(&key.replace("__", "."), keys()) {
                Some(near) => {
                    let near = variable(near);
                    format!("unknown environment variable {name}, did you mean {near}?")
                }
                None => format!("unknown environment variable {name}"),
            }
        })
        .collect()
}

fn known(name: &str) -> Option<&'static str> {
    keys().find(|path| variable(path) == name)
}

/// What a variable can set.
fn keys() -> impl Iterator<Item = &'static str> + Clone {
    let keys = KEYS.iter().map(|key| key.path);
    keys.filter(|path| !path.contains('*')).chain(SECTIONS)
}

/// What a text may mean, most likely first: TOML where it looks like it, the
/// text itself, a number or switch, a list with commas.
pub(super) fn readings(text: &str) -> Vec<Value> {
    let value = |text: &str| {
        let table: Table = format!("value = {text}").parse().ok()?;
        // More than one key means the text broke out of its place.
        let alone = table.len() == 1;
        table.get("value").filter(|_| alone).cloned()
    };
    let toml = value(text.trim());
    let looks_like_toml = text.trim_start().starts_with(['"', '\'', '[', '{']);
    let items = text.split(',').map(str::trim);
    let words = items.filter(|item| !item.is_empty());
    let words = words.map(|item| Value::String(item.to_owned())).collect();
    let list = value(&format!("[{text}]")).unwrap_or(Value::Array(words));
    let mut readings = vec![Value::String(text.to_owned())];
    if let Some(toml) = toml {
        let place = usize::from(!looks_like_toml);
        readings.insert(place, toml);
    }
    readings.push(list);
    readings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::given::Applied;
    use crate::config::{Clamp, Config, RecallMcp};
    use std::time::Duration;

    fn config(name: &str, text: &str) -> Config {
        let mut applied = Applied::default();
        for given in parse(&[(name.to_owned(), text.to_owned())]) {
            applied.apply(given);
        }
        assert_eq!(applied.problems, [], "{name}={text}");
        assert!(!applied.origins.is_empty(), "{name}");
        applied.config
    }

    #[test]
    fn a_variable_is_read_as_its_key_wants_it() {
        let limits = config("LONGHAUL_LIMITS__BODY_BYTES", "1MiB").limits;
        assert_eq!(limits.body_bytes, 1 << 20);
        let limits = config("LONGHAUL_LIMITS__BODY_BYTES", "2048").limits;
        assert_eq!(limits.body_bytes, 2_048);
        assert_eq!(config("LONGHAUL_WORKERS", "4").workers, Some(4));
        assert_eq!(config("LONGHAUL_WORKERS", "0").workers, None);
        assert_eq!(
            config("LONGHAUL_POLICY__HORIZON", "20").policy.horizon,
            Some(20)
        );
        assert_eq!(
            config("LONGHAUL_POLICY__HORIZON", "auto").policy.horizon,
            None
        );
        let cache = config("LONGHAUL_CACHE__TTL", "5m").cache;
        assert_eq!(cache.ttl, Some(Duration::from_mins(5)));
        assert_eq!(
            config("LONGHAUL_RECALL__MCP", "true").recall.mcp,
            RecallMcp::Always
        );
        assert!(
            config("LONGHAUL_CLEAR__CLEAR_INPUTS", "true")
                .clear
                .clear_inputs
        );
    }

    #[test]
    fn a_text_is_taken_as_it_is_or_as_a_toml_string() {
        for (text, expected) in [
            ("5", "5"),
            ("true", "true"),
            ("\"quoted\"", "quoted"),
            ("[not toml", "[not toml"),
            ("{ a = 1 }", "{ a = 1 }"),
            ("x\ny = 1", "x\ny = 1"),
            ("", ""),
        ] {
            let summarizer = config("LONGHAUL_SUMMARIZER__INSTRUCTIONS", text).summarizer;
            assert_eq!(summarizer.instructions, expected);
        }
    }

    #[test]
    fn a_list_is_toml_or_separated_by_commas() {
        for (text, tools) in [
            ("Bash, Read", &["Bash", "Read"][..]),
            ("Bash", &["Bash"]),
            ("[\"a,b\", 'c']", &["a,b", "c"]),
            ("", &[]),
        ] {
            let clear = config("LONGHAUL_CLEAR__EXCLUDE_TOOLS", text).clear;
            assert_eq!(clear.exclude_tools, tools, "{text}");
        }
        for text in ["10,20", "[10, 20]"] {
            let expected = Clamp {
                least: 10,
                most: 20,
            };
            assert_eq!(
                config("LONGHAUL_SPLIT__TURN_CLAMP", text).split.turn_clamp,
                expected
            );
        }
    }

    #[test]
    fn sections_with_names_are_given_as_inline_tables() {
        let config = config(
            "LONGHAUL_TRIM__TOOLS",
            "{ Grep = { head = 1 }, Bash.tail = 2 }",
        );
        assert_eq!(config.trim.tools["Grep"].head, 1);
        assert_eq!(config.trim.tools["Bash"].tail, 2);
        assert_eq!(config.trim.tools["Bash"].head, 4_000);
    }

    #[test]
    fn other_variables_are_left_alone() {
        let environment = [
            ("PATH", "/bin"),
            ("LONGHAUL_POLICY", "x"),
            ("longhaul_listen", "x"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert!(parse(&environment).is_empty());
    }
}
