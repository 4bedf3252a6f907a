//! Where a value stands in the configuration.
//!
//! A path is a list of segments, because the names of models contain dots. It
//! is matched against the patterns of the key table, in which `*` stands for
//! any one segment.

use super::keys::{KEYS, Key};
use std::fmt;
use toml::Value;

/// The segments of a key, such as `models`, `claude-4.5`, `window`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Path(Vec<String>);

/// What stands at a path.
pub(super) enum Place<'a> {
    /// A key, and the name that its `*` stands for.
    Key(&'static Key, &'a str),
    /// A section of keys.
    Section,
    /// Nothing known.
    Unknown,
}

impl Path {
    /// The path written with dots.
    pub(super) fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// The path as a file spells it, with quotes around what holds dots.
    pub(super) fn written(text: &str) -> Self {
        let mut segments = Vec::new();
        let mut table: toml::Table = format!("{text} = 0").parse().unwrap_or_default();
        while let Some((segment, inner)) = table.into_iter().next() {
            segments.push(segment);
            table = match inner {
                Value::Table(inner) => inner,
                _ => return Self(segments),
            };
        }
        Self::dotted(text)
    }

    /// The path of a key whose `*` stands for a name.
    pub(super) fn of(key: &Key, name: &str) -> Self {
        let segments = key.path.split('.');
        let named = segments.map(|segment| if segment == "*" { name } else { segment });
        Self(named.map(str::to_owned).collect())
    }

    /// One segment further.
    pub(super) fn join(&self, segment: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.to_owned());
        Self(segments)
    }

    /// The path without its last segment.
    pub(super) fn section(&self) -> Self {
        let (_, section) = self.0.split_last().unzip();
        Self(section.map(<[String]>::to_vec).unwrap_or_default())
    }

    /// The last segment, as it is written in its section.
    pub(super) fn last(&self) -> Self {
        Self(self.0.last().into_iter().cloned().collect())
    }

    /// What the key table has there.
    pub(super) fn place(&self) -> Place<'_> {
        let mut place = Place::Unknown;
        for key in KEYS {
            let mut pattern = key.path.split('.');
            let mut name = "";
            let fits = self.0.iter().all(|segment| match pattern.next() {
                Some("*") => {
                    name = segment;
                    true
                }
                known => known == Some(segment.as_str()),
            });
            match (fits, pattern.next()) {
                (true, None) => return Place::Key(key, name),
                (true, Some(_)) => place = Place::Section,
                (false, _) => {}
            }
        }
        place
    }

    /// The path as the key table spells it, for finding what was meant.
    pub(super) fn pattern(&self) -> String {
        let named = match self.0.first().map(String::as_str) {
            Some("models") => 1,
            Some("trim") => 2,
            _ => usize::MAX,
        };
        let segments = self.0.iter().enumerate();
        let pattern: Vec<&str> = segments
            .map(|(index, segment)| if index == named { "*" } else { segment })
            .collect();
        pattern.join(".")
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if !segment.is_empty() && segment.bytes().all(bare) {
                write!(formatter, "{dot}{segment}")?;
            } else {
                write!(formatter, "{dot}{}", quoted(segment))?;
            }
        }
        Ok(())
    }
}

/// A text as a TOML string on one line.
fn quoted(text: &str) -> String {
    let plain = Value::String(text.to_owned()).to_string();
    if plain.starts_with("\"\"\"") || plain.starts_with("'''") || plain.contains('\n') {
        // The writer prefers several lines for some texts; a key has only one.
        let escaped = text.chars().map(|character| match character {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            _ if character.is_control() => format!("\\u{:04X}", u32::from(character)),
            _ => character.to_string(),
        });
        return format!("\"{}\"", escaped.collect::<String>());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_is_a_key_a_section_or_unknown() {
        let path = |segments: &[&str]| Path(segments.iter().map(|it| (*it).to_owned()).collect());
        let name = |path: &Path| match path.place() {
            Place::Key(key, name) => format!("{} for {name}", key.path),
            Place::Section => "section".to_owned(),
            Place::Unknown => "unknown".to_owned(),
        };
        for (segments, expected) in [
            (&["listen"][..], "listen for "),
            (&["limits"], "section"),
            (&["limits", "drain"], "limits.drain for "),
            (&["limits", "drain", "x"], "unknown"),
            (&["models", "a.b"], "section"),
            (&["models", "a.b", "window"], "models.*.window for a.b"),
            (&["models", "a", "prices"], "section"),
            (
                &["trim", "tools", "Bash", "head"],
                "trim.tools.*.head for Bash",
            ),
            (&["nonsense"], "unknown"),
        ] {
            assert_eq!(name(&path(segments)), expected, "{segments:?}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_path_is_a_key_of_toml(segment in any::<String>()) {
            let path = Path::dotted("models").join(&segment);
            let text = format!("{path}.window = 1");
            prop_assert!(!text.contains('\n'));
            let table: toml::Table = text.parse().unwrap();
            prop_assert!(table["models"].get(&segment).is_some());
        }
    }
}
