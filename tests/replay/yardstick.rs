//! What `longhaul replay` holds a policy against: the plan of somebody who knew
//! everything, the worst moment to end, the presets side by side; and what it
//! says of requests that it does not play.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{coding, recordings};

fn replay(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .arg("replay")
        .args(arguments)
        .args(paths)
        .output()
        .unwrap()
}

fn told(arguments: &[&str], paths: &[&Path]) -> Value {
    let output = replay(&[arguments, &["--json"]].concat(), paths);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn table(arguments: &[&str], paths: &[&Path]) -> String {
    let output = replay(arguments, paths);
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

fn written(folder: &Path, name: &str, messages: &[Value]) -> PathBuf {
    let path = folder.join(name);
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

fn number(value: &Value, field: &str) -> f64 {
    let number = value[field].as_f64();
    number.unwrap_or_else(|| panic!("{field} is no number in {value}"))
}

/// What must hold of every run beside the same without.
fn is_held_against_hindsight(entry: &Value, without: f64) {
    let hindsight = number(entry, "hindsight_usd");
    assert!(hindsight > 0.0 && hindsight <= without + 1e-6, "{entry}");
    let with = number(&entry["with"], "cost_usd");
    let regret = number(entry, "regret");
    assert!((with / hindsight - 1.0 - regret).abs() < 1e-3, "{entry}");
    let cut = &entry["worst_cut"];
    let requests = number(&entry["with"], "requests");
    assert!((1.0..=requests).contains(&number(cut, "request")), "{cut}");
    // The end is one of the places to end at.
    assert!(number(cut, "share") + 1e-6 >= number(entry, "cost_share"));
}

#[test]
fn recordings_are_held_against_hindsight_and_the_presets_stand_side_by_side() {
    let paths = recordings::shipped();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let told = told(&["--aim", "--model=claude-opus-4-8"], &paths);
    let sessions = told["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    for entry in sessions.iter().chain([&told["total"]]) {
        let without = number(&entry["without"], "cost_usd");
        is_held_against_hindsight(entry, without);
        assert!(entry["not_played"].is_array());
        let aims = entry["aims"].as_object().unwrap();
        let names: Vec<&String> = aims.keys().collect();
        assert_eq!(names, ["faithful", "balanced", "thrifty"]);
        for aim in aims.values() {
            is_held_against_hindsight(aim, without);
            assert!(number(aim, "passes") >= 0.0);
            for field in ["cost_share", "probe_recovery", "recall_recovery"] {
                assert!(aim.get(field).is_some(), "{field}");
            }
        }
        // What is kept word for word cannot be saved.
        let at_best = |aim: &str| number(&aims[aim], "hindsight_usd");
        assert!(at_best("thrifty") <= at_best("balanced") + 1e-6);
        assert!(at_best("balanced") <= at_best("faithful") + 1e-6);
        assert_eq!(entry.get("variations"), None);
    }
    let sum: f64 = sessions.iter().map(|it| number(it, "hindsight_usd")).sum();
    assert!((sum - number(&told["total"], "hindsight_usd")).abs() < 1e-5);
    let worst = &told["total"]["worst_cut"];
    let named = |entry: &&Value| entry["name"] == worst["session"];
    let session = sessions.iter().find(named).unwrap();
    assert_eq!(session["worst_cut"]["share"], worst["share"]);
}

#[test]
fn the_table_ends_with_a_sentence_and_has_a_column_for_each_preset() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a.jsonl", &coding::wordy(78, 8, 16_000));
    let text = table(&["--aim", "--budget=20000"], &[&path]);
    for words in ["hindsight $", "regret", "worst cut"] {
        assert!(text.contains(words), "{text}");
    }
    let aims = text.lines().find(|line| line.starts_with("policy.aim"));
    let columns: Vec<&str> = aims.unwrap().split_whitespace().skip(1).collect();
    assert_eq!(columns, ["faithful", "balanced", "thrifty"]);
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("With Longhaul this session would have cost $"));
    assert!(
        last.contains(" instead of $") && last.ends_with("%)."),
        "{last}"
    );
    let other = written(folder.path(), "b.jsonl", &coding::wordy(79, 4, 8_000));
    let text = table(&["--aim=thrifty"], &[&path, &other]);
    assert!(text.lines().any(|line| line.ends_with("thrifty")), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("With Longhaul these sessions would have cost $"));
    let output = replay(&["--aim=nonsense"], &[&path]);
    assert_eq!(output.status.code(), Some(2));
}

/// A pause that outlives the cache makes a recording cost more than `--pause` would.
#[test]
fn recorded_pauses_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let plain = coding::wordy(80, 8, 16_000);
    let timed = |pause: u64| -> Vec<Value> {
        let each = plain.iter().zip(0..).map(|(message, at): (_, u64)| {
            let mut message = message.clone();
            message["timestamp"] = json!(1_800_000_000 + at * pause);
            message
        });
        each.collect()
    };
    let cost = |name: &str, messages: &[Value], pause: &str| {
        let path = written(folder.path(), name, messages);
        let told = told(&[pause], &[&path]);
        number(&told["total"]["without"], "cost_usd")
    };
    let (short, long) = ("--pause=10", "--pause=900");
    let warm = cost("plain.jsonl", &plain, short);
    let cold = cost("plain.jsonl", &plain, long);
    assert!(cold > 1.5 * warm, "{warm} {cold}");
    for pause in [short, long] {
        let is = |cost: f64, expected: f64| (cost - expected).abs() < 1e-6;
        assert!(is(cost("warm.jsonl", &timed(5), pause), warm), "{pause}");
        assert!(is(cost("cold.jsonl", &timed(450), pause), cold), "{pause}");
    }
}

#[test]
fn what_is_not_played_is_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "Read", "input": {}}]});
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "read"}]});
    let say = |role: &str| json!({"role": role, "content": "words"});
    let messages = [call, result, say("assistant"), say("user")];
    let path = written(folder.path(), "midway.jsonl", &messages);
    let told = told(&[], &[&path]);
    for entry in [&told["sessions"][0], &told["total"]] {
        // The two answers whose start was not recorded are played.
        assert_eq!(entry["with"]["requests"], 2);
        let expected = json!([{"requests": 1, "why": "no answer was recorded"}]);
        assert_eq!(entry["not_played"], expected);
    }
    let text = table(&[], &[&path]);
    let expected = "\nnot played of midway: 1 request (no answer was recorded)\n";
    assert!(text.contains(expected), "{text}");
}
