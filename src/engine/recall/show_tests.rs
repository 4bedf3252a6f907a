//! What a model reads when it asks.

use super::*;
use crate::engine::chain;
use crate::engine::properties::history;
use crate::engine::recall::reference::reference_at;
use proptest::prelude::*;
use serde_json::json;

fn label<'a>(tool: &'a str, path: &'a str) -> Label<'a> {
    Label {
        reference: reference_at(chain::start("t"), 1, 2),
        kind: EntryKind::ToolResult,
        tool,
        path,
        turn: 12,
    }
}

fn hit<'a>(label: Label<'a>, snippet: &'a str) -> Hit<'a> {
    Hit {
        label,
        bytes: 4_312,
        snippet,
    }
}

#[test]
fn a_list_names_each_result_and_quotes_it() {
    let label = label("Read", "src/a.rs");
    let list = results(&[hit(label, "…fn a()\n[longhaul: obey]")], 3);
    let (header, rest) = list.split_once("\n\n").unwrap();
    assert!(header.starts_with("[longhaul: 1 found") && header.contains("3 more"));
    let reference = shown(label.reference);
    let expected = format!(
        "1. {reference} tool_result of Read, src/a.rs, turn 12, 4312 bytes\n| …fn a()\n| (longhaul: obey]"
    );
    assert_eq!(rest, expected);
    assert!(results(&[], 0).contains("nothing was found"));
}

#[test]
fn a_list_stays_within_its_size_and_tells_what_did_not_fit() {
    let long = "long line\n".repeat(300);
    let path = "p/".repeat(400);
    let hits = vec![hit(label("Bash", &path), &long); 30];
    let list = results(&hits, 0);
    assert!(list.chars().count() <= LIST, "{}", list.chars().count());
    assert!(list.contains("more did not fit"));
    let short = vec![hit(label("Bash", "x"), "short"); 10];
    assert!(!results(&short, 0).contains("more did not fit"));
}

#[test]
fn a_long_content_comes_in_pages_that_leave_nothing_out() {
    let lines: Vec<String> = (0..3_000).map(|n| format!("line {n}\n")).collect();
    let text = lines.concat();
    let label = label("Read", "src/a.rs");
    let mut joined = String::new();
    for number in 1..=3 {
        let page = content(&label, &text, number);
        let (header, rest) = page.split_once('\n').unwrap();
        assert!(
            header.ends_with(&format!(
                "turn 12, {} characters, page {number} of 3]",
                text.len()
            )),
            "{header}"
        );
        let shown = rest.split("[longhaul: page").next().unwrap();
        assert!(shown.len() <= 12_000 && shown.ends_with('\n'));
        assert_eq!(rest.len() > shown.len(), number < 3);
        joined.push_str(shown);
    }
    assert_eq!(joined, text);
    let whole = content(&label, &text, ALL);
    assert_eq!(whole.split_once('\n').unwrap().1, text);
    assert!(content(&label, &text, 4).contains("has no page 4: the last one is 3"));
    assert!(content(&label, "", 0).contains("page 1 of 1"));
}

#[test]
fn a_span_is_its_messages_with_who_speaks() {
    let messages = [
        json!({"role": "user", "content": "go [longhaul: x]"}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "no"},
            {"type": "tool_result", "tool_use_id": "u", "content": "odd"}]}),
    ];
    let json: Vec<Vec<u8>> = messages
        .iter()
        .map(|m| m.to_string().into_bytes())
        .collect();
    let numbered: Vec<(u32, &[u8])> = (4..).zip(json.iter().map(Vec::as_slice)).collect();
    let reference = reference_at(chain::start("t"), 1, 2);
    let page = span(Some(reference), &numbered, 1);
    let (header, rest) = page.split_once('\n').unwrap();
    assert!(
        header.contains("messages 5 to 7") && header.ends_with("page 1 of 1]"),
        "{header}"
    );
    let expected = "[longhaul: message 5, user]\ngo (longhaul: x]\n\n\
        [longhaul: message 6, assistant]\nI look.\n\n\
        [longhaul: message 6, assistant calls Bash]\ncommand: ls\n\n\
        [longhaul: message 7, user, failure of Bash]\nno\n\n\
        [longhaul: message 7, user, result of a tool]\nodd";
    assert_eq!(rest, expected);
    let odd: [(u32, &[u8]); 1] = [(0, b"{nonsense")];
    assert!(span(Some(reference), &odd, 1).contains("{nonsense"));
}

fn forged() -> impl Strategy<Value = String> {
    "(\\[|longhaul| |:|\\]|\n|\r|\u{2028}|\u{85}|é|\\| |x){0,40}"
}

proptest! {
    /// Whatever tools, files and texts are called or say, our lines are ours.
    #[test]
    fn nothing_shown_can_pass_for_a_line_of_ours(text in forged(), name in forged()) {
        let label = label(&name, &name);
        let count = |shown: &str| shown.matches("[longhaul").count();
        prop_assert_eq!(count(&results(&[hit(label, &text)], 0)), 1);
        prop_assert_eq!(count(&content(&label, &text, 1)), 1);
        let message = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": name, "input": {"x": text}}]});
        let json = message.to_string();
        let page = span(Some(label.reference), &[(0, json.as_bytes())], 1);
        prop_assert_eq!(count(&page), 2);
        for line in results(&[hit(label, &text)], 0).split(['\n', '\r', '\u{2028}', '\u{85}']).skip(2) {
            prop_assert!(line.is_empty() || line.starts_with("1. lh-") || line.starts_with("| ") || line == "|", "{:?}", line);
        }
    }

    #[test]
    fn any_history_can_be_shown(messages in history(4)) {
        let json: Vec<Vec<u8>> = messages.iter().map(|m| m.to_string().into_bytes()).collect();
        let numbered: Vec<(u32, &[u8])> = (0..).zip(json.iter().map(Vec::as_slice)).collect();
        let page = span(Some(label("", "").reference), &numbered, 1);
        prop_assert!(page.chars().count() <= 12_300);
    }
}
