//! Values that were looked up: ports, addresses, versions and ids, each in the
//! line that told it.
//!
//! An agent looks such a value up once and goes by it for hours. Only short
//! results count, because what is looked up is mostly told in a few lines, and
//! of files only those that hold settings: source code is full of numbers. If the
//! same thing was told twice, the newer line stands.

use std::collections::HashSet;

use super::turns::Turns;
use crate::engine::acts::Act;
use crate::engine::candidates::{self, Deed, Fate};
use crate::engine::facts;

/// A longer result is not looked into.
const RESULT: usize = 8 * 1024;
/// Bytes of all results that are looked into, at most.
const ALL: usize = 1024 * 1024;
/// Values that are taken, at most, and from one result.
const MOST: usize = 24;
const EACH: usize = 4;
/// A longer line is no line that tells a value.
const LINE: usize = 160;

/// Characters of what was asked for, at most.
const SUBJECT: usize = 60;

/// Files that hold settings: how their names end.
const SETTINGS: [&str; 14] = [
    ".env",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".ini",
    ".conf",
    ".cfg",
    ".config",
    ".properties",
    ".lock",
    ".tf",
    "dockerfile",
    "version",
];
/// Names of ids, in lower case.
const IDS: [&str; 8] = [
    "uuid", "sha", "sha256", "commit", "digest", "revision", "arn", "ticket",
];
/// What stands in lines about work in the background, which is told elsewhere.
const ELSEWHERE: [&str; 5] = [
    "agentId:",
    "running in background",
    "<task_id>",
    "Chunk ID:",
    "running with session ID",
];

/// A value that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) turn: usize,
    /// What was asked for.
    pub(super) subject: String,
    /// The line that told it.
    pub(super) line: String,
}

/// The newest of them, newest first.
pub(super) fn found(deeds: &[Deed<'_>], turns: &Turns) -> Vec<Found> {
    let mut known = HashSet::new();
    let mut values = Vec::new();
    let mut room = ALL;
    for deed in deeds.iter().rev().filter(|deed| may_tell(deed)) {
        let Some(rest) = room.checked_sub(deed.payload.len()) else {
            break;
        };
        room = rest;
        let subject = deed.act.subject();
        let asks_version = subject.contains("version") || subject.ends_with(" -V");
        let text = super::result_text(deed.payload);
        let lines = text.lines().map(str::trim);
        let told = lines.filter_map(|line| Some((line, label(line, asks_version)?)));
        let new = told.filter(|(_, label)| known.insert(key(label, &subject)));
        values.extend(new.take(EACH).map(|(line, _)| Found {
            turn: turns.of(deed.used.0),
            subject: facts::shortened(&candidates::line(&subject), SUBJECT),
            line: line.to_owned(),
        }));
        if values.len() >= MOST {
            break;
        }
    }
    values.truncate(MOST);
    values
}

fn may_tell(deed: &Deed<'_>) -> bool {
    let is_short = deed.payload.len() <= RESULT;
    let holds = match (&deed.act, deed.act.reading()) {
        (Act::Writes(_) | Act::Plans, _) => false,
        (_, Some(reading)) => {
            let path = reading.file.path.to_ascii_lowercase();
            path.contains(".env") || SETTINGS.iter().any(|end| path.ends_with(end))
        }
        _ => true,
    };
    is_short && holds && deed.fate == Fate::Worked
}

/// What a value is of: the words before it, or what was asked for if it stands
/// alone.
fn key(label: &str, subject: &str) -> String {
    let mut key: String = label.to_ascii_lowercase();
    key.retain(char::is_alphanumeric);
    if key.is_empty() {
        subject.to_owned()
    } else {
        key
    }
}

/// A word of a line and where it begins.
type Word<'a> = (usize, &'a str);

/// What stands before the first value in a line; `None` if it tells none.
fn label(line: &str, asks_version: bool) -> Option<&str> {
    if line.is_empty() || line.len() > LINE || ELSEWHERE.iter().any(|text| line.contains(text)) {
        return None;
    }
    let words = words(line);
    let at = words.iter().enumerate().find_map(|(number, word)| {
        let following = words.get(number + 1..).unwrap_or_default();
        let following = following.get(..2).unwrap_or(following);
        value(line, *word, following, asks_version)
    });
    line.get(..at?)
}

