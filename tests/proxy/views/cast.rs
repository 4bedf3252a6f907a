//! What the stories of this folder share: seasoned agents, and looks at what
//! upstream saw.

use std::net::SocketAddr;

use longhaul::sim::{Entry, Reply};
use serde_json::{Value, json};

use super::agent::Agent;
use crate::support::http::Message;
use crate::support::{Answer, Client, Proxy, Step, Tap, simulated::Simulated, text};

/// A model whose thinking stands alone, and one that binds it.
pub const FREE: &str = "claude-opus-4-8";
pub const BOUND: &str = "claude-opus-5-5";

pub const NOW: &str = "x-longhaul-compact: now\r\n";
pub const OFF: &str = "x-longhaul-compact: off\r\n";

impl Agent {
    /// Posts the history to an address.
    pub fn post(&self, address: SocketAddr, path: &str, headers: &str) -> Answer {
        let all = format!(
            "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n{}{headers}",
            self.headers
        );
        let mut client = Client::connect(address);
        client.post(path, &all, &self.body()).answer()
    }

    /// Asks how many tokens upstream counts.
    pub fn count(&self, proxy: &Proxy, headers: &str) -> u64 {
        let mut counts = self.clone();
        counts.fields.as_object_mut().unwrap().remove("max_tokens");
        let answer = counts.post(proxy.address, "/v1/messages/count_tokens", headers);
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        said["input_tokens"].as_u64().expect("a count")
    }

    /// One that has worked before anybody looked: no thinking, so that no
    /// signature has to be genuine.
    pub fn seasoned(model: &str, cycles: usize, size: usize) -> Self {
        let mut agent = Self::new(model);
        agent.user("Build it.");
        for number in 0..cycles {
            let id = format!("toolu_{number}");
            agent.history.push(json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("make {number}")}}
            ]}));
            agent.results(size);
        }
        agent
            .history
            .push(json!({"role": "assistant", "content": [{"type": "text", "text": "Built."}]}));
        agent.user("And the rest?");
        agent
    }

    /// Another word of the user's, answered.
    pub fn chat(&mut self, upstream: &Simulated, proxy: &Proxy, headers: &str) -> Answer {
        self.user(&format!("Go on, {}.", self.history.len()));
        upstream.sim.push_reply(Reply::text("Yes."));
        self.ask(proxy, headers)
    }

    /// The same with a field set.
    #[must_use]
    pub fn with(&self, field: &str, value: Value) -> Self {
        let mut agent = self.clone();
        agent.fields[field] = value;
        agent
    }

    /// The same with headers.
    #[must_use]
    pub fn saying(&self, headers: &str) -> Self {
        let mut agent = self.clone();
        headers.clone_into(&mut agent.headers);
        agent
    }
}

/// An agent after two turns, as upstream knows it.
pub fn worked(upstream: &Simulated, proxy: &Proxy, model: &str) -> Agent {
    let mut agent = Agent::new(model);
    agent.turn(upstream, proxy, 4);
    agent.turn(upstream, proxy, 3);
    agent
}

/// The same, with an overlay.
pub fn compacted(upstream: &Simulated, proxy: &Proxy, model: &str) -> Agent {
    let mut agent = worked(upstream, proxy, model);
    let answer = agent.chat(upstream, proxy, NOW);
    assert_eq!(compaction(&answer), "clear", "{model}");
    agent
}

/// What a pass did, as the answer says.
pub fn compaction(answer: &Answer) -> &str {
    answer.header("x-longhaul-compaction").unwrap_or("-")
}

/// The session, as the answer says.
pub fn session(answer: &Answer) -> String {
    answer
        .header("x-longhaul-session")
        .unwrap_or("-")
        .to_owned()
}

/// A number of the view, as the answer says.
pub fn figure(answer: &Answer, name: &str) -> u64 {
    let shape = answer.header("x-longhaul-view").expect("a view");
    let found = shape.split(';').find_map(|part| part.strip_prefix(name));
    let number = found.and_then(|rest| rest.strip_prefix('='));
    number.and_then(|number| number.parse().ok()).expect(shape)
}

/// What upstream saw last.
pub fn last_body(upstream: &Simulated) -> Vec<u8> {
    upstream.last().body.unwrap().to_vec()
}

/// Asserts that two bodies are the same bytes, and shows where they part.
#[track_caller]
pub fn same(sent: &[u8], expected: &[u8], what: &str) {
    let parted = |(a, b): (&u8, &u8)| a != b;
    let at = sent.iter().zip(expected).position(parted);
    let at = at.unwrap_or(sent.len().min(expected.len()));
    let from = |bytes: &[u8]| text(&bytes[at.saturating_sub(40)..bytes.len().min(at + 80)]);
    assert!(
        sent == expected,
        "{what}: sent ..{}.. instead of ..{}..",
        from(sent),
        from(expected)
    );
}

/// Messages in canonical form: strings as blocks, no cache marks.
pub fn unmarked(messages: &Value) -> Vec<Value> {
    let mut messages = messages.as_array().unwrap().clone();
    for message in &mut messages {
        if let Some(text) = message["content"].as_str() {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

/// The messages of a request, in canonical form.
pub fn messages(entry: &Entry) -> Vec<Value> {
    unmarked(&entry.json().unwrap()["messages"])
}

/// The messages upstream saw last.
pub fn shown(upstream: &Simulated) -> Vec<Value> {
    messages(&upstream.last())
}

/// Whether a request begins with another one's messages.
pub fn continues(later: &[Value], earlier: &[Value]) -> bool {
    later.len() >= earlier.len() && &later[..earlier.len()] == earlier
}

/// Whether upstream took every request at once.
pub fn all_answered(upstream: &Simulated) -> bool {
    upstream.entries().iter().all(Entry::is_answered)
}

/// Stubs in what was sent.
pub fn stubs(messages: &[Value]) -> usize {
    let text = Value::from(messages.to_vec()).to_string();
    text.matches("was cleared: ").count()
}

/// The JSON of a request.
pub fn json_of(message: &Message) -> Value {
    serde_json::from_slice(&message.body).unwrap_or(Value::Null)
}

/// An error as the API words it.
pub fn error(text: &str) -> String {
    json!({"type": "error", "error": {"type": "invalid_request_error", "message": text},
           "request_id": "req_1"})
    .to_string()
}

/// An answer of the API's.
pub fn response(status: u16, headers: &str, body: &[u8]) -> Vec<Step> {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// A message that the API gives.
pub fn fine(request: &Message) -> Vec<Step> {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant",
        "model": json_of(request)["model"], "content": [{"type": "text", "text": "Fine."}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": request.body.len() / 4, "output_tokens": 5}});
    response(200, "", body.to_string().as_bytes())
}

/// An upstream that refuses with 400 what `judge` has words against, and
/// answers everything else.
pub fn strict(judge: impl Fn(&Value, &Message) -> Option<String> + Send + Sync + 'static) -> Tap {
    Tap::start(move |request| match judge(&json_of(request), request) {
        Some(text) => response(400, "", error(&text).as_bytes()),
        None => fine(request),
    })
}

/// How many cache marks a request has.
pub fn marks(body: &[u8]) -> usize {
    let text = String::from_utf8_lossy(body);
    text.matches("\"cache_control\"").count()
}
