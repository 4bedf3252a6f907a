//! The README and `docs`: every command in them works, every link leads somewhere.
//!
//! A command is a line of a block marked `sh`. One that `commands` does not know
//! fails, and so does one that is known there and written nowhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use longhaul::sim::Options;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::commands::{ALL, Instead, Known, Way};
use crate::simulated::Simulated;
use crate::world::{LONGHAUL, Running, World, errors, out};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts, by name.
fn texts() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.push(root().join("README.md"));
    paths.sort();
    let named = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(named).collect()
}

/// The commands of a text: without comments, continued lines put together.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut inside, mut begun) = (false, String::new());
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
            continue;
        }
        if !inside {
            continue;
        }
        let line = line.split_once(" # ").map_or(line, |(line, _)| line).trim();
        if let Some(start) = line.strip_suffix('\\') {
            begun.push_str(start);
            continue;
        }
        let command = std::mem::take(&mut begun) + line;
        if !command.is_empty() {
            found.push(command);
        }
    }
    found
}

#[test]
fn commands_are_read_as_a_reader_would() {
    let text = "```sh\na b    # why\nc \\\n  d\n\n```\n```text\nno\n```\n";
    assert_eq!(commands(text), ["a b", "c d"]);
}

#[test]
fn every_command_is_known_and_every_known_one_is_written() {
    let written: Vec<(String, String)> = texts()
        .into_iter()
        .flat_map(|(name, text)| {
            let commands = commands(&text).into_iter();
            commands.map(move |command| (name.clone(), command))
        })
        .collect();
    for (name, command) in &written {
        let is_known = ALL.iter().any(|known| known.command == command);
        assert!(
            is_known,
            "{name}: nobody tries {command:?}: add it to commands.rs"
        );
    }
    for known in ALL {
        let is_written = written.iter().any(|(_, command)| command == known.command);
        assert!(is_written, "{:?} is written nowhere", known.command);
    }
}

#[test]
fn every_link_leads_somewhere() {
    for (name, text) in texts() {
        let folder = root().join(&name).parent().unwrap().to_owned();
        for (at, _) in text.match_indices("](") {
            let link = text[at + 2..].split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                root().join(&name)
            } else {
                folder.join(file)
            };
            assert!(target.exists(), "{name}: {link}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let found = headings.any(|line| anchor_of(line) == anchor);
                assert!(found, "{name}: {link}");
            }
        }
    }
}

/// What a heading is called in a link.
fn anchor_of(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || " -".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

/// Everybody who is needed to run the commands.
struct Cast {
    upstream: Simulated,
    proxy: Running,
    /// A store with a session in it.
    data: PathBuf,
    session: String,
    reference: String,
    _world: World,
}

fn cast() -> Cast {
    let upstream = Simulated::start(Options {
        keep_bodies: true,
        ..Options::default()
    });
    let world = World::new();
    let data = world.path().join("data");
    let mut command = world.longhaul(&["serve", "--upstream", &upstream.sim.url()]);
    command
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data);
    command.env("LONGHAUL_STORE__TIMEOUT", "20s");
    command.env("LONGHAUL_TRIM__ENABLED", "false");
    let proxy = Running::start(&mut command);
    let (session, reference) = lived(&proxy.url(), &upstream);
    Cast {
        upstream,
        proxy,
        data,
        session,
        reference,
        _world: world,
    }
}

