//! Claude Code, as people install it, through the proxy.
//!
//! It comes from npm, pinned, and runs a turn of sixty tool calls on its default
//! model against the simulator, in a window that is far too small for it. Where
//! npm cannot install it nothing is shown, and a line says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longhaul::sim::{Enforcement, Entry, Options, Outcome, Rule};
use serde_json::{Value, json};

use crate::support::sdk::{KEY, claude_code};
use crate::support::simulated::Simulated;
use crate::support::{Proxy, text};

const CALLS: u64 = 60;

/// Runs one prompt to its end; what it printed.
fn prompt(script: &Path, proxy: &Proxy) -> String {
    let folder = tempfile::tempdir().unwrap();
    let sub = |name: &str| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (home, work) = (sub("home"), sub("work"));
    let url = format!("http://{}", proxy.address);
    let servers =
        json!({"mcpServers": {"longhaul": {"type": "http", "url": format!("{url}/mcp")}}});
    let config = folder.path().join("mcp.json");
    std::fs::write(&config, servers.to_string()).unwrap();
    let output = Command::new("node")
        .arg(script)
        .args([
            "-p",
            "Count a lot, please.",
            "--dangerously-skip-permissions",
            "--mcp-config",
        ])
        .arg(&config)
        // Settings of whoever runs the tests would reach it.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .env("ANTHROPIC_BASE_URL", &url)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        // It may be root that runs the tests.
        .env("IS_SANDBOX", "1")
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn sessions(proxy: &Proxy) -> Vec<Value> {
    let request = "GET /longhaul/sessions HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = proxy.client().send(request).answer();
    let sessions: Value = serde_json::from_slice(&answer.body).unwrap();
    sessions["sessions"].as_array().unwrap().clone()
}

#[test]
fn claude_code_keeps_one_session_through_passes_and_nothing_is_refused() {
    let Some(script) = claude_code() else {
        println!("skipped: npm cannot install Claude Code here");
        return;
    };
    // As `longhaul sim` does: one that enforces it refuses once, and is answered.
    let upstream = Simulated::start(Options {
        enforcement: Enforcement::Recorded,
        ..Options::default()
    });
    upstream.sim.set_rule(Rule::CallTool {
        name: Some("Bash".to_owned()),
        input: Some(json!({"command": "seq 1 900; date +%N", "description": "Count"})),
        times: CALLS,
        parallel: 1,
        words: 0,
        finish: Some("That was a lot.".to_owned()),
    });
    let proxy = Proxy::with(&upstream.sim.url(), "[window]\nbudget = 30000\n");
    let printed = prompt(&script, &proxy);
    assert_eq!(printed.trim(), "That was a lot.");

    let entries = upstream.entries();
    let refused = |entry: &&Entry| matches!(entry.outcome, Outcome::Refused { .. });
    let refused: Vec<&Outcome> = entries.iter().filter(refused).map(|e| &e.outcome).collect();
    assert!(refused.is_empty(), "{refused:?}");

    let sessions = sessions(&proxy);
    println!(
        "claude code: {} requests upstream, {sessions:?}",
        entries.len()
    );
    let [session] = sessions.as_slice() else {
        panic!("one conversation is one session: {sessions:?}");
    };
    assert_eq!(session["requests"], CALLS + 1);
    assert!(session["passes"].as_u64().unwrap() > 0, "{session}");
    assert!(
        session["original_tokens"].as_u64().unwrap() > 60_000,
        "{session}"
    );
    assert!(
        session["sent_tokens"].as_u64().unwrap() < 30_000,
        "{session}"
    );

    // Its MCP tools are not declared until the model searches for them.
    let declared = |entry: &Entry| {
        let body = entry.json().unwrap_or_default();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .any(|tool| tool["name"] == "mcp__longhaul__recall")
    };
    assert!(!entries.iter().any(declared));
    let names = |entry: &Entry| {
        let body = entry.body.as_deref().map(text).unwrap_or_default();
        body.contains("call mcp__longhaul__recall with ref lh-")
    };
    assert!(
        entries.iter().any(names),
        "views name the tools all the same"
    );
}
