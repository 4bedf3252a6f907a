//! The process environment as a list of given values.
//!
//! `limits.body_bytes` is `LONGHAUL_LIMITS__BODY_BYTES`. Sections whose names
//! are the user's own (`models`, `trim.tools`) are given whole, as an inline
//! table, because a variable's name can hold neither small letters nor dashes.
//! A variable nobody knows is no mistake: container platforms inject some.

use super::file::parse_inline;
use super::given::Given;
use super::keys::KEYS;
use super::nearest::nearest;
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
            match nearest(&key.replace("__", ".")) {
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
    let keys = KEYS.iter().map(|key| key.path);
    keys.filter(|path| !path.contains('*'))
        .chain(SECTIONS)
        .find(|path| variable(path) == name)
}

/// What a text may mean, most likely first: TOML where it looks like it, the
/// text itself, a number or switch, a list with commas.
fn readings(text: &str) -> Vec<Value> {
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
