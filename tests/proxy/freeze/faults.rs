//! Sessions in which things go wrong: upstream, on the way, and at the summarizer.

use longhaul::sim::{Fault, Options, Persona, Queued, Reply, Target};
use serde_json::json;

use super::passes::{call, talk};
use super::record::Record;
use super::stage::Stage;
use crate::support::{Client, Proxy};
use crate::views::agent::Agent;
use crate::views::cast::{BOUND, FREE, NOW};

#[test]
fn sessions_with_faults_are_as_they_were() {
    let mut record = Record::new("faults.txt");
    upstream_fails(&mut record);
    overflows(&mut record);
    bound_thinking_is_refused(&mut record);
    summarizer_fails(&mut record);
    summarizer_gives_up(&mut record);
    requests_are_wrong(&mut record);
    record.check();
}

/// Every fault once, in the middle of a session with a view.
fn upstream_fails(record: &mut Record) {
    record.scene("upstream fails");
    let mut stage = Stage::start(Options::default(), "[trim]\nmax_chars = 6000\n");
    let mut agent = Agent::new(FREE);
    for _ in 0..5 {
        call(record, &mut stage, &mut agent, 4_000);
    }
    agent.user("Tidy up.");
    stage.ask(record, 0, &mut agent, Reply::text("Tidy."), NOW);
    let faults = [
        (false, "429:7"),
        (false, "500"),
        (false, "529"),
        (false, "401"),
        (false, "403"),
        (false, "413"),
        (false, "reset"),
        (false, "cut-after:0"),
        (false, "wrong-content-type"),
        (false, "garbage"),
        (true, "429:3"),
        (true, "500"),
        (true, "reset-after:0"),
        (true, "cut-after:3"),
        (true, "cut-after:6"),
        (true, "end-after:3"),
        (true, "error-after:3"),
        (true, "garbage-after:3"),
    ];
    for (streams, fault) in faults {
        record.note(&format!("{fault}, streams: {streams}"));
        agent.user(&format!("Go on after {fault}."));
        agent.fields["stream"] = streams.into();
        stage.upstream.sim.push_fault(Fault::parse(fault).unwrap());
        stage.ask(record, 0, &mut agent, Reply::text("Gone on."), "");
        // The client sends it once more.
        if agent.history.last().unwrap()["role"] == "user" {
            stage.ask(record, 0, &mut agent, Reply::text("Gone on."), "");
        }
    }
}

/// The window is smaller than anybody knew.
fn overflows(record: &mut Record) {
    record.scene("the window is smaller than anybody knew");
    let options = Options::default().with_window(FREE, 9_000);
    let mut stage = Stage::start(options, "[summarizer]\nmode = \"model\"\n");
    let mut agent = Agent::new(FREE);
    agent.user("Build it. Never touch files under legacy/.");
    for turn in 0..14 {
        call(record, &mut stage, &mut agent, 2_500);
        if turn == 8 {
            stage.restart();
        }
    }
    // What nothing can make small enough.
    agent.user(&"All of this matters. ".repeat(4_000));
    stage.ask(record, 0, &mut agent, Reply::text("Too much."), "");
}

/// Thinking that no longer fits is refused, once.
fn bound_thinking_is_refused(record: &mut Record) {
    record.scene("thinking that does not fit is refused");
    let mut stage = Stage::start(Options::default(), "");
    let mut agent = Agent::new(BOUND);
    for _ in 0..4 {
        call(record, &mut stage, &mut agent, 4_000);
    }
    agent.user("Go on with it.");
    for turn in 0..4 {
        let reply = Reply::call("Bash", &json!({"command": format!("make {turn}")}));
        let reply = reply.after_thinking("I think of it. ");
        let wish = if turn == 2 { NOW } else { "" };
        stage.ask(record, 0, &mut agent, reply, wish);
        agent.results(3_000);
    }
    stage.ask(record, 0, &mut agent, Reply::text("Made."), "");
}

