//! Stopping politely, as a process and as its signals see it.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{
    Client, Gate, LAST_CHUNK, Process, Proxy, STREAM_HEAD, Step, Tap, chunk, plain,
};

fn streaming(gate: &Gate) -> Tap {
    let steps = vec![
        Step::Send([STREAM_HEAD.as_bytes(), &chunk("first")].concat()),
        Step::Wait(gate.clone()),
        Step::Send([&chunk("last"), LAST_CHUNK].concat()),
    ];
    Tap::start(move |_| steps.clone())
}

#[test]
fn sigterm_lets_running_streams_finish_takes_no_new_connection_and_exits_0() {
    for signal in ["-TERM", "-INT"] {
        let gate = Gate::new();
        let tap = streaming(&gate);
        let process = Process::start(&tap.url(), &[]);
        let mut client = Client::connect(process.address);
        let mut idle = Client::connect(process.address);
        client.post("/v1/messages", "", b"{}").head();
        client.until("first");
        process.signal(signal);
        let begun = Instant::now();
        while std::net::TcpStream::connect(process.address).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(10), "still accepts");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(
            idle.some().is_empty(),
            "an idle connection is closed at once"
        );
        gate.open();
        assert!(client.until("0\r\n\r\n").contains("last"));
        let (code, _) = process.wait();
        assert_eq!(code, Some(0));
    }
}

#[test]
fn a_stream_that_does_not_finish_is_cut_at_the_limit() {
    let gate = Gate::new();
    let tap = streaming(&gate);
    let process = Process::start(&tap.url(), &[("LONGHAUL_LIMITS__DRAIN", "1s")]);
    let mut client = Client::connect(process.address);
    client.post("/v1/messages", "", b"{}").head();
    client.until("first");
    process.signal("-TERM");
    let (code, logs) = process.wait();
    assert_eq!(code, Some(0));
    assert!(logs.contains("limits.drain"), "{logs}");
    gate.open();
}

#[test]
fn readiness_says_that_the_end_is_near() {
    let gate = Gate::new();
    let tap = streaming(&gate);
    let mut proxy = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").head();
    client.until("first");
    let admin = proxy.admin.unwrap();
    let ready = || {
        let request = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        Client::connect(admin).send(request).answer().status()
    };
    assert_eq!(ready(), 200);
    proxy.tell_to_stop();
    let begun = Instant::now();
    while ready() != 503 {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    gate.open();
    client.until("last");
    proxy.join();
}

#[test]
fn logs_carry_the_id_of_the_response_and_neither_content_nor_credentials() {
    let tap = Tap::start(|_| {
        plain(
            br#"{"id":"msg_1","type":"message","content":[{"type":"text","text":"reply-words"}]}"#,
        )
    });
    let process = Process::start(&tap.url(), &[("LONGHAUL_LOG__LEVEL", "trace")]);
    let answer = Client::connect(process.address)
        .post(
            "/v1/messages?secret-query=1",
            "x-api-key: secret-key\r\nauthorization: Bearer secret-bearer\r\nconnection: close\r\n",
            br#"{"messages":[{"role":"user","content":"request-words"}]}"#,
        )
        .answer();
    let id = answer.header("x-longhaul-request").unwrap().to_owned();
    process.signal("-TERM");
    let (_, logs) = process.wait();
    assert!(logs.contains(&id), "{logs}");
    for secret in [
        "secret-key",
        "secret-bearer",
        "request-words",
        "reply-words",
        "secret-query",
    ] {
        assert!(!logs.contains(secret), "{secret} is in the logs: {logs}");
    }
    for line in logs.lines() {
        let _: serde_json::Value =
            serde_json::from_str(line).expect("a log line is JSON when nobody watches");
    }
}

#[test]
fn bad_configuration_exits_with_2_and_names_every_mistake() {
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["serve", "--listen", "nowhere"])
        .env("LONGHAUL_LIMITS__DRAIN", "soon")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("nowhere") && text.contains("LONGHAUL_LIMITS__DRAIN"),
        "{text}"
    );
}
