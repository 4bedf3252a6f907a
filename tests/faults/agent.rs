//! A client: an agent that works, and that retries as the SDKs do.
//!
//! Its history grows by tool calls and turns. Now and then it forks, goes back,
//! or clears an old result by itself, as real ones do. What does not come back
//! whole is asked for again, with the same body, until it does: a request that is
//! never answered means that a session is stuck.

use std::collections::HashMap;

use fastrand::Rng;
use longhaul::sim::Fault;
use serde_json::{Value, json};

use crate::api;
use crate::attempt::{Attempt, Manner, Seen, send, timed};
use crate::plan::{MODELS, Plan};
use crate::world::World;

/// What a client puts where it clears a result by itself.
pub const CLEARED: &str = "[Old tool result content cleared]";
/// How often a request is tried at most.
const TRIES: usize = 12;
/// From this try on nothing is spoilt on purpose.
const CALM: usize = 3;

#[allow(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
pub struct Agent {
    pub number: usize,
    pub model: &'static str,
    /// Whose it is; its words are in everything it says.
    pub owner: usize,
    thinks: bool,
    streams: bool,
    marks: bool,
    hints: bool,
    system: String,
    messages: Vec<Value>,
    branch: usize,
    branches: usize,
    anew: bool,
    /// What came of each call on each branch: it is made once there, however often
    /// the client goes back.
    results: HashMap<(usize, String), Value>,
    /// Results that it has cleared: the call, and what stood there.
    cleared: Vec<(Value, Value)>,
    rng: Rng,
    spoilt: u8,
    left: u8,
    pub log: Vec<Attempt>,
}

/// What stands in everything that belongs to an owner, and nowhere else.
pub fn secret(owner: usize) -> String {
    format!("secret_of_owner_{owner}_")
}

/// The credential of an owner.
pub fn credential(owner: usize) -> String {
    format!("sk-fault-{owner}-never-to-be-stored")
}

impl Agent {
    pub fn new(plan: &Plan, number: usize) -> Self {
        let mut rng = Rng::with_seed(plan.seed.wrapping_mul(1000) + number as u64);
        let model = MODELS[rng.usize(0..MODELS.len())];
        Self {
            number,
            model,
            owner: number % 2,
            thinks: rng.u8(0..3) > 0,
            streams: rng.bool(),
            marks: rng.u8(0..4) > 0,
            hints: rng.bool(),
            system: "You are an agent. ".repeat(rng.usize(1..30)),
            messages: Vec::new(),
            branch: 0,
            branches: 1,
            anew: false,
            results: HashMap::new(),
            cleared: Vec::new(),
            rng,
            spoilt: plan.spoilt,
            left: plan.left,
            log: Vec::new(),
        }
    }

    /// Works through its steps; what it could not get answered.
    pub fn work(&mut self, world: &World, steps: usize) -> Result<(), String> {
        let mut side: Option<(Vec<Value>, usize)> = None;
        for step in 0..steps {
            side = match side {
                // Back from an errand: the history is what it was before.
                Some((history, 0)) => {
                    self.messages = history;
                    self.branch = 0;
                    None
                }
                Some((history, left)) => Some((history, left - 1)),
                None if self.messages.len() > 6 && self.rng.u8(0..14) == 0 => {
                    self.branch = self.branches;
                    self.branches += 1;
                    Some((self.messages.clone(), self.rng.usize(1..4)))
                }
                None => {
                    self.change_the_past();
                    None
                }
            };
            self.say();
            if self.rng.u8(0..20) == 0 {
                self.count(world, step);
            }
            self.ask(world, step)?;
        }
        Ok(())
    }

    /// Goes back, or clears an old result, now and then. Where thinking may be
    /// bound to what stands before it, only the former is a client's right.
    fn change_the_past(&mut self) {
        let length = self.messages.len();
        if length > 8 && self.rng.u8(0..16) == 0 {
            let at = self.rng.usize(4..length);
            let assistant = |message: &Value| message["role"] == "assistant";
            if let Some(last) = self.messages[..at].iter().rposition(assistant) {
                self.messages.truncate(last + 1);
                self.anew = true;
            }
        } else if length > 10 && !self.model.contains("5-5") && self.rng.u8(0..16) == 0 {
            let old = self.messages[1..length - 8].iter_mut();
            let blocks = old.filter_map(|message| message["content"].as_array_mut());
            let mut results = blocks.flatten().filter(|b| b["type"] == "tool_result");
            if let Some(result) = results.next_back() {
                let before = std::mem::replace(&mut result["content"], json!(CLEARED));
                if before != CLEARED {
                    let call = result["tool_use_id"].clone();
                    self.cleared.push((call, before));
                }
                self.anew = true;
            }
        }
    }

