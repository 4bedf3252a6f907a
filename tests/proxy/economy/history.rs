//! A client's history and how it is written into requests.
//!
//! Messages are written down once and joined for each request: a session of
//! hundreds of requests writes its history hundreds of times. Only messages
//! with a cache mark, and one whose results are cleared in part, are written
//! for the request at hand.

use serde_json::{Value, json};

/// What a policy of the client puts in place of a tool result.
const PLACEHOLDER: &str = "[Old tool result content cleared]";

struct Part {
    message: Value,
    /// As it is, and with every tool result cleared.
    whole: String,
    cleared: String,
    results: usize,
}

#[derive(Default)]
pub struct History {
    parts: Vec<Part>,
    results: usize,
}

impl History {
    /// How many tool results there are.
    pub fn results(&self) -> usize {
        self.results
    }

    pub fn push(&mut self, message: Value) {
        let results = count(&message);
        self.results += results;
        self.parts.push(Part {
            whole: message.to_string(),
            cleared: clear(&message, results).to_string(),
            message,
            results,
        });
    }

    /// The messages of the next request, without so many of the oldest results.
    /// Marks stand on the last block of the last two messages of the user.
    pub fn write(&self, without: usize, mark: &Value) -> String {
        let last = self.parts.len().saturating_sub(1);
        let mut left = without;
        let mut text = String::with_capacity(self.parts.iter().map(|p| p.whole.len() + 50).sum());
        for (at, part) in self.parts.iter().enumerate() {
            let gone = left.min(part.results);
            left -= gone;
            if at > 0 {
                text.push(',');
            }
            if at == last || at + 2 == last {
                let mut message = clear(&part.message, gone);
                let blocks = message["content"].as_array_mut().unwrap();
                blocks.last_mut().unwrap()["cache_control"] = mark.clone();
                text.push_str(&message.to_string());
            } else if gone == 0 {
                text.push_str(&part.whole);
            } else if gone == part.results {
                text.push_str(&part.cleared);
            } else {
                text.push_str(&clear(&part.message, gone).to_string());
            }
        }
        text
    }
}

fn is_result(block: &Value) -> bool {
    block["type"] == "tool_result"
}

fn count(message: &Value) -> usize {
    let blocks = message["content"].as_array().unwrap();
    blocks.iter().filter(|block| is_result(block)).count()
}

/// The message without its first results.
fn clear(message: &Value, results: usize) -> Value {
    let mut message = message.clone();
    let blocks = message["content"].as_array_mut().unwrap().iter_mut();
    for block in blocks.filter(|block| is_result(block)).take(results) {
        block["content"] = json!(PLACEHOLDER);
    }
    message
}

#[test]
fn only_the_oldest_results_are_cleared_and_the_last_two_are_marked() {
    let mut history = History::default();
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": id});
    let said = json!({"role": "assistant", "content": [{"type": "text", "text": "x"}]});
    history.push(json!({"role": "user", "content": [result("a"), result("b")]}));
    for id in ["c", "d"] {
        history.push(said.clone());
        history.push(json!({"role": "user", "content": [result(id)]}));
    }
    assert_eq!(history.results(), 4);
    let written = |without| -> Vec<Value> {
        let text = format!("[{}]", history.write(without, &json!("here")));
        serde_json::from_str(&text).unwrap()
    };
    let contents = |messages: &[Value]| -> Vec<String> {
        let blocks = messages
            .iter()
            .flat_map(|m| m["content"].as_array().unwrap());
        let results = blocks.filter(|block| is_result(block));
        results
            .map(|block| block["content"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(contents(&written(0)), ["a", "b", "c", "d"]);
    assert_eq!(contents(&written(1)), [PLACEHOLDER, "b", "c", "d"]);
    assert_eq!(
        contents(&written(3)),
        [PLACEHOLDER, PLACEHOLDER, PLACEHOLDER, "d"]
    );
    let marked: Vec<usize> = written(3)
        .iter()
        .enumerate()
        .filter(|(_, m)| m["content"][0]["cache_control"] == "here")
        .map(|(at, _)| at)
        .collect();
    assert_eq!(marked, [2, 4]);
}
