//! The finished message: ids, signatures, limits and usage put on a reply.

use serde_json::{Value, json};

use super::account::{Account, short_hash};
use super::binding::Verdict;
use super::canonical::Digest;
use super::prices::Tokens;
use super::reply::Reply;
use super::request::{Block, Request, Role, is_thinking, kind, text};
use super::seal::ThinkingSeal;
use super::thinking::Mode;
use super::tokens::Counter;
use super::{betas::beta, binding, prompt, rule};

/// A message as it is answered.
#[derive(Debug, Clone)]
pub struct Message {
    /// `msg_...`.
    pub id: String,
    /// The model as the request named it.
    pub model: String,
    /// Content blocks.
    pub content: Vec<Block>,
    /// Why it ends.
    pub stop_reason: String,
    /// The stop sequence that was met.
    pub stop_sequence: Option<String>,
    /// Tokens by class of the message itself.
    pub tokens: Tokens,
    /// Tokens of a compaction that ran in the same request.
    pub compaction: Option<Tokens>,
    /// What `usage.iterations` lists, where it is reported.
    pub iterations: Option<Vec<(&'static str, Tokens)>>,
    /// `input_transformations`, with the beta for it.
    pub transformations: Option<Value>,
    /// `context_management`, where edits were asked for.
    pub context_management: Option<Value>,
    /// `diagnostics`, where they were asked for.
    pub diagnostics: Option<Value>,
}

/// What a reply is finished with.
#[derive(Debug)]
pub struct Finish<'a> {
    /// The request that is answered.
    pub request: &'a Request,
    /// Who asked.
    pub account: &'a Account,
    /// What became of the thinking in the request.
    pub verdict: &'a Verdict,
    /// The counter.
    pub counter: &'a Counter,
    /// Size of the prompt.
    pub prompt: u64,
    /// Words of thinking where none is scripted.
    pub thinking_words: usize,
    /// A compaction block that goes in front of the reply.
    pub lead: Option<Block>,
}

impl Finish<'_> {
    /// Finishes a reply under an id.
    pub fn message(&self, reply: &Reply, id: &str, tokens: Tokens) -> Message {
        let mut blocks: Vec<Block> = reply
            .all_blocks()
            .into_iter()
            .filter_map(|block| match block {
                Value::Object(block) => Some(block),
                _ => None,
            })
            .collect();
        self.think(&mut blocks, reply.with_thinking);
        let stop_sequence = self.stop(&mut blocks);
        let cut = self.limit(&mut blocks);
        self.number(&mut blocks, id);
        blocks.splice(0..0, self.lead.clone());
        // A cut is made by the letter, so its count may come out a little over.
        let output = self
            .sign(&mut blocks, id)
            .clamp(1, self.request.max_tokens.max(1));
        let calls = blocks.iter().any(|block| kind(block) == "tool_use");
        let natural = if let Some(reason) = cut {
            reason
        } else if stop_sequence.is_some() {
            "stop_sequence"
        } else if calls {
            "tool_use"
        } else {
            "end_turn"
        };
        let transformations = self.request.betas.has(beta::BINDING);
        Message {
            id: id.to_owned(),
            model: self.request.name.clone(),
            stop_reason: reply
                .stop_reason
                .clone()
                .unwrap_or_else(|| natural.to_owned()),
            stop_sequence,
            tokens: Tokens {
                output: reply.output_tokens.unwrap_or(output),
                ..tokens
            },
            content: blocks,
            compaction: None,
            iterations: None,
            transformations: transformations.then(|| json!(self.verdict.transformations)),
            context_management: None,
            diagnostics: None,
        }
    }

    /// Leaves thinking out where the request has none, and adds it where the
    /// reply asks for the usual.
    fn think(&self, blocks: &mut Vec<Block>, usual: bool) {
        if !self.thinks() {
            blocks.retain(|block| !is_thinking(block));
            return;
        }
        if usual && !blocks.iter().any(is_thinking) {
            let seed = self
                .verdict
                .ends
                .first()
                .copied()
                .unwrap_or(self.verdict.base);
            let thought = rule::prose(seed.then(Digest::of("thinking")), self.thinking_words);
            if let Value::Object(block) = json!({"type": "thinking", "thinking": thought}) {
                blocks.insert(0, block);
            }
        }
    }

    fn thinks(&self) -> bool {
        let in_loop = self.request.in_tool_loop();
        match self.request.thinking.mode {
            Mode::Off => false,
            Mode::Adaptive => true,
            Mode::BetweenTools => in_loop,
            Mode::Manual { .. } => {
                let asked = self.request.betas.has(beta::INTERLEAVED);
                !in_loop || (asked && self.request.model.interleaves)
            }
        }
    }

    /// Cuts the text at the first stop sequence.
    fn stop(&self, blocks: &mut Vec<Block>) -> Option<String> {
        let sequences = self.request.fields.get("stop_sequences")?.as_array()?;
        for at in 0..blocks.len() {
            let block = blocks.get_mut(at)?;
            let words = text(block, "text").to_owned();
            let hits = sequences.iter().filter_map(Value::as_str);
            let first = hits
                .filter_map(|stop| Some((words.find(stop)?, stop)))
                .min();
            let Some((cut, stop)) = first else { continue };
            let kept = words.get(..cut).unwrap_or("").to_owned();
            block.insert("text".to_owned(), json!(kept));
            blocks.truncate(if kept.is_empty() { at } else { at + 1 });
            return Some(stop.to_owned());
        }
        None
    }

    /// Cuts the reply to what the request and the window have room for.
    fn limit(&self, blocks: &mut Vec<Block>) -> Option<&'static str> {
        let room = self.request.model.window.saturating_sub(self.prompt);
        let (limit, reason) = if room < self.request.max_tokens {
            (room, "model_context_window_exceeded")
        } else {
            (self.request.max_tokens, "max_tokens")
        };
        let mut used = 0;
        for at in 0..blocks.len() {
            let block = blocks.get_mut(at)?;
            let size = self.size(block);
            if used + size <= limit {
                used += size;
                continue;
            }
            let words = text(block, "text").to_owned();
            let shortened = shorten(&words, limit - used, self.counter);
            if shortened.is_empty() {
                blocks.truncate(at);
            } else {
                block.insert("text".to_owned(), json!(shortened));
                blocks.truncate(at + 1);
            }
            return Some(reason);
        }
        None
    }

    fn size(&self, block: &Block) -> u64 {
        if is_thinking(block) {
            return self.counter.text(text(block, "thinking")).max(1);
        }
        prompt::piece_tokens(block, self.request, self.counter)
    }

    /// Gives tool calls their ids and inputs.
    fn number(&self, blocks: &mut [Block], id: &str) {
        let seed = self
            .verdict
            .ends
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        for (index, block) in blocks
            .iter_mut()
            .enumerate()
            .filter(|(_, b)| kind(b) == "tool_use")
        {
            if !block.contains_key("id") {
                let hash = short_hash(&format!("{seed} {id} {index}"));
                block.shift_insert(1, "id".to_owned(), json!(format!("toolu_sim{hash}")));
            }
            if !block.contains_key("input") {
                block.insert("input".to_owned(), json!({}));
            }
        }
    }

    /// Signs thinking; answers the size of the whole reply.
    fn sign(&self, blocks: &mut [Block], id: &str) -> u64 {
        let total = blocks.iter().filter(|block| is_thinking(block)).count() as u64;
        let mut prefix = self
            .verdict
            .ends
            .first()
            .copied()
            .unwrap_or(self.verdict.base);
        let (mut index, mut output) = (0, 0);
        for block in blocks {
            // A summary in front was paid for as a call of its own.
            let size = if kind(block) == "compaction" {
                0
            } else {
                self.size(block)
            };
            output += size;
            if is_thinking(block) {
                if kind(block) == "thinking" && self.request.thinking.omitted {
                    block.insert("thinking".to_owned(), json!(""));
                }
                let seal = ThinkingSeal {
                    model: self.request.model.id.to_owned(),
                    organization: self.account.organization.clone(),
                    prefix,
                    content: binding::content(block),
                    reply: id.to_owned(),
                    index,
                    total,
                    tokens: size,
                };
                let field = if kind(block) == "thinking" {
                    "signature"
                } else {
                    "data"
                };
                block.insert(field.to_owned(), json!(seal.sign()));
                index += 1;
            }
            if kind(block) == "compaction" && block.get("content").is_none_or(Value::is_null) {
                continue;
            }
            if kind(block) == "compaction" {
                // What comes after continues the summary, not what it stands for.
                prefix = self.verdict.base;
            }
            prefix = prefix.then(Digest::block(Role::Assistant, block));
        }
        output
    }
}

