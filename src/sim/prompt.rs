//! The prompt as the model gets it, cut into cacheable positions.
//!
//! Tools, then system, then messages. Each position has a digest of everything
//! up to it, which is what the prompt cache compares, and a running token
//! count. Settings that change how a layer is rendered are mixed in where the
//! layer begins, so that changing one misses the cache from there on.

use serde_json::Value;

use super::canonical::Digest;
use super::marks::Place;
use super::pieces::Piece;
use super::request::{Block, Request, is_thinking, kind, text};
use super::seal::ThinkingSeal;
use super::tokens::Counter;
use super::{binding, tools};

/// One position of the prompt.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// Where it comes from.
    pub place: Place,
    /// Digest of the prompt up to and including it.
    pub digest: Digest,
    /// Tokens of the prompt up to and including it.
    pub tokens: u64,
}

/// A prompt.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// Its positions in order.
    pub positions: Vec<Position>,
}

impl Prompt {
    /// Its size in tokens.
    pub fn tokens(&self) -> u64 {
        self.positions.last().map_or(0, |position| position.tokens)
    }
}

/// Tokens of the frame around a conversation.
const FRAME: u64 = 8;

/// The first system block of this kind is for the API itself, not for the model.
const BILLING_LINE: &str = "x-anthropic-billing-header:";

/// The system blocks that are rendered, with their index.
pub fn rendered_system(request: &Request) -> impl Iterator<Item = (usize, &Block)> {
    let billing =
        |index: usize, block: &Block| index == 0 && text(block, "text").starts_with(BILLING_LINE);
    request
        .system
        .iter()
        .enumerate()
        .filter(move |(index, block)| !billing(*index, block))
}

