//! Text that breaks tokenizers: no panic, and no more work than was granted.

use longhaul::engine::measure::{Counter, raw_block, raw_message, weight};
use longhaul::wire::body::Body;
use serde_json::json;

const MEGABYTE: usize = 1024 * 1024;

fn texts() -> Vec<(&'static str, String)> {
    let base64 =
        |index: usize| char::from(b"ABCDEFGHabcdefgh01234567+/xyzXYZ"[index * index * 7 % 31]);
    vec![
        ("spaces", " ".repeat(MEGABYTE)),
        ("tabs", "\t".repeat(MEGABYTE)),
        ("newlines", "\n".repeat(MEGABYTE)),
        ("mixed white space", " \t\n\u{a0}".repeat(MEGABYTE / 5)),
        ("one letter", "a".repeat(MEGABYTE)),
        ("two letters", "ab".repeat(MEGABYTE / 2)),
        ("emoji", "😀👍🏽".repeat(MEGABYTE / 12)),
        ("base64", (0..MEGABYTE).map(base64).collect()),
        ("nul", "\0".repeat(MEGABYTE)),
        ("punctuation", "!?".repeat(MEGABYTE / 2)),
        (
            "runs of many kinds",
            (0..4_000)
                .map(|index: u32| {
                    char::from_u32(97 + index % 20)
                        .unwrap()
                        .to_string()
                        .repeat(300)
                })
                .collect(),
        ),
    ]
}

#[test]
fn a_megabyte_of_anything_costs_no_more_than_the_budget() {
    const BUDGET: u64 = 32 * 1024;
    for (name, text) in texts() {
        let body = json!({"messages": [{"role": "user", "content": text}]}).to_string();
        let split = Body::split(body.as_bytes()).unwrap();
        let message = &split.messages()[0];
        let mut counter = Counter::bounded(BUDGET, weight(body.as_bytes(), message));
        let raw = raw_message(body.as_bytes(), message, &mut counter);
        assert!(raw.text > 1_000, "{name}: {raw:?}");
        assert!(
            counter.tokenised() <= BUDGET,
            "{name}: {}",
            counter.tokenised()
        );
    }
}

#[test]
fn long_runs_hardly_reach_the_tokenizer_even_without_a_budget() {
    for (name, text) in texts() {
        let mut counter = Counter::exact();
        if [
            "spaces",
            "tabs",
            "newlines",
            "mixed white space",
            "one letter",
            "nul",
        ]
        .contains(&name)
        {
            assert!(counter.text(&text) > 0);
            // The beginning of the run, once in every piece of 64 KB.
            assert!(
                counter.tokenised() <= 17 * 4 * 256,
                "{name}: {}",
                counter.tokenised()
            );
        }
    }
}

#[test]
fn strings_that_are_no_text_are_survived() {
    for string in [
        &br#""\ud800""#[..],
        br#""\udc00\ud800x""#,
        br#""\u0000\u0000""#,
        br#""\q\u12\""#,
        b"\"\\",
        b"\"\xff\xfe\\u00",
        b"\"",
        b"",
        b"no quotes",
    ] {
        let mut counter = Counter::exact();
        counter.json_string(string);
        counter.json(string);
        raw_block(
            &[&br#"{"type":"text","text":"#[..], string, b"}"].concat(),
            &mut counter,
        );
        assert!(counter.tokenised() < 1_000);
    }
}

#[test]
fn blocks_nested_without_end_are_survived() {
    let open = r#"{"type":"tool_result","content":["#.repeat(300);
    let close = "]}".repeat(300);
    let mut counter = Counter::exact();
    let raw = raw_block(format!("{open}{close}").as_bytes(), &mut counter);
    assert!(raw.total() > 100);
}
