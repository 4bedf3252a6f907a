//! Server-side context editing: `context_management.edits`.
//!
//! The client keeps its full history and the edits are applied to each request
//! anew. Clearing invalidates the prompt cache from the first cleared block on,
//! by itself: the rendered prompt differs from there.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::betas::{Betas, beta};
use super::error::{ApiError, Checked};
use super::pieces::Piece;
use super::prompt;
use super::request::{Request, Role, is_thinking, kind, text};
use super::tokens::Counter;

const CLEAR_TOOLS: &str = "clear_tool_uses_20250919";
const CLEAR_THINKING: &str = "clear_thinking_20251015";
const COMPACT: &str = "compact_20260112";
const SMALLEST_TRIGGER: u64 = 50_000;

/// What stands in for a cleared tool result.
pub const PLACEHOLDER: &str = "[Old tool result content cleared]";

/// The edits a request asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    /// Turns whose thinking is kept.
    thinking_turns: Option<usize>,
    tools: Option<ClearTools>,
    /// Threshold compaction.
    pub compact: Option<Compact>,
}

#[derive(Debug, Clone, PartialEq)]
struct ClearTools {
    trigger: Trigger,
    keep: usize,
    at_least: u64,
    exclude: BTreeSet<String>,
    inputs: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Tokens(u64),
    ToolUses(u64),
}

/// Compaction beyond a prompt size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compact {
    /// Prompt tokens beyond which it runs.
    pub trigger: u64,
    /// Whether the answer ends behind the summary.
    pub pause: bool,
}

/// Reads and checks `context_management`.
pub fn parse(request: &Request) -> Checked<Edits> {
    let mut edits = Edits::default();
    let Some(management) = request
        .fields
        .get("context_management")
        .filter(|m| !m.is_null())
    else {
        return Ok(edits);
    };
    let list = management
        .get("edits")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for (index, edit) in list.iter().enumerate() {
        let place = format!("context_management.edits.{index}");
        let kind = edit.get("type").and_then(Value::as_str).unwrap_or("");
        unlocked(&place, kind, &request.betas)?;
        match kind {
            CLEAR_THINKING if index > 0 => {
                return Err(ApiError::invalid(format!(
                    "{place}: `{CLEAR_THINKING}` must be the first edit"
                )));
            }
            CLEAR_THINKING => edits.thinking_turns = thinking_turns(edit, request),
            CLEAR_TOOLS => edits.tools = Some(clear_tools(edit)),
            COMPACT => edits.compact = Some(compact(&place, edit, request)?),
            _ => {}
        }
    }
    Ok(edits)
}

fn unlocked(place: &str, kind: &str, betas: &Betas) -> Checked {
    let needed = match kind {
        CLEAR_THINKING | CLEAR_TOOLS => beta::CONTEXT_MANAGEMENT,
        COMPACT => beta::COMPACT_THRESHOLD,
        _ => "",
    };
    if !needed.is_empty() && betas.has(needed) {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: \
         '{CLEAR_TOOLS}', '{CLEAR_THINKING}', '{COMPACT}'"
    )))
}

fn number(edit: &Value, field: &str) -> Option<u64> {
    edit.get(field)
        .and_then(|value| value.get("value"))
        .and_then(Value::as_u64)
}

/// `None` keeps all thinking.
fn thinking_turns(edit: &Value, request: &Request) -> Option<usize> {
    match (edit.get("keep"), number(edit, "keep")) {
        (_, Some(turns)) => Some(usize::try_from(turns).unwrap_or(usize::MAX)),
        (None, None) if request.model.strips_thinking => Some(1),
        _ => None,
    }
}

fn clear_tools(edit: &Value) -> ClearTools {
    let uses = edit
        .get("trigger")
        .and_then(|t| t.get("type"))
        .and_then(Value::as_str)
        == Some("tool_uses");
    let value = number(edit, "trigger").unwrap_or(100_000);
    let names = edit.get("exclude_tools").and_then(Value::as_array);
    ClearTools {
        trigger: if uses {
            Trigger::ToolUses(value)
        } else {
            Trigger::Tokens(value)
        },
        keep: usize::try_from(number(edit, "keep").unwrap_or(3)).unwrap_or(usize::MAX),
        at_least: number(edit, "clear_at_least").unwrap_or(0),
        exclude: names
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        inputs: edit
            .get("clear_tool_inputs")
            .cloned()
            .unwrap_or(Value::Bool(false)),
    }
}

