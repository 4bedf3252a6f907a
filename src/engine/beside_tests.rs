//! What a person sees of a history and its view is what the model gets.

use super::*;
use crate::engine::overlay::Segment;

fn messages() -> Vec<(u32, Vec<u8>)> {
    let all = [
        r#"{"role":"user","content":"go"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"Read","input":{"path":"x"}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"long <b>"}]}"#,
        r#"{"role":"assistant","content":"done"}"#,
        r#"{"role":"user","content":"more"}"#,
    ];
    let numbered = (0..).zip(all);
    numbered
        .map(|(at, json)| (at, json.as_bytes().to_vec()))
        .collect()
}

fn edit(message: u32, block: u32, change: Change) -> Edit {
    Edit {
        message,
        block,
        change,
    }
}

fn segment(from: u32, to: u32, origin: Origin) -> Segment {
    Segment {
        block: format!(r#"{{"type":"text","text":"of {from} to {to}"}}"#),
        from,
        to,
        origin,
        pinned: 0,
    }
}

#[test]
fn each_block_stands_beside_what_the_view_has_of_it() {
    let overlay = Overlay {
        made_at: 5,
        edits: vec![
            edit(
                0,
                1,
                Change::Append(r#"{"type":"text","text":"ours"}"#.into()),
            ),
            edit(1, 0, Change::Gone),
            edit(2, 0, Change::Payload(r#""[stub]""#.into())),
            edit(3, 0, Change::Payload(format!("\"{}\"", "x".repeat(3_000)))),
        ],
        ..Overlay::default()
    };
    // A string has no block to be trimmed.
    assert_eq!(beside(&messages(), &overlay), None);
    let overlay = Overlay {
        edits: overlay.edits.into_iter().take(3).collect(),
        ..overlay
    };
    let rows = beside(&messages(), &overlay).unwrap();
    let now: Vec<Vec<&Now>> = rows
        .iter()
        .map(|row| row.parts.iter().map(|part| &part.now).collect())
        .collect();
    assert_eq!(now[0], [&Now::Same, &Now::Added("ours".into())]);
    assert_eq!(now[1], [&Now::Gone, &Now::Same]);
    assert_eq!(now[2], [&Now::Stub("[stub]".into())]);
    assert_eq!(now[3], [&Now::Same]);
    let result = &rows[2].parts[0];
    assert_eq!((result.what, result.tool.as_str()), ("result", "Read"));
    assert_eq!(result.original, "long <b>");
    assert_eq!(rows[1].parts[1].tool, "Read");
    assert!(rows.iter().all(|row| row.place == Place::Shown));
}

#[test]
fn what_is_hidden_names_the_segment_that_stands_for_it() {
    let overlay = Overlay {
        made_at: 5,
        head: 1,
        cut: 4,
        segments: vec![
            segment(1, 3, Origin::Summary),
            segment(3, 4, Origin::Truncated),
        ],
        ..Overlay::default()
    };
    let rows = beside(&messages(), &overlay).unwrap();
    let places: Vec<Place> = rows.iter().map(|row| row.place).collect();
    assert_eq!(
        places,
        [
            Place::Shown,
            Place::Segment(0),
            Place::Segment(0),
            Place::Segment(1),
            Place::Shown
        ]
    );
    assert!(rows[1].parts.iter().all(|part| part.now == Now::Hidden));
    let stands = standing(&overlay);
    assert_eq!(stands[1].messages, (3, 4));
    assert_eq!(
        (stands[0].origin, stands[1].origin),
        ("summary", "truncated")
    );
    assert_eq!(stands[0].text, "of 1 to 3");
}

#[test]
fn some_of_the_messages_are_enough() {
    let overlay = Overlay {
        made_at: 5,
        edits: vec![edit(2, 0, Change::Payload(r#""[stub]""#.into()))],
        ..Overlay::default()
    };
    let all = beside(&messages(), &overlay).unwrap();
    for from in 0..5 {
        let some = messages().split_off(from);
        let rows = beside(&some, &overlay).unwrap();
        for (row, expected) in rows.iter().zip(&all[from..]) {
            let now = |row: &Row| row.parts.iter().map(|p| p.now.clone()).collect::<Vec<_>>();
            assert_eq!(now(row), now(expected));
            assert_eq!(row.message, expected.message);
        }
    }
    assert_eq!(beside(&[(0, b"{".to_vec())], &overlay), None);
}

#[test]
fn the_api_s_own_summary_stands_for_everything_before_the_tail() {
    let overlay = Overlay {
        made_at: 5,
        cut: 4,
        native: Some(r#"{"type":"compaction","content":"all of it"}"#.into()),
        ..Overlay::default()
    };
    let rows = beside(&messages(), &overlay).unwrap();
    assert!(rows[..4].iter().all(|row| row.place == Place::Native));
    assert_eq!(rows[4].place, Place::Shown);
    let stands = standing(&overlay);
    assert_eq!((stands[0].messages, stands[0].origin), ((0, 4), "native"));
    assert!(stands[0].text.contains("all of it"));
}