    fn words(&mut self, most: usize) -> String {
        const WORDS: [&str; 8] = [
            "src/main.rs",
            "größer",
            "\"so\"",
            "error: none of it",
            "all of the other words",
            "\n",
            "line",
            "\\",
        ];
        let mut text = secret(self.owner);
        for _ in 0..self.rng.usize(1..=most) {
            text.push(' ');
            text.push_str(WORDS[self.rng.usize(0..WORDS.len())]);
        }
        text
    }

    /// The next words of the user, or the results that are due.
    fn say(&mut self) {
        let last = self.messages.last().and_then(|m| m["content"].as_array());
        let calls = last.into_iter().flatten();
        let calls: Vec<Value> = calls
            .filter(|block| block["type"] == "tool_use")
            .map(|block| block["id"].clone())
            .collect();
        let content = if calls.is_empty() {
            let words = self.words(30);
            json!(format!("Agent {}: {words}", self.number))
        } else {
            let results = calls.iter().map(|id| {
                let call = (self.branch, id.to_string());
                let known = self.results.get(&call).cloned();
                let result = known.unwrap_or_else(|| self.result(id));
                self.results.insert(call, result.clone());
                result
            });
            Value::Array(results.collect())
        };
        self.messages
            .push(json!({"role": "user", "content": content}));
    }

