//! Overlays as they are stored, and what they say of a history.

use super::*;

fn anchor(byte: u8) -> ChainHash {
    ChainHash::from_bytes([byte; 32])
}

fn example() -> Overlay {
    Overlay {
        made_at: 30,
        head: 1,
        cut: 20,
        native: None,
        before: vec![r#"{"role":"assistant","content":"x"}"#.into()],
        segments: vec![Segment {
            block: r#"{"type":"text","text":"é \u0000"}"#.into(),
            from: 1,
            to: 20,
            origin: Origin::Truncated,
            pinned: 0,
        }],
        after: vec![],
        edits: vec![
            Edit {
                message: 21,
                block: 0,
                change: Change::Payload("\"stub\"".into()),
            },
            Edit {
                message: 22,
                block: 0,
                change: Change::Gone,
            },
        ],
    }
}

#[test]
fn what_is_stored_is_what_is_read() {
    let (id, bytes) = example().store(anchor(1)).unwrap();
    assert_eq!(Overlay::read(&bytes), Ok(example()));
    assert_eq!(example().store(anchor(1)).unwrap().0, id);
    assert_ne!(example().store(anchor(2)).unwrap().0, id);
}

#[test]
fn what_an_older_program_can_read_is_written_so_that_it_can() {
    let version = |overlay: &Overlay| {
        let (_, bytes) = overlay.store(anchor(1)).unwrap();
        let stored: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(Overlay::read(&bytes).as_ref(), Ok(overlay));
        stored["version"].as_u64()
    };
    assert_eq!(version(&example()), Some(1));
    let native = Overlay {
        head: 0,
        native: Some(r#"{"type":"compaction","content":"x"}"#.into()),
        before: Vec::new(),
        segments: Vec::new(),
        ..example()
    };
    assert_eq!(version(&native), Some(2));
    let mut appends = example();
    appends.edits[1].change = Change::Append("{}".into());
    assert_eq!(version(&appends), Some(2));
}

#[test]
fn a_later_version_is_told_from_damage() {
    let (_, bytes) = example().store(anchor(1)).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let newer = text.replace("\"version\":1", "\"version\":7");
    assert_eq!(Overlay::read(newer.as_bytes()), Err(Unreadable::Newer(7)));
    for cut in [0, 1, text.len() / 2, text.len() - 1] {
        let damaged = Overlay::read(&text.as_bytes()[..cut]);
        assert!(matches!(damaged, Err(Unreadable::Damaged(_))));
    }
}

/// Earlier versions left them in results that they trimmed.
#[test]
fn cache_marks_in_a_stored_overlay_are_left_out() {
    let text = "said: \\\"cache_control\\\":{}";
    let marked = format!(
        r#"[{{"type":"text","text":"{text}","cache_control":{{"type":"ephemeral"}}}},{{"cache_control":null,"type":"text","text":"b"}}]"#
    );
    let plain = format!(r#"[{{"type":"text","text":"{text}"}},{{"type":"text","text":"b"}}]"#);
    let mut overlay = example();
    overlay.edits[0].change = Change::Payload(marked);
    let (_, bytes) = overlay.store(anchor(1)).unwrap();
    overlay.edits[0].change = Change::Payload(plain);
    assert_eq!(Overlay::read(&bytes), Ok(overlay));
}

#[test]
fn a_part_of_a_result_is_no_stub_however_short_it_is() {
    let notice = stub::trimmed(900, 9, "", None);
    let text = stub::quoted(&format!("head\n{notice}\ntail"));
    let list = format!(r#"[{{"type":"text","text":{text}}}]"#);
    let cleared = stub::Cleared {
        tool: "Read",
        subject: "a",
        bytes: 9,
        why: "x",
        beginning: &notice,
        digest: "",
        archived: None,
    };
    let long = stub::Cleared {
        digest: &"a line of it\n".repeat(STUB / 4),
        ..cleared
    };
    let rows = [
        (text, false, true),
        (list, false, true),
        (stub::quoted(&notice), false, true),
        (stub::quoted(&"x".repeat(STUB)), false, true),
        (cleared.result(), true, false),
        (cleared.input(), false, false),
        (long.result(), true, false),
        (long.input(), false, false),
    ];
    for (with, is_stub, is_trim) in rows {
        let change = Change::Payload(with);
        assert_eq!(
            (change.is_stub(), change.is_trim()),
            (is_stub, is_trim),
            "{change:?}"
        );
    }
}

#[test]
fn places_that_contradict_are_refused() {
    let spoilt: [fn(&mut Overlay); 5] = [
        |overlay| overlay.cut = 31,
        |overlay| overlay.head = 21,
        |overlay| overlay.segments.clear(),
        |overlay| overlay.edits.reverse(),
        |overlay| overlay.edits[0].message = 5,
    ];
    for spoil in spoilt {
        let mut overlay = example();
        spoil(&mut overlay);
        let (_, bytes) = overlay.store(anchor(1)).unwrap();
        assert!(Overlay::read(&bytes).is_err());
    }
}

#[test]
fn the_changes_of_a_message_are_found() {
    let overlay = example();
    assert_eq!(overlay.edits_of(21).len(), 1);
    assert_eq!(overlay.edits_of(20).len(), 0);
    assert_eq!(overlay.change_at(22, 0), Some(&Change::Gone));
    assert_eq!(overlay.change_at(22, 1), None);
    assert!(overlay.shows(0) && !overlay.shows(1) && overlay.shows(20));
    assert_eq!(overlay.stubs(), 1);
}
