//! What a configuration is made from, and what is found without being a key:
//! the file to read and the user's data folder.
//!
//! The environment is a value like any other here; only the command line's
//! edge takes it from the process.

use super::environment::readings;
use super::given::Given;
use super::path::Path;
use super::problem::Source;
use std::path::PathBuf;
use toml::Value;

/// Everything a configuration is made from. Not printable: the environment
/// holds secrets.
#[derive(Clone, Default)]
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
#[derive(Clone, Default)]
pub struct Flags {
    /// `--listen` for `listen`.
    pub listen: Option<String>,
    /// `--upstream` for `upstream`.
    pub upstream: Option<String>,
    /// `--data-dir` for `data_dir`.
    pub data_dir: Option<String>,
    /// `--store` for `store.url`.
    pub store: Option<String>,
    /// `--set` for any key; a later one beats an earlier one, and a flag of its
    /// own beats both.
    pub set: Vec<(String, String)>,
}

/// The variable that names the configuration file.
pub(super) const CONFIG_VARIABLE: &str = "LONGHAUL_CONFIG";

impl Sources {
    /// The file to read, if any is named.
    pub fn config_file(&self) -> Option<PathBuf> {
        let named = || self.variable(CONFIG_VARIABLE).map(PathBuf::from);
        self.file.clone().or_else(named)
    }

    /// The user's data folder, by the rules of the XDG base directories.
    pub(super) fn data_folder(&self) -> Option<PathBuf> {
        let absolute = |name| {
            let path = self.variable(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = || Some(absolute("HOME")?.join(".local/share"));
        Some(absolute("XDG_DATA_HOME").or_else(home)?.join("longhaul"))
    }

    /// A variable that is set to something.
    fn variable(&self, name: &str) -> Option<&str> {
        let mut variables = self.environment.iter();
        let found = variables.find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }
}

impl Flags {
    /// What the flags give.
    pub(super) fn given(&self) -> Vec<Given> {
        let flags = [
            ("--listen", "listen", &self.listen),
            ("--upstream", "upstream", &self.upstream),
            ("--data-dir", "data_dir", &self.data_dir),
            ("--store", "store.url", &self.store),
        ];
        let flags = flags.into_iter().filter_map(|(flag, key, text)| {
            let text = text.as_ref()?;
            Some(Given {
                path: Path::dotted(key),
                readings: vec![Value::String(text.clone())],
                written: text.clone(),
                source: Source::Flag(flag),
            })
        });
        // A key as a file spells it; the text means what a variable's would.
        let set = self.set.iter().map(|(key, text)| Given {
            path: Path::written(key),
            readings: readings(text),
            written: text.clone(),
            source: Source::Flag("--set"),
        });
        set.chain(flags).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Sources, load};
    use std::path::PathBuf;

    #[test]
    fn the_data_folder_is_the_users() {
        for (environment, folder) in [
            (
                &[("XDG_DATA_HOME", "/data"), ("HOME", "/me")][..],
                "/data/longhaul",
            ),
            (&[("HOME", "/me")], "/me/.local/share/longhaul"),
            (
                &[("XDG_DATA_HOME", "data"), ("HOME", "/me")],
                "/me/.local/share/longhaul",
            ),
            (&[("HOME", "/me"), ("LONGHAUL_DATA_DIR", "/here")], "/here"),
            (&[("HOME", "")], "longhaul-data"),
        ] {
            let environment = environment.iter();
            let environment =
                environment.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let sources = Sources {
                environment: environment.collect(),
                ..Sources::default()
            };
            let loaded = load(&sources).unwrap();
            assert_eq!(loaded.config.data_dir, PathBuf::from(folder));
        }
    }

    #[test]
    fn a_named_file_beats_the_one_of_the_environment() {
        let environment = vec![("LONGHAUL_CONFIG".to_owned(), "b.toml".to_owned())];
        let file = Some(PathBuf::from("a.toml"));
        let mut sources = Sources {
            file,
            environment,
            ..Sources::default()
        };
        assert_eq!(sources.config_file(), Some(PathBuf::from("a.toml")));
        sources.file = None;
        assert_eq!(sources.config_file(), Some(PathBuf::from("b.toml")));
        sources.environment.clear();
        assert_eq!(sources.config_file(), None);
    }
}
