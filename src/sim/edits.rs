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
use super::pieces::{self, Piece};
use super::request::{Request, Role, is_thinking, kind, text};
use super::tokens::Counter;
use super::{prompt, shape};

const CLEAR_TOOLS: &str = "clear_tool_uses_20250919";
const CLEAR_THINKING: &str = "clear_thinking_20251015";
const COMPACT: &str = "compact_20260112";
const SMALLEST_TRIGGER: u64 = 50_000;

/// What stands in for a cleared tool result.
pub const PLACEHOLDER: &str = "[Old tool result content cleared]";

/// The edits a request asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    /// What thinking is kept, where the request says so.
    pub thinking: Option<Keep>,
    tools: Option<ClearTools>,
    /// Threshold compaction.
    pub compact: Option<Compact>,
}

/// Which thinking `clear_thinking` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All of it, also on models that strip old thinking by themselves.
    All,
    /// That of so many turns.
    Turns(usize),
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
    let Value::Object(management) = management else {
        return Err(not("context_management", "a valid dictionary"));
    };
    shape::fields("context_management", management, &[], &["edits"])?;
    let list = match management.get("edits") {
        None | Some(Value::Null) => return Ok(edits),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(not("context_management.edits", "a valid list")),
    };
    for (index, edit) in list.iter().enumerate() {
        let place = format!("context_management.edits.{index}");
        let kind = edit.get("type").and_then(Value::as_str).unwrap_or("");
        unlocked(&place, kind, &request.betas)?;
        fields(&format!("{place}.{kind}"), kind, edit)?;
        match kind {
            CLEAR_THINKING if index > 0 => {
                return Err(ApiError::invalid(format!(
                    "{place}: `{CLEAR_THINKING}` must be the first edit"
                )));
            }
            CLEAR_THINKING => edits.thinking = keep(&place, edit)?,
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

fn not(place: &str, what: &str) -> ApiError {
    ApiError::invalid(format!("{place}: Input should be {what}"))
}

/// Every edit has its own fields, and every amount its own units.
fn fields(place: &str, kind: &str, edit: &Value) -> Checked {
    let (allowed, amounts): (&[&str], &[(&str, &[&str])]) = match kind {
        CLEAR_TOOLS => (
            &[
                "trigger",
                "keep",
                "clear_at_least",
                "exclude_tools",
                "clear_tool_inputs",
            ],
            &[
                ("trigger", &["input_tokens", "tool_uses"]),
                ("keep", &["tool_uses"]),
                ("clear_at_least", &["input_tokens"]),
            ],
        ),
        CLEAR_THINKING => (&["keep"], &[]),
        _ => (
            &["trigger", "instructions", "pause_after_compaction"],
            &[("trigger", &["input_tokens"])],
        ),
    };
    if let Value::Object(edit) = edit {
        shape::fields(place, edit, &[], allowed)?;
    }
    for (field, units) in amounts {
        let Some(amount) = edit.get(field).filter(|amount| !amount.is_null()) else {
            continue;
        };
        let unit = amount.get("type").and_then(Value::as_str).unwrap_or("");
        if !units.contains(&unit) {
            let units = units.join("' or '");
            return Err(not(&format!("{place}.{field}.type"), &format!("'{units}'")));
        }
        if number(edit, field).is_none() {
            return Err(not(&format!("{place}.{field}.value"), "a valid integer"));
        }
    }
    Ok(())
}

/// `None` leaves the choice to the model.
fn keep(place: &str, edit: &Value) -> Checked<Option<Keep>> {
    let keep = match edit.get("keep") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(all)) => Some(all.as_str()),
        Some(keep) => keep.get("type").and_then(Value::as_str),
    };
    match (keep, number(edit, "keep")) {
        (Some("all"), _) => Ok(Some(Keep::All)),
        (Some("thinking_turns"), Some(turns)) if turns > 0 => Ok(Some(Keep::Turns(
            usize::try_from(turns).unwrap_or(usize::MAX),
        ))),
        _ => Err(not(
            &format!("{place}.{CLEAR_THINKING}.keep"),
            "'all' or a number of thinking turns greater than 0",
        )),
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
    if let Some(Keep::Turns(keep)) = edits.thinking {
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
    // A tool loop is one turn, however many messages it takes.
    let turns = pieces::turns(pieces);
    let thinks = |(piece, turn): (&Piece<'_>, &usize)| is_thinking(&piece.block).then_some(*turn);
    let all: BTreeSet<usize> = pieces.iter().zip(&turns).filter_map(thinks).collect();
    let gone = all.len().saturating_sub(keep);
    let cleared: BTreeSet<usize> = all.into_iter().take(gone).collect();
    let mut tokens = 0;
    let mut turn = turns.iter();
    pieces.retain(|piece| {
        let old = turn.next().is_some_and(|turn| cleared.contains(turn));
        let gone = old && is_thinking(&piece.block);
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
