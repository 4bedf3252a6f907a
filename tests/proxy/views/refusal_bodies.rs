//! Refusals as they come over the wire: compressed, huge, slow, cut off, and with
//! a window in their words.

use std::io::Write;

use longhaul::sim::Options;
use serde_json::Value;

use super::agent::Agent;
use super::cast::{FREE, NOW, OFF, compaction, error, figure, fine, marks, response, same};
use crate::support::{Gate, Proxy, Step, Tap, simulated::Simulated, text};

const MANY: &str = "A maximum of 4 blocks with cache_control may be provided. Found 5.";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_compressed_refusal_is_understood_and_passed_on_as_it_is() {
    let packed = |words: &str| {
        let body = gzip(error(words).as_bytes());
        response(400, "content-encoding: gzip\r\n", &body)
    };
    let tap = Tap::start(move |request| {
        if marks(&request.body) > 2 {
            return packed(MANY);
        }
        fine(request)
    });
    let proxy = Proxy::before(&tap.url());
    let answer = Agent::seasoned(FREE, 8, 2000).send(&proxy, NOW);
    assert_eq!(answer.status(), 200);
    assert_eq!(marks(&tap.seen().body) - marks(&tap.seen().body), 1);
    let tap = Tap::start(move |_| packed("no"));
    let proxy = Proxy::before(&tap.url());
    for headers in ["", NOW] {
        let answer = Agent::seasoned(FREE, 8, 2000).send(&proxy, headers);
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        same(&answer.body, &gzip(error("no").as_bytes()), "packed");
    }
}

#[test]
fn a_huge_refusal_arrives_whole() {
    let long = error(&"no ".repeat(700_000));
    let said = long.clone();
    let tap = Tap::start(move |_| response(400, "", said.as_bytes()));
    let proxy = Proxy::before(&tap.url());
    for headers in ["", NOW] {
        let answer = Agent::seasoned(FREE, 8, 2000).send(&proxy, headers);
        assert_eq!(answer.status(), 400);
        same(&answer.body, long.as_bytes(), "huge");
    }
}

#[test]
fn a_slow_refusal_arrives_whole() {
    let gate = Gate::new();
    let waits = gate.clone();
    let tap = Tap::start(move |_| {
        let whole = response(400, "", error("no").as_bytes());
        let Some(Step::Send(bytes)) = whole.into_iter().next() else {
            return Vec::new();
        };
        let (begin, end) = bytes.split_at(bytes.len() - 20);
        vec![
            Step::Send(begin.to_vec()),
            Step::Wait(waits.clone()),
            Step::Send(end.to_vec()),
        ]
    });
    let proxy = Proxy::before(&tap.url());
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| Agent::seasoned(FREE, 8, 2000).send(&proxy, ""));
        tap.seen();
        gate.open();
        let answer = asking.join().unwrap();
        assert_eq!(answer.status(), 400);
        assert_eq!(text(&answer.body), error("no"));
    });
}

#[test]
fn a_refusal_that_is_cut_off_looks_cut_off() {
    let tap = Tap::start(|_| {
        let whole = response(400, "", error("no").as_bytes());
        let Some(Step::Send(bytes)) = whole.into_iter().next() else {
            return Vec::new();
        };
        vec![Step::Send(bytes[..bytes.len() - 20].to_vec()), Step::Close]
    });
    let proxy = Proxy::before(&tap.url());
    for headers in ["", NOW] {
        let agent = Agent::seasoned(FREE, 8, 2000);
        let mut client = proxy.client();
        let headers = format!("x-api-key: k\r\n{headers}");
        client.post("/v1/messages", &headers, &agent.body());
        let answer = client.try_answer();
        assert!(answer.is_none_or(|answer| !answer.complete));
    }
}

/// The words of a refusal are the only true word on a window. The client sees
/// them as they are, because its own remedies depend on them.
#[test]
fn a_window_is_learned_from_a_refusal_and_outlives_a_restart() {
    let upstream = Simulated::start(Options::default().with_window(FREE, 12_000));
    let url = upstream.sim.url();
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&url, "", folder.path());
    // Only by requests of an accepted credential anything is learned.
    let mut first = Agent::new(FREE);
    first.user("Hello.");
    assert_eq!(first.send(&proxy, "").status(), 200);
    let agent = Agent::seasoned(FREE, 30, 2000);
    let mut summary = agent.clone();
    summary.user("Your task is to create a detailed summary of the conversation so far.");
    let off = agent.send(&proxy, OFF);
    assert_eq!(off.status(), 400);
    assert!(off.header("request-id").is_some());
    let said: Value = serde_json::from_slice(&off.body).unwrap();
    let words = said["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("prompt is too long: ") && words.ends_with(" > 12000 maximum"));
    for _ in 0..2 {
        let answer = summary.send(&proxy, "");
        assert_eq!(answer.status(), 200);
        assert_ne!(compaction(&answer), "none");
        assert!(figure(&answer, "sent") < 12_000);
        proxy.join();
        proxy = Proxy::keeping(&url, "", folder.path());
    }
}
