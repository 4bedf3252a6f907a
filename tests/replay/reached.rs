//! What counts as reachable, on sessions made for it.

use std::time::Duration;

use longhaul::config::Sources;
use longhaul::replay::all::Plan;
use longhaul::replay::play::Run;
use longhaul::replay::probes::Kind;
use longhaul::replay::session::Session;
use longhaul::replay::settings::Settings;
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
fn session(first: &str, last: &Value) -> Session {
    let mut messages = vec![json!({"role": "user", "content": "Work on the project."})];
    messages.push(call(0, &json!({"file_path": "/app/first.txt"})));
    messages.push(result(0, first));
    for at in 1..=40 {
        messages.push(call(at, &json!({"file_path": format!("/app/f{at}.txt")})));
        messages.push(result(at, &format!("body of max_pool_{at} ").repeat(400)));
    }
    messages.push(last.clone());
    Session::of("made", &messages, Duration::from_secs(30))
}

/// It is played with a small budget and a pass at its end, with a journal and
/// without.
fn play(session: Session) -> [Run; 2] {
    let asked_at = session.steps.len() - 1;
    let off = ("journal.enabled".to_owned(), "false".to_owned());
    let plan = Plan {
        sessions: vec![session],
        settings: Settings::new("claude-opus-4-8", None, Some(40_000), Sources::default()).unwrap(),
        variations: vec![vec![off]],
    };
    let mut told = plan.play(&|at| at == asked_at, &|_, _| {}).unwrap();
    let runs = told.remove(0).with.into_iter();
    let runs: Vec<Run> = runs.map(|(_, run)| run).collect();
    assert!(runs.iter().all(|run| run.refused.is_none()));
    runs.try_into().unwrap()
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
}

fn outcomes(run: &Run, of: impl Fn(Kind) -> bool) -> Vec<(bool, bool)> {
    let asked = run.probes.iter().filter(|probe| of(probe.kind));
    asked.map(|it| (it.in_view, it.reachable)).collect()
}

/// A message is kept in pieces, and a small one is no piece: what counts is what
/// a reference gives back.
#[test]
fn what_a_reference_in_the_view_gives_back_is_reachable_however_it_is_kept() {
    let small = "the value of key_alpha_77 is here".to_owned();
    let large = format!("{small} {}", "lorem ipsum ".repeat(900));
    let natural = |kind: Kind| kind != Kind::Planted;
    for first in [small, large] {
        let last = says("Now I set key_alpha_77 to 1.");
        let [kept, forgotten] = play(session(&first, &last));
        assert_eq!(outcomes(&kept, natural), [(false, true)], "{first:.40}");
        let gone = outcomes(&forgotten, natural);
        assert_eq!(gone, [(false, false)], "{first:.40}");
        let planted = outcomes(&kept, |kind| kind == Kind::Planted);
        assert!(planted.len() >= 6, "{planted:?}");
        assert!(planted.iter().all(|(_, reachable)| *reachable));
    }
}
