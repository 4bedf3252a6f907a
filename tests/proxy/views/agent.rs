//! An agent that talks through the proxy and keeps its whole history.

use longhaul::sim::Reply;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Proxy, simulated::Simulated};

/// What the agent sends besides its history.
#[derive(Clone)]
pub struct Agent {
    pub model: String,
    pub history: Vec<Value>,
    pub fields: Value,
    pub headers: String,
    /// A cache mark on the last block, as real clients place it.
    pub marks: bool,
}

impl Agent {
    pub fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            history: Vec::new(),
            fields: json!({
                "max_tokens": 1000,
                "system": [{"type": "text", "text": "You are an agent. ".repeat(200), "cache_control": {"type": "ephemeral"}}],
                "tools": [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}},
                          {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
            }),
            headers: String::new(),
            marks: true,
        }
    }

    pub fn user(&mut self, text: &str) -> &mut Self {
        self.history.push(json!({"role": "user", "content": text}));
        self
    }

    /// The body of the next request.
    pub fn body(&self) -> Vec<u8> {
        let mut messages = self.history.clone();
        if self.marks
            && let Some(last) = messages.last_mut()
        {
            mark(last);
        }
        let mut body = json!({"model": self.model, "messages": messages});
        for (key, value) in self.fields.as_object().unwrap() {
            body[key] = value.clone();
        }
        body.to_string().into_bytes()
    }

    /// Sends the history, with these headers on top.
    pub fn send(&self, proxy: &Proxy, headers: &str) -> Answer {
        let all = format!(
            "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n{}{headers}",
            self.headers
        );
        let mut client = Client::connect(proxy.address);
        client.post("/v1/messages", &all, &self.body()).answer()
    }

    /// Sends the history and takes the reply into it.
    pub fn ask(&mut self, proxy: &Proxy, headers: &str) -> Answer {
        let answer = self.send(proxy, headers);
        let reply: Value = serde_json::from_slice(&answer.body)
            .unwrap_or_else(|_| panic!("{}", crate::support::text(&answer.body)));
        assert_eq!(answer.status(), 200, "{reply}");
        self.history
            .push(json!({"role": "assistant", "content": reply["content"]}));
        answer
    }

    /// Answers the tool calls of the last reply.
    pub fn results(&mut self, size: usize) -> &mut Self {
        let last = self.history.last().unwrap();
        let number = self.history.len();
        let results: Vec<Value> = last["content"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| {
                let text = format!("line {number} of output\n").repeat(size / 20 + 1);
                json!({"type": "tool_result", "tool_use_id": block["id"], "content": text})
            })
            .collect();
        self.history
            .push(json!({"role": "user", "content": results}));
        self
    }

    /// One tool call, asked for and answered.
    pub fn cycle(&mut self, upstream: &Simulated, proxy: &Proxy, headers: &str) -> Answer {
        let number = self.history.len();
        let thinking = format!("I think of {number}. ").repeat(5);
        let reply = Reply::call("Bash", &json!({"command": format!("make {number}")}));
        upstream.sim.push_reply(reply.after_thinking(&thinking));
        let answer = self.ask(proxy, headers);
        self.results(2000);
        answer
    }

    /// A turn of some cycles that ends with words.
    pub fn turn(&mut self, upstream: &Simulated, proxy: &Proxy, cycles: usize) {
        self.user(&format!("Do step {}.", self.history.len()));
        for _ in 0..cycles {
            self.cycle(upstream, proxy, "");
        }
        upstream.sim.push_reply(Reply::text("Done with that."));
        self.ask(proxy, "");
    }
}

fn mark(message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    if let Some(block) = message["content"].as_array_mut().and_then(|b| b.last_mut()) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}
