//! What is left out of a recording, said in a sentence each.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Line;
use crate::replay::recording::{Recording, kind, lacks_start, text};

/// Why an answer that follows another one directly has no request of its own.
pub const JOINED: &str = "the answer goes on from the one before it and is played as one with it";

/// Says how many lines are messages of another form than the rest.
pub fn tell_others(lines: &[Line], is_other: fn(&Value) -> bool, warnings: &mut Vec<String>) {
    let others = lines.iter().filter(|line| is_other(&line.value)).count();
    warnings.extend((others > 0).then(|| {
        let lines = counted(others, "line");
        format!(": left out: {lines} of another form than the rest")
    }));
}

/// Says which tools were run by the API itself. Their calls and results stand in
/// one answer and cannot be answered again, so they are left out.
pub fn tell_server_tools(lines: &[Line], warnings: &mut Vec<String>) {
    let contents = lines.iter().flat_map(|Line { value, .. }| {
        let held = value.get("messages").and_then(Value::as_array);
        let held = held.into_iter().flatten();
        held.chain(value.get("message")).chain([value])
    });
    let contents = contents.filter_map(|message| message.get("content")?.as_array());
    let of_server = contents.flatten().filter(|block| is_of_server(block));
    let names: BTreeSet<&str> = of_server
        .map(|block| text(block, "name"))
        .filter(|name| !name.is_empty())
        .collect();
    warnings.extend((!names.is_empty()).then(|| {
        let names: Vec<&str> = names.into_iter().collect();
        let names = names.join(", ");
        format!(": left out: what tools that the API runs itself were asked and said: {names}")
    }));
}

/// Says how many histories begin in the middle of the work.
pub fn tell_missing_starts<'a>(
    recordings: impl Iterator<Item = &'a Recording>,
    warnings: &mut Vec<String>,
) {
    let stretches = recordings.flat_map(|recording| &recording.stretches);
    let missing = stretches.filter(|stretch| lacks_start(stretch)).count();
    warnings.extend((missing > 0).then(|| {
        let times = counted(missing, "time");
        format!(": the start of a history was not recorded, {times}: one line stands for it")
    }));
}

/// Whether a block is of a tool that the API runs itself.
pub fn is_of_server(block: &Value) -> bool {
    let kind = kind(block);
    matches!(kind, "server_tool_use" | "mcp_tool_use") || kind.ends_with("_tool_result")
}

/// So many of something, in words.
pub fn counted(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}