/// The longest start of a text that fits, roughly.
fn shorten(words: &str, tokens: u64, counter: &Counter) -> String {
    let all = counter.text(words).max(1);
    let chars = u64::try_from(words.chars().count()).unwrap_or(u64::MAX);
    let keep = usize::try_from(chars.saturating_mul(tokens) / all).unwrap_or(usize::MAX);
    words
        .chars()
        .take(keep)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

impl Message {
    /// `usage` with the output counted so far.
    pub fn usage(&self, output: u64) -> Value {
        let mut usage = tokens_json(&Tokens {
            output,
            ..self.tokens
        });
        if let Some(object) = usage.as_object_mut() {
            object.insert("service_tier".to_owned(), json!("standard"));
            if let Some(iterations) = &self.iterations {
                let list: Vec<Value> = iterations
                    .iter()
                    .map(|(kind, tokens)| {
                        let mut entry = tokens_json(tokens);
                        put(&mut entry, "type", json!(kind));
                        entry
                    })
                    .collect();
                object.insert("iterations".to_owned(), json!(list));
            }
        }
        usage
    }

    /// The answer to a request that is not streamed.
    pub fn json(&self) -> Value {
        let mut message = json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.content,
            "stop_reason": self.stop_reason,
            "stop_sequence": self.stop_sequence,
            "usage": self.usage(self.tokens.output),
        });
        if let Some(details) = self.stop_details() {
            put(&mut message, "stop_details", details);
        }
        if let Some(transformations) = &self.transformations {
            put(
                &mut message,
                "input_transformations",
                transformations.clone(),
            );
        }
        if let Some(diagnostics) = &self.diagnostics {
            put(&mut message, "diagnostics", diagnostics.clone());
        }
        if let Some(management) = &self.context_management {
            put(&mut message, "context_management", management.clone());
        }
        message
    }

    /// What a refusal says about itself.
    pub fn stop_details(&self) -> Option<Value> {
        (self.stop_reason == "refusal")
            .then(|| json!({"type": "refusal", "category": null, "explanation": null}))
    }

    /// Everything that is billed: the message and a compaction before it.
    pub fn billed(&self) -> Vec<Tokens> {
        let mut billed = vec![self.tokens];
        billed.extend(self.compaction);
        billed
    }
}

fn tokens_json(tokens: &Tokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.write_5m + tokens.write_1h,
        "cache_read_input_tokens": tokens.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.write_5m,
            "ephemeral_1h_input_tokens": tokens.write_1h,
        },
        "output_tokens": tokens.output,
    })
}

/// Sets a field of an object.
pub(super) fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}
