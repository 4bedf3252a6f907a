//! Values as they were given, before anything is known about them but where
//! they stand and where they came from.
//!
//! The file, the environment and the flags each become a list of these; one
//! function applies them all. A variable's text may mean several TOML values
//! (`5` is a number or a name): the first that its key accepts is taken.

use super::Config;
use super::nearest::nearest;
use super::path::{Path, Place};
use super::problem::{Mistake, Problem, Source, one_line};
use std::collections::BTreeMap;
use toml::Value;

/// Keys that there were once: a file that still has one is read all the same.
const REMOVED: [&str; 1] = ["log.content"];

/// One value given for one path.
pub(super) struct Given {
    pub path: Path,
    /// What it may mean, most likely first.
    pub readings: Vec<Value>,
    /// The value as its author wrote it.
    pub written: String,
    pub source: Source,
}

/// What has been applied so far.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub config: Config,
    /// Where each value that was given came from.
    pub origins: BTreeMap<Path, Source>,
    pub problems: Vec<Problem>,
    /// What looks wrong but stops nothing.
    pub warnings: Vec<String>,
}

impl Applied {
    /// Sets what the value says, or notes what is wrong with it.
    pub(super) fn apply(&mut self, given: Given) {
        let key = given.path.to_string();
        if REMOVED.contains(&key.as_str()) {
            let source = &given.source;
            let warning = format!("{source}: {key} has no effect any more and can be deleted");
            self.warnings.push(warning);
            return;
        }
        let mistake = match given.path.place() {
            Place::Key(key, name) => {
                let mut readings = given.readings.iter();
                if readings.any(|value| (key.read)(&mut self.config, name, value).is_some()) {
                    None
                } else {
                    Some(Mistake::Refused((key.accepts)()))
                }
            }
            Place::Section => Some(Mistake::Section),
            Place::Unknown => Some(Mistake::Unknown {
                nearest: nearest(&given.path.pattern()).map(str::to_owned),
            }),
        };
        if let Some(mistake) = mistake {
            self.problems.push(Problem {
                key: one_line(&given.path.to_string()),
                value: shown(&given, &mistake),
                source: given.source.clone(),
                mistake,
            });
        }
        self.origins.insert(given.path, given.source);
    }
}

/// The value as a mistake shows it. Withheld where it may be a secret: in an
/// unknown key, and where a variable's name was asked for and a key pasted.
fn shown(given: &Given, mistake: &Mistake) -> Option<String> {
    let names_variable = given.path.to_string().ends_with("_env");
    let unknown = matches!(mistake, Mistake::Unknown { .. });
    (!names_variable && !unknown).then(|| one_line(&given.written))
}
