//! `longhaul replay` as a command: what it prints, writes, refuses, and that it
//! reaches nobody.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::coding;

/// A folder with one short recording in it.
fn recording() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.jsonl");
    let lines: Vec<String> = coding::wordy(77, 8, 16_000)
        .iter()
        .map(Value::to_string)
        .collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    (folder, path)
}

fn replay(arguments: &[&str], paths: &[&Path], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .arg("replay")
        .args(arguments)
        .args(paths)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "{field} is missing in {value}");
    }
}

/// The fields that others rely on.
fn is_entry(entry: &Value) {
    has(
        entry,
        &[
            "messages",
            "turns",
            "without",
            "with",
            "compactions",
            "saved_usd",
        ],
    );
    has(entry, &["summarizer_usd", "signals"]);
    for block in ["without", "with"] {
        let block = &entry[block];
        has(
            block,
            &[
                "completed",
                "requests",
                "tokens",
                "cost_usd",
                "cache_read_share",
            ],
        );
        has(block, &["peak_tokens", "prefix_breaks"]);
        has(
            &block["tokens"],
            &["input", "cache_read", "cache_write", "output"],
        );
    }
    has(
        &entry["compactions"],
        &["clear", "trim", "summary", "truncate"],
    );
    let signals = &entry["signals"];
    let shares = [
        "compression_ratio",
        "trigger_precision",
        "probe_recovery",
        "recall_recovery",
        "reread_rate",
    ];
    has(signals, &shares);
    has(signals, &["degradation", "amortization_usd_per_turn"]);
    for share in shares.iter().filter_map(|share| signals[share].as_f64()) {
        assert!((0.0..=1.0).contains(&share), "{signals}");
    }
}

