//! Stopping politely, as a process and as its signals see it.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::support::{
    Client, Gate, LAST_CHUNK, Process, Proxy, STREAM_HEAD, Step, Tap, chunk, eventually, plain,
};

fn streaming(gate: &Gate) -> Tap {
    let steps = vec![
        Step::Send([STREAM_HEAD.as_bytes(), &chunk("first")].concat()),
        Step::Wait(gate.clone()),
        Step::Send([&chunk("last"), LAST_CHUNK].concat()),
    ];
    Tap::start(move |_| steps.clone())
}

fn until_refused(address: SocketAddr) {
    eventually("still accepts", || TcpStream::connect(address).is_err());
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
        until_refused(process.address);
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
fn a_terminal_that_hangs_up_drains() {
    let gate = Gate::new();
    let tap = streaming(&gate);
    let process = Process::on_a_terminal(&tap.url(), &[]);
    let mut client = Client::connect(process.address);
    client.post("/v1/messages", "", b"{}").head();
    client.until("first");
    process.signal("-HUP");
    until_refused(process.address);
    gate.open();
    assert!(client.until("0\r\n\r\n").contains("last"));
    let (code, logs) = process.wait();
    assert_eq!(code, Some(0), "{logs}");
}

#[test]
fn a_service_without_a_terminal_logs_a_hangup_and_goes_on() {
    let tap = Tap::start(|_| plain(b"ok"));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let process = Process::without_a_terminal(&tap.url(), log.to_str().unwrap());
    for count in 1..=2 {
        process.signal("-HUP");
        eventually("the signal is not logged", || {
            let logged = std::fs::read_to_string(&log).unwrap();
            logged.matches("SIGHUP: going on").count() == count
        });
        let mut client = Client::connect(process.address);
        let answer = client.post("/v1/messages", "", b"{}").answer();
        assert_eq!(answer.body, b"ok");
    }
    process.signal("-TERM");
    assert_eq!(process.wait().0, Some(0));
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
    eventually("still ready", || ready() == 503);
    gate.open();
    client.until("last");
    proxy.join();
}

/// Not only to those who ask in the moment they connect.
#[test]
fn the_admin_surface_answers_every_time_while_draining() {
    let gate = Gate::new();
    let tap = streaming(&gate);
    let mut proxy = Proxy::with(&tap.url(), "admin.listen = \"127.0.0.1:0\"");
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}").head();
    client.until("first");
    proxy.tell_to_stop();
    until_refused(proxy.address);
    let mut bad = Vec::new();
    for _ in 0..50 {
        let mut probe = Client::connect(proxy.admin.unwrap());
        std::thread::sleep(Duration::from_millis(2));
        probe.try_send("GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = probe.try_answer();
        if answer.as_ref().is_none_or(|answer| answer.status() != 503) {
            bad.push(answer);
        }
    }
    assert!(bad.is_empty(), "{} of 50 probes: {bad:?}", bad.len());
    gate.open();
    client.until("last");
}

#[test]
fn an_answer_given_while_draining_says_that_its_connection_ends() {
    let gate = Gate::new();
    let steps = [vec![Step::Wait(gate.clone())], plain(b"ok")].concat();
    let tap = Tap::start(move |_| steps.clone());
    let mut proxy = Proxy::before(&tap.url());
    let mut client = proxy.client();
    client.post("/v1/messages", "", b"{}");
    tap.seen();
    // One that is idle ends when the connections are told.
    let mut idle = proxy.client();
    idle.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .answer();
    proxy.tell_to_stop();
    assert!(idle.some().is_empty());
    gate.open();
    let answer = client.answer();
    assert_eq!(answer.body, b"ok");
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn an_answer_to_a_client_that_still_sends_survives_the_drain() {
    let mut lost = 0;
    for _ in 0..5 {
        let tap = Tap::start(|_| plain(b"ok"));
        let mut proxy = Proxy::with(&tap.url(), "limits.body_bytes = \"1MiB\"");
        let mut client = proxy.client();
        client.send("POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
        client.send(chunk(vec![b' '; 1000]));
        eventually("the body does not arrive", || {
            proxy.metric("longhaul_buffered_bytes").unwrap() >= 1000.0
        });
        proxy.tell_to_stop();
        until_refused(proxy.address);
        for _ in 0..40 {
            client.try_send(chunk(vec![b' '; 100_000]));
        }
        if client
            .try_answer()
            .is_none_or(|answer| answer.status() != 413)
        {
            lost += 1;
        }
    }
    assert_eq!(lost, 0, "of 5 answers");
}

/// Scripts wait for the line; from then on a signal must drain.
#[test]
fn a_signal_right_after_the_announcement_exits_0() {
    for round in 0..30 {
        let process = Process::start("http://127.0.0.1:1", &[]);
        process.signal("-TERM");
        assert_eq!(process.wait().0, Some(0), "round {round}");
    }
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
