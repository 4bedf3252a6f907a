//! The admin surface: the shape of every answer, and what it says after a session
//! in which everything is the same each time.

use std::collections::{BTreeMap, BTreeSet};

use longhaul::sim::Options;
use serde_json::Value;

use super::passes::{call, talk};
use super::pins;
use super::record::{Record, normal};
use super::rows::Place;
use super::stage::{BEGINNING, Stage};
use crate::support::{Answer, Client};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, session};

/// A proxy after a session with passes, the session, and a reference of it.
fn played(place: &Place) -> (Stage, String, String) {
    let mut record = Record::new("unused");
    let file = "[window]\nbudget = 9000\n[summarizer]\nmode = \"model\"\nparallel = 1\n";
    let mut stage = Stage::at(1, Options::default(), file, place.folder(), BEGINNING);
    stage.wait_for(place.open());
    let mut agent = Agent::new(FREE);
    "x-claude-code-session-id: one\r\n".clone_into(&mut agent.headers);
    agent.user("Build it. Never touch files under legacy/.");
    for _ in 0..8 {
        call(&mut record, &mut stage, &mut agent, 1_800);
        talk(&mut record, &mut stage, &mut agent, 300);
    }
    agent.user("Should I go on?");
    let reply = longhaul::sim::Reply::text("Yes.");
    let answer = stage.ask(&mut record, 0, &mut agent, reply, NOW);
    stage.restart();
    let mut entries = stage.upstream.entries();
    entries.retain(|entry| entry.model.as_deref() == Some(FREE));
    let sent = entries.pop().and_then(|entry| entry.body).unwrap();
    let sent = String::from_utf8_lossy(&sent).into_owned();
    let at = sent.find("lh-").expect("a reference");
    (stage, session(&answer), sent[at..at + 23].to_owned())
}

#[test]
fn admin_answers_have_the_shape_they_had() {
    let place = Place::files();
    let (stage, session, reference) = played(&place);
    let one = format!("/longhaul/sessions/{session}");
    let nobody = format!("/longhaul/sessions/{}", "0".repeat(32));
    let mut shapes = Shapes::default();
    let requests = [
        ("GET", "/healthz".to_owned(), ""),
        ("GET", "/readyz".to_owned(), ""),
        ("GET", "/longhaul/sessions".to_owned(), ""),
        ("GET", "/longhaul/sessions?limit=1".to_owned(), ""),
        ("GET", "/longhaul/sessions?nonsense=1".to_owned(), ""),
        ("GET", one.clone(), ""),
        ("GET", nobody.clone(), ""),
        ("GET", format!("{one}/export"), ""),
        ("GET", format!("{one}/export?as_of=9"), ""),
        ("GET", format!("{one}/handoff"), ""),
        ("GET", format!("{one}/journal?limit=500"), ""),
        ("GET", format!("{one}/journal?limit=500&content=true"), ""),
        ("GET", format!("{one}/journal?kind=nonsense"), ""),
        ("GET", format!("{one}/journal?q=legacy"), ""),
        ("GET", format!("{one}/journal/{reference}"), ""),
        ("GET", format!("{one}/journal/{reference}?page=99"), ""),
        ("GET", format!("{one}/journal/lh-{}", "0".repeat(20)), ""),
        ("GET", format!("{one}/journal/nonsense"), ""),
        ("POST", format!("{one}/compact"), r#"{"instructions": "x"}"#),
        ("POST", format!("{one}/compact"), "nonsense"),
        ("POST", format!("{nobody}/compact"), ""),
        ("GET", "/longhaul/nothing".to_owned(), ""),
        ("DELETE", nobody, ""),
        ("DELETE", one.clone(), ""),
        ("GET", one, ""),
    ];
    for (method, path, body) in requests {
        let answer = asked(&stage, method, &path, body);
        let name = path.replace(&session, "{id}").replace(&reference, "{ref}");
        let name = name.replace("00000000000000000000", "0");
        shapes.add(&format!("{method} {name} {body}"), &answer);
    }
    pins::check_with("admin.txt", &shapes.text, &shapes.bodies);
}

fn asked(stage: &Stage, method: &str, path: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut client = Client::connect(stage.proxies[0].address);
    client.send(request).answer()
}

/// What was answered so far.
#[derive(Default)]
struct Shapes {
    text: String,
    bodies: Vec<pins::Body>,
}

impl Shapes {
    fn add(&mut self, request: &str, answer: &Answer) {
        let body = unordered(&normal(&String::from_utf8_lossy(&answer.body)));
        let hash = blake3::hash(body.as_bytes()).to_hex();
        let kind = answer.header("content-type").unwrap_or("-");
        let line = format!("{} {kind} {} {}", answer.status(), body.len(), &hash[..32]);
        self.text
            .push_str(&format!("## {}\n{line}\n", request.trim_end()));
        if let Ok(json) = serde_json::from_str::<Value>(&body) {
            let mut paths = Paths::new();
            walk(&json, "", &mut paths);
            for (path, kinds) in paths {
                let kinds: Vec<&str> = kinds.into_iter().collect();
                self.text
                    .push_str(&format!("    {path}: {}\n", kinds.join(" or ")));
            }
        }
        let name = format!("{}.txt", self.bodies.len() + 1);
        let body = format!("{request}\n{body}");
        self.bodies.push((name, body.into_bytes()));
    }
}

/// Entries of the journal without their order: what a pass leaves out and what its
/// turn did are written by two threads, and numbered as they come.
fn unordered(body: &str) -> String {
    let Ok(mut json) = serde_json::from_str::<Value>(body) else {
        return body.to_owned();
    };
    let Some(entries) = json.get_mut("entries").and_then(Value::as_array_mut) else {
        return body.to_owned();
    };
    for entry in &mut *entries {
        entry["number"] = 0.into();
    }
    entries.sort_by_key(ToString::to_string);
    json.to_string()
}

/// The types of values, by their paths.
type Paths = BTreeMap<String, BTreeSet<&'static str>>;

fn walk(value: &Value, path: &str, paths: &mut Paths) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "fraction",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let name = if path.is_empty() { "." } else { path };
    paths.entry(name.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(items) => {
            for item in items {
                walk(item, &format!("{path}[]"), paths);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                walk(field, &format!("{path}.{key}"), paths);
            }
        }
        _ => {}
    }
}