    fn result(&mut self, id: &Value) -> Value {
        let size = [0, 20, 80, 120, 240, 450][self.rng.usize(0..6)];
        let text = if size == 0 {
            String::new()
        } else {
            self.words(size)
        };
        let content = match self.rng.u8(0..4) {
            0 if size > 0 => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        if self.rng.u8(0..10) == 0 && size > 0 {
            result["is_error"] = json!(true);
        }
        result
    }

    fn body(&self, counts: bool) -> Vec<u8> {
        let mut messages = self.messages.clone();
        if self.marks
            && let Some(last) = messages.last_mut()
        {
            if let Some(text) = last["content"].as_str() {
                last["content"] = json!([{"type": "text", "text": text}]);
            }
            if let Some(block) = last["content"].as_array_mut().and_then(|b| b.last_mut()) {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
        }
        let tool = |name: &str| {
            json!({"name": name, "description": "A tool.", "input_schema": {"type": "object",
                "required": ["command"], "properties": {"command": {"type": "string"}}}})
        };
        let mut body = json!({
            "model": self.model,
            "system": [{"type": "text", "text": self.system}],
            "tools": [tool("Bash"), tool("Read")],
            "messages": messages,
        });
        let manual = self.model.contains("4-5");
        if self.thinks && manual {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        } else if self.thinks {
            body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
        }
        if !counts {
            body["max_tokens"] = json!(1100);
            body["stream"] = json!(self.streams);
            body["metadata"] = json!({"user_id": format!("u{}", self.owner)});
        }
        body.to_string().into_bytes()
    }

    /// Asks until an answer comes that can be gone on with.
    fn ask(&mut self, world: &World, step: usize) -> Result<(), String> {
        let body = self.body(false);
        for number in 0..TRIES {
            let tag = format!("{}-{step}-{number}", self.number);
            let (fault, manner) = if number < CALM {
                (self.fault(), self.manner())
            } else {
                (None, Manner::Waits)
            };
            let attempt = self.attempt(world, tag, body.clone(), fault, manner);
            let answer = attempt.answer().filter(|_| attempt.is_good());
            let reply = answer.and_then(|answer| reply(&answer.body, self.streams));
            self.log.push(attempt);
            self.anew = false;
            if let Some(content) = reply {
                let message = json!({"role": "assistant", "content": content});
                self.messages.push(message);
                return Ok(());
            }
            // As an SDK does, only sooner.
            std::thread::sleep(std::time::Duration::from_millis(1 << number.min(6)));
        }
        let last = self.log.last().map(|attempt| &attempt.seen);
        let said = match last {
            Some(Seen::Answer(answer)) => {
                let body = String::from_utf8_lossy(&answer.body);
                format!("{} {body}", answer.line)
            }
            _ => "nothing".to_owned(),
        };
        Err(format!(
            "invariant 5: agent {} is stuck at step {step}: {said}",
            self.number
        ))
    }

    fn count(&mut self, world: &World, step: usize) {
        let tag = format!("{}-{step}-count", self.number);
        let attempt = self.attempt(world, tag, self.body(true), None, Manner::Waits);
        self.log.push(attempt);
    }

    fn attempt(
        &self,
        world: &World,
        tag: String,
        own: Vec<u8>,
        fault: Option<Fault>,
        manner: Manner,
    ) -> Attempt {
        let counts = tag.ends_with("count");
        let path = if counts { "/count_tokens" } else { "" };
        let mut head = format!(
            "POST /v1/messages{path} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nx-owner: {}\r\n\
             anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\nx-tag: {tag}\r\n",
            credential(self.owner),
            self.owner,
        );
        if self.hints {
            head += &format!("x-session-id: {}.{}\r\n", self.number, self.branch);
        }
        if let Some(fault) = &fault {
            head += &format!("x-sim-fault: {}\r\n", written(fault));
        }
        head += &format!("connection: close\r\ncontent-length: {}\r\n\r\n", own.len());
        let request = [head.as_bytes(), &own].concat();
        world.before_request();
        let begun = world.moments.now();
        let (seen, took) = timed(|| send(world.address, &request, fault.as_ref(), manner));
        Attempt {
            tag,
            branch: self.branch,
            anew: self.anew,
            cleared: self.cleared.clone(),
            counts,
            model: self.model,
            streams: self.streams,
            own,
            fault,
            manner,
            begun,
            ended: world.moments.now(),
            took,
            seen,
        }
    }

    fn fault(&mut self) -> Option<Fault> {
        if self.rng.u8(0..100) >= self.spoilt {
            return None;
        }
        let events = self.rng.usize(0..8);
        Some(match self.rng.u8(0..14) {
            0 => Fault::status(429),
            1 => Fault::status(500),
            2 => Fault::status(503),
            3 | 4 => Fault::status(529),
            5 => Fault::Reset,
            6 => Fault::Hang,
            7 => Fault::ResetAfter { events },
            8 => Fault::CutAfter { events },
            9 => Fault::EndAfter { events },
            10 => Fault::StallAfter { events },
            11 => Fault::ErrorAfter {
                events,
                error: "overloaded_error".to_owned(),
            },
            12 => Fault::GarbageAfter { events },
            _ => [Fault::WrongContentType, Fault::Garbage][events % 2].clone(),
        })
    }

    fn manner(&mut self) -> Manner {
        if self.rng.u8(0..100) >= self.left {
            return Manner::Waits;
        }
        [Manner::LeavesAtOnce, Manner::LeavesInBetween][self.rng.usize(0..2)]
    }
}

/// A fault as a header names it.
fn written(fault: &Fault) -> String {
    match fault {
        Fault::Status { status, .. } => status.to_string(),
        Fault::Reset => "reset".to_owned(),
        Fault::Hang => "hang".to_owned(),
        Fault::ResetAfter { events } => format!("reset-after:{events}"),
        Fault::CutAfter { events } => format!("cut-after:{events}"),
        Fault::EndAfter { events } => format!("end-after:{events}"),
        Fault::StallAfter { events } => format!("stall-after:{events}"),
        Fault::ErrorAfter { events, error } => format!("error-after:{events}:{error}"),
        Fault::GarbageAfter { events } => format!("garbage-after:{events}"),
        Fault::WrongContentType => "wrong-content-type".to_owned(),
        Fault::Garbage => "garbage".to_owned(),
    }
}

/// The content of a reply that came whole. One that says nothing at all, which the
/// API gives where the limit of tokens ends it at once, cannot be sent back to it.
fn reply(body: &[u8], streams: bool) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    let message = if streams {
        api::assemble(&api::events(text))
    } else {
        serde_json::from_str(text).ok()?
    };
    let content = message["content"].clone();
    let says = content.as_array().is_none_or(|blocks| !blocks.is_empty());
    says.then_some(content)
}
