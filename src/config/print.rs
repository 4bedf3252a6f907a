//! The effective configuration as TOML that loads to the same configuration.
//!
//! Secrets are masked, and whatever is not a default says where it came from.

use super::keys::KEYS;
use super::path::Path;
use super::problem::one_line;
use super::{Config, Loaded};
use std::fmt::Write as _;

impl Loaded {
    /// The configuration as a TOML file, secrets masked, with the origin of
    /// each value that somebody set.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = Path::default();
        for (path, value) in entries(&self.config) {
            if path.section() != section {
                section = path.section();
                // Writing to a string cannot fail.
                let _ = write!(text, "\n[{section}]\n");
            }
            let _ = write!(text, "{} = {value}", path.last());
            if let Some(source) = self.origins.0.get(&path) {
                let _ = write!(text, "  # {}", one_line(&source.to_string()));
            }
            text.push('\n');
        }
        text
    }
}

/// Every key with its value, named entries one after another.
fn entries(config: &Config) -> Vec<(Path, toml::Value)> {
    let mut entries = Vec::new();
    let mut keys = KEYS.iter().peekable();
    while let Some(first) = keys.next() {
        let Some((family, _)) = first.path.split_once(".*.") else {
            if let Some(value) = (first.write)(config, "") {
                entries.push((Path::of(first, ""), value));
            }
            continue;
        };
        let mut members = vec![first];
        while let Some(key) = keys.next_if(|key| key.path.starts_with(family)) {
            members.push(key);
        }
        for name in names(config, family) {
            for key in &members {
                if let Some(value) = (key.write)(config, &name) {
                    entries.push((Path::of(key, &name), value));
                }
            }
        }
    }
    entries
}

fn names(config: &Config, family: &str) -> Vec<String> {
    if family == "models" {
        config.models.names().map(str::to_owned).collect()
    } else {
        config.trim.tools.keys().cloned().collect()
    }
}
