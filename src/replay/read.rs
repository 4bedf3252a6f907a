//! Reads recordings: which form a file has, and what is wrong with it.
//!
//! | form | what a line is |
//! |---|---|
//! | Claude Code | an event with a `message` in it |
//! | Codex | a rollout item with a `payload`, or, in old ones, the item itself |
//! | plain | a message: `role` and `content` |
//! | captured | a request body with `messages`; a file may also be one body |
//!
//! The first lines decide. A line that cannot be read stops its file and is
//! named, unless it is the last one and was only half written: an agent may
//! still be at work. Times are kept where they were recorded.

mod capture;
mod claude_code;
mod codex;
mod files;
mod moment;
mod notes;
mod plain;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::recording::{Recording, clean, is_playable};
use files::{MESSAGES, name, not_text};
use notes::{counted, is_of_server, tell_missing_starts, tell_others, tell_server_tools};

pub(super) use files::plain_text;
pub use files::recordings_at;

/// How many lines are looked at to tell a form.
const LOOK: usize = 60;

/// Why a file cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is a folder without recordings.
    #[error("{path}: the folder has neither a messages.jsonl nor other files that end with .jsonl")]
    NoRecordings {
        /// The folder.
        path: String,
    },
    /// There is nothing in it.
    #[error("{path}: the file is empty")]
    Empty {
        /// The file.
        path: String,
    },
    /// One of its lines is wrong.
    #[error("{path}:{line}: {problem}")]
    Line {
        /// The file.
        path: String,
        /// The line, counted from one.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// All of it is a sub-agent's, whose history is not the session's.
    #[error("{path}: nothing to play: every line is a sub-agent's")]
    SubAgents {
        /// The file.
        path: String,
    },
    /// There is nothing to play.
    #[error("{path}: nothing to play: no message of the user's is followed by an answer")]
    Nothing {
        /// The file.
        path: String,
    },
}

/// A line of a file, counted from one.
pub(super) struct Line {
    number: usize,
    value: Value,
}

/// What is wrong with a line.
pub(super) struct Wrong {
    line: usize,
    problem: String,
}

/// A recording, and what is worth knowing about it.
#[derive(Debug)]
pub struct Read {
    /// The recording.
    pub recording: Recording,
    /// Further conversations in the same file, each a recording of its own.
    pub others: Vec<Recording>,
    /// What was left out, a sentence each.
    pub warnings: Vec<String>,
}

/// Reads a file, standard input, or the `messages.jsonl` of a folder.
pub fn read(given: &Path) -> Result<Read, Unreadable> {
    let is_input = given == Path::new("-");
    let path = match given {
        _ if is_input => PathBuf::from("standard input"),
        given if given.is_dir() => given.join(MESSAGES),
        given => given.to_owned(),
    };
    let shown = plain_text(&path.display().to_string());
    let bytes = if is_input {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(&path)
    };
    let bytes = bytes.map_err(|source| Unreadable::Io {
        path: shown.clone(),
        source,
    })?;
    read_bytes(&bytes, &path, shown)
}

fn read_bytes(bytes: &[u8], path: &Path, shown: String) -> Result<Read, Unreadable> {
    let written = String::from_utf8_lossy(bytes);
    // Some editors begin a file with a mark of its encoding.
    let written = written.strip_prefix('\u{feff}').unwrap_or(&written);
    let mut warnings = Vec::new();
    let wrong = |Wrong { line, problem }| Unreadable::Line {
        path: shown.clone(),
        line,
        problem,
    };
    if let Some(line) = not_text(bytes) {
        let problem = "not UTF-8".to_owned();
        return Err(wrong(Wrong { line, problem }));
    }
    if written.trim().is_empty() {
        return Err(Unreadable::Empty { path: shown });
    }
    let lines = lines(written, &mut warnings).map_err(wrong)?;
    let mut recordings = recordings(&lines, &mut warnings).map_err(wrong)?;
    tell_server_tools(&lines, &mut warnings);
    recordings.retain(|recording| recording.stretches.iter().any(|it| is_playable(it)));
    let name = name(path);
    for (recording, number) in recordings.iter_mut().zip(1..) {
        recording.name = match number {
            1 => name.clone(),
            _ => format!("{name} ({number})"),
        };
    }
    let mut recordings = recordings.into_iter();
    let Some(mut recording) = recordings.next() else {
        let spoken = || lines.iter().filter(|line| claude_code::is(&line.value));
        if spoken().count() > 0 && spoken().all(|line| claude_code::is_aside(&line.value)) {
            return Err(Unreadable::SubAgents { path: shown });
        }
        return Err(Unreadable::Nothing { path: shown });
    };
    if path.is_file() {
        split_as_noted(path, &mut recording);
    }
    let others: Vec<Recording> = recordings.collect();
    tell_missing_starts(std::iter::once(&recording).chain(&others), &mut warnings);
    let warnings = warnings.iter().map(|warning| format!("{shown}{warning}"));
    Ok(Read {
        warnings: warnings.collect(),
        recording,
        others,
    })
}

