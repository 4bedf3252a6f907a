//! What was started in a span, goes on in the background, and has not been seen
//! to end.
//!
//! A shell or an agent that runs on is known only by the id it was given; once
//! that is out of sight, nobody can ask after it or stop it. The id stands in the
//! result that says it was started. It ends when it is stopped, when its output
//! is asked for and it no longer runs, or when the client says so.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memmem;
use serde_json::Value;

use super::quote::{self, DATA};
use crate::engine::acts::{Act, plain_name};
use crate::engine::candidates::{self, Deed};
use crate::engine::conversation::Conversation;
use crate::wire::body::Role;

/// How far into a result is looked for what the client says.
const BEGINNING: usize = 500;
/// How far into it what was started is said: further on it is output.
const FIRST: usize = 160;
/// The longest id.
const ID: usize = 64;
/// Shown, at most: the newest.
const MOST: usize = 30;
/// A longer input is not looked into.
const INPUT: usize = 256 * 1024;

/// Results that say that something runs on: the tools, a phrase, and what stands
/// before the id from that phrase on.
const STARTS: [(&[&str], &str, &str); 5] = [
    (SHELLS, "running in background with ID: ", "with ID: "),
    (SHELLS, "backgrounded by user with ID: ", "with ID: "),
    (SHELLS, "moved to the background with ID: ", "with ID: "),
    (&["task", "agent"], "Async agent launched", "agentId: "),
    (
        &["execcommand", "writestdin"],
        "Process running with session ID ",
        "session ID ",
    ),
];
const SHELLS: &[&str] = &["bash", "powershell"];

/// Tools that stop something.
const STOPS: &[&str] = &[
    "killshell",
    "killbash",
    "taskstop",
    "stopbash",
    "stoppowershell",
];
/// Tools that ask after something.
const ASKS: &[&str] = &[
    "bashoutput",
    "taskoutput",
    "agentoutputtool",
    "readbash",
    "readpowershell",
    "writestdin",
];
/// Where such a call says what it is about.
const IDS: [&str; 7] = [
    "task_id",
    "shell_id",
    "bash_id",
    "session_id",
    "agent_id",
    "shellId",
    "agentId",
];
/// Where a call says what it starts, the most telling first.
const ABOUT: [&str; 4] = ["command", "cmd", "description", "prompt"];
/// Where what the client says ends, and the output begins.
const OUTPUTS: [&str; 3] = ["<output>", "<stdout>", "Output:"];
/// How a client tells of something that has ended.
const NOTICE: &[u8] = b"<task-id>";

/// Something that runs on: its id, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    id: String,
    about: String,
}

/// What was started in a span and goes on, oldest first.
pub(super) fn running(
    conversation: &Conversation<'_>,
    deeds: &[Deed<'_>],
    span: &Range<usize>,
) -> Vec<Running> {
    // Where each was last seen to run, and by which call it was started.
    let mut open: HashMap<String, (usize, usize)> = HashMap::new();
    for (number, deed) in deeds.iter().enumerate() {
        if deed.act != Act::Opaque && !matches!(deed.act, Act::Runs(_)) {
            continue;
        }
        let tool = plain_name(&deed.tool);
        let said = said(deed.payload);
        if let Some(id) = started(&tool, said) {
            let place = deed.result.0;
            let entry = open.entry(id).or_insert((place, number));
            entry.0 = place;
        } else if !open.is_empty()
            && let Some(id) = ended(&tool, deed.input, said)
        {
            open.remove(&id);
        }
    }
    open.retain(|_, (_, number)| {
        let deed = deeds.get(*number);
        deed.is_some_and(|deed| span.contains(&deed.used.0))
    });
    if !open.is_empty() {
        remove_reported(conversation, span.start, &mut open);
    }
    let mut open: Vec<(usize, String)> = open.into_iter().map(|(id, (_, by))| (by, id)).collect();
    open.sort_unstable();
    let older = open.len().saturating_sub(MOST);
    let newest = open.into_iter().skip(older);
    newest
        .map(|(number, id)| Running {
            id,
            about: deeds.get(number).map_or_else(String::new, about),
        })
        .collect()
}

/// It all, quoted.
pub(super) fn text(running: &[Running]) -> String {
    let mut text = String::new();
    for Running { id, about } in running {
        quote::quote(&mut text, DATA, &format!("{id}: {about}"));
    }
    text
}

/// What the client says of a call, before any output.
fn said(payload: &[u8]) -> &[u8] {
    let first = payload.get(..BEGINNING).unwrap_or(payload);
    let ends = OUTPUTS
        .iter()
        .filter_map(|mark| memmem::find(first, mark.as_bytes()));
    ends.min().and_then(|end| first.get(..end)).unwrap_or(first)
}

fn started(tool: &str, said: &[u8]) -> Option<String> {
    let rows = STARTS.iter().filter(|(tools, ..)| tools.contains(&tool));
    rows.into_iter().find_map(|(_, phrase, before)| {
        let at = memmem::find(said, phrase.as_bytes()).filter(|at| *at <= FIRST)?;
        let behind = said.get(at..)?;
        let at = memmem::find(behind, before.as_bytes())? + before.len();
        id(behind.get(at..)?)
    })
}

fn ended(tool: &str, input: &[u8], said: &[u8]) -> Option<String> {
    let runs = || memmem::find(said, b"running").is_some();
    if !STOPS.contains(&tool) && (!ASKS.contains(&tool) || runs()) {
        return None;
    }
    let input: Value = serde_json::from_slice(Some(input).filter(|i| i.len() <= INPUT)?).ok()?;
    let id = IDS.iter().find_map(|name| input.get(name))?;
    Some(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
}

/// Takes out what the client has said to be over since it was last seen.
fn remove_reported(
    conversation: &Conversation<'_>,
    from: usize,
    open: &mut HashMap<String, (usize, usize)>,
) {
    let bytes = conversation.bytes();
    let finder = memmem::Finder::new(NOTICE);
    for at in from..conversation.len() {
        let Some(message) = conversation.message(at) else {
            continue;
        };
        if message.role == Role::Assistant {
            continue;
        }
        let content = message.content.of(bytes);
        for found in finder.find_iter(content) {
            let behind = content.get(found + NOTICE.len()..).unwrap_or_default();
            let ends = |id: &String| open.get(id).is_some_and(|(seen, _)| *seen <= at);
            if let Some(id) = id(behind).filter(ends) {
                open.remove(&id);
            }
        }
    }
}

fn id(text: &[u8]) -> Option<String> {
    let counts = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let letters = text.iter().take(ID + 1).take_while(counts);
    let id: String = letters.map(|byte| char::from(*byte)).collect();
    (1..=ID).contains(&id.len()).then_some(id)
}

fn about(deed: &Deed<'_>) -> String {
    let input = Some(deed.input).filter(|input| input.len() <= INPUT);
    let input: Value = input
        .and_then(|input| serde_json::from_slice(input).ok())
        .unwrap_or_default();
    let about = ABOUT.iter().find_map(|name| input.get(name)?.as_str());
    candidates::line(&format!("{} {}", deed.tool, about.unwrap_or_default()))
}
