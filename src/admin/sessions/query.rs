//! What stands behind the question mark of a request about sessions.
//!
//! A name that is not known is a mistake and not ignored: a misspelt filter would
//! else show everything.

use crate::engine::ids::LineageId;
use crate::engine::recall::entry::EntryKind;
use crate::store::Moment;
use crate::store::sessions::Behind;

/// How many things are shown, if nobody says, and at most.
const LIMIT: u32 = 50;
const MOST: u32 = 500;
/// The longest question, in bytes.
const LONGEST: usize = 4 << 10;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// How many.
    pub limit: u32,
    /// Only sessions behind this one.
    pub behind: Option<Behind>,
    /// Only entries with smaller numbers.
    pub before: Option<i64>,
    /// What to look for.
    pub query: Option<String>,
    /// Only this kind.
    pub kind: Option<EntryKind>,
    /// Whether to show what entries say.
    pub content: bool,
    /// Which page.
    pub page: u32,
    /// As the history was when it had so many messages.
    pub as_of: Option<u32>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            limit: LIMIT,
            behind: None,
            before: None,
            query: None,
            kind: None,
            content: false,
            page: 1,
            as_of: None,
        }
    }
}

impl Asked {
    /// From names and values; or what is wrong with them.
    pub fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        let mut asked = Self::default();
        for (name, value) in pairs {
            match name.as_str() {
                "limit" => asked.limit = number(name, value, 1..=MOST)?,
                "page" => asked.page = number(name, value, 1..=u32::MAX)?,
                "as_of" => asked.as_of = Some(number(name, value, 0..=u32::MAX)?),
                "before" => {
                    asked.before = value.parse().ok();
                    asked.behind = read_behind(value);
                    if asked.before.is_none() && asked.behind.is_none() {
                        return Err("before must be what the page before said as next".to_owned());
                    }
                }
                "q" if value.len() > LONGEST => {
                    return Err(format!(
                        "q has {} bytes: at most {LONGEST} are taken",
                        value.len()
                    ));
                }
                "q" => asked.query = Some(value.clone()).filter(|query| !query.trim().is_empty()),
                "kind" => {
                    let kinds = || EntryKind::all().map(EntryKind::name).collect::<Vec<_>>();
                    let wrong = || format!("kind must be one of {}", kinds().join(", "));
                    asked.kind = Some(EntryKind::named(value).ok_or_else(wrong)?);
                }
                "content" => {
                    asked.content = match value.as_str() {
                        "" | "1" | "true" => true,
                        "0" | "false" => false,
                        _ => return Err("content must be true or false".to_owned()),
                    }
                }
                _ => {
                    let name: String = name.chars().take(40).collect();
                    return Err(format!("{name:?} is not known here"));
                }
            }
        }
        Ok(asked)
    }
}

fn number(name: &str, value: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let (least, most) = (range.start(), range.end());
    let wrong = || format!("{name} must be a whole number from {least} to {most}");
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(wrong)
}

/// Where a list goes on, as it is written.
pub fn written((Moment(at), id): Behind) -> String {
    format!("{at}-{id}")
}

/// The same as it is read; a moment alone stands for all sessions before it.
fn read_behind(text: &str) -> Option<Behind> {
    let (at, id) = match text.rsplit_once('-') {
        Some((at, id)) if !at.is_empty() => (at, LineageId::from_text(id)?),
        _ => (text, LineageId::from_bytes([0; 16])),
    };
    Some((Moment(at.parse().ok()?), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Asked, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Asked::read(&pairs.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_asked_is_read() {
        let asked = read(&[
            ("limit", "7"),
            ("q", "why"),
            ("kind", "tool_result"),
            ("before", "12"),
            ("content", "true"),
            ("page", "3"),
        ]);
        let asked = asked.unwrap();
        assert_eq!((asked.limit, asked.page, asked.before), (7, 3, Some(12)));
        assert_eq!(asked.kind, Some(EntryKind::ToolResult));
        assert!(asked.content && asked.query.as_deref() == Some("why"));
        assert_eq!(read(&[]).unwrap(), Asked::default());
    }

    #[test]
    fn a_place_in_a_list_is_read_as_it_was_written() {
        for at in [0, 1_763_000_000_000, -5] {
            let behind = (Moment(at), LineageId::from_bytes([7; 16]));
            let asked = read(&[("before", &written(behind))]).unwrap();
            assert_eq!(asked.behind, Some(behind));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let rows = [
            ("limit", "0", "limit must be a whole number from 1 to 500"),
            ("limit", "501", "from 1 to 500"),
            ("limit", "-1", "from 1 to 500"),
            ("limit", "many", "from 1 to 500"),
            ("page", "0", "page must be a whole number from 1"),
            ("before", "yesterday", "said as next"),
            ("before", "1-zz", "said as next"),
            (
                "kind",
                "secret",
                "kind must be one of tool_result, tool_call",
            ),
            ("content", "yes please", "true or false"),
            ("limt", "1", "\"limt\" is not known"),
            ("q", &"x".repeat(5000), "q has 5000 bytes"),
        ];
        for (name, value, expected) in rows {
            let wrong = read(&[(name, value)]).unwrap_err();
            assert!(wrong.contains(expected), "{wrong}");
        }
    }
}
