//! The effective configuration as TOML that loads to the same configuration.
//!
//! Secrets are masked, and whatever somebody set says where it came from. A
//! masked password loads too, as a wrong one: what is printed is for reading.

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

#[cfg(test)]
mod tests {
    use crate::config::{Loaded, Sources, load};
    use std::io::Write as _;
    use tempfile::NamedTempFile;

    fn load_text(text: &str) -> Loaded {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let sources = Sources {
            file: Some(file.path().to_owned()),
            environment: vec![("HOME".to_owned(), "/me".to_owned())],
            ..Sources::default()
        };
        load(&sources).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
    }

    #[test]
    fn what_is_printed_loads_to_the_same_configuration() {
        for text in [
            "",
            include_str!("../../config/longhaul.toml"),
            include_str!("../../config/models.toml"),
            "workers = 3\nupstream_features = ['a', 'b\"c']\n\
             [cache]\nttl = '90s'\n\
             [policy]\nclear_at = 0.654321\nhorizon = 7\n\
             [recall]\nmcp = true\n\
             [summarizer]\ninstructions = \"one\\ntwo \\\"\\\"\\\" '''\\n\"\n\
             [trim.tools.'a \"b\".c\\n']\nhead = 1\n\
             [models.'x.*']\nprices = { input = 0.1, output = 3 }\n\
             price_steps = [{ above = 2000, read = 0.01 }]\n",
        ] {
            let loaded = load_text(text);
            let printed = loaded.to_toml();
            assert_eq!(load_text(&printed).config, loaded.config, "{printed}");
        }
    }

    #[test]
    fn a_value_that_was_set_says_where() {
        let printed = load_text("[log]\n\nlevel = 'warn'\n").to_toml();
        let line = printed
            .lines()
            .find(|line| line.starts_with("level"))
            .unwrap();
        assert!(
            line.starts_with("level = \"warn\"  # ") && line.ends_with(":3"),
            "{line}"
        );
        assert!(printed.contains("\nformat = \"auto\"\n"), "{printed}");
    }

    #[test]
    fn a_password_is_masked() {
        let printed = load_text("store.url = 'postgres://me:s3cret@host/db'").to_toml();
        assert!(
            printed.contains("\"postgres://me:***@host/db\""),
            "{printed}"
        );
        assert!(!printed.contains("s3cret"));
    }
}
