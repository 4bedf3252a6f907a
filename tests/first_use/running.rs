//! `longhaul run`: the command is told where to go, and is left alone otherwise.

use std::process::{Command, Stdio};
use std::time::Duration;

use longhaul::engine::money;
use longhaul::sim::prices::Cost;
use longhaul::sim::{Key, Options};

use crate::sdk::{KEY, Sdk};
use crate::simulated::Simulated;
use crate::world::{LONGHAUL, World, errors, out};

/// Sends a message and goes on with it, with nothing but the standard library.
const TALK: &str = r#"
import json, os, sys, urllib.request
said = [{"role": "user", "content": "first words"}]
for turn in range(int(sys.argv[1])):
    if turn:
        said += [{"role": "user", "content": "and more words"}]
    body = {"model": "claude-opus-4-8", "max_tokens": 50, "messages": said}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps(body).encode(),
        {"x-api-key": "any", "anthropic-version": "2023-06-01", "content-type": "application/json"},
    )
    answer = json.load(urllib.request.urlopen(request))
    said += [{"role": "assistant", "content": answer["content"]}]
print("talked")
"#;

fn simulated() -> Simulated {
    Simulated::start(Options::default())
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let world = World::new();
    for (command, expected, told) in [
        (
            &["sh", "-c", "exit 7"][..],
            7,
            "no conversation came through",
        ),
        (&["true"], 0, "no conversation came through"),
        (&["sh", "-c", "kill -TERM $$"], 143, "no conversation"),
        (&["no-such-command"], 127, "cannot run no-such-command: "),
        (&["/"], 126, "cannot run /: "),
    ] {
        let output = world
            .longhaul(&["run", "--store", "memory", "--"])
            .args(command)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(expected), "{command:?}");
        assert!(errors(&output).contains(told), "{}", errors(&output));
        assert_eq!(out(&output), "");
    }
    assert_eq!(
        world.files(),
        Vec::<String>::new(),
        "nothing is left behind"
    );
    for arguments in [
        &["run", "--upstream", "nowhere", "--", "true"][..],
        &["run", "--nonsense", "--", "true"],
        &["run"],
    ] {
        let output = world.longhaul(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// What the command prints is all that is printed, and what it reads is what is
/// typed; its own flags are its own.
#[test]
fn the_command_has_its_standard_streams_and_arguments_to_itself() {
    use std::io::Write;
    let world = World::new();
    for before in [&["--quiet", "--"][..], &["--quiet"]] {
        let mut child = world
            .longhaul(&["run", "--store", "memory"])
            .args(before)
            .args([
                "sh",
                "-c",
                "cat; echo \"$@\"",
                "sh",
                "--quiet",
                "--upstream",
                "-x",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut typed = child.stdin.take().unwrap();
        typed.write_all(b"typed\n").unwrap();
        drop(typed);
        let output = child.wait_with_output().unwrap();
        assert_eq!(out(&output), "typed\n--quiet --upstream -x\n");
        assert_eq!(errors(&output), "");
    }
}

#[test]
fn the_command_goes_where_it_would_have_gone_but_through_the_proxy() {
    let (world, upstream) = (World::new(), simulated());
    let script = world.path().join("talk.py");
    std::fs::write(&script, TALK).unwrap();
    let base = format!("{}/", upstream.sim.url());
    let output = world
        .longhaul(&["run", "--", "python3", "talk.py", "3"])
        .env("ANTHROPIC_BASE_URL", base)
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .output()
        .unwrap();
    assert_eq!(out(&output), "talked\n", "{}", errors(&output));
    let told = errors(&output);
    assert!(
        told.starts_with("longhaul: 3 requests, 3 turns, context "),
        "{told}"
    );
    let entries = upstream.entries();
    let cost = entries
        .iter()
        .fold(Cost::default(), |sum, entry| sum.plus(entry.cost));
    let spent = money::dollars(f64::from(u32::try_from(cost.micro_dollars()).unwrap()) / 1e6);
    let sentence = format!(
        "; 0 passes; spent {spent}; without Longhaul it would have been {spent} (saved $0.00)\n"
    );
    assert!(told.contains(&sentence), "{told}: {sentence}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(upstream.entries().len(), 3);
}

/// One store for all: sessions go on whichever proxy they come through.
#[test]
fn runs_share_their_store_and_do_not_get_in_each_others_way() {
    let (world, upstream) = (World::new(), simulated());
    let script = world.path().join("talk.py");
    std::fs::write(&script, TALK).unwrap();
    let config = world.path().join("longhaul.toml");
    let text = "[admin]\nlisten = '127.0.0.1:4189'\n[store]\ntimeout = '20s'\n";
    std::fs::write(&config, text).unwrap();
    let run = || {
        world
            .longhaul(&[
                "run",
                "--config",
                "longhaul.toml",
                "--upstream",
                &upstream.sim.url(),
            ])
            .args(["--", "python3", "talk.py", "2"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for child in [run(), run(), run()] {
        let output = child.wait_with_output().unwrap();
        assert_eq!(out(&output), "talked\n", "{}", errors(&output));
        assert!(
            errors(&output).contains("2 requests, 2 turns"),
            "{}",
            errors(&output)
        );
    }
    let output = world.longhaul(&["sessions", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let sessions = told["sessions"].as_array().unwrap();
    let messages = sessions.iter().map(|it| it["messages"].as_u64().unwrap());
    assert_eq!(messages.max(), Some(3), "{told}");
}

/// A warning does not appear between what the command draws.
#[test]
fn what_is_logged_goes_to_a_file_that_is_named() {
    let world = World::new();
    let script = world.path().join("talk.py");
    std::fs::write(&script, TALK).unwrap();
    let output = world
        .longhaul(&[
            "run",
            "--upstream",
            "http://127.0.0.1:1",
            "--store",
            "memory",
        ])
        .args(["--data-dir", "data", "--", "sh", "-c"])
        .arg("python3 talk.py 1 2> /dev/null; echo $?")
        .output()
        .unwrap();
    assert_eq!(out(&output), "1\n");
    let told = errors(&output);
    assert!(told.contains("1 line was logged to data/run.log"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    let log = std::fs::read_to_string(world.path().join("data/run.log")).unwrap();
    assert!(
        log.contains("request failed") && log.contains("502"),
        "{log}"
    );
}

/// An API that knows one key.
fn with_key() -> Simulated {
    Simulated::start(Options {
        keys: vec![Key {
            credential: KEY.to_owned(),
            organization: "org_clients".to_owned(),
            workspace: "wrkspc_clients".to_owned(),
        }],
        ..Options::default()
    })
}

/// A wrong key and an API that is not there look alike to the sums, and need
/// other remedies than a variable that nobody reads.
#[test]
fn requests_that_came_to_nothing_are_told_by_how_they_ended() {
    let world = World::new();
    std::fs::write(world.path().join("talk.py"), TALK).unwrap();
    let upstream = with_key();
    let url = upstream.sim.url();
    let models = format!("curl -s -H 'x-api-key: {KEY}' $ANTHROPIC_BASE_URL/v1/models");
    let talk = "python3 talk.py 1";
    for (upstream, line, expected) in [
        (
            &*url,
            format!("{talk}; {talk}"),
            "longhaul: 2 requests, none answered: 401 from upstream\n",
        ),
        (
            "http://127.0.0.1:1",
            talk.to_owned(),
            "longhaul: 1 request, none answered: 502 from longhaul itself\n",
        ),
        (
            &url,
            models,
            "longhaul: 1 request, no conversation among them: other 200\n",
        ),
        (
            &url,
            "curl -s $ANTHROPIC_BASE_URL/healthz".to_owned(),
            "longhaul: no conversation came through: does the command read",
        ),
    ] {
        let output = world
            .longhaul(&["run", "--store", "memory", "--upstream", upstream])
            .args(["--", "sh", "-c", &format!("({line}) > out 2>&1")])
            .output()
            .unwrap();
        let told = errors(&output);
        assert!(told.starts_with(expected), "{line}: {told}");
    }
}

/// Starts a command that says `ready`, sends the proxy a signal, and tells how
/// it all ended.
fn signalled(signal: &str, script: &str) -> (Option<i32>, String) {
    use std::io::{BufRead, BufReader, Read};
    // Whoever runs this in the background may have made it deaf to some signals.
    const HEARS: &str = "import os, signal, sys\n\
        signal.signal(signal.SIGINT, signal.SIG_DFL)\n\
        signal.signal(signal.SIGHUP, signal.SIG_DFL)\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let world = World::new();
    let mut command = Command::new("python3");
    command.args(["-c", HEARS, LONGHAUL, "run", "--quiet", "--store", "memory"]);
    command.args(["--", "sh", "-c", script]);
    world.settle(&mut command);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &id])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    (child.wait().unwrap().code(), rest)
}

#[test]
fn a_signal_to_the_proxy_is_the_commands() {
    for signal in ["TERM", "HUP", "USR1", "INT"] {
        let script = format!(
            "trap 'echo got {signal}; exit 5' {signal}; echo ready; while :; do sleep 0.02; done"
        );
        let (code, said) = signalled(&format!("-{signal}"), &script);
        assert_eq!((code, said), (Some(5), format!("got {signal}\n")));
    }
    let (code, _) = signalled("-TERM", "echo ready; exec sleep 60");
    assert_eq!(code, Some(143));
}

/// An interrupt from the keyboard reaches the command once, by the terminal; the
/// proxy lives on until the command has ended.
#[test]
fn an_interrupt_from_the_keyboard_is_heard_once_and_ends_nobody_else() {
    let world = World::new();
    let terminal = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/first_use/terminal.py");
    let script = "trap 'count=x$count' INT; echo ready; \
                  until [ \"$count\" ]; do sleep 0.02; done; sleep 0.3; \
                  curl -s -o /dev/null -w 'alive %{http_code}' $ANTHROPIC_BASE_URL/healthz; \
                  echo \" heard $count\"; exit 3";
    let mut command = Command::new("python3");
    command.args([terminal, "ready", "\\x03", LONGHAUL]);
    command.args(["run", "--store", "memory", "--", "sh", "-c", script]);
    world.settle(&mut command);
    let output = command.output().unwrap();
    let said = out(&output);
    assert!(
        said.contains("alive 200 heard x\r\n"),
        "{said}{}",
        errors(&output)
    );
    assert!(
        said.contains("longhaul: no conversation came through"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(3));
}

/// Waits for a command as a shell with job control does: told when it stops, it
/// continues the process that it knows.
const SHELL: &str = r#"
import os, signal, sys
os.setsid()
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.execvp(sys.argv[1], sys.argv[1:])
signal.alarm(60)
_, status = os.waitpid(child, os.WUNTRACED)
print("stopped" if os.WIFSTOPPED(status) else "ended", flush=True)
if os.WIFSTOPPED(status):
    os.kill(child, signal.SIGCONT)
    _, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

/// Or the terminal would wait for somebody who will never say anything.
#[test]
fn a_command_that_stops_itself_stops_the_proxy_and_both_go_on() {
    let world = World::new();
    let script = "echo begun; kill -STOP $$; echo resumed; exit 4";
    let mut command = Command::new("python3");
    command.args(["-c", SHELL, LONGHAUL]);
    command.args(["run", "--quiet", "--store", "memory", "--"]);
    command.args(["sh", "-c", script]);
    world.settle(&mut command);
    let output = command.output().unwrap();
    assert_eq!(
        out(&output),
        "begun\nstopped\nresumed\n",
        "{}",
        errors(&output)
    );
    assert_eq!(output.status.code(), Some(4));
}

/// As with `nohup`.
#[test]
fn what_was_ignored_before_is_ignored_by_the_command_too() {
    let world = World::new();
    let inner = "kill -HUP $$; echo still here";
    let line =
        format!("trap '' HUP; exec {LONGHAUL} run --quiet --store memory -- sh -c '{inner}'");
    let output = world.shell(&line).output().unwrap();
    assert_eq!(out(&output), "still here\n");
}

/// A grandchild that holds on to the terminal does not hold the proxy.
#[test]
fn the_proxy_ends_with_the_command() {
    let world = World::new();
    let begun = std::time::Instant::now();
    let output = world
        .longhaul(&["run", "--quiet", "--store", "memory", "--", "sh", "-c"])
        .arg("sleep 60 > /dev/null 2> /dev/null & exit 0")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// The official SDKs, as anybody would run them.
fn behind(sdk: &Sdk) {
    let world = World::new();
    let upstream = with_key();
    let url = upstream.sim.url();
    let data = world.path().join("data");
    let before = [
        LONGHAUL,
        "run",
        "--upstream",
        &url,
        "--data-dir",
        data.to_str().unwrap(),
        "--",
    ];
    let variables = [("ANTHROPIC_API_KEY", KEY), ("SIM_URL", &url)];
    let checks = ["plain_call", "tool_runner"];
    let output = sdk.command(&before, &variables, &checks).output().unwrap();
    let (said, told) = (out(&output), errors(&output));
    assert!(output.status.success(), "{said}{told}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.lines().all(|line| line.starts_with("ok ")), "{said}");
    // One call, and four of a tool loop, whose history the runner sends because
    // threads are declined.
    assert!(
        told.contains("longhaul: 5 requests in 2 sessions; the largest: 1 turn, "),
        "{told}"
    );
    assert_eq!(upstream.entries().len(), 5);
}

#[test]
fn the_python_sdk_runs_behind_it() {
    behind(&Sdk::python());
}

#[test]
fn the_typescript_sdk_runs_behind_it() {
    behind(&Sdk::typescript());
}