/// Renders a prompt.
pub fn render(request: &Request, pieces: &[Piece<'_>], counter: &Counter) -> Prompt {
    let mut prompt = Builder {
        positions: Vec::new(),
        tokens: 0,
        digest: Digest::of(request.model.id),
    };
    for (index, tool) in request
        .tools
        .iter()
        .enumerate()
        .filter(|(_, tool)| tools::is_loaded(tool))
    {
        prompt.push(
            Place::Tool(index),
            Digest::part(tool),
            tool_tokens(tool, counter),
        );
    }
    prompt.mix(&system_salt(request, pieces));
    for (index, block) in rendered_system(request) {
        prompt.push(
            Place::System(index),
            Digest::part(block),
            counter.block(block),
        );
    }
    prompt.mix(&messages_salt(request, pieces));
    prompt.tokens += FRAME;
    for piece in pieces {
        let digest = Digest::block(piece.role, &piece.block);
        let tokens = piece_tokens(&piece.block, request, counter);
        prompt.push(Place::Message(piece.message, piece.index), digest, tokens);
    }
    Prompt {
        positions: prompt.positions,
    }
}

/// Tokens of a content block in its conversation.
pub fn piece_tokens(block: &Block, request: &Request, counter: &Counter) -> u64 {
    if is_thinking(block) {
        // What was thought need not be what is shown; the signature knows.
        let seal = ThinkingSeal::open(binding::signature(block));
        return seal.map_or_else(|| counter.text(text(block, "thinking")), |seal| seal.tokens);
    }
    counter.block(block) + referenced_tools(block, request, counter)
}

/// A reference loads the definition of a deferred tool at its place.
fn referenced_tools(block: &Block, request: &Request, counter: &Counter) -> u64 {
    let nested = block.get("content").and_then(Value::as_array);
    let names = nested
        .into_iter()
        .flatten()
        .filter_map(|inner| inner.get("tool_name")?.as_str());
    names
        .filter_map(|name| request.tools.iter().find(|tool| text(tool, "name") == name))
        .map(|tool| tool_tokens(tool, counter))
        .sum()
}

fn tool_tokens(tool: &Block, counter: &Counter) -> u64 {
    let mut tool = tool.clone();
    tool.shift_remove("cache_control");
    counter.json(&Value::Object(tool))
}

struct Builder {
    positions: Vec<Position>,
    tokens: u64,
    digest: Digest,
}

impl Builder {
    fn push(&mut self, place: Place, digest: Digest, tokens: u64) {
        self.tokens += tokens;
        self.digest = self.digest.then(digest);
        self.positions.push(Position {
            place,
            digest: self.digest,
            tokens: self.tokens,
        });
    }

    fn mix(&mut self, salt: &str) {
        self.digest = self.digest.then(Digest::of(salt));
    }
}

/// Web search, citations and speed change how the system prompt is rendered.
fn system_salt(request: &Request, pieces: &[Piece<'_>]) -> String {
    let search = request
        .tools
        .iter()
        .any(|tool| kind(tool).starts_with("web_search"));
    let citations = pieces.iter().any(|piece| cites(&piece.block));
    let speed = request
        .fields
        .get("speed")
        .and_then(Value::as_str)
        .unwrap_or("standard");
    format!("system {search} {citations} {speed}")
}

/// Tool choice, thinking settings, effort and the presence of images change how
/// the messages are rendered. An explicit default is the same as nothing.
fn messages_salt(request: &Request, pieces: &[Piece<'_>]) -> String {
    let choice = request
        .fields
        .get("tool_choice")
        .filter(|choice| !choice.is_null());
    let choice = match choice {
        Some(choice) if choice.get("type").and_then(Value::as_str) != Some("auto") => {
            choice.to_string()
        }
        other => {
            let flag = other.and_then(|choice| choice.get("disable_parallel_tool_use"));
            format!("auto {}", flag.and_then(Value::as_bool).unwrap_or(false))
        }
    };
    let effort = request
        .fields
        .get("output_config")
        .and_then(|config| config.get("effort"));
    let effort = effort.and_then(Value::as_str).unwrap_or("high");
    let images = pieces.iter().any(|piece| has_image(&piece.block));
    format!(
        "messages {choice} {} {effort} {images}",
        request.thinking.rendering()
    )
}

/// Whether a block, or one in a tool result, has citations switched on.
fn cites(block: &Block) -> bool {
    let enabled = |block: &Block| {
        let citations = block.get("citations");
        let enabled = citations.and_then(|citations| citations.get("enabled"));
        enabled.and_then(Value::as_bool) == Some(true)
    };
    let nested = block.get("content").and_then(Value::as_array);
    let mut nested = nested.into_iter().flatten().filter_map(Value::as_object);
    enabled(block) || nested.any(enabled)
}

fn has_image(block: &Block) -> bool {
    let nested = block.get("content").and_then(Value::as_array);
    kind(block) == "image"
        || nested
            .into_iter()
            .flatten()
            .any(|inner| inner.get("type").and_then(Value::as_str) == Some("image"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::pieces::pieces;
    use crate::sim::testing::{assistant, request, user};
    use serde_json::json;

    fn digests(body: &Value) -> Vec<Digest> {
        let request = request(body, &[]);
        let pieces = pieces(&request, &std::collections::BTreeSet::new());
        let prompt = render(&request, &pieces, &Counter::new(1.0));
        prompt
            .positions
            .iter()
            .map(|position| position.digest)
            .collect()
    }

    fn body() -> Value {
        json!({"model": "claude-opus-4-6",
            "tools": [{"name": "t", "input_schema": {"type": "object"}}],
            "system": "s", "messages": [user("a"), assistant("b"), user("c")]})
    }

    fn common(change: impl Fn(&mut Value)) -> usize {
        let (before, mut after) = (body(), body());
        change(&mut after);
        let (before, after) = (digests(&before), digests(&after));
        before
            .iter()
            .zip(&after)
            .take_while(|(a, b)| a == b)
            .count()
    }

    /// Fact: what invalidates which layer: positions are one tool, one system
    /// block and three message blocks.
    #[test]
    fn settings_invalidate_their_layer() {
        let image = json!([{"type": "image", "source": {"type": "url", "url": "u"}}]);
        let table: &[(&str, &str, Value, usize)] = &[
            ("nothing", "max_tokens", json!(9), 5),
            ("model", "model", json!("claude-sonnet-4-6"), 0),
            (
                "tools",
                "tools",
                json!([{"name": "u", "input_schema": {"type": "object"}}]),
                0,
            ),
            ("speed", "speed", json!("fast"), 1),
            ("system text", "system", json!("z"), 1),
            ("tool choice", "tool_choice", json!({"type": "none"}), 2),
            (
                "default tool choice",
                "tool_choice",
                json!({"type": "auto"}),
                5,
            ),
            (
                "parallel tools",
                "tool_choice",
                json!({"type": "auto", "disable_parallel_tool_use": true}),
                2,
            ),
            ("thinking", "thinking", json!({"type": "adaptive"}), 2),
            (
                "default thinking",
                "thinking",
                json!({"type": "disabled"}),
                5,
            ),
            ("effort", "output_config", json!({"effort": "low"}), 2),
            (
                "default effort",
                "output_config",
                json!({"effort": "high"}),
                5,
            ),
            (
                "image",
                "messages",
                json!([user("a"), assistant("b"), user("c"), user(image)]),
                2,
            ),
            (
                "more",
                "messages",
                json!([user("a"), assistant("b"), user("c"), user("d")]),
                5,
            ),
        ];
        for (what, field, value, expected) in table {
            let kept = common(|body| body[*field] = value.clone());
            assert_eq!(kept, *expected, "{what}");
        }
    }

    /// Fact: web search and citations toggles keep the tools but not the system prompt.
    #[test]
    fn citations_invalidate_the_system_prompt() {
        let document = json!([{"type": "document", "source": {"type": "text", "data": "d"},
            "citations": {"enabled": true}}]);
        assert_eq!(
            common(|body| body["messages"] = json!([user("a"), user(document.clone())])),
            1
        );
        let found = |enabled: bool| {
            let result = json!({"type": "search_result", "content": [], "source": "s",
                "title": "t", "citations": {"enabled": enabled}});
            let nested = json!({"type": "tool_result", "tool_use_id": "a", "content": [result]});
            json!([user("a"), user(json!([nested]))])
        };
        assert_eq!(common(|body| body["messages"] = found(true)), 1);
        assert_eq!(common(|body| body["messages"] = found(false)), 3);
    }

    /// Fact: deferred tools do not break the tool layer.
    #[test]
    fn deferred_tools_are_not_rendered() {
        let kept = common(|body| {
            let deferred =
                json!({"name": "z", "input_schema": {"type": "object"}, "defer_loading": true});
            body["tools"].as_array_mut().unwrap().push(deferred);
        });
        assert_eq!(kept, 5);
    }

    /// Fact: the billing line is stripped only as the first block on its own.
    #[test]
    fn the_billing_line_is_not_rendered() {
        let line =
            |version: u8| json!({"type": "text", "text": format!("{BILLING_LINE} v={version}")});
        let other = json!({"type": "text", "text": "s"});
        let with = |system: Value| digests(&json!({"system": system, "messages": [user("a")]}));
        assert_eq!(with(json!([line(1), other])), with(json!([line(2), other])));
        assert_ne!(with(json!([other, line(1)])), with(json!([other, line(2)])));
    }
}