/// The lines of a file; a file that is one value is one line.
fn lines(text: &str, warnings: &mut Vec<String>) -> Result<Vec<Line>, Wrong> {
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let line = |value| Line { number: 1, value };
        return Ok(values.into_iter().map(line).collect());
    }
    let written: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .collect();
    let mut lines = Vec::with_capacity(written.len());
    for (at, (index, line)) in written.iter().enumerate() {
        let number = index + 1;
        match serde_json::from_str(line) {
            Ok(value) => lines.push(Line { number, value }),
            Err(_) if at > 0 && at + 1 == written.len() => {
                warnings.push(format!(
                    ":{number}: the last line is only half written and is left out"
                ));
            }
            Err(error) => {
                let hint = if at == 0 {
                    ": a recording is JSON, a value a line"
                } else {
                    ""
                };
                return Err(Wrong {
                    line: number,
                    problem: format!("not JSON: {error}{hint}"),
                });
            }
        }
    }
    Ok(lines)
}

fn recordings(lines: &[Line], warnings: &mut Vec<String>) -> Result<Vec<Recording>, Wrong> {
    let looks = |is: fn(&Value) -> bool| lines.iter().take(LOOK).any(|line| is(&line.value));
    if looks(capture::is) {
        capture::read(lines, warnings)
    } else if looks(codex::is) {
        let is_other = |value: &Value| !codex::is(value) && claude_code::is(value);
        tell_others(lines, is_other, warnings);
        Ok(vec![codex::read(lines, warnings)])
    } else if looks(claude_code::is) {
        let is_other = |value: &Value| !claude_code::is(value) && plain::is(value);
        tell_others(lines, is_other, warnings);
        Ok(vec![claude_code::read(lines, warnings)?])
    } else if looks(plain::is) {
        Ok(vec![plain::read(lines)?])
    } else {
        Err(Wrong {
            line: lines.first().map_or(1, |line| line.number),
            problem: "no known form: expected a Claude Code session, a Codex rollout, a message \
                      a line, or a request body with `messages`"
                .to_owned(),
        })
    }
}

/// A message's content with the fields that an API knows.
fn content(line: usize, content: Option<&Value>) -> Result<Value, Wrong> {
    let wrong = |problem| Wrong { line, problem };
    match content {
        Some(Value::String(text)) => Ok(Value::from(text.as_str())),
        Some(Value::Array(blocks)) => {
            let played = blocks.iter().filter(|block| !is_of_server(block));
            let cleaned = played.map(clean).collect::<Result<Vec<Value>, _>>();
            cleaned.map(Value::Array).map_err(|kind| {
                wrong(format!(
                    "a block of type {kind:?} is not known, and cannot be played"
                ))
            })
        }
        _ => Err(wrong("a message has no content".to_owned())),
    }
}

/// A `meta.json` beside the messages may say where the client began anew.
fn split_as_noted(path: &Path, recording: &mut Recording) {
    let beside: PathBuf = path.with_file_name("meta.json");
    let noted = std::fs::read_to_string(beside).ok();
    let noted: Option<Value> = noted.and_then(|text| serde_json::from_str(&text).ok());
    let field = "client_compaction_before_message_index";
    let cuts = noted
        .as_ref()
        .and_then(|noted| noted.get(field)?.as_array());
    let (Some(cuts), [messages]) = (cuts, recording.stretches.as_mut_slice()) else {
        return;
    };
    let mut rest = std::mem::take(messages);
    let cuts = cuts.iter().filter_map(Value::as_u64);
    let mut cuts: Vec<usize> = cuts.filter_map(|at| usize::try_from(at).ok()).collect();
    cuts.sort_unstable();
    let mut stretches = Vec::new();
    for cut in cuts.into_iter().rev() {
        stretches.push(rest.split_off(cut.min(rest.len())));
    }
    stretches.push(rest);
    stretches.reverse();
    recording.stretches = stretches;
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
