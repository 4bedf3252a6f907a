//! Cache marks: where `cache_control` stands and whether it may.
//!
//! At most four, the automatic one included; longer lifetimes before shorter
//! ones in the order tools, system, messages; never on thinking or empty text.

use std::time::Duration;

use serde_json::Value;

use super::betas::Betas;
use super::error::{ApiError, Checked};
use super::request::{Block, Request, is_thinking, kind, path, text};

/// How long an entry lives after its last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifetime {
    /// `5m`.
    Minutes5,
    /// `1h`.
    Hour1,
}

impl Lifetime {
    /// As a duration.
    pub fn duration(self) -> Duration {
        match self {
            Self::Minutes5 => Duration::from_mins(5),
            Self::Hour1 => Duration::from_hours(1),
        }
    }
}

/// The place of a block in the order in which the prompt is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// `tools.{0}`.
    Tool(usize),
    /// `system.{0}`.
    System(usize),
    /// `messages.{0}.content.{1}`.
    Message(usize, usize),
}

impl Place {
    /// The path by which errors and the ledger name it.
    pub fn path(self) -> String {
        match self {
            Self::Tool(index) => format!("tools.{index}"),
            Self::System(index) => format!("system.{index}"),
            Self::Message(message, index) => path(message, index),
        }
    }
}

/// A breakpoint of the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The block it stands on.
    pub place: Place,
    /// How long what it writes lives.
    pub lifetime: Lifetime,
}

const MOST_MARKS: usize = 4;

/// All marks of a request in rendering order, or why they are refused.
pub fn collect(request: &Request) -> Checked<Vec<Mark>> {
    let mut marks = Vec::new();
    for (place, block) in blocks(request) {
        if let Some(lifetime) = lifetime_of(&place.path(), block, &request.betas)? {
            marks.push(Mark { place, lifetime });
        }
        let nested = block
            .get("content")
            .and_then(Value::as_array)
            .filter(|_| kind(block) == "tool_result");
        for (index, inner) in nested.into_iter().flatten().enumerate() {
            let path = format!("{}.content.{index}", place.path());
            let inner = inner.as_object();
            if let Some(lifetime) =
                inner.map_or(Ok(None), |b| lifetime_of(&path, b, &request.betas))?
            {
                marks.push(Mark { place, lifetime });
            }
        }
    }
    automatic(request, &mut marks)?;
    if marks.len() > MOST_MARKS {
        return Err(ApiError::invalid(format!(
            "A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {}.",
            marks.len()
        )));
    }
    let mut shorter = false;
    for mark in &marks {
        if shorter && mark.lifetime == Lifetime::Hour1 {
            return Err(ApiError::invalid(format!(
                "{}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' \
                 cache_control block. Note that blocks are processed in the following order: `tools`, \
                 `system`, `messages`.",
                mark.place.path()
            )));
        }
        shorter |= mark.lifetime == Lifetime::Minutes5;
    }
    if !marks.is_empty() {
        implicit(request, &mut marks);
    }
    Ok(marks)
}

/// Where a client caches at all, the API marks the results of its own tools
/// itself, for five minutes and beyond the limit.
fn implicit(request: &Request, marks: &mut Vec<Mark>) {
    let own = |block: &Block| {
        let kind = kind(block);
        kind.ends_with("_tool_result") && kind != "mcp_tool_result" && kind != "tool_result"
    };
    for (place, _) in blocks(request).filter(|(_, block)| own(block)) {
        if !marks.iter().any(|mark| mark.place == place) {
            let lifetime = Lifetime::Minutes5;
            marks.push(Mark { place, lifetime });
        }
    }
    marks.sort_by_key(|mark| mark.place);
}

/// All blocks that are rendered, in order.
pub fn blocks(request: &Request) -> impl Iterator<Item = (Place, &Block)> {
    let tools = request
        .tools
        .iter()
        .enumerate()
        .map(|(index, tool)| (Place::Tool(index), tool));
    let system = request
        .system
        .iter()
        .enumerate()
        .map(|(index, block)| (Place::System(index), block));
    let messages = request
        .messages
        .iter()
        .enumerate()
        .flat_map(|(number, message)| {
            let place = move |(index, block)| (Place::Message(number, index), block);
            message.blocks.iter().enumerate().map(place)
        });
    tools.chain(system).chain(messages)
}

/// A top-level mark stands on the last block that can carry one.
fn automatic(request: &Request, marks: &mut Vec<Mark>) -> Checked {
    let Some(lifetime) = lifetime_of("", &request.fields, &request.betas)? else {
        return Ok(());
    };
    let eligible = |block: &Block| {
        let empty = kind(block) == "text" && text(block, "text").is_empty();
        !is_thinking(block) && !empty
    };
    let Some((place, _)) = blocks(request).filter(|(_, block)| eligible(block)).last() else {
        return Ok(());
    };
    match marks.iter().find(|mark| mark.place == place) {
        Some(mark) if mark.lifetime == lifetime => Ok(()),
        Some(_) => Err(ApiError::invalid(
            "cache_control: the last block already has a cache_control with a different ttl",
        )),
        None => {
            marks.push(Mark { place, lifetime });
            Ok(())
        }
    }
}