fn words(line: &str) -> Vec<Word<'_>> {
    let parts = |letter: char| !(letter.is_alphanumeric() || "._-".contains(letter));
    let mut at = 0;
    let mut words = Vec::new();
    for piece in line.split_inclusive(parts) {
        let word = piece.trim_end_matches(parts);
        if !word.is_empty() {
            words.push((at, word));
        }
        at += piece.len();
    }
    words
}

/// Where a value begins that this word is or announces.
fn value(line: &str, word: Word<'_>, following: &[Word<'_>], asks_version: bool) -> Option<usize> {
    let (at, name) = word;
    let first = |is: fn(&str) -> bool| {
        let mut values = following.iter().filter(|(_, text)| is(text));
        values.next().map(|(at, _)| *at)
    };
    let next = following.first().filter(|(_, text)| is_id(text));
    let announced = match last_part(name).as_str() {
        "port" => first(is_port),
        "version" => first(is_version),
        "id" => next.map(|(at, _)| *at),
        _ if IDS.contains(&name.to_ascii_lowercase().as_str()) => next.map(|(at, _)| *at),
        _ => None,
    };
    let address = || {
        let next = following.first()?;
        let colon = line.get(at + name.len()..next.0)? == ":";
        (is_host(name) && colon && is_port(next.1)).then_some(at)
    };
    let alone = is_uuid(name) || is_hash(name) || (asks_version && is_version(name));
    announced.or_else(address).or(alone.then_some(at))
}

/// The last part of a name such as `DB_PORT`, `server-port` or `serverPort`, in
/// lower case.
fn last_part(name: &str) -> String {
    let part = name.rsplit(['_', '-', '.']).next().unwrap_or(name);
    let is_mixed = part.contains(char::is_lowercase);
    let camel = part.rfind(char::is_uppercase).filter(|_| is_mixed);
    let tail = camel.and_then(|at| part.get(at..)).unwrap_or(part);
    tail.to_ascii_lowercase()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_port(text: &str) -> bool {
    let text = text.trim_end_matches(['.', '-']);
    (2..=5).contains(&text.len()) && is_digits(text)
}

fn is_version(text: &str) -> bool {
    let text = text.trim_end_matches('.');
    let number = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let mut parts = number.split('.');
    parts.next().is_some_and(is_digits)
        && parts
            .next()
            .is_some_and(|part| part.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn is_id(text: &str) -> bool {
    let text = text.trim_end_matches('.');
    let has_digit = text.contains(|letter: char| letter.is_ascii_digit());
    text.len() >= 4 && has_digit && !text.contains('.')
}

fn is_host(text: &str) -> bool {
    let is_number = text.split('.').count() == 4 && text.split('.').all(is_digits);
    is_number || text.eq_ignore_ascii_case("localhost")
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_hash(text: &str) -> bool {
    [40, 64].contains(&text.len()) && is_hex(text)
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    text.len() == 36 && lengths.eq([8, 4, 4, 4, 12]) && text.split('-').all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_by_what_stands_before_it() {
        let rows = [
            ("PORT=5433", Some("PORT=")),
            ("export DB_PORT: \"5433\"", Some("export DB_PORT: \"")),
            ("Listening on port 8080.", Some("Listening on port ")),
            ("http://localhost:3000/x", Some("http://")),
            ("0.0.0.0:8080->80/tcp", Some("")),
            ("version = \"1.4.2\"", Some("version = \"")),
            ("accountId: acc_0042", Some("accountId: ")),
            ("commit 9f8e7d6c", Some("commit ")),
            ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", Some("")),
            ("a port of call", None),
            ("import x from 1", None),
            ("id: none", None),
            ("--- PASS: TestEmptyCommit (0.00s)", None),
            ("the commit of 2024", None),
            ("agentId: a83d284", None),
            ("node v20.1.0", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(label(line, false), expected, "{line}");
        }
        assert_eq!(label("node v20.1.0", true), Some("node "));
    }
}
