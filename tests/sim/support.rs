//! A client and a conversation for the tests.

use longhaul::sim::{Options, Running, Sim};
use serde_json::{Map, Value, json};

/// The model most tests speak to: it binds thinking.
pub const BINDING: &str = "claude-opus-5-5";

/// A model without bound thinking, for tests of something else.
pub const PLAIN: &str = "claude-opus-4-6";

/// A simulator and a client that talks to it.
pub struct Bench {
    pub sim: Running,
    client: reqwest::Client,
    pub key: String,
    pub version: String,
    pub betas: Vec<String>,
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The message of an error.
    pub fn error(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The message of a successful answer.
    pub fn message(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()
    }

    /// The data of all events.
    pub fn events(&self) -> Vec<Value> {
        events(&self.text)
    }
}

impl Bench {
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        Self {
            sim: Sim::start(options).await.unwrap(),
            client: reqwest::Client::new(),
            key: "test-key".to_owned(),
            version: "2023-06-01".to_owned(),
            betas: Vec::new(),
        }
    }

    pub fn beta(mut self, name: &str) -> Self {
        self.betas.push(name.to_owned());
        self
    }

    pub fn request(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let mut request = self
            .client
            .post(format!("{}{path}", self.sim.url()))
            .header("x-api-key", &self.key)
            .header("anthropic-version", &self.version)
            .header("content-type", "application/json")
            .body(body.to_string());
        if !self.betas.is_empty() {
            request = request.header("anthropic-beta", self.betas.join(","));
        }
        request
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        read(self.request(path, body)).await
    }

    pub async fn get(&self, path: &str) -> Response {
        read(
            self.client
                .get(format!("{}{path}", self.sim.url()))
                .header("x-api-key", &self.key),
        )
        .await
    }

    pub async fn send(&self, body: &Value) -> Response {
        self.post("/v1/messages", body).await
    }
}

pub async fn read(request: reqwest::RequestBuilder) -> Response {
    let response = request.send().await.unwrap();
    Response {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.unwrap(),
    }
}

/// A request body that grows turn by turn.
#[derive(Clone)]
pub struct Talk {
    pub body: Value,
}

impl Talk {
    pub fn new(model: &str) -> Self {
        Self {
            body: json!({"model": model, "max_tokens": 4096, "messages": []}),
        }
    }

    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.body[field] = value;
        self
    }

    pub fn push(&mut self, role: &str, content: impl Into<Value>) {
        let message = json!({"role": role, "content": content.into()});
        self.messages().push(message);
    }

    pub fn user(&mut self, content: impl Into<Value>) {
        self.push("user", content);
    }

    pub fn messages(&mut self) -> &mut Vec<Value> {
        self.body["messages"].as_array_mut().unwrap()
    }

    /// Sends, requires success and appends the answer.
    pub async fn turn(&mut self, bench: &Bench) -> Value {
        let message = bench.send(&self.body).await.message();
        self.push("assistant", message["content"].clone());
        message
    }

    /// Answers every tool call of the last message.
    pub fn answer_calls(&mut self, content: &str) {
        let last = self.messages().last().unwrap().clone();
        let calls = last["content"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|b| b["type"] == "tool_use");
        let results: Vec<Value> = calls
            .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": content}))
            .collect();
        self.user(json!(results));
    }
}

/// A tool with one required field.
pub fn read_tool() -> Value {
    json!([{"name": "read", "description": "reads a file", "input_schema": {"type": "object",
        "properties": {"path": {"type": "string"}}, "required": ["path"]}}])
}

/// About so many tokens of text.
pub fn filler(tokens: usize) -> String {
    "the quick brown fox jumps over ".repeat(tokens / 6 + 1)
}

/// The data of all events of a stream.
pub fn events(text: &str) -> Vec<Value> {
    let data = |event: &str| {
        let (name, data) = event
            .strip_prefix("event: ")
            .unwrap()
            .split_once("\ndata: ")
            .unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name);
        data
    };
    text.split("\n\n")
        .filter(|event| !event.is_empty())
        .map(data)
        .collect()
}

/// The message that the events of a stream add up to.
pub fn assemble(events: &[Value]) -> Value {
    let mut message = Value::Null;
    let mut blocks: Vec<Map<String, Value>> = Vec::new();
    let mut json_text = String::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                blocks.push(event["content_block"].as_object().unwrap().clone());
                json_text.clear();
            }
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                delta(block, event["delta"].as_object().unwrap(), &mut json_text);
            }
            "message_delta" => {
                for (key, value) in event["delta"].as_object().unwrap() {
                    message[key] = value.clone();
                }
                for (key, value) in event["usage"].as_object().unwrap() {
                    message["usage"][key] = value.clone();
                }
                if let Some(management) = event.get("context_management") {
                    message["context_management"] = management.clone();
                }
            }
            _ => {}
        }
    }
    message["content"] = json!(blocks);
    message
}

fn delta(block: &mut Map<String, Value>, delta: &Map<String, Value>, json_text: &mut String) {
    for (key, value) in delta.iter().filter(|(key, _)| *key != "type") {
        if key == "partial_json" {
            json_text.push_str(value.as_str().unwrap());
            // The last piece completes it; an empty input has no pieces at all.
            if let Ok(input) = serde_json::from_str(json_text) {
                block.insert("input".to_owned(), input);
            }
            continue;
        }
        let before = block
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        block.insert(key.clone(), json!(before + value.as_str().unwrap()));
    }
}