fn lifetime_of(path: &str, block: &Block, betas: &Betas) -> Checked<Option<Lifetime>> {
    let dot = if path.is_empty() { "" } else { "." };
    let mark = match block.get("cache_control") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(mark)) => mark,
        Some(_) => {
            return Err(ApiError::invalid(format!(
                "{path}{dot}cache_control: Input should be a valid dictionary"
            )));
        }
    };
    if mark.get("type").and_then(Value::as_str) != Some("ephemeral") {
        return Err(ApiError::invalid(format!(
            "{path}{dot}cache_control.type: Input should be 'ephemeral'"
        )));
    }
    // Further keys of a mark belong to betas of their own.
    let more = betas.any(&[
        "prompt-caching-scope-2026-01-05",
        "prompt-caching-evict-2026-05-12",
        "cache-keepalive-2026-09-03",
    ]);
    if let Some(key) = mark
        .keys()
        .find(|key| !matches!(key.as_str(), "type" | "ttl"))
        .filter(|_| !more)
    {
        return Err(ApiError::extra(format!("{path}{dot}cache_control.{key}")));
    }
    match mark.get("ttl") {
        None | Some(Value::Null) => Ok(Some(Lifetime::Minutes5)),
        Some(Value::String(ttl)) if ttl == "5m" => Ok(Some(Lifetime::Minutes5)),
        Some(Value::String(ttl)) if ttl == "1h" => Ok(Some(Lifetime::Hour1)),
        Some(_) => Err(ApiError::invalid(format!(
            "{path}{dot}cache_control.ttl: Input should be '5m' or '1h'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{request, user};
    use serde_json::json;

    fn marked(text: &str, ttl: &str) -> Value {
        json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}})
    }

    fn run(body: &Value) -> Result<Vec<Mark>, String> {
        collect(&request(body, &[])).map_err(|error| error.message)
    }

    /// Fact: at most four marks, the automatic one included.
    #[test]
    fn at_most_four_marks() {
        let four: Vec<_> = (0..4).map(|n| marked(&n.to_string(), "5m")).collect();
        let mut five = four.clone();
        five.push(marked("5", "5m"));
        assert_eq!(
            run(&json!({"messages": [user(json!(four))]}))
                .unwrap()
                .len(),
            4
        );
        let text = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
        assert_eq!(
            run(&json!({"messages": [user(json!(five))]})).unwrap_err(),
            text
        );
        let automatic = json!({"cache_control": {"type": "ephemeral"},
            "messages": [user(json!(four)), user("more")]});
        assert_eq!(run(&automatic).unwrap_err(), text);
    }

    /// Fact: longer lifetimes come before shorter ones, in the order tools, system, messages.
    #[test]
    fn longer_lifetimes_come_first() {
        let good =
            json!({"system": [marked("s", "1h")], "messages": [user(json!([marked("a", "5m")]))]});
        assert!(run(&good).is_ok());
        let bad =
            json!({"system": [marked("s", "5m")], "messages": [user(json!([marked("a", "1h")]))]});
        assert_eq!(
            run(&bad).unwrap_err(),
            "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after \
             a ttl='5m' cache_control block. Note that blocks are processed in the following order: \
             `tools`, `system`, `messages`."
        );
    }

    /// Fact: the automatic mark stands on the last eligible block; an equal explicit
    /// mark there makes it a no-op, a different one is refused.
    #[test]
    fn the_automatic_mark_stands_last() {
        let with = |ttl: &str, last: Value| {
            run(&json!({"cache_control": {"type": "ephemeral", "ttl": ttl},
                "messages": [user("x"), user(json!([last]))]}))
        };
        let plain = with("1h", json!({"type": "text", "text": "y"})).unwrap();
        assert_eq!(
            plain,
            [Mark {
                place: Place::Message(1, 0),
                lifetime: Lifetime::Hour1
            }]
        );
        assert_eq!(with("5m", marked("y", "5m")).unwrap().len(), 1);
        assert!(with("5m", marked("y", "1h")).is_err());
    }

    /// Fact: the automatic mark walks back over thinking.
    #[test]
    fn the_automatic_mark_skips_thinking() {
        let body = json!({"cache_control": {"type": "ephemeral"}, "messages": [user("x"),
            {"role": "assistant", "content": [{"type": "text", "text": "y"},
                {"type": "thinking", "thinking": "t", "signature": "s"}]}]});
        assert_eq!(run(&body).unwrap()[0].place, Place::Message(1, 0));
    }

    /// Fact: with at least one mark the API marks results of server tools itself.
    #[test]
    fn results_of_server_tools_are_marked() {
        let server = json!([{"type": "web_search_tool_result", "tool_use_id": "s", "content": []}]);
        let with = |last: Value| {
            let messages =
                json!([user("x"), {"role": "assistant", "content": server}, user(json!([last]))]);
            run(&json!({"messages": messages})).unwrap()
        };
        assert_eq!(with(json!({"type": "text", "text": "y"})), []);
        let places: Vec<_> = with(marked("y", "1h"))
            .iter()
            .map(|mark| mark.place)
            .collect();
        assert_eq!(places, [Place::Message(1, 0), Place::Message(2, 0)]);
    }

    /// Fact: a mark is ephemeral, lives 5m or 1h, and has no other keys without their beta.
    #[test]
    fn the_shape_of_a_mark() {
        let with = |mark: Value| {
            let block = json!({"type": "text", "text": "x", "cache_control": mark});
            json!({"messages": [user(json!([block]))]})
        };
        assert!(run(&with(json!({"type": "ephemeral"}))).is_ok());
        assert!(run(&with(Value::Null)).unwrap().is_empty());
        assert!(run(&with(json!({"type": "forever"}))).is_err());
        assert!(run(&with(json!({"type": "ephemeral", "ttl": "2h"}))).is_err());
        let scoped = with(json!({"type": "ephemeral", "scope": "global"}));
        assert!(run(&scoped).is_err());
        assert!(collect(&request(&scoped, &["prompt-caching-scope-2026-01-05"])).is_ok());
    }
}
