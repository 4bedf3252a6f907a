//! A request as the checks see it.
//!
//! Parsed once: string content becomes one text block, as the API treats it,
//! and every block stays the JSON object it was, key order included, because
//! the order of a tool call's input is part of what is cached and signed.

use http::HeaderMap;
use serde_json::{Map, Value};

use super::betas::{Betas, Version};
use super::error::{ApiError, Checked};
use super::models::Model;
use super::options::Options;
use super::thinking::Settings;
use super::{fields, shape, thinking, tools};

/// A content block, a system block or a tool.
pub type Block = Map<String, Value>;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user, tool results included.
    User,
    /// The model.
    Assistant,
    /// The operator, in the middle of the conversation.
    System,
}

/// One entry of `messages`.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
    /// For a system message: it is gone once the user speaks again.
    pub fleeting: bool,
}

/// Which of the two endpoints with this body was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/messages`.
    Messages,
    /// `/v1/messages/count_tokens`.
    CountTokens,
}

/// A request whose fields and blocks have the right shape.
#[derive(Debug, Clone)]
pub struct Request {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// `anthropic-version`.
    pub version: Version,
    /// `anthropic-beta`.
    pub betas: Betas,
    /// The model as the request names it.
    pub name: String,
    /// What is known of it.
    pub model: Model,
    /// `max_tokens`; 0 on `count_tokens`.
    pub max_tokens: u64,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// `system` as blocks.
    pub system: Vec<Block>,
    /// `tools`.
    pub tools: Vec<Block>,
    /// `messages`.
    pub messages: Vec<Message>,
    /// Thinking settings.
    pub thinking: Settings,
    /// All other top-level fields.
    pub fields: Block,
}

/// A block and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'a> {
    /// Index of the message.
    pub message: usize,
    /// Index of the block in it.
    pub index: usize,
    /// The block.
    pub block: &'a Block,
}

/// Messages of one role in a row: the API merges them.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// Who speaks.
    pub role: Role,
    /// The blocks of all its messages.
    pub blocks: Vec<Placed<'a>>,
}

impl Request {
    /// Parses a body; the shape of everything in it is checked here.
    pub fn parse(
        endpoint: Endpoint,
        headers: &HeaderMap,
        body: &[u8],
        options: &Options,
    ) -> Checked<Self> {
        let version = Version::of(headers)?;
        let betas = Betas::of(headers);
        let mut refused = Vec::new();
        if !options.compaction {
            refused.push(super::betas::beta::COMPACT_ON_DEMAND);
        }
        if !options.context_management {
            refused.push(super::betas::beta::CONTEXT_MANAGEMENT);
        }
        betas.check(&refused)?;
        let value: Value = serde_json::from_slice(body).map_err(|error| {
            ApiError::invalid(format!("The request body is not valid JSON: {error}"))
        })?;
        let Value::Object(mut object) = value else {
            return Err(ApiError::invalid("Input should be a valid dictionary"));
        };
        let known = fields::check(endpoint, version, &betas, &object)?;
        let model = options
            .model(&known.model)
            .ok_or_else(|| ApiError::new(404, format!("model: {}", known.model)))?;
        let system = shape::system(object.shift_remove("system"))?;
        let tools = tools::parse(object.shift_remove("tools"))?;
        let messages = shape::messages(object.shift_remove("messages"), &betas, options)?;
        object.shift_remove("model");
        let thinking = thinking::settings(
            object.get("thinking"),
            &object,
            &model,
            known.max_tokens,
            &betas,
        )?;
        Ok(Self {
            endpoint,
            version,
            betas,
            name: known.model,
            model,
            max_tokens: known.max_tokens,
            stream: known.stream,
            system,
            tools,
            messages,
            thinking,
            fields: object,
        })
    }

    /// The messages merged into turns; mid-conversation system messages are
    /// left out, as they do not end a turn.
    pub fn turns(&self) -> Vec<Turn<'_>> {
        turns(&self.messages)
    }

    /// Whether the request ends with tool results only: a tool loop is open.
    pub fn in_tool_loop(&self) -> bool {
        self.turns().last().is_some_and(Turn::only_results)
    }

    /// Whether the request answers tool calls, whatever else it says with them.
    pub fn answers_calls(&self) -> bool {
        self.answered_calls().next().is_some()
    }

    /// The ids of the calls that the last user turn answers.
    pub fn answered_calls(&self) -> impl Iterator<Item = &str> {
        let last = self
            .messages
            .iter()
            .rev()
            .skip_while(|message| message.role == Role::System);
        let turn = last.take_while(|message| message.role == Role::User);
        let blocks = turn.flat_map(|message| &message.blocks);
        blocks
            .filter(|block| kind(block) == "tool_result")
            .map(|block| text(block, "tool_use_id"))
    }

    /// Whether this is a request for on-demand compaction.
    pub fn wants_compaction(&self) -> bool {
        self.endpoint == Endpoint::Messages
            && self.fields.get("compaction").is_some_and(Value::is_object)
    }
}

impl Turn<'_> {
    /// Whether it is a user turn of nothing but tool results.
    pub fn only_results(&self) -> bool {
        self.role == Role::User
            && !self.blocks.is_empty()
            && self
                .blocks
                .iter()
                .all(|placed| kind(placed.block) == "tool_result")
    }
}

impl Placed<'_> {
    /// The path by which errors name the block.
    pub fn path(&self) -> String {
        path(self.message, self.index)
    }
}

/// The path by which errors name a block.
pub fn path(message: usize, index: usize) -> String {
    format!("messages.{message}.content.{index}")
}

/// The type of a block.
pub fn kind(block: &Block) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or("")
}

/// A string field of a block, empty if there is none.
pub fn text<'a>(block: &'a Block, field: &str) -> &'a str {
    block.get(field).and_then(Value::as_str).unwrap_or("")
}

/// Whether a block is thinking of either kind.
pub fn is_thinking(block: &Block) -> bool {
    matches!(kind(block), "thinking" | "redacted_thinking")
}

/// Messages merged into turns, without mid-conversation system messages.
pub fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        if message.role == Role::System {
            continue;
        }
        let blocks = message
            .blocks
            .iter()
            .enumerate()
            .map(|(index, block)| Placed {
                message: number,
                index,
                block,
            });
        match turns.last_mut() {
            Some(turn) if turn.role == message.role => turn.blocks.extend(blocks),
            _ => turns.push(Turn {
                role: message.role,
                blocks: blocks.collect(),
            }),
        }
    }
    turns
}