/// A proxy whose summaries are made by another model under a small budget.
fn summing_up(more: &str) -> (Stage, Agent) {
    let file =
        format!("[window]\nbudget = 12000\n[summarizer]\nmode = \"model\"\nparallel = 1\n{more}");
    let mut agent = Agent::new(FREE);
    agent.user("Build it. Never touch files under legacy/.");
    (Stage::start(Options::default(), &file), agent)
}

/// Each way a summary can fail and be made after all.
fn summarizer_fails(record: &mut Record) {
    use Persona::{
        ContextExceeded, CutOff, Empty, Forgetful, InventingPaths, Malformed, RateLimited,
    };
    for persona in [
        Malformed,
        CutOff,
        Empty,
        Forgetful,
        InventingPaths,
        ContextExceeded,
        RateLimited,
    ] {
        record.scene(&format!("a summarizer that is {persona:?} once"));
        let (mut stage, mut agent) = summing_up("");
        stage.upstream.sim.push_persona(persona);
        for _ in 0..14 {
            talk(record, &mut stage, &mut agent, 900);
        }
    }
}

/// A summarizer that never answers well: breakers open, words are left out, and
/// what was left out is summed up when it answers again.
fn summarizer_gives_up(record: &mut Record) {
    record.scene("a summarizer that fails until it is left alone");
    let breaker =
        "fallback = \"claude-sonnet-4-5\"\n[breaker]\nmax_failures = 2\ncooldown_turns = 3\n";
    let (mut stage, mut agent) = summing_up(breaker);
    stage.upstream.sim.set_persona(Persona::Malformed);
    for turn in 0..22 {
        if turn == 12 {
            stage.upstream.sim.set_persona(Persona::Good);
            stage.pass(3_600);
        }
        talk(record, &mut stage, &mut agent, 900);
    }
    record.scene("a summarizer that cannot be reached");
    let (mut stage, mut agent) = summing_up("");
    stage.upstream.sim.queue_fault(Queued {
        fault: Fault::Reset,
        target: Target::Summary,
        times: 2,
    });
    for _ in 0..12 {
        talk(record, &mut stage, &mut agent, 900);
    }
}

/// What the proxy says itself.
fn requests_are_wrong(record: &mut Record) {
    record.scene("requests that get no further");
    let limits = "[limits]\nbody_bytes = \"64KiB\"\n";
    let mut stage = Stage::start(Options::default(), limits);
    let bodies = [
        ("no JSON", "{".to_owned()),
        ("not an object", "[]".to_owned()),
        (
            "no messages",
            json!({"model": FREE, "max_tokens": 5}).to_string(),
        ),
        (
            "unknown model",
            json!({"model": "none", "max_tokens": 5, "messages": [
            {"role": "user", "content": "Hello."}]})
            .to_string(),
        ),
        ("too large", "x".repeat(70_000)),
        (
            "a thread",
            json!({"model": BOUND, "max_tokens": 5, "thread": {"type": "new"}, "messages": [
            {"role": "user", "content": "Hello."}]})
            .to_string(),
        ),
    ];
    for (what, body) in bodies {
        record.note(what);
        stage.post(record, 0, "/v1/messages", "", body.as_bytes());
    }
    for (what, bytes) in [
        ("no HTTP", "nonsense\r\n\r\n"),
        (
            "a tunnel",
            "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n",
        ),
        (
            "a coding",
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "a page",
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\norigin: https://evil.example\r\ncontent-length: 2\r\n\r\n{}",
        ),
        (
            "a socket",
            "GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        ),
        (
            "a near miss",
            "GET /longhaul//sessions HTTP/1.1\r\nhost: localhost\r\n\r\n",
        ),
    ] {
        stage.raw(record, what, bytes.as_bytes());
    }
    unreachable(record);
}

fn unreachable(record: &mut Record) {
    record.scene("nobody listens");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let proxy = Proxy::before(&url);
    let mut agent = Agent::new(FREE);
    agent.user("Hello.");
    record.request("POST /v1/messages", &agent.body());
    let mut client = Client::connect(proxy.address);
    let answer = client.post("/v1/messages", "", &agent.body()).answer();
    record.answer(&answer);
}
