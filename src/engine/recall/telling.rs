//! How a model is told that something is not lost, and how to get it back.
//!
//! Only what is true is promised: that something is archived where it is, and a
//! tool where the model has one.

use crate::engine::ids::Reference;
use crate::engine::recall::reference::shown;

/// What a model can do to get something back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Telling {
    /// Nothing, but somebody can.
    #[default]
    Archived,
    /// Call these tools.
    Tools {
        /// The one that searches.
        recall: String,
        /// The one that shows the whole.
        expand: String,
    },
}

impl Telling {
    /// Of a single thing, as the end of a sentence.
    pub fn of_one(&self, reference: Reference) -> String {
        let name = shown(reference);
        match self {
            Self::Archived => format!("archived as {name}"),
            Self::Tools { expand, .. } => {
                format!("archived: call {expand} with ref {name} to see it again")
            }
        }
    }

    /// Of messages, as a sentence.
    pub fn of_messages(&self, reference: Reference) -> String {
        let name = shown(reference);
        match self {
            Self::Archived => format!("The messages themselves are archived as {name}, not lost."),
            Self::Tools { recall, expand } => format!(
                "The messages themselves are not lost: call {recall} with ref {name} and a query \
                 to search them, or {expand} with ref {name} to read them."
            ),
        }
    }
}

/// The tools among these that are ours: both, under whatever name a client gives
/// to the tools of a server.
pub fn tools<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Telling> {
    let (mut recall, mut expand) = (None, None);
    for name in names {
        let base = base(name);
        let held = match base {
            Some((server, "recall")) => recall.get_or_insert((server, name)),
            Some((server, "expand")) => expand.get_or_insert((server, name)),
            _ => continue,
        };
        let _ = held;
    }
    let ((ours, recall), (theirs, expand)) = (recall?, expand?);
    (ours == theirs).then(|| Telling::Tools {
        recall: recall.to_owned(),
        expand: expand.to_owned(),
    })
}

/// The server and the tool in a name such as `mcp__longhaul__recall`. A tool that
/// is called `recall` and nothing else may be anybody's.
fn base(name: &str) -> Option<(&str, &str)> {
    let at = name.to_ascii_lowercase().find("longhaul")?;
    let from = at + "longhaul".len();
    let rest = name.get(from..)?;
    let tool = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    Some((name.get(..from)?, tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_of_our_server_are_promised() {
        type Row<'a> = (&'a [&'a str], Option<(&'a str, &'a str)>);
        let rows: [Row<'_>; 7] = [
            (&[], None),
            (&["recall", "expand"], None),
            (&["mcp__longhaul__recall"], None),
            (
                &["Bash", "mcp__longhaul__expand", "mcp__longhaul__recall"],
                Some(("mcp__longhaul__recall", "mcp__longhaul__expand")),
            ),
            (
                &["Longhaul.recall", "Longhaul.expand"],
                Some(("Longhaul.recall", "Longhaul.expand")),
            ),
            (&["mcp__longhaul__recall", "mcp__other__expand"], None),
            (&["mcp__longhaul__recall", "my_longhaul_expand"], None),
        ];
        for (names, expected) in rows {
            let found = tools(names.iter().copied());
            let expected = expected.map(|(recall, expand)| Telling::Tools {
                recall: recall.to_owned(),
                expand: expand.to_owned(),
            });
            assert_eq!(found, expected, "{names:?}");
        }
    }

    #[test]
    fn a_reference_is_named_with_the_tool_that_takes_it() {
        let reference = Reference::from_bytes([7; 10]);
        let name = "lh-07070707070707070707";
        let tools = Telling::Tools {
            recall: "search".to_owned(),
            expand: "open".to_owned(),
        };
        assert_eq!(
            Telling::Archived.of_one(reference),
            format!("archived as {name}")
        );
        assert!(
            tools
                .of_one(reference)
                .contains(&format!("call open with ref {name}"))
        );
        assert!(
            tools
                .of_messages(reference)
                .contains(&format!("call search with ref {name}"))
        );
    }
}
