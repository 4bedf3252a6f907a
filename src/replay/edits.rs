//! The lines that an edit takes for granted.
//!
//! Whoever changes a file by naming the old text must know it word for word. Here
//! is what the tools of known agents name: the old text of a replacement, the
//! context and removed lines of a patch.

use serde_json::Value;

/// Fields that hold the text to be replaced.
const OLD: [&str; 5] = ["old_string", "old_str", "oldText", "old_text", "oldString"];

/// A line that an edit names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldLine {
    /// The line, or a part of it.
    pub text: String,
    /// Where a replacement begins or ends may be the middle of a line.
    pub may_be_part: bool,
}

/// The old lines of each edit that a call makes.
pub fn edits(input: &Value) -> Vec<Vec<OldLine>> {
    let mut found = Vec::new();
    gather(input, &mut found);
    found.retain(|lines| !lines.is_empty());
    found
}

fn gather(value: &Value, found: &mut Vec<Vec<OldLine>>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner {
                    Value::String(text) if OLD.contains(&name.as_str()) => {
                        found.push(replaced(text));
                    }
                    _ => gather(inner, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| gather(inner, found)),
        Value::String(text) if is_patch(text) => found.extend(hunks(text)),
        _ => {}
    }
}

fn replaced(text: &str) -> Vec<OldLine> {
    let last = text.lines().count().saturating_sub(1);
    let lines = text.lines().enumerate();
    let lines = lines.map(|(at, line)| OldLine {
        text: line.to_owned(),
        may_be_part: at == 0 || at == last,
    });
    lines.collect()
}

fn is_patch(text: &str) -> bool {
    let is_unified = text.contains("\n@@ ") && text.contains("\n+++ ");
    text.contains("*** Begin Patch") || is_unified
}

/// The old lines of each hunk of a patch.
fn hunks(patch: &str) -> Vec<Vec<OldLine>> {
    let mut hunks = vec![Vec::new()];
    let mut is_inside = false;
    for line in patch.lines() {
        let starts = line.starts_with("@@") || line.starts_with("*** Update File");
        let is_heading = ["*** ", "--- ", "+++ ", "diff "]
            .iter()
            .any(|it| line.starts_with(it));
        if starts || is_heading {
            is_inside = starts;
            hunks.push(Vec::new());
        } else if let (true, Some(old)) = (is_inside, line.strip_prefix(['-', ' ']))
            && let Some(hunk) = hunks.last_mut()
        {
            hunk.push(OldLine {
                text: old.to_owned(),
                may_be_part: false,
            });
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_old_lines_of_replacements_and_patches_are_told() {
        let patch = "*** Begin Patch\n*** Add File: n.rs\n+new\n*** Update File: a.rs\n@@ fn a\n \
                     let a = 1;\n-let b = 2;\n+let b = 3;\n@@\n-other\n*** End Patch";
        let unified = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n kept\n-gone\n+come";
        let rows: [(Value, &[&[&str]]); 6] = [
            (
                json!({"file_path": "/a", "old_string": "one\n\"two\"", "new_string": "x"}),
                &[&["one", "\"two\""]],
            ),
            (
                json!({"edits": [{"old_string": "a1"}, {"old_string": "b1"}]}),
                &[&["a1"], &["b1"]],
            ),
            (
                json!({"command": "str_replace", "old_str": "a1"}),
                &[&["a1"]],
            ),
            (
                json!({ "input": patch }),
                &[&["let a = 1;", "let b = 2;"], &["other"]],
            ),
            (
                json!({"cmd": format!("git apply <<E\n{unified}\nE")}),
                &[&["kept", "gone"]],
            ),
            (json!({"file_path": "/a", "content": "old"}), &[]),
        ];
        for (input, expected) in rows {
            let found = edits(&input);
            let found: Vec<Vec<&str>> = found
                .iter()
                .map(|edit| edit.iter().map(|line| line.text.as_str()).collect())
                .collect();
            assert_eq!(found, expected, "{input}");
        }
    }
}
