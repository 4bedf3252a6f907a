//! What a good summarizer finds in a conversation.
//!
//! Everything it names was really there: the first and newest words of the
//! user, sentences that lay down a rule, paths, failed tools. So a summary that
//! is refused as untruthful was made so on purpose.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::request::{Request, Role, kind, text};

/// The fields of a structured summary.
pub const KEYS: &[&str] = &[
    "session_intent",
    "constraints",
    "decisions",
    "files_touched",
    "errors",
    "pending_questions",
    "next_steps",
];

const MOST_FILES: usize = 60;
const MOST_LINES: usize = 12;
const LONGEST_LINE: usize = 240;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// What the user wants.
    pub intent: String,
    /// Rules the user laid down.
    pub constraints: Vec<String>,
    /// What the assistant settled on.
    pub decisions: Vec<String>,
    /// Paths.
    pub files: Vec<String>,
    /// Failed tools.
    pub errors: Vec<String>,
    /// What comes next.
    pub next: Vec<String>,
}

impl Findings {
    /// Reads a conversation.
    pub fn of(request: &Request) -> Self {
        let mut findings = Self::default();
        let mut files = BTreeSet::new();
        let last = request.messages.len().saturating_sub(1);
        for (number, message) in request.messages.iter().enumerate() {
            let instruction = number == last && number > 0;
            for (index, block) in message.blocks.iter().enumerate() {
                // The instruction itself is the last block; it is not part of the story.
                if instruction && index + 1 == message.blocks.len() && kind(block) == "text" {
                    continue;
                }
                match (message.role, kind(block)) {
                    (Role::User, "text") => findings.user(text(block, "text")),
                    (Role::Assistant, "text") => {
                        push(&mut findings.decisions, text(block, "text"));
                    }
                    (_, "tool_result") => findings.result(block),
                    _ => {}
                }
                paths(&Value::Object(block.clone()), &mut files);
            }
        }
        findings.files = files.into_iter().take(MOST_FILES).collect();
        if findings.decisions.is_empty() {
            // A transcript comes as one text of the user's; its end is where things stand.
            findings.decisions = last_line(request).into_iter().collect();
        }
        findings.next = findings.decisions.last().cloned().into_iter().collect();
        if findings.next.is_empty() {
            findings.next.push(findings.intent.clone());
        }
        findings
    }

    fn user(&mut self, words: &str) {
        if self.intent.is_empty() {
            self.intent = clip(words);
        }
        for sentence in words.split(['\n', '.', ';']) {
            let lower = sentence.to_lowercase();
            if ["never", "always", "must", "do not", "don't"]
                .iter()
                .any(|word| lower.contains(word))
            {
                push(&mut self.constraints, sentence);
            }
        }
    }

    fn result(&mut self, block: &super::request::Block) {
        if block.get("is_error").and_then(Value::as_bool) != Some(true) {
            return;
        }
        let content = block.get("content");
        let nested = content
            .and_then(|content| content.get(0))
            .and_then(|inner| inner.get("text"));
        if let Some(words) = content
            .and_then(Value::as_str)
            .or(nested.and_then(Value::as_str))
        {
            push(&mut self.errors, words);
        }
    }

    /// As an object with the known keys.
    pub fn json(&self) -> Value {
        json!({
            "session_intent": self.intent,
            "constraints": self.constraints,
            "decisions": self.decisions,
            "files_touched": self.files,
            "errors": self.errors,
            "pending_questions": [],
            "next_steps": self.next,
        })
    }

    /// As one tag per key.
    pub fn tags(&self) -> String {
        let mut tags = String::new();
        let object = self.json();
        for key in KEYS {
            let body = match object.get(*key) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(list)) => {
                    let lines = list.iter().filter_map(Value::as_str);
                    lines.fold(String::new(), |mut all, line| {
                        let _ = writeln!(all, "- {line}");
                        all
                    })
                }
                _ => String::new(),
            };
            let _ = writeln!(tags, "<{key}>\n{}\n</{key}>", body.trim_end());
        }
        tags
    }

    /// As text for a reader.
    pub fn prose(&self) -> String {
        let list = |items: &[String]| items.join("\n- ");
        format!(
            "<summary>\nThe user asked: {}\nRules:\n- {}\nDone:\n- {}\nFiles:\n- {}\nErrors:\n- \
             {}\nNext:\n- {}\n</summary>",
            self.intent,
            list(&self.constraints),
            list(&self.decisions),
            list(&self.files),
            list(&self.errors),
            list(&self.next),
        )
    }
}

fn last_line(request: &Request) -> Option<String> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let words = blocks
        .map(|block| text(block, "text"))
        .find(|words| !words.is_empty())?;
    words.lines().map(clip).rfind(|line| !line.is_empty())
}

fn push(list: &mut Vec<String>, words: &str) {
    let line = clip(words);
    if line.is_empty() || list.contains(&line) {
        return;
    }
    // The newest stay: a long session decides most at its end.
    if list.len() >= MOST_LINES {
        list.remove(1);
    }
    list.push(line);
}

fn clip(words: &str) -> String {
    words
        .trim()
        .lines()
        .next()
        .unwrap_or("")
        .chars()
        .take(LONGEST_LINE)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// All strings in a value that look like a path.
fn paths(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let breaks = |c: char| c.is_whitespace() || "\"'`,;()[]{}<>:\\".contains(c);
            let words = text.split(breaks).map(|word| word.trim_end_matches('.'));
            found.extend(words.filter(|word| is_path(word)).map(str::to_owned));
        }
        Value::Array(list) => list.iter().for_each(|inner| paths(inner, found)),
        Value::Object(object) => object.values().for_each(|inner| paths(inner, found)),
        _ => {}
    }
}

fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or("");
    word.contains('/') && word.len() < 200 && name.contains('.') && !word.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{assistant, call, request, user};

    #[test]
    fn findings_are_what_was_said() {
        let failed = json!({"type": "tool_result", "tool_use_id": "a", "is_error": true,
            "content": "error[E0308]: mismatched types"});
        let messages = json!([
            user("Port src/net/tcp.rs to the new API. Never touch src/main.rs."),
            assistant(json!([{"type": "text", "text": "I keep the old names"}, call("a")])),
            user(json!([failed])),
            user("Now give me session_intent"),
        ]);
        let findings = Findings::of(&request(&json!({"messages": messages}), &[]));
        assert!(findings.intent.starts_with("Port src/net/tcp.rs"));
        assert_eq!(
            findings.constraints,
            ["Never touch src/main", "Now give"][..1].to_vec()
        );
        assert_eq!(findings.files, ["src/main.rs", "src/net/tcp.rs"]);
        assert_eq!(findings.errors, ["error[E0308]: mismatched types"]);
        assert_eq!(findings.decisions, ["I keep the old names"]);
        assert!(findings.tags().contains("<errors>\n- error[E0308]"));
    }
}
