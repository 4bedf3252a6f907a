//! Laws and examples of trimming.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn keep(max_chars: usize, head: usize, tail: usize) -> Keep {
    Keep {
        max_chars,
        head,
        tail,
    }
}

fn trimmed(payload: &str, keep: Keep) -> Option<String> {
    trim(payload.as_bytes(), keep, |cut| {
        format!("<{} of {}>", cut.cut_chars, cut.chars)
    })
}

/// All texts of a content, one after another.
fn said(content: &str) -> String {
    match serde_json::from_str(content).unwrap() {
        Value::String(text) => text,
        Value::Array(blocks) => blocks.iter().filter_map(|b| b["text"].as_str()).collect(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_string_keeps_its_head_and_its_tail() {
    let letters = "abcdefghijklmnopqrstuvwxyz".repeat(2);
    let payload = format!("\"{letters}\"");
    assert_eq!(
        trimmed(&payload, keep(40, 8, 4)).unwrap(),
        r#""abcdefgh\n<40 of 52>\nwxyz""#
    );
    assert_eq!(
        trimmed(&payload, keep(40, 8, 0)).unwrap(),
        r#""abcdefgh\n<44 of 52>""#
    );
    assert_eq!(
        trimmed(&payload, keep(40, 0, 4)).unwrap(),
        r#""<48 of 52>\nwxyz""#
    );
    assert_eq!(
        trimmed(&payload, keep(40, 0, 0)).unwrap(),
        r#""<52 of 52>""#
    );
}

#[test]
fn a_cut_falls_at_the_start_of_a_line_where_one_is_near() {
    let lines: Vec<String> = (0..30).map(|line| format!("line {line:02}")).collect();
    for end in ["\\n", "\\u000a", "\\u000A", "\\r\\n"] {
        let payload = format!("\"{}\"", lines.join(end));
        let shown = said(&trimmed(&payload, keep(100, 46, 46)).unwrap());
        let shown: Vec<&str> = shown.lines().collect();
        assert!(shown[..5].iter().all(|line| line.len() == 7), "{shown:?}");
        assert!(shown.iter().any(|line| line.starts_with('<')), "{shown:?}");
        assert!(shown.iter().all(|l| l.len() == 7 || l.starts_with('<')));
    }
    // Further off it is no use: too much would be lost.
    let payload = format!("\"a\\n{}\\nz\"", "x".repeat(90));
    let shown = said(&trimmed(&payload, keep(50, 20, 20)).unwrap());
    assert_eq!(
        shown,
        format!("a\n{}\n<54 of 94>\n{}\nz", "x".repeat(18), "x".repeat(18))
    );
}

#[test]
fn no_letter_is_cut_in_two() {
    for letter in [r"\ud83d\ude00", r"\u00e9", "😀", "é", r"\\", r#"\""#, r"\n"] {
        let payload = format!("\"{}\"", letter.repeat(60));
        for head in 0..9 {
            for tail in 0..9 {
                let shown = trimmed(&payload, keep(20, head, tail)).unwrap();
                let shown = said(&shown);
                assert!(shown.contains(" of 60>"), "{shown}");
            }
        }
    }
}

#[test]
fn blocks_are_cut_as_one_text_and_others_stay() {
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let image = r#"{ "type":"image", "source":{"type":"base64","data":"AAAA"} }"#;
    let (a, b, c) = ("a".repeat(30), "b".repeat(30), "c".repeat(30));
    let payload = format!("[{} , {image},\n{},{}]", text(&a), text(&b), text(&c));
    assert_eq!(
        trimmed(&payload, keep(50, 10, 10)).unwrap(),
        format!(
            "[{} , {image},{}]",
            text(&format!(r"{}\n<70 of 90>", "a".repeat(10))),
            text(&"c".repeat(10))
        )
    );
    // Whole blocks at either side are left alone.
    assert_eq!(
        trimmed(&payload, keep(50, 30, 30)).unwrap(),
        format!(
            "[{} , {image},\n{},{}]",
            text(&a),
            text("<30 of 90>"),
            text(&c)
        )
    );
    assert_eq!(
        trimmed(&payload, keep(50, 30, 0)).unwrap(),
        format!("[{} , {image},\n{}]", text(&a), text("<60 of 90>"))
    );
}

#[test]
fn a_block_that_says_more_than_its_text_stays() {
    let marked = |text: &str| {
        format!(r#"{{"text":"{text}","cache_control":{{"type":"ephemeral"}},"type":"text"}}"#)
    };
    let (a, b, c) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
    let payload = format!("[{},{},{}]", marked(&a), marked(&b), marked(&c));
    assert_eq!(
        trimmed(&payload, keep(50, 10, 0)).unwrap(),
        format!(
            "[{},{},{}]",
            marked(r"aaaaaaaaaa\n<110 of 120>"),
            marked(LOST),
            marked(LOST)
        )
    );
}

/// The API takes no text of white space only.
#[test]
fn nothing_but_white_space_is_not_kept_of_a_block() {
    let payload = json!([
        {"type": "text", "text": "a".repeat(60)},
        {"type": "text", "text": format!("{}{}", "b".repeat(60), " \n".repeat(3))},
        {"type": "image"},
    ])
    .to_string();
    let shown = trimmed(&payload, keep(50, 10, 5)).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        shown,
        json!([{"type": "text", "text": "aaaaaaaaaa\n<116 of 126>"}, {"type": "image"}])
    );
}

#[test]
fn what_needs_no_trimming_or_is_not_understood_stays() {
    let long = "x".repeat(100);
    for payload in [
        "\"short\"".to_owned(),
        format!("\"{}\"", r"\u00e9".repeat(50)),
        format!(r#""{long}\ud83d""#),
        format!(r#""{long}\q""#),
        format!("\"{long}\n\""),
        format!("\"{long}"),
        format!("\"{long}\" 1"),
        format!(r#"{{"type":"text","text":"{long}"}}"#),
        format!(r#"["{long}"]"#),
        format!(r#"[{{"text":"{long}"}}]"#),
        format!(r#"[{{"type":"text","text":["{long}"]}}]"#),
        format!(r#"[{{"type":"text","text":"{long}","t\u0065xt":"x"}}]"#),
        format!(r#"[{{"type":"text","text":"{long}"}},]"#),
        format!(r#"[{{"type":"image","data":"{long}"}}]"#),
        "null".to_owned(),
        String::new(),
        " ".repeat(200),
    ] {
        assert_eq!(trimmed(&payload, keep(50, 10, 10)), None, "{payload}");
    }
    // Nothing would be left out, or nothing gained.
    let payload = format!("\"{long}\"");
    assert_eq!(trimmed(&payload, keep(50, 50, 50)), None);
    assert_eq!(trimmed(&payload, keep(50, usize::MAX, usize::MAX)), None);
    assert_eq!(trimmed(&payload, keep(50, 48, 49)), None);
}

fn letters() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        6 => "[a-z ]",
        1 => Just(r"\n".to_owned()),
        1 => Just(r"\ud83d\ude00".to_owned()),
        1 => Just(r"\u00e9".to_owned()),
        1 => Just("é😀".to_owned()),
        1 => Just(r#"\"\\"#.to_owned()),
    ];
    prop::collection::vec(letter, 0..80).prop_map(|letters| letters.concat())
}

fn payload() -> impl Strategy<Value = String> {
    let block = prop_oneof![
        4 => letters().prop_map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#)),
        1 => letters().prop_map(|text| format!(r#"{{ "text" : "{text}", "cache_control":{{}}, "type":"text" }}"#)),
        1 => letters().prop_map(|text| format!(r#"{{"type":"image","source":"{text}"}}"#)),
    ];
    prop_oneof![
        letters().prop_map(|text| format!("\"{text}\"")),
        prop::collection::vec(block, 0..6).prop_map(|blocks| format!("[ {} ]", blocks.join(" , "))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_trimmed_result_is_head_notice_and_tail(
        payload in payload(), max_chars in 0usize..120, head in 0usize..60, tail in 0usize..60,
    ) {
        let keep = keep(max_chars, head, tail);
        let Some(result) = trimmed(&payload, keep) else {
            return Ok(());
        };
        prop_assert!(result.len() < payload.len());
        prop_assert_eq!(trimmed(&payload, keep), Some(result.clone()));
        let (before, after) = (said(&payload), said(&result));
        prop_assert!(before.chars().count() > max_chars);
        let (start, rest) = after.split_once('<').unwrap();
        let (_, end) = rest.split_once('>').unwrap();
        // The line end before the notice may be ours.
        let ours = start.chars().count() > head || !before.starts_with(start);
        let start = start.strip_suffix('\n').filter(|_| ours).unwrap_or(start);
        prop_assert!(before.starts_with(start), "{after:?}");
        prop_assert!(start.chars().count() <= head);
        // What stands for texts that were lost, and a line end of ours.
        let mut end = end;
        while !before.ends_with(end) || end.chars().count() > tail && end.starts_with('\n') {
            let rest = end.strip_prefix(LOST).or_else(|| end.strip_prefix('\n'));
            // A marked block too small to be shortened stays whole.
            prop_assert!(rest.is_some() || payload.contains("cache_control"), "{after:?}");
            let Some(rest) = rest else { return Ok(()) };
            end = rest;
        }
        prop_assert!(end.chars().count() <= tail || payload.contains("cache_control"));
    }

    #[test]
    fn everything_but_texts_stays_byte_for_byte(payload in payload(), head in 0usize..60, tail in 0usize..60) {
        let Some(result) = trimmed(&payload, keep(0, head, tail)) else {
            return Ok(());
        };
        let others = |content: &str| -> Vec<Value> {
            let Value::Array(blocks) = serde_json::from_str(content).unwrap() else { return vec![] };
            let others = blocks.into_iter().filter(|block| block["type"] != "text" || block.get("cache_control").is_some());
            others.map(|mut block| { block.as_object_mut().unwrap().remove("text"); block }).collect()
        };
        prop_assert_eq!(others(&result), others(&payload));
        let empty = |content: &str| content.matches(r#""text":"""#).count();
        prop_assert!(empty(&result) <= empty(&payload), "a text became empty");
    }

    #[test]
    fn what_was_trimmed_is_not_trimmed_again(payload in payload(), head in 0usize..40, tail in 0usize..40) {
        let marked = payload.matches("cache_control").count();
        let keep = keep(head + tail + 16 + marked * LOST.len(), head, tail);
        if let Some(result) = trimmed(&payload, keep) {
            prop_assert_eq!(trimmed(&result, keep), None);
        }
    }

    #[test]
    fn any_bytes_at_all_are_survived(
        payload in prop::collection::vec(prop::sample::select(br#"[]{}":,\ud83tex cp"#.to_vec()), 0..80),
        random in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        for bytes in [payload, random] {
            for bytes in [bytes.clone(), [b"\"", &bytes[..], b"\""].concat()] {
                let _ = trim(&bytes, keep(0, 3, 3), |_| "x".to_owned());
            }
        }
    }
}
