//! Invariant 6: whatever a view says can be had back can be had back.

use std::net::SocketAddr;

use longhaul::sim::{Entry, Kind};
use serde_json::{Value, json};

use crate::promised::references;
use crate::support::Client;

/// How many references are asked for at most.
const ASKED: usize = 40;

/// The references in the newest views, each of which must lead to something;
/// how many there were, and what is wrong.
pub fn check(proxy: SocketAddr, entries: &[Entry]) -> (usize, Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    let mut wrong = Vec::new();
    for entry in entries.iter().rev().filter(|e| e.kind == Kind::Message) {
        let body = entry.body.as_deref().unwrap_or_default();
        for reference in references(&String::from_utf8_lossy(body)) {
            if seen.len() >= ASKED {
                return (seen.len(), wrong);
            }
            let name = format!("lh-{reference}");
            if seen.insert(name.clone()) {
                let told = expand(proxy, &name);
                if !told.starts_with("[longhaul: ") || told.contains("nothing is kept") {
                    let tag = entry.header("x-tag").unwrap_or("?");
                    wrong.push(format!("invariant 6: {name} of {tag}: {told}"));
                }
            }
        }
    }
    (seen.len(), wrong)
}

fn expand(proxy: SocketAddr, name: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "expand", "arguments": {"ref": name}}})
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
