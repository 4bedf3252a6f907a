//! Invariant 6: whatever a view says can be had back comes back as it was.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

use longhaul::sim::{Entry, Kind};
use serde_json::{Value, json};

use crate::agent::{Agent, CLEARED};
use crate::promised::{What, expected, promises};
use crate::support::Client;

/// How many references are asked for at most.
const ASKED: usize = 40;

/// The references in the newest views, each of which must lead to the words it
/// stands for; how many there were, and what is wrong.
pub fn check(proxy: SocketAddr, agents: &[Agent], entries: &[Entry]) -> (usize, Vec<String>) {
    let log = agents.iter().flat_map(|agent| &agent.log);
    let own: HashMap<&str, &[u8]> = log
        .map(|attempt| (attempt.tag.as_str(), attempt.own.as_slice()))
        .collect();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for entry in entries.iter().rev().filter(|e| e.kind == Kind::Message) {
        let tag = entry.header("x-tag").unwrap_or("?");
        let Some(own) = own.get(tag) else {
            continue;
        };
        // What arrived in part promises nothing.
        let body = entry.body.as_deref().unwrap_or_default();
        let Ok(view) = serde_json::from_slice::<Value>(body) else {
            continue;
        };
        let history: Value = serde_json::from_slice(own).unwrap();
        let (view, history) = (messages(&view), messages(&history));
        for (reference, what) in promises(view) {
            if seen.len() >= ASKED {
                return (seen.len(), wrong);
            }
            let name = format!("lh-{reference}");
            if !seen.insert(name.clone()) {
                continue;
            }
            let told = match &what {
                Some(what) => compare(proxy, &name, what, history),
                None => Err("the view does not say what it stands for".to_owned()),
            };
            if let Err(told) = told {
                wrong.push(format!("invariant 6: {name} of {tag}, {what:?}: {told}"));
            }
        }
    }
    (seen.len(), wrong)
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

/// A text without the ends of its lines: a page ends with one of ours where it
/// has none.
fn joined(text: &str) -> String {
    text.trim_end().replace('\n', "")
}

/// Whether what comes back are the words of the history, in their order. What
/// the client has cleared since may come back as it was before.
fn compare(proxy: SocketAddr, name: &str, what: &What, history: &[Value]) -> Result<(), String> {
    let told = joined(&pages(proxy, name)?);
    let mut rest = told.as_str();
    for text in expected(what, history) {
        let text = joined(&text);
        if text == CLEARED {
            continue;
        }
        let Some(at) = rest.find(&text) else {
            return Err(format!("not told:\n{text}\nbut:\n{rest}"));
        };
        rest = &rest[at + text.len()..];
    }
    Ok(())
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
