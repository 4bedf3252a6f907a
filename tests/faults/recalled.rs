//! Invariant 6: whatever a view says can be had back comes back as it was.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

use longhaul::sim::{Entry, Kind};
use serde_json::{Value, json};

use crate::agent::{Agent, CLEARED};
use crate::attempt::Attempt;
use crate::promised::{What, expected, promises};
use crate::support::Client;
use crate::world::World;

/// How many references are asked for at most.
const ASKED: usize = 40;

/// The references in the newest views, each of which must lead to the words it
/// stands for; how many there were, and what is wrong with which request.
pub fn check<'a>(
    world: &World,
    agents: &'a [Agent],
    entries: &[Entry],
) -> (usize, Vec<(&'a str, String)>) {
    let logs = agents.iter().map(|agent| &agent.log);
    let asked: HashMap<&str, &Attempt> = logs
        .flatten()
        .map(|asked| (asked.tag.as_str(), asked))
        .collect();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for entry in entries.iter().rev().filter(|e| e.kind == Kind::Message) {
        let tag = entry.header("x-tag").unwrap_or("?");
        let Some(attempt) = asked.get(tag) else {
            continue;
        };
        // What arrived in part promises nothing.
        let body = entry.body.as_deref().unwrap_or_default();
        let Ok(view) = serde_json::from_slice::<Value>(body) else {
            continue;
        };
        let view = view["messages"].as_array().map_or(&[][..], Vec::as_slice);
        for (reference, what) in promises(view) {
            if seen.len() >= ASKED {
                return (seen.len(), wrong);
            }
            let name = format!("lh-{reference}");
            if !seen.insert(name.clone()) {
                continue;
            }
            let told = what.as_ref().ok_or("nothing is promised".to_owned());
            let told = told.and_then(|what| {
                let told = pages(world.proxy(), &name)?;
                compare(&joined(&told), what, &history(attempt))
            });
            if let Err(told) = told {
                let told = format!("invariant 6: {name} of {tag}, {what:?}: {told}");
                wrong.push((attempt.tag.as_str(), told));
            }
        }
    }
    (seen.len(), wrong)
}

fn history(attempt: &Attempt) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&attempt.own).unwrap();
    body["messages"].as_array().cloned().unwrap_or_default()
}

/// A text without the ends of its lines: a page ends with one of ours where it
/// has none.
fn joined(text: &str) -> String {
    text.trim_end().replace('\n', "")
}

/// Whether what came back are the words of this history, message by message in
/// their order.
fn compare(told: &str, what: &What, history: &[Value]) -> Result<(), String> {
    let each = match what {
        What::Messages(from, to) => (*from..=*to).map(|at| What::Messages(at, at)).collect(),
        other => vec![other.clone()],
    };
    let mut rest = told;
    for what in each {
        let expected = expected(&what, history);
        let behind = behind(rest, &expected).filter(|_| has(&what, history));
        rest =
            behind.ok_or_else(|| format!("{what:?} is not told:\n{expected:?}\nbut:\n{rest}"))?;
    }
    Ok(())
}

/// What stands behind these texts, if they stand there in their order. What the
/// client has cleared since may come back as it was before.
fn behind<'a>(told: &'a str, texts: &[String]) -> Option<&'a str> {
    let mut rest = told;
    for text in texts.iter().map(|text| joined(text)) {
        if text != CLEARED {
            rest = &rest[rest.find(&text)? + text.len()..];
        }
    }
    Some(rest)
}

/// Whether a history has what a reference stands for.
fn has(what: &What, history: &[Value]) -> bool {
    let blocks = history
        .iter()
        .filter_map(|message| message["content"].as_array());
    let mut blocks = blocks.flatten();
    match what {
        What::Messages(_, to) => history.len() >= *to,
        What::Result(id) => blocks.any(|block| block["tool_use_id"] == **id),
        What::Input(id) => blocks.any(|block| block["id"] == **id),
    }
}

/// All pages, without our lines around them.
fn pages(proxy: SocketAddr, name: &str) -> Result<String, String> {
    let mut whole = String::new();
    for number in 1.. {
        let page = expand(proxy, name, number);
        let (head, rest) = page.split_once('\n').unwrap_or((&page, ""));
        let of = head.rsplit_once(&format!(", page {number} of "));
        let count = of.and_then(|(_, count)| count.strip_suffix(']')?.parse().ok());
        let Some(count): Option<u32> = count else {
            return Err(page);
        };
        let end = format!("[longhaul: page {number} of {count} ends here; page ");
        let cut = rest.rfind(&end).filter(|_| number < count);
        whole.push_str(&rest[..cut.unwrap_or(rest.len())]);
        if number == count {
            break;
        }
    }
    Ok(whole)
}

fn expand(proxy: SocketAddr, name: &str, page: u32) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "expand", "arguments": {"ref": name, "page": page}}})
    .to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = Client::connect(proxy)
        .send([head.as_bytes(), body.as_bytes()].concat())
        .try_answer();
    let Some(answer) = answer else {
        return "no answer".to_owned();
    };
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = told["result"]["content"][0]["text"].as_str();
    text.map_or_else(|| told.to_string(), str::to_owned)
}
