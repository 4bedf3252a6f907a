//! Thinking of an open tool loop must come back as it was.
//!
//! A tool loop is one assistant turn: while its calls are being answered, the
//! thinking in its latest message may be neither filtered nor reordered. In
//! manual mode the turn must also begin with thinking.

use std::collections::HashMap;

use super::binding::{Issued, signature};
use super::error::{ApiError, Checked};
use super::options::Options;
use super::request::{Request, Role, Turn, is_thinking, kind, path, text};
use super::seal::ThinkingSeal;

/// Checks the latest assistant message.
pub fn check(request: &Request, options: &Options, issued: &Issued) -> Checked {
    // With thinking switched off in mid-turn the API strips what is there.
    if !request.thinking.is_on() {
        return Ok(());
    }
    let turns = request.turns();
    let Some(latest) = turns.iter().rfind(|turn| turn.role == Role::Assistant) else {
        return Ok(());
    };
    let model = request.model.id;
    let intact = whole(latest, model)
        && (!request.answers_calls()
            || !options.loop_thinking_required
            || complete(latest, model, issued));
    if !intact {
        let thinking = latest
            .blocks
            .iter()
            .find(|placed| is_thinking(placed.block));
        let place = thinking
            .or(latest.blocks.first())
            .map_or((0, 0), |at| (at.message, at.index));
        return Err(modified(place.0, place.1));
    }
    let prefilled = turns
        .last()
        .is_some_and(|turn| turn.role == Role::Assistant);
    if (request.in_tool_loop() || prefilled) && request.thinking.is_manual() {
        starts_with_thinking(request)
    } else {
        Ok(())
    }
}

/// The refusal of a changed latest assistant message.
pub fn modified(number: usize, index: usize) -> ApiError {
    ApiError::invalid(format!(
        "{}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be \
         modified. These blocks must remain as they were in the original response.",
        path(number, index)
    ))
}

/// Whether the thinking of each reply in a turn is all there and in order.
fn whole(turn: &Turn<'_>, model: &str) -> bool {
    let mut expected: Option<(String, u64)> = None;
    for seal in thinking(turn).filter_map(ThinkingSeal::open) {
        if seal.model != model {
            continue;
        }
        let fits = match &expected {
            Some((reply, next)) => seal.reply == *reply && seal.index == *next,
            None => seal.index == 0,
        };
        if !fits {
            return false;
        }
        let more = seal.index + 1 < seal.total;
        expected = more.then(|| (seal.reply.clone(), seal.index + 1));
    }
    expected.is_none()
}

/// Whether the thinking that came with each call is there, on its side of the call.
fn complete(turn: &Turn<'_>, model: &str, issued: &Issued) -> bool {
    let thinking = turn.blocks.iter().enumerate();
    let present: HashMap<&str, usize> = thinking
        .filter(|(_, placed)| is_thinking(placed.block))
        .map(|(at, placed)| (signature(placed.block), at))
        .collect();
    let calls = turn
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, placed)| kind(placed.block) == "tool_use");
    calls
        .filter_map(|(at, call)| Some((at, issued.get(text(call.block, "id"))?)))
        .all(|(call, thought)| {
            thought.iter().all(|(signature, before)| {
                let ours = ThinkingSeal::open(signature).is_some_and(|seal| seal.model == model);
                let stands = present.get(signature.as_str());
                !ours || stands.is_some_and(|at| (*at < call) == *before)
            })
        })
}

fn thinking<'a>(turn: &'a Turn<'a>) -> impl Iterator<Item = &'a str> {
    turn.blocks
        .iter()
        .filter(|placed| is_thinking(placed.block))
        .map(|placed| signature(placed.block))
}

/// The turn that is being answered begins behind the last message that is not
/// only tool results.
fn starts_with_thinking(request: &Request) -> Checked {
    let turns = request.turns();
    let asked = turns
        .iter()
        .rposition(|turn| turn.role == Role::User && !turn.only_results());
    let first: Option<&Turn<'_>> = asked.map_or_else(|| turns.first(), |at| turns.get(at + 1));
    let Some(placed) = first.and_then(|turn| turn.blocks.first()) else {
        return Ok(());
    };
    if is_thinking(placed.block) {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "{}.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is \
         enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost \
         set of `tool_use` and `tool_result` blocks). To avoid this requirement, you must disable \
         `thinking`.",
        placed.path(),
        kind(placed.block)
    )))
}
