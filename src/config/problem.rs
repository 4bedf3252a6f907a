//! What is wrong with a configuration, told so that it can be put right: where
//! it stands, what was given, what is accepted.
//!
//! All mistakes are collected before any is shown. Each prints as one line, and
//! none shows a secret.

use super::secret::mask;
use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The configuration file and, unless it is the file as a whole, a line
    /// counted from 1.
    File(PathBuf, Option<usize>),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag(&'static str),
    /// Nothing set it.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => {
                write!(formatter, "{}", one_line(&path.to_string_lossy()))?;
                line.map_or(Ok(()), |line| write!(formatter, ":{line}"))
            }
            Self::Environment(name) => write!(formatter, "environment {}", one_line(name)),
            Self::Flag(name) => write!(formatter, "flag {name}"),
            Self::Default => formatter.write_str("default"),
        }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it stands.
    pub source: Source,
    /// The key, empty for a mistake in the file as a whole.
    pub key: String,
    /// The value given, on one line and without secrets.
    pub value: Option<String>,
    /// What is wrong with it.
    pub mistake: Mistake,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// The file is not there or not readable.
    #[error("cannot read the configuration file: {0}")]
    Unreadable(String),
    /// The file is not TOML.
    #[error("not valid TOML at column {column}: {message}")]
    Syntax {
        /// Counted from 1, in characters.
        column: usize,
        /// What the parser expected.
        message: String,
    },
    /// No such key.
    #[error("unknown key{}", suggestion(nearest.as_deref()))]
    Unknown {
        /// The known key it most resembles.
        nearest: Option<String>,
    },
    /// A value where a section belongs.
    #[error("expected a table of keys")]
    Section,
    /// A value that its key does not accept.
    #[error("expected {0}")]
    Refused(String),
    /// Values that do not go together.
    #[error("{0}")]
    Conflict(String),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!(", did you mean {key}?"))
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.source)?;
        match &self.value {
            _ if self.key.is_empty() => {}
            Some(value) => write!(formatter, "{} = {value}: ", self.key)?,
            None => write!(formatter, "{}: ", self.key)?,
        }
        formatter.write_str(&one_line(&self.mistake.to_string()))
    }
}

/// Every mistake of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The mistakes, or nothing if there are none.
    pub(super) fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self(problems))
        }
    }

    /// Each mistake: those of the file by line, then those of the environment,
    /// of the flags, and of values that do not go together.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(formatter, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A text as part of one line, without secrets and not too long.
pub(super) fn one_line(text: &str) -> String {
    const MOST: usize = 200;
    let mut line = String::new();
    for (index, character) in mask(text).chars().enumerate() {
        if index == MOST {
            line.push('…');
            break;
        }
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_with_source_key_value_and_remedy() {
        let problem = Problem {
            source: Source::File("longhaul.toml".into(), Some(12)),
            key: "limits.drain".to_owned(),
            value: Some("\"soon\"".to_owned()),
            mistake: Mistake::Refused("a duration".to_owned()),
        };
        let line = "longhaul.toml:12: limits.drain = \"soon\": expected a duration";
        assert_eq!(problem.to_string(), line);
    }

    #[test]
    fn text_of_the_user_cannot_break_the_line_or_flood_it() {
        assert_eq!(one_line("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(one_line(&"x".repeat(5_000)).chars().count(), 201);
        assert_eq!(one_line("postgres://a:b@c"), "postgres://a:***@c");
    }
}
