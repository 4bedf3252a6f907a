//! Laws and examples of rewriting an answer.

use std::io::Write;

use super::*;
use proptest::prelude::*;

const REPORT: Report = Report {
    cleared_tool_uses: 4,
    cleared_input_tokens: 900,
};
const ADDED: &str = r#","context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":4,"cleared_input_tokens":900}]}"#;
const STREAM: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    ": a comment\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"event: message_delta\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);
const MESSAGE_BODY: &str = r#"{"id":"msg_1","type":"message","content":[{"type":"text","text":"}"}],"usage":{"output_tokens":1} }"#;

fn rewriter(kind: &str, coding: &str) -> Option<Rewriter> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", kind.parse().unwrap());
    if !coding.is_empty() {
        headers.insert("content-encoding", coding.parse().unwrap());
    }
    Rewriter::new(REPORT, &headers)
}

fn run<'a>(kind: &str, coding: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut rewriter = rewriter(kind, coding).unwrap();
    let mut out = Vec::new();
    for piece in pieces {
        out.extend(rewriter.push(piece).unwrap());
    }
    out.extend(rewriter.finish());
    out
}

fn stream(source: &str) -> String {
    let out = run("text/event-stream", "", [source.as_bytes()]);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_stream_says_it_in_its_message_delta_and_nowhere_else() {
    let expected = STREAM.replace(
        "\"output_tokens\":15}}",
        &format!("\"output_tokens\":15}}{ADDED}}}"),
    );
    assert_eq!(stream(STREAM), expected);
    for size in 1..STREAM.len() {
        let out = run("text/event-stream", "", STREAM.as_bytes().chunks(size));
        assert!(out == expected.as_bytes(), "in pieces of {size}");
    }
}

#[test]
fn events_are_written_in_many_ways() {
    let start = "{\"type\":\"message_delta\",";
    for (source, expected) in [
        (
            format!("event:message_delta\r\ndata:{start}\"x\":1 }} \r\n\r\n"),
            format!("event:message_delta\r\ndata:{start}\"x\":1 {ADDED}}} \r\n\r\n"),
        ),
        (
            format!(
                "\u{feff}event: message_delta\rdata: {start}\rdata: \"x\":1\r: hm\rdata: }}\rid: 5\r\r"
            ),
            format!(
                "\u{feff}event: message_delta\rdata: {start}\rdata: \"x\":1\r: hm\rdata: {ADDED}}}\rid: 5\r\r"
            ),
        ),
        (
            format!(
                "event: ping\nevent: message_delta\ndata: {start}\"context_management\":null}}\n\n"
            ),
            format!(
                "event: ping\nevent: message_delta\ndata: {start}{}}}\n\n",
                &ADDED[1..]
            ),
        ),
    ] {
        assert_eq!(stream(&source), expected);
        let out = run("text/event-stream", "", source.as_bytes().chunks(1));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn what_is_no_message_delta_goes_on_as_it_is() {
    let long = "x".repeat(EVENT);
    for source in [
        "event: message_delta\ndata: {\"type\":\"message_delta\"}\n".to_owned(),
        "event: message_delta\ndata: {\"type\":\"message_delta\"\n\n".to_owned(),
        "event: message_delta\ndata: {\"type\":\"other\"}\n\n".to_owned(),
        "event: message_delta\nevent: other\ndata: {\"type\":\"message_delta\"}\n\n".to_owned(),
        "event: message_delta\n\ndata: {\"type\":\"message_delta\"}\n\n".to_owned(),
        "data: {\"type\":\"message_delta\"}\n\n".to_owned(),
        "data: x\nevent: message_delta\ndata: {\"type\":\"message_delta\"}\n\n".to_owned(),
        "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n".to_owned(),
        format!("event: message_delta\ndata: {{\"type\":\"message_delta\",\"x\":\"{long}\"}}\n\n"),
    ] {
        assert!(stream(&source) == source);
        let out = run("text/event-stream", "", source.as_bytes().chunks(1000));
        assert!(out == source.as_bytes());
    }
}

/// After one that was too long to be held.
#[test]
fn the_next_event_is_changed_again() {
    let source = |end: &str| {
        let long = "x".repeat(EVENT);
        format!(
            "event: message_delta\ndata: {{\"type\":\"message_delta\",\"x\":\"{long}\"}}\n\nevent: message_delta\ndata: {{\"type\":\"message_delta\"{end}}}\n\n"
        )
    };
    assert!(stream(&source("")) == source(ADDED));
}

#[test]
fn a_message_says_it_at_its_end() {
    let expected = MESSAGE_BODY.replace(" }", &format!(" {ADDED}}}"));
    for size in [1, 7, MESSAGE_BODY.len()] {
        let out = run("application/json", "", MESSAGE_BODY.as_bytes().chunks(size));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    let long = format!(
        r#"{{"type":"message","x":"{}"}}"#,
        "x".repeat(super::MESSAGE)
    );
    for source in [
        long.as_str(),
        r#"{"type":"error","error":{}}"#,
        r#"{"type":"message""#,
        "no",
        "",
        " \n ",
    ] {
        let out = run("application/json", "", source.as_bytes().chunks(5_000_000));
        assert!(out == source.as_bytes());
    }
}

/// A client that waits for a long answer may be kept waiting with white space.
#[test]
fn white_space_in_front_of_a_message_is_not_held() {
    let mut rewriter = rewriter("application/json", "").unwrap();
    assert_eq!(rewriter.push(b" \n").unwrap(), b" \n");
    assert_eq!(rewriter.push(b" {\"type\":").unwrap(), b"");
    assert_eq!(rewriter.push(b" ").unwrap(), b"");
    assert_eq!(rewriter.broken(), b" {\"type\": ");
}

#[test]
fn a_compressed_answer_is_unfolded() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(STREAM.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    for size in [1, packed.len()] {
        let out = run("text/event-stream", "gzip", packed.chunks(size));
        assert_eq!(String::from_utf8(out).unwrap(), stream(STREAM));
    }
    let mut broken = rewriter("text/event-stream", "gzip").unwrap();
    assert_eq!(broken.push(b"this is not gzip at all"), None);
    for (kind, coding) in [
        ("text/event-stream", "compress"),
        ("text/event-stream", "gzip, br"),
        ("text/html", ""),
    ] {
        assert!(rewriter(kind, coding).is_none(), "{kind} {coding}");
    }
}

/// The events of a stream.
fn events(stream: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    #[derive(Default)]
    struct Seen(Vec<(Vec<u8>, Vec<u8>)>);
    impl sse::Sink for Seen {
        fn wants(&self, _: &[u8]) -> bool {
            true
        }
        fn event(&mut self, event: &[u8], data: &[u8]) {
            self.0.push((event.to_vec(), data.to_vec()));
        }
    }
    let mut seen = Seen::default();
    sse::Decoder::default().push(stream, &mut seen);
    seen.0
}

fn event_lines() -> impl Strategy<Value = Vec<String>> {
    let lines = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    prop_oneof![
        Just(lines(&[
            "event: message_delta",
            r#"data: {"type":"message_delta","usage":{"output_tokens":1}}"#,
            ""
        ])),
        Just(lines(&[
            "event: message_delta",
            "data: {\"type\":",
            ": wait",
            "data: \"message_delta\"",
            "data: }",
            ""
        ])),
        Just(lines(&["event: message_delta", "data: {", ""])),
        Just(lines(&["event: ping", r#"data: {"type": "ping"}"#, ""])),
        Just(lines(&[": comment"])),
        Just(lines(&[""])),
        Just(lines(&[r#"data: {"type":"message_delta"}"#, ""])),
        Just(lines(&["event: message_delta"])),
        Just(lines(&[
            "event: content_block_delta",
            r#"data: {"type":"content_block_delta","delta":{"text":"é"}}"#,
            ""
        ])),
    ]
}

fn source() -> impl Strategy<Value = String> {
    let events = prop::collection::vec(event_lines(), 0..8).prop_map(|events| events.concat());
    let ends = prop::collection::vec(prop_oneof![4 => "\n", 1 => "\r", 4 => "\r\n"], 64);
    (events, ends).prop_map(|(lines, ends)| {
        let ends = ends.iter().cycle();
        lines
            .iter()
            .zip(ends)
            .fold(String::new(), |text, (line, end)| {
                // Else the two would be one end, and an event have no end.
                let merges = line.is_empty() && text.ends_with('\r') && end == "\n";
                text + line + if merges { "\r\n" } else { end }
            })
    })
}

/// Without the reports.
fn bare(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.to_vec();
    while let Some(at) = memchr::memmem::find(&rest, ADDED.as_bytes()) {
        rest.drain(at..at + ADDED.len());
    }
    rest
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

proptest! {
    #[test]
    fn how_a_stream_was_cut_does_not_matter_and_only_the_report_is_new(
        source in source(), cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let whole = stream(&source);
        let out = run("text/event-stream", "", pieces(source.as_bytes(), &cuts));
        prop_assert_eq!(&out, whole.as_bytes());
        prop_assert_eq!(whole.replace(ADDED, ""), source.as_str());
        let (before, after) = (events(source.as_bytes()), events(&out));
        prop_assert_eq!(before.len(), after.len());
        for ((name, data), (same, said)) in before.iter().zip(&after) {
            prop_assert_eq!(name, same);
            let is_delta = name == b"message_delta" && serde_json::from_slice::<serde_json::Value>(data).is_ok();
            let said = String::from_utf8_lossy(said);
            prop_assert_eq!(said.contains(ADDED), is_delta, "{}", said);
            prop_assert_eq!(bare(said.as_bytes()), &data[..]);
        }
    }

    #[test]
    fn nothing_is_held_but_an_unfinished_message_delta(source in source(), cuts in prop::collection::vec(any::<usize>(), 0..20)) {
        let mut rewriter = rewriter("text/event-stream", "").unwrap();
        let (mut seen, mut out) = (Vec::new(), Vec::new());
        for piece in pieces(source.as_bytes(), &cuts) {
            seen.extend_from_slice(piece);
            out.extend(rewriter.push(piece).unwrap());
            let given = bare(&out);
            let text = String::from_utf8_lossy(&given);
            prop_assert!(given == seen || text.trim_end().ends_with("event: message_delta"), "{:?}", text);
        }
        out.extend(rewriter.broken());
        prop_assert_eq!(bare(&out), source.as_bytes());
    }

    #[test]
    fn any_bytes_at_all_pass(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(any::<usize>(), 0..5)) {
        for kind in ["text/event-stream", "application/json"] {
            let out = run(kind, "", pieces(&bytes, &cuts));
            prop_assert_eq!(&out, &bytes);
        }
    }
}
