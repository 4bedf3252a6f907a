//! What counts as reachable, on sessions made for it.

use std::time::Duration;

use longhaul::config::Sources;
use longhaul::replay::all::Plan;
use longhaul::replay::play::{Probe, Run};
use longhaul::replay::session::Session;
use longhaul::replay::settings::{Set, Settings};
use serde_json::{Value, json};

fn call(id: usize, input: &Value) -> Value {
    json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": format!("call-{id}"), "name": "Read", "input": input}]})
}

fn result(id: usize, content: &str) -> Value {
    json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": format!("call-{id}"), "content": content}]})
}

/// A session that reads something first, many files then, and says something at
/// its end.
pub fn session(first: &str, last: &Value) -> Session {
    let mut messages = vec![json!({"role": "user", "content": "Work on the project."})];
    messages.push(call(0, &json!({"file_path": "/work/first.txt"})));
    messages.push(result(0, first));
    for at in 1..=40 {
        messages.push(call(at, &json!({"file_path": format!("/work/f{at}.txt")})));
        messages.push(result(at, &format!("body of max_pool_{at} ").repeat(400)));
    }
    messages.push(last.clone());
    Session::of("made", &messages, Duration::from_secs(30))
}

/// It is played with a small budget and a pass at the end.
pub fn play(session: Session, set: &[Set]) -> Run {
    let asked_at = session.steps.len() - 1;
    let plan = Plan {
        sessions: vec![session],
        settings: Settings::new("claude-opus-4-8", None, Some(40_000), Sources::default()).unwrap(),
        variations: vec![set.to_vec()],
    };
    let mut told = plan.play(&|at| at == asked_at, &|_, _| {}).unwrap();
    let (_, run) = told[0].with.pop().unwrap();
    assert_eq!(run.refused, None);
    run
}

fn set(key: &str, value: &str) -> Set {
    (key.to_owned(), value.to_owned())
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
}

fn outcomes(run: &Run) -> Vec<(bool, bool)> {
    let outcome = |probe: &Probe| (probe.in_view, probe.reachable);
    run.probes.iter().map(outcome).collect()
}

/// A message is kept in pieces, and a small one is no piece: what counts is what
/// a reference gives back.
#[test]
fn what_a_reference_in_the_view_gives_back_is_reachable_however_it_is_kept() {
    let small = "the value of key_alpha_77 is here".to_owned();
    let large = format!("{small} {}", "lorem ipsum ".repeat(900));
    for first in [small, large] {
        let session = session(&first, &says("Now I set key_alpha_77 to 1."));
        let run = play(session.clone(), &[set("policy.floor", "0.3")]);
        assert_eq!(outcomes(&run), [(false, true)], "{first:.40}");
        let run = play(session, &[set("journal.enabled", "false")]);
        assert_eq!(outcomes(&run), [(false, false)], "{first:.40}");
    }
}
