//! What a command line comes down to, looked into only as far as it is certain.
//!
//! `cat FILE`, `sed -n A,Bp FILE`, `head` and `tail` on their own are reads. So
//! are they behind `cd FOLDER &&`. With anything else in the line, be it a pipe
//! or a variable, it is just this command: what else would be a shell.

use super::paths::{self, Base, File};
use super::{Part, Reading};

mod line;
mod looks;

use line::{simple, words};

/// The longest command that is compared.
const LONGEST: usize = 32 * 1024;

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The line, without what a client wraps around it.
    pub text: String,
    /// The folder it runs in, if the call or the line itself says so for sure.
    pub directory: Option<String>,
    /// Where it leaves the shell, if the shell is one that remembers.
    pub moves: Move,
    /// The most that is shown of its output, if the call says so.
    pub most: Option<u64>,
    /// The file it shows, if that is all it does.
    pub reading: Option<Reading>,
}

impl Command {
    /// Whether it changes nothing, by the names of the programs in it.
    pub fn only_looks(&self) -> bool {
        only_looks(&self.text)
    }

    /// Whether its output tells of that one run: what was done, or how long it
    /// took. To run it again does not make the earlier output worthless.
    pub fn is_record(&self) -> bool {
        looks::is_record(&self.text)
    }

    /// Whether it puts other files in the place of those that are there, so that
    /// the same command before and after it is not the same.
    pub fn switches(&self) -> bool {
        looks::switches(&self.text)
    }

    /// Whether it shows what differs, which may be nothing the next time.
    pub fn shows_differences(&self) -> bool {
        looks::shows_differences(&self.text)
    }
}

/// Whether a line changes nothing, by the names of the programs in it.
pub(super) fn only_looks(line: &str) -> bool {
    simple(line).is_some_and(|commands| looks::only_looks(&commands))
}

/// Where a command leaves the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Where it was.
    Stays,
    /// In this folder, if it succeeds.
    Enters(String),
    /// Nobody knows where.
    Lost,
}

/// The line that stands for a list of words: what a shell in front is given, or
/// the words, quoted where they need it.
pub(super) fn listed(words: &[String]) -> String {
    if let [shell, flag, line] = words
        && is_shell(shell, flag)
    {
        return line.clone();
    }
    let plain = |word: &str| {
        let fine = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
        !word.is_empty() && word.chars().all(fine)
    };
    let quoted = words.iter().map(|word| {
        if plain(word) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn is_shell(shell: &str, flag: &str) -> bool {
    let name = shell.rsplit('/').next().unwrap_or_default();
    matches!(name, "bash" | "sh" | "zsh") && matches!(flag, "-c" | "-lc")
}

/// A command line, looked into; `None` if it is too long to be compared.
pub(super) fn command(
    line: &str,
    folder: Option<&str>,
    most: Option<u64>,
    world: &str,
) -> Option<Command> {
    let mut line = line.trim().to_owned();
    if line.is_empty() || line.len() > LONGEST {
        return None;
    }
    if let Some([shell, flag, inner]) = words(&line).as_deref()
        && is_shell(shell, flag)
    {
        inner.trim().clone_into(&mut line);
    }
    let (entered, rest) =
        line::entered(&line).map_or((None, line.as_str()), |(into, rest)| (Some(into), rest));
    let directory = match (folder, &entered) {
        (Some(folder), Some(entered)) => Some(paths::join(folder, entered)),
        (Some(folder), None) => Some(folder.to_owned()),
        (None, Some(entered)) => Some(paths::tidy(entered)),
        (None, None) => None,
    };
    let reading = line::alone(rest)
        .and_then(|words| shown(&words))
        .and_then(|(path, part)| {
            let path = directory
                .as_ref()
                .map_or(path.clone(), |folder| paths::join(folder, &path));
            let file = File::new(world, Base::Shell, &path)?;
            Some(Reading { file, part })
        });
    let moves = match entered {
        _ if line::moves(rest) => Move::Lost,
        Some(folder) => Move::Enters(folder),
        None => Move::Stays,
    };
    Some(Command {
        reading,
        moves,
        most,
        directory: directory.filter(|folder| paths::is_absolute(folder)),
        text: line,
    })
}

/// The file that a simple command shows, and how much of it.
fn shown(words: &[String]) -> Option<(String, Part)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (path, part) = match words.as_slice() {
        ["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path] => (*path, Part::Whole),
        ["sed", "-n", script, path] => (*path, script_lines(script)?),
        ["head", path] => (*path, Part::Lines(1, Some(10))),
        ["head", count, path] => (*path, Part::Lines(1, Some(lines(count)?))),
        ["head", "-n", count, path] => (*path, Part::Lines(1, Some(count.parse().ok()?))),
        ["tail", path] => (*path, Part::Tail(10)),
        ["tail", count, path] => (*path, Part::Tail(lines(count)?)),
        ["tail", "-n", count, path] => (*path, last_lines(count)?),
        _ => return None,
    };
    (!path.starts_with('-')).then(|| (path.to_owned(), part))
}

/// `-20` or `-n20`.
fn lines(flag: &str) -> Option<u64> {
    let count = flag.strip_prefix('-')?;
    count.strip_prefix('n').unwrap_or(count).parse().ok()
}

fn last_lines(count: &str) -> Option<Part> {
    if let Some(from) = count.strip_prefix('+') {
        let from: u64 = from.parse().ok()?;
        return Some(if from <= 1 {
            Part::Whole
        } else {
            Part::Lines(from, None)
        });
    }
    Some(Part::Tail(count.parse().ok()?))
}

/// `12,40p`, `12p` or `12,$p`.
fn script_lines(script: &str) -> Option<Part> {
    let range = script.strip_suffix('p')?;
    let (from, to) = range.split_once(',').unwrap_or((range, range));
    let from: u64 = from.parse().ok()?;
    match to {
        "$" if from <= 1 => Some(Part::Whole),
        "$" => Some(Part::Lines(from, None)),
        to => Some(Part::Lines(from.max(1), Some(to.parse().ok()?))),
    }
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