fn compact(place: &str, edit: &Value, request: &Request) -> Checked<Compact> {
    if !request.model.compaction {
        return Err(ApiError::invalid(format!(
            "{place}: compaction is not supported on this model"
        )));
    }
    let trigger = number(edit, "trigger").unwrap_or(150_000);
    if trigger < SMALLEST_TRIGGER {
        return Err(ApiError::invalid(format!(
            "{place}.{COMPACT}.trigger.value: Input should be greater than or equal to {SMALLEST_TRIGGER}"
        )));
    }
    let pause = edit
        .get("pause_after_compaction")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    Ok(Compact { trigger, pause })
}

/// Applies the clearing edits; answers what `applied_edits` reports.
pub fn apply(
    edits: &Edits,
    pieces: &mut Vec<Piece<'_>>,
    request: &Request,
    counter: &Counter,
) -> Vec<Value> {
    let mut applied = Vec::new();
    if let Some(keep) = edits.thinking_turns {
        applied.extend(drop_thinking(keep, pieces, request, counter));
    }
    if let Some(clear) = &edits.tools {
        applied.extend(drop_tools(clear, pieces, request, counter));
    }
    applied
}

fn drop_thinking(
    keep: usize,
    pieces: &mut Vec<Piece<'_>>,
    request: &Request,
    counter: &Counter,
) -> Option<Value> {
    let thinking = pieces.iter().filter(|piece| is_thinking(&piece.block));
    let turns: BTreeSet<usize> = thinking.map(|piece| piece.message).collect();
    let cleared: BTreeSet<usize> = turns
        .iter()
        .copied()
        .take(turns.len().saturating_sub(keep))
        .collect();
    let mut tokens = 0;
    pieces.retain(|piece| {
        let gone = is_thinking(&piece.block) && cleared.contains(&piece.message);
        if gone {
            tokens += prompt::piece_tokens(&piece.block, request, counter);
        }
        !gone
    });
    (!cleared.is_empty()).then(|| {
        json!({"type": CLEAR_THINKING, "cleared_thinking_turns": cleared.len(),
            "cleared_input_tokens": tokens})
    })
}

fn drop_tools(
    clear: &ClearTools,
    pieces: &mut [Piece<'_>],
    request: &Request,
    counter: &Counter,
) -> Option<Value> {
    let names: HashMap<String, String> = pieces
        .iter()
        .filter(|piece| kind(&piece.block) == "tool_use")
        .map(|piece| {
            (
                text(&piece.block, "id").to_owned(),
                text(&piece.block, "name").to_owned(),
            )
        })
        .collect();
    let results = pieces
        .iter()
        .filter(|piece| kind(&piece.block) == "tool_result")
        .count();
    let triggered = match clear.trigger {
        Trigger::Tokens(value) => prompt::render(request, pieces, counter).tokens() > value,
        Trigger::ToolUses(value) => u64::try_from(results).unwrap_or(u64::MAX) > value,
    };
    if !triggered {
        return None;
    }
    let mut changes = Vec::new();
    let (mut count, mut cleared, mut saved) = (0, 0, 0);
    for (at, piece) in pieces.iter().enumerate() {
        let block = &piece.block;
        let (id, field) = match (piece.role, kind(block)) {
            (Role::User, "tool_result") => (text(block, "tool_use_id"), "content"),
            (Role::Assistant, "tool_use") => (text(block, "id"), "input"),
            _ => continue,
        };
        let name = names.get(id).map_or("", String::as_str);
        count += usize::from(field == "content");
        let index = if field == "content" { count } else { count + 1 };
        if index > results.saturating_sub(clear.keep) || clear.exclude.contains(name) {
            continue;
        }
        if field == "input" && !clears_input(&clear.inputs, name) {
            continue;
        }
        let mut stubbed = block.clone().into_owned();
        let stub = if field == "input" {
            json!({})
        } else {
            json!(PLACEHOLDER)
        };
        if stubbed.get(field) == Some(&stub) {
            continue;
        }
        stubbed.insert(field.to_owned(), stub);
        cleared += usize::from(field == "content");
        let before = prompt::piece_tokens(block, request, counter);
        saved += before.saturating_sub(prompt::piece_tokens(&stubbed, request, counter));
        changes.push((at, stubbed));
    }
    if cleared == 0 || saved < clear.at_least {
        return None;
    }
    for (at, stubbed) in changes {
        if let Some(piece) = pieces.get_mut(at) {
            piece.block = Cow::Owned(stubbed);
        }
    }
    Some(json!({"type": CLEAR_TOOLS, "cleared_tool_uses": cleared, "cleared_input_tokens": saved}))
}

fn clears_input(inputs: &Value, name: &str) -> bool {
    match inputs {
        Value::Bool(all) => *all,
        Value::Array(names) => names.iter().any(|value| value.as_str() == Some(name)),
        _ => false,
    }
}
