//! What an agent fetched, and whether it fetches the same again.
//!
//! The live metric asks for exactly the same call; a replay has time for more. A
//! read of a file counts as fetching again what was removed of it if the two
//! parts may overlap, whether a tool or a command reads. Everything else, such as
//! a search, counts only if it is asked in the same words. So the rate is a lower
//! bound: who looks for the same lines by a search, or by another path to the
//! same file, is not seen.

use std::collections::HashMap;

use crate::engine::acts::{Act, Part, Reading, act, key};
use crate::engine::conversation::{Call, Conversation};
use crate::engine::overlay::{Change, Overlay};
use crate::wire::body::Kind;

/// Something that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// A name for exactly this.
    pub id: u64,
    /// A name for all parts of the same file.
    file: u64,
    part: Part,
}

impl Thing {
    /// Whether both may show some of the same.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.file == other.file && parts_overlap(&self.part, &other.part)
    }

    /// Whether this shows all of the other.
    fn covers(&self, other: &Self) -> bool {
        let is_within = match (&self.part, &other.part) {
            (Part::Whole, _) => true,
            (Part::Lines(from, to), Part::Lines(first, last)) => {
                from <= first && to.is_none_or(|to| last.is_some_and(|last| last <= to))
            }
            (one, other) => one == other,
        };
        self.file == other.file && is_within
    }
}

/// Where one part begins or ends is not always known; then they may overlap.
fn parts_overlap(one: &Part, other: &Part) -> bool {
    match (one, other) {
        (Part::Lines(a, b), Part::Lines(c, d)) => {
            b.is_none_or(|b| *c <= b) && d.is_none_or(|d| *a <= d)
        }
        _ => true,
    }
}

/// What a call fetches, if it is something that can be fetched again.
pub fn thing(name: &str, input: &[u8]) -> Option<Thing> {
    let act = act(name, input);
    let id = key(name, &act)?;
    let Some(reading) = act.reading() else {
        return Some(Thing {
            id,
            file: id,
            part: Part::Whole,
        });
    };
    let whole = Act::Reads(Reading {
        file: reading.file.clone(),
        part: Part::Whole,
    });
    Some(Thing {
        id,
        file: key(name, &whole)?,
        part: reading.part.clone(),
    })
}

/// What an overlay has removed from a view, and no other result shows whole.
pub fn removed(conversation: &Conversation<'_>, overlay: &Overlay) -> Vec<Thing> {
    let bytes = conversation.bytes();
    let (mut gone, mut shown) = (HashMap::new(), Vec::new());
    for Call { used, result } in conversation.calls() {
        let Some(result) = result.filter(|result| result.0 < overlay.made_at as usize) else {
            continue;
        };
        let call = conversation.block_at(used);
        let call = call.filter(|call| call.kind == Kind::ToolUse);
        let fetched = call.and_then(|call| {
            let name: String = serde_json::from_slice(call.name?.of(bytes)).ok()?;
            thing(&name, call.payload?.of(bytes))
        });
        let Some(fetched) = fetched else {
            continue;
        };
        let stub = overlay.change_at(result.0, result.1);
        if overlay.shows(result.0) && !stub.is_some_and(Change::is_stub) {
            shown.push(fetched);
        } else {
            gone.insert(fetched.id, fetched);
        }
    }
    let mut gone: Vec<Thing> = gone.into_values().collect();
    gone.retain(|gone| !shown.iter().any(|shown| shown.covers(gone)));
    gone.sort_by_key(|thing| thing.id);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::Edit;
    use crate::wire::body::Body;
    use serde_json::{Value, json};

    fn of(name: &str, input: &Value) -> Thing {
        thing(name, input.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn another_part_of_the_same_file_is_the_same_thing_where_both_overlap() {
        let lines = |from: u64, count: u64| {
            let input = json!({"file_path": "/w/a.rs", "offset": from, "limit": count});
            of("Read", &input)
        };
        let bash = |command: &str| of("Bash", &json!({"command": command}));
        let whole = of("Read", &json!({"file_path": "/w/a.rs"}));
        let rows = [
            (whole.clone(), whole.clone(), true),
            (whole.clone(), lines(1, 50), true),
            (whole.clone(), bash("sed -n '10,50p' /w/a.rs"), true),
            (whole.clone(), bash("cat /w/a.rs"), true),
            (whole.clone(), bash("cat /w/b.rs"), false),
            (lines(1, 50), bash("sed -n '10,60p' /w/a.rs"), true),
            (lines(1, 50), lines(51, 10), false),
            (bash("ls /w"), bash("ls /w"), true),
            (bash("ls /w"), bash("ls /v"), false),
        ];
        for (one, other, expected) in rows {
            assert_eq!(one.overlaps(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.overlaps(&one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn what_another_result_still_shows_whole_is_not_removed() {
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        let part = json!({"file_path": "/a", "offset": 1, "limit": 50});
        let whole = |path: &str| json!({"file_path": path});
        let reads = [part, whole("/a"), whole("/b"), whole("/c")];
        for (id, input) in reads.iter().enumerate() {
            messages.push(json!({"role": "assistant", "content": [{"type": "tool_use",
                "id": id.to_string(), "name": "Read", "input": input}]}));
            messages.push(json!({"role": "user", "content": [{"type": "tool_result",
                "tool_use_id": id.to_string(), "content": "text"}]}));
        }
        let bytes = json!({ "messages": messages }).to_string().into_bytes();
        let body = Body::split(&bytes).unwrap();
        let edits = [2, 6].map(|message| Edit {
            message,
            block: 0,
            change: Change::Payload("\"[gone]\"".to_owned()),
        });
        let overlay = Overlay {
            made_at: 9,
            edits: edits.to_vec(),
            ..Overlay::default()
        };
        let gone = removed(&Conversation::new(&bytes, &body), &overlay);
        assert_eq!(gone, [of("Read", &whole("/b"))]);
    }
}