/// Sends a conversation that is made smaller; its session, and a reference in it.
fn lived(proxy: &str, upstream: &Simulated) -> (String, String) {
    let body = json!({
        "model": "claude-opus-4-8", "max_tokens": 200, "messages": worked(),
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body.json");
    std::fs::write(&file, body.to_string()).unwrap();
    let output = Command::new("curl")
        .args(["-s", "--noproxy", "*", "-D", "-", "-o", "/dev/null"])
        .args([
            "-H",
            "x-api-key: any",
            "-H",
            "anthropic-version: 2023-06-01",
        ])
        .args([
            "-H",
            "content-type: application/json",
            "-H",
            "x-longhaul-compact: now",
        ])
        .arg("--data-binary")
        .arg(format!("@{}", file.display()))
        .arg(format!("{proxy}/v1/messages"))
        .output()
        .expect("these tests need curl");
    let headers = out(&output).to_lowercase();
    let header = |name: &str| {
        let line = headers.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {headers}"))
            .trim()
            .to_owned()
    };
    assert!(
        header("x-longhaul-compaction:").contains("clear"),
        "{headers}"
    );
    let sent = upstream.last().json().unwrap().to_string();
    let at = sent.find("lh-").expect("a reference in the view");
    (header("x-longhaul-session:"), sent[at..at + 23].to_owned())
}

/// A history with results that are long enough to be cleared.
fn worked() -> Vec<Value> {
    let mut messages = vec![json!({"role": "user",
        "content": "Find out why was the retry budget raised, and write it down."})];
    for call in 0..8 {
        let id = format!("toolu_{call}");
        let lines = (0..600).map(|line| format!("{call}.{line}: the retry budget was raised\n"));
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("log {call}")}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": lines.collect::<String>()}]}));
    }
    messages
}

/// A folder in which a reader would stand.
fn home(cast: &Cast) -> World {
    let world = World::new();
    for name in ["claude", "docker"] {
        world.stand_in(name);
    }
    let python = "import json, os, urllib.request\n\
        body = {'model': 'claude-opus-4-8', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': 'hi'}]}\n\
        headers = {'x-api-key': 'any', 'anthropic-version': '2023-06-01', 'content-type': 'application/json'}\n\
        base = os.environ['ANTHROPIC_BASE_URL']\n\
        urllib.request.urlopen(urllib.request.Request(base + '/v1/messages', json.dumps(body).encode(), headers))\n";
    let node = |path: &str| {
        format!(
            "const body = {{model: 'claude-opus-4-8', max_tokens: 9, messages: [{{role: 'user', content: 'hi'}}]}};\n\
             const headers = {{'x-api-key': 'any', 'anthropic-version': '2023-06-01', 'content-type': 'application/json'}};\n\
             const answer = await fetch(process.env.ANTHROPIC_BASE_URL + '{path}', {{method: 'POST', headers, body: JSON.stringify(body)}});\n\
             if (!answer.ok) throw new Error(await answer.text());\n"
        )
    };
    let say = |role: &str, text: &str| json!({"role": role, "content": text}).to_string();
    let plain = [say("user", "go"), say("assistant", "done")].join("\n");
    let line = |role: &str, text: &str| {
        json!({"type": role, "uuid": role, "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z",
            "message": {"role": role, "id": role, "content": [{"type": "text", "text": text}]}})
        .to_string()
    };
    let item = |role: &str, text: &str| {
        json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload":
            {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}})
        .to_string()
    };
    let meta = json!({"type": "session_meta", "payload": {"id": "x"}}).to_string();
    let files = [
        ("agent.py", python.to_owned()),
        ("agent.mjs", node("/v1/messages")),
        ("app.mjs", node("/messages")),
        ("session.jsonl", plain),
        (
            ".claude/projects/p/s.jsonl",
            [line("user", "go"), line("assistant", "done")].join("\n"),
        ),
        (
            "rollout-1.jsonl",
            [meta, item("user", "go"), item("assistant", "done")].join("\n"),
        ),
        ("bin/python", "#!/bin/sh\nexec python3 \"$@\"\n".to_owned()),
    ];
    for (name, text) in files {
        let path = world.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        if name.starts_with("bin/") {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let data = world.path().join(".local/share/longhaul");
    let mut copy = Command::new(LONGHAUL);
    world.settle(&mut copy);
    let copied = copy
        .args(["store", "copy"])
        .arg(&cast.data)
        .arg(&data)
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", errors(&copied));
    world
}

/// The command as it is run here.
fn changed(known: &Known, cast: &Cast, world: &World) -> String {
    let mut line = known.command.to_owned();
    for (what, instead) in known.changes {
        let instead = match instead {
            Instead::Simulator => cast.upstream.sim.url(),
            Instead::Proxy => cast.proxy.url().trim_start_matches("http://").to_owned(),
            Instead::Session => cast.session[..6].to_owned(),
            Instead::Reference => cast.reference.clone(),
            Instead::Database => database(world),
            Instead::Words(words) => (*words).to_owned(),
        };
        assert!(line.contains(what), "{line}: {what}");
        line = line.replace(what, &instead);
    }
    line
}

/// A database that is empty.
fn database(world: &World) -> String {
    match Cluster::shared() {
        Some(cluster) => {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(cluster.database())
        }
        None => world.path().join("copy").display().to_string(),
    }
}

/// Runs a command; what was wrong with it.
fn tried(known: &Known, cast: &Cast) -> Result<(), String> {
    let world = home(cast);
    let line = changed(known, cast, &world);
    let settle = |command: &mut Command| {
        // Whatever the command says, nothing leaves this machine.
        command.env("LONGHAUL_UPSTREAM", cast.upstream.sim.url());
        command.env("LONGHAUL_LISTEN", "127.0.0.1:0");
        command.env("NO_PROXY", "*");
    };
    // A stand-in does not look for the files that it is given.
    let files = known.command.split_whitespace();
    let mut files = files.filter(|word| Path::new(word).extension() == Some("yaml".as_ref()));
    if let Some(lost) = files.find(|file| !root().join(file).exists()) {
        return Err(format!("{line}: there is no {lost}"));
    }
    let told = match known.way {
        Way::Serves => {
            let mut command = world.shell(&format!("exec {line}"));
            settle(&mut command);
            Running::start(&mut command).said.clone()
        }
        Way::Runs | Way::StandIn | Way::Checked(_) => {
            let mut command = if let Way::Checked(instead) = known.way {
                let mut command = Command::new("sh");
                command.args(["-c", instead]).current_dir(root());
                command
            } else {
                let mut command = world.shell(&line);
                settle(&mut command);
                command
            };
            let output = command.output().unwrap();
            let told = out(&output) + &errors(&output);
            if !output.status.success() {
                return Err(format!("{line}: {}: {told}", output.status));
            }
            told
        }
    };
    if told.contains(known.shows) {
        Ok(())
    } else {
        Err(format!("{line}: no {:?} in {told}", known.shows))
    }
}

#[test]
fn every_command_works() {
    let cast = &cast();
    let wrong: Vec<String> = ALL
        .iter()
        .filter_map(|known| tried(known, cast).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    for known in ALL {
        match known.way {
            Way::Runs | Way::Serves => {}
            Way::StandIn => println!("run with a stand-in: {}", known.command),
            Way::Checked(instead) => println!("not run, but {instead}: {}", known.command),
        }
    }
}

/// Addresses in other blocks are those that the proxy has.
#[test]
fn settings_for_clients_are_what_they_say() {
    let (_, text) = texts()
        .into_iter()
        .find(|(name, _)| name == "README.md")
        .unwrap();
    let blocks = text.split("```json\n").skip(1);
    let json = blocks.map(|block| block.split("```").next().unwrap());
    let settings: Vec<Value> = json
        .map(|json| serde_json::from_str(json).unwrap())
        .collect();
    let [claude_code, opencode] = settings.as_slice() else {
        panic!("two clients: {settings:?}");
    };
    let tools = &claude_code["mcpServers"]["longhaul"];
    assert_eq!(tools["url"], "${ANTHROPIC_BASE_URL}/mcp");
    // Else the model has to search for them first.
    assert_eq!(tools["alwaysLoad"], true);
    // Under `longhaul run` the variable names the proxy.
    let options = &opencode["provider"]["anthropic"]["options"];
    assert_eq!(options["baseURL"], "{env:ANTHROPIC_BASE_URL}/v1");
    assert!(text.contains("say `\"http://127.0.0.1:4180/v1\"` there"));
}
