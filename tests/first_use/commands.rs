//! Every command of the README and of `docs`, and how it is run here.
//!
//! What a reader would run is run, with other addresses, names and folders in the
//! places of those that are written there. What needs the outside world meets a
//! stand-in that tells how it was called.

/// How a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To its end, for real.
    Runs,
    /// Until its first line, for real.
    Serves,
    /// To its end, with a stand-in for what is not here.
    StandIn,
    /// Not at all; another line tells whether it could be.
    Checked(&'static str),
}

/// What is put in the place of something that is written.
#[derive(Debug, Clone, Copy)]
pub enum Instead {
    /// The address of the simulator.
    Simulator,
    /// The host and port of a proxy in front of it.
    Proxy,
    /// The beginning of a session's id.
    Session,
    /// A reference of that session's.
    Reference,
    /// A database of its own; a folder, where there is no server for one.
    Database,
    /// These words.
    Words(&'static str),
}

/// A command and how it is run.
pub struct Known {
    pub command: &'static str,
    pub way: Way,
    pub changes: &'static [(&'static str, Instead)],
    /// A part of what it prints.
    pub shows: &'static str,
}

const fn known(command: &'static str, way: Way, shows: &'static str) -> Known {
    Known {
        command,
        way,
        changes: &[],
        shows,
    }
}

impl Known {
    const fn with(mut self, changes: &'static [(&'static str, Instead)]) -> Self {
        self.changes = changes;
        self
    }
}

use Instead::{Database, Proxy, Reference, Session, Simulator, Words};
use Way::{Checked, Runs, Serves, StandIn};

const SESSION: &[(&str, Instead)] = &[("3f2a", Session)];
const PROXY: &[(&str, Instead)] = &[("127.0.0.1:4180", Proxy)];

pub const ALL: &[Known] = &[
    // Two commands, the demo, quick starts
    known(
        "cargo install --locked --path .",
        Checked("cargo metadata --locked --offline --format-version 1 --no-deps"),
        "\"kind\":[\"bin\"]",
    ),
    known("longhaul run -- claude", StandIn, "base http://127.0.0.1:"),
    known("longhaul demo", Runs, "Drawn in longhaul-demo.svg.").with(&[(
        "longhaul demo",
        Words("longhaul demo --turns 4 --window 30000"),
    )]),
    known("longhaul serve", Serves, "longhaul listening on http://"),
    known("ANTHROPIC_BASE_URL=http://127.0.0.1:4180 claude", StandIn, "base http://").with(PROXY),
    known("longhaul run -- python agent.py", Runs, "longhaul: 1 request, 1 turn, "),
    known("longhaul run -- node agent.mjs", Runs, "longhaul: 1 request, 1 turn, "),
    known(
        "ANTHROPIC_BASE_URL=https://api.anthropic.com/v1 longhaul run -- node app.mjs",
        Runs,
        "longhaul: 1 request, 1 turn, ",
    )
    .with(&[("https://api.anthropic.com", Simulator)]),
    known("longhaul sim --listen 127.0.0.1:4181", Serves, "longhaul sim listening on http://")
        .with(&[("4181", Words("0"))]),
    known("longhaul serve --upstream http://127.0.0.1:4181", Serves, "longhaul listening on http://")
        .with(&[("http://127.0.0.1:4181", Simulator)]),
    known(
        "curl -sN http://127.0.0.1:4180/v1/messages -H 'x-api-key: any' -H 'anthropic-version: 2023-06-01' -d '{\"model\":\"claude-opus-5-5\",\"max_tokens\":100,\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'",
        Runs,
        "event: message_stop",
    )
    .with(PROXY),
    known(
        "longhaul run --upstream https://api.anthropic.com --data-dir ~/.local/share/longhaul -- claude",
        StandIn,
        "base http://127.0.0.1:",
    )
    .with(&[("https://api.anthropic.com", Simulator)]),
    // Store, recall
    known(
        "longhaul store copy sqlite postgres://user:password@host/database",
        Runs,
        "",
    )
    .with(&[("postgres://user:password@host/database", Database)]),
    known(
        "claude mcp add --transport http longhaul http://127.0.0.1:4180/mcp",
        StandIn,
        "claude mcp add --transport http longhaul",
    )
    .with(PROXY),
    known("longhaul sessions", Runs, "claude-opus-4-8"),
    known("longhaul sessions show 3f2a", Runs, "original tokens").with(SESSION),
    known("longhaul sessions handoff 3f2a > handoff.md", Runs, "").with(SESSION),
    known("longhaul sessions delete 3f2a", Runs, "is forgotten").with(SESSION),
    known("longhaul journal search 3f2a why was the retry budget raised", Runs, "retry budget")
        .with(SESSION),
    known(
        "longhaul journal show 3f2a lh-0123456789abcdef0123 --page 2",
        Runs,
        "page 2",
    )
    .with(&[("3f2a", Session), ("lh-0123456789abcdef0123", Reference)]),
    known("longhaul journal export 3f2a > messages.json", Runs, "").with(SESSION),
    // Configuration, containers
    known("longhaul check --config FILE", Runs, "[policy]").with(&[(
        "FILE",
        Words(concat!(env!("CARGO_MANIFEST_DIR"), "/config/longhaul.toml")),
    )]),
    known("docker build -t longhaul .", StandIn, "docker build -t longhaul ."),
    known(
        "export LONGHAUL_ADMIN_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')",
        Runs,
        "",
    ),
    known(
        "docker run --rm --read-only -p 127.0.0.1:4180:4180 -v longhaul:/data -e LONGHAUL_ADMIN_TOKEN longhaul",
        StandIn,
        "docker run",
    ),
    known(
        "docker compose -f docker/compose.yaml up --build",
        StandIn,
        "docker compose -f docker/compose.yaml",
    ),
    // Replays
    known("longhaul replay ~/.claude/projects/*/*.jsonl", Runs, "as configured: "),
    known(
        "longhaul replay rollout-*.jsonl --model claude-opus-4-8 --budget 100000",
        Runs,
        "claude-opus-4-8",
    ),
    known(
        "longhaul replay session.jsonl --set policy.floor=0.25,0.35 --set policy.split=token-fraction",
        Runs,
        "policy.floor=0.25 policy.split=token-fraction",
    ),
    known("longhaul replay session.jsonl --aim", Runs, "With Longhaul this session"),
    // Development
    known("make test", Checked("make -n test"), "cargo test --locked"),
    known("make check", Checked("make -n check"), "cargo clippy"),
    known(
        "LONGHAUL_FAULT_SEED=17 cargo test --test faults",
        Checked("grep -n LONGHAUL_FAULT_SEED tests/faults.rs"),
        "LONGHAUL_FAULT_SEED",
    ),
    // Troubleshooting
    known("curl -s http://127.0.0.1:4180/readyz", Runs, "\"status\":\"ready\"").with(PROXY),
    known("curl -s http://127.0.0.1:4180/metrics", Runs, "longhaul_requests_total").with(PROXY),
];
