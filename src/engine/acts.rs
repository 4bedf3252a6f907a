//! What a tool call does, as far as its name and its arguments tell.
//!
//! Whether an old result is still needed depends on what was fetched: the same
//! file read again, a file written anew, the same command run once more. Agents
//! name their tools in many ways, so the rules are a table (`acts/table.rs`) of
//! names and what they mean; a name that is not in it is judged by its words
//! (`acts/unknown.rs`), and what is not certain is opaque. A wrong guess would
//! take from an agent something that it still needs, a missed one costs room.

mod arguments;
mod fields;
mod patch;
mod paths;
mod shell;
mod table;
mod unknown;

use std::fmt::Write as _;

pub use paths::{Base, File};
pub use shell::{Command, Move};

use fields::Fields;

/// What a call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Shows a file, or part of it.
    Reads(Reading),
    /// Changes files.
    Writes(Vec<Writing>),
    /// Runs a command, which may come down to reading a file.
    Runs(Command),
    /// Asks something that can be asked again: a search, a listing, a record.
    Asks(Query),
    /// Writes a to-do list or a plan anew, as a whole.
    Plans,
    /// Nothing is known of it.
    Opaque,
}

/// A file that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Which file.
    pub file: File,
    /// How much of it.
    pub part: Part,
}

/// How much of a file is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it, as far as the tool goes.
    Whole,
    /// From a line, counted from one, to another, or as far as the tool goes.
    Lines(u64, Option<u64>),
    /// So many lines at its end.
    Tail(u64),
    /// Something else, said by these arguments.
    Other(String),
}

/// A file that is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    /// Which file.
    pub file: File,
    /// All that it holds now is in the call's own arguments.
    pub is_full: bool,
}

/// Something that can be asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The arguments that count, by name, as they came.
    pub arguments: String,
    /// What it is about, in short.
    pub about: String,
}

impl Act {
    /// The file that is shown, be it by a command.
    pub fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Reads(reading) => Some(reading),
            Self::Runs(command) => command.reading.as_ref(),
            _ => None,
        }
    }

    /// The files that are changed.
    pub fn writings(&self) -> &[Writing] {
        match self {
            Self::Writes(writings) => writings,
            _ => &[],
        }
    }

    /// What it is about: a path, a command, a question. Nothing if nothing is
    /// known. It may be long and of many lines.
    pub fn subject(&self) -> String {
        match self {
            Self::Reads(Reading { file, part }) => {
                let mut subject = file.path.clone();
                // Writing to a string cannot fail.
                let _ = match part {
                    Part::Lines(from, Some(to)) => write!(subject, ", lines {from}-{to}"),
                    Part::Lines(from, None) => write!(subject, ", from line {from}"),
                    Part::Tail(count) => write!(subject, ", last {count} lines"),
                    Part::Whole | Part::Other(_) => Ok(()),
                };
                subject
            }
            Self::Writes(writings) => {
                let paths = writings.iter().map(|writing| writing.file.path.as_str());
                paths.collect::<Vec<_>>().join(", ")
            }
            Self::Runs(command) => command.text.clone(),
            Self::Asks(query) => query.about.clone(),
            Self::Plans | Self::Opaque => String::new(),
        }
    }
}

/// What a call of the tool `name` with this JSON for its input does.
pub fn act(name: &str, input: &[u8]) -> Act {
    let tool = table::Tool::named(name);
    let Some(fields) = Fields::read(input) else {
        return Act::Opaque;
    };
    match table::meaning(&tool, &fields) {
        Some(meaning) => meaning.act(&tool, &fields).unwrap_or(Act::Opaque),
        None => unknown::act(&tool, &fields),
    }
}

/// What a call runs, of which no more may be known: the command line that a shell
/// is given, be it to run in the background, or the call of a tool which, by its
/// name, changes something that is no file.
pub fn runs(name: &str, input: &[u8]) -> Option<String> {
    let tool = table::Tool::named(name);
    let fields = Fields::read(input)?;
    match table::meaning(&tool, &fields) {
        Some(table::Meaning::Shell) => arguments::command_line(&fields),
        None if unknown::changes(&tool) => Some(format!("{name} {}", fields.arguments()?)),
        _ => None,
    }
}

/// Whether a command line changes nothing, by the names of the programs in it.
pub fn only_looks(line: &str) -> bool {
    shell::only_looks(line)
}

/// A tool's name as tables of tools spell it: lower case, without underscores,
/// hyphens and the prefix of an MCP server.
pub fn plain_name(name: &str) -> String {
    table::Tool::named(name).folded
}

/// A stable name for what a call of this tool fetched, by which it is seen that
/// the same is fetched again. What changes something, and what is opaque, has
/// none; nor has a command that does more than look.
pub fn key(name: &str, act: &Act) -> Option<u64> {
    let pieces: Vec<&str> = match act {
        Act::Runs(command) if command.reading.is_none() => {
            if !command.only_looks() {
                return None;
            }
            let directory = command.directory.as_deref().unwrap_or_default();
            vec!["run", directory, &command.text]
        }
        Act::Asks(query) => vec!["ask", name, &query.arguments],
        _ => {
            let Reading { file, part } = act.reading()?;
            let base = match file.base {
                Base::Root => "root",
                Base::Session => "session",
                Base::Shell => "shell",
            };
            let part = match part {
                Part::Whole => String::new(),
                Part::Lines(from, to) => format!("lines {from} {}", to.unwrap_or_default()),
                Part::Tail(count) => format!("tail {count}"),
                Part::Other(arguments) => format!("other {arguments}"),
            };
            return Some(digest(&["read", &file.world, base, &file.path, &part]));
        }
    };
    Some(digest(&pieces))
}

fn digest(pieces: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"longhaul act 1");
    for piece in pieces {
        hasher.update(&(piece.len() as u64).to_le_bytes());
        hasher.update(piece.as_bytes());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

#[cfg(test)]
#[path = "acts_tests.rs"]
mod tests;
