//! Configuration from its sources: flags over environment over file over
//! defaults.
//!
//! Apart from reading the files that are named, loading is a function of its
//! argument, so tests need no process environment. All mistakes come back at
//! once.

use super::given::{Applied, Given};
use super::path::Path;
use super::problem::{Mistake, Problem, Problems, Source};
use super::{Config, environment, file, rules};
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::Value;

/// Everything a configuration is made from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The file of `--config`. Without one, the file that `LONGHAUL_CONFIG`
    /// names; without that, none.
    pub file: Option<PathBuf>,
    /// The environment's variables.
    pub environment: Vec<(String, String)>,
    /// The flags of the command line.
    pub flags: Flags,
}

/// Flags that override keys.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--listen` for `listen`.
    pub listen: Option<String>,
    /// `--upstream` for `upstream`.
    pub upstream: Option<String>,
    /// `--data-dir` for `data_dir`.
    pub data_dir: Option<String>,
    /// `--store` for `store.url`.
    pub store: Option<String>,
}

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

/// The variable that names the configuration file.
const CONFIG_VARIABLE: &str = "LONGHAUL_CONFIG";

/// Reads, checks and resolves a configuration.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let mut applied = Applied::default();
    if let Some(path) = config_file(sources) {
        apply_file(&mut applied, path);
    }
    let variables = environment::parse(&sources.environment);
    for given in variables.into_iter().chain(flags(&sources.flags)) {
        applied.apply(given);
    }
    rules::check(&mut applied);
    let Applied {
        mut config,
        origins,
        problems,
    } = applied;
    Problems::check(problems)?;
    let mut warnings = rules::warnings(&config, &sources.environment);
    if config.data_dir.as_os_str().is_empty() {
        config.data_dir = data_folder(sources).unwrap_or_else(|| {
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

fn config_file(sources: &Sources) -> Option<PathBuf> {
    let variable = || variable(sources, CONFIG_VARIABLE).map(PathBuf::from);
    sources.file.clone().or_else(variable)
}

fn apply_file(applied: &mut Applied, path: PathBuf) {
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            applied.problems.push(Problem {
                source: Source::File(path, 1),
                key: String::new(),
                value: None,
                mistake: Mistake::Unreadable(error.to_string()),
            });
            return;
        }
    };
    let (given, syntax) = file::parse(&path, &text);
    applied.problems.extend(syntax);
    for given in given {
        applied.apply(given);
    }
    applied
        .problems
        .sort_by_key(|problem| match problem.source {
            Source::File(_, line) => line,
            _ => 0,
        });
}

fn flags(flags: &Flags) -> Vec<Given> {
    let given = [
        ("--listen", "listen", &flags.listen),
        ("--upstream", "upstream", &flags.upstream),
        ("--data-dir", "data_dir", &flags.data_dir),
        ("--store", "store.url", &flags.store),
    ];
    given
        .into_iter()
        .filter_map(|(flag, key, text)| {
            let text = text.clone()?;
            Some(Given {
                path: Path::dotted(key),
                readings: vec![Value::String(text.clone())],
                written: text,
                source: Source::Flag(flag),
            })
        })
        .collect()
}

/// The user's data folder, by the rules of the XDG base directories.
fn data_folder(sources: &Sources) -> Option<PathBuf> {
    let absolute = |name| {
        let path = variable(sources, name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let shared = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Some(shared?.join("longhaul"))
}

fn variable<'a>(sources: &'a Sources, name: &str) -> Option<&'a str> {
    let variables = sources.environment.iter();
    let mut values = variables.filter(|(known, _)| known == name);
    values
        .next()
        .map(|(_, value)| value.as_str())
        .filter(|value| !value.is_empty())
}