#[test]
fn json_and_pictures_tell_what_is_promised() {
    let (folder, path) = recording();
    let (svg, html) = (folder.path().join("a.svg"), folder.path().join("a.html"));
    let output = replay(
        &[
            "--json",
            "--budget=20000",
            "--set=policy.floor=0.25",
            "--svg",
            svg.to_str().unwrap(),
            "--html",
            html.to_str().unwrap(),
        ],
        &[&path],
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    has(&told, &["settings", "sessions", "total"]);
    let entry = &told["sessions"][0];
    assert_eq!(entry["name"], "short");
    is_entry(entry);
    is_entry(&told["total"]);
    assert_eq!(entry["variations"][0]["set"]["policy.floor"], "0.25");
    assert_eq!(entry["with"]["completed"], true);
    for drawn in [svg, html] {
        let text = std::fs::read_to_string(drawn).unwrap();
        assert!(text.contains("prefers-color-scheme:dark") && text.contains("<polyline"));
        assert!(!text.contains("<script") && !text.contains("http://127"));
        let open = text.matches("<g ").count();
        assert_eq!(open, text.matches("</g>").count());
    }
}

/// It needs no key, and nothing that is configured makes it talk to anybody.
#[test]
fn nobody_is_reached_whatever_is_configured() {
    let (_folder, path) = recording();
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", trap.local_addr().unwrap());
    let output = replay(
        &["--budget=15000"],
        &[&path],
        &[
            ("LONGHAUL_UPSTREAM", &url),
            ("LONGHAUL_SUMMARIZER__UPSTREAM", &url),
            ("LONGHAUL_SUMMARIZER__API_KEY_ENV", "TRAP"),
            ("LONGHAUL_STORE__URL", "postgres://trap@127.0.0.1:1/trap"),
            ("TRAP", "key"),
            ("HTTP_PROXY", &url),
            ("HTTPS_PROXY", &url),
            ("ALL_PROXY", &url),
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    trap.set_nonblocking(true).unwrap();
    assert!(trap.accept().is_err(), "somebody was called");
}

#[test]
fn a_file_that_cannot_be_played_is_named_and_the_others_go_on() {
    let (folder, path) = recording();
    let bad = folder.path().join("bad.jsonl");
    std::fs::write(
        &bad,
        "{\"role\": \"user\", \"content\": \"go\"}\nnonsense\n{}\n",
    )
    .unwrap();
    let output = replay(&["--json"], &[&bad, &path], &[]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("longhaul: {}:2: not JSON: ", bad.display());
    assert!(
        errors(&output).starts_with(&expected),
        "{}",
        errors(&output)
    );
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["sessions"].as_array().unwrap().len(), 1);
    let output = replay(&[], &[&bad], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}

/// Claude Code writes what its sub-agents did beside the sessions.
#[test]
fn a_file_of_a_sub_agent_among_others_is_passed_over() {
    let (folder, path) = recording();
    let agent = folder.path().join("agent-1.jsonl");
    let line = |kind: &str| {
        serde_json::json!({"type": kind, "isSidechain": true,
            "message": {"role": kind, "content": kind}})
    };
    std::fs::write(&agent, format!("{}\n{}\n", line("user"), line("assistant"))).unwrap();
    let output = replay(&["--json"], &[&agent, &path], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let expected = "agent-1.jsonl: nothing to play: every line is a sub-agent's";
    assert!(errors(&output).contains(expected), "{}", errors(&output));
    let output = replay(&[], &[&agent], &[]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_played() {
    let (_folder, path) = recording();
    for (argument, expected) in [
        ("--model=gpt-7", "--model gpt-7: the simulator knows "),
        (
            "--set=policy.floor",
            "--set policy.floor: expected KEY=VALUE",
        ),
        (
            "--set=policy.flor=1",
            "unknown key, did you mean policy.floor?",
        ),
        ("--set=policy.floor=much", "policy.floor = much: expected "),
        (
            "--set=upstream=http://127.0.0.1:1",
            "--set upstream: a replay decides this itself",
        ),
        (
            "--set=listen=127.0.0.1:1",
            "--set listen: a replay decides this itself",
        ),
        (
            "--set=data_dir=/nowhere",
            "--set data_dir: a replay decides this itself",
        ),
        ("--window=12", "12 is not in 1000.."),
        ("--pause=18446744073709551615", "is not in 0..=1000000000"),
        ("--nonsense", "unexpected argument"),
    ] {
        let output = replay(&[argument], &[&path], &[]);
        assert_eq!(output.status.code(), Some(2), "{argument}");
        assert!(errors(&output).contains(expected), "{}", errors(&output));
        assert!(output.stdout.is_empty());
    }
    let output = replay(&[], &[], &[]);
    assert_eq!(output.status.code(), Some(2));
    let output = replay(&["--svg=/nowhere/a", "--html=/nowhere/a"], &[&path], &[]);
    assert_eq!(output.status.code(), Some(2));
}

/// A run that breaks off early is not a cheap one.
#[test]
fn a_session_that_is_refused_is_compared_as_far_as_it_came() {
    let (folder, _) = recording();
    let path = folder.path().join("midway.jsonl");
    let say =
        |role: &str, words: &str| serde_json::json!({"role": role, "content": words}).to_string();
    let mut lines = Vec::new();
    for at in 0..12 {
        // Too much for the window, and nothing that could be given away.
        let words = if at == 4 {
            "pasted ".repeat(40_000)
        } else {
            format!("Step {at}.")
        };
        lines.extend([say("user", &words), say("assistant", "Done.")]);
    }
    std::fs::write(&path, lines.join("\n")).unwrap();
    let page = folder.path().join("a.html");
    let html = ["--html", page.to_str().unwrap()];
    let arguments = ["--json", "--window=30000", html[0], html[1]];
    let output = replay(&arguments, &[&path], &[]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    for entry in [&told["sessions"][0], &told["total"]] {
        assert_eq!(entry["with"]["completed"], false);
        assert_eq!(entry["with"]["requests"], 4);
        let why = entry["with"]["refused"].as_str().unwrap();
        assert!(why.contains("too long"), "{why}");
        assert_eq!(entry["without"]["refused"], Value::Null);
        assert_eq!(entry["without"]["requests"], 12);
        assert_eq!(entry["compared_requests"], 4);
        let share = entry["cost_share"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&share), "{share}");
    }
    assert_eq!(told["sessions"][0]["with"]["ends_at_request"], 5);
    let table = std::fs::read_to_string(page).unwrap();
    assert!(
        table.contains("of the 4 requests out of 12 that came through"),
        "{table}"
    );
    assert!(
        table.contains("* midway, as configured: refused at request 5: "),
        "{table}"
    );
}

/// What a report says suffices to make it again and to reckon its dollars anew.
#[test]
fn a_report_tells_what_was_measured() {
    let (folder, path) = recording();
    let config = folder.path().join("own.toml");
    std::fs::write(&config, "[window]\nbudget = 15000\n").unwrap();
    let svg = folder.path().join("a.svg");
    let output = replay(
        &[
            "--json",
            "--config",
            config.to_str().unwrap(),
            "--set=window.budget=18000",
            "--svg",
            svg.to_str().unwrap(),
        ],
        &[&path],
        &[
            ("LONGHAUL_SUMMARIZER__MODE", "model"),
            ("LONGHAUL_LISTEN", "127.0.0.1:1"),
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = &told["settings"];
    assert_eq!(settings["budget"], 15_000);
    assert_eq!(settings["effective"][0]["budget"], 15_000);
    assert_eq!(settings["effective"][1]["budget"], 18_000);
    assert_eq!(settings["effective"][0]["mode"], "on");
    assert_eq!(settings["config_file"], config.to_str().unwrap());
    assert_eq!(
        settings["variables"],
        serde_json::json!(["LONGHAUL_SUMMARIZER__MODE"])
    );
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(drawn.contains("budget 15K") && drawn.contains("LONGHAUL_SUMMARIZER__MODE"));
    let prices = &settings["prices_usd_per_million"];
    let cost = |model: &str, tokens: &Value| -> f64 {
        let classes = ["input", "cache_read", "cache_write", "output"];
        let each = classes.map(|class| {
            tokens[class].as_f64().unwrap() * prices[model][class].as_f64().unwrap() / 1e6
        });
        each.iter().sum()
    };
    let total = &told["total"];
    let summaries = total["summarizer"]["models"].as_object().unwrap();
    assert!(!summaries.is_empty(), "{total}");
    let summaries = summaries.iter();
    let summaries: f64 = summaries
        .map(|(model, of)| cost(model, &of["tokens"]))
        .sum();
    let model = settings["model"].as_str().unwrap();
    for (block, expected) in [
        (
            &total["without"]["cost_usd"],
            cost(model, &total["without"]["tokens"]),
        ),
        (&total["summarizer_usd"], summaries),
        (
            &total["with"]["cost_usd"],
            cost(model, &total["with"]["tokens"]) + summaries,
        ),
    ] {
        let billed = block.as_f64().unwrap();
        assert!((billed - expected).abs() < 1e-4, "{billed} {expected}");
    }
}

#[test]
fn standard_input_is_read_and_odd_names_break_no_picture() {
    let (folder, path) = recording();
    let odd = folder.path().join("bell\u{7}\u{1b}[2J<b>.jsonl");
    std::fs::copy(&path, &odd).unwrap();
    let (svg, html) = (folder.path().join("a.svg"), folder.path().join("a.html"));
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["replay", "-"])
        .arg(&odd)
        .arg("--svg")
        .arg(&svg)
        .arg("--html")
        .arg(&html)
        .stdin(std::fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("\nstandard input  "), "{table}");
    let pictures = [svg, html].map(|path| std::fs::read_to_string(path).unwrap());
    for text in pictures.iter().chain([&table]) {
        let is_odd = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_odd), "{text:?}");
    }
    assert!(pictures[0].contains("bell\u{fffd}\u{fffd}[2J&lt;b&gt;"));
}
