//! What holds for the digests of a view, over passes.

use super::super::{Clears, Inputs, Settings, Trims};
use super::*;
use crate::engine::chain;
use crate::engine::conversation::Conversation;
use crate::engine::digest::{BOUND, Size, TOKEN, held_by_segments, held_by_stubs};
use crate::engine::overlay::{Change, Overlay};
use crate::engine::recall::telling::Telling;
use crate::engine::split::Split;
use crate::engine::tiers::Close;
use crate::wire::body::Body;
use serde_json::{Value, json};

fn settings(size: Size) -> Settings {
    Settings {
        clears: Some(Clears {
            keep_tool_uses: 3,
            supersede: true,
            inputs: Inputs::All,
            ..Clears::default()
        }),
        trim: Some(Trims {
            max_chars: 40_000,
            ..Trims::default()
        }),
        split: Split {
            tail_messages: 10,
            ..Split::default()
        },
        pins: Some(pinned::Settings {
            user_tokens: 500,
            files: 20,
            errors: 2,
            digest_bytes: 0,
            plan_tokens: 0,
            former_plan: None,
        }),
        max_segments: 8,
        archives: Some(Telling::default()),
        digest: size,
        ..Settings::default()
    }
}

fn with<T>(
    messages: &[Value],
    overlay: &Overlay,
    settings: &Settings,
    ask: impl FnOnce(&Survey<'_>) -> T,
) -> T {
    let bytes = json!({"model": "m", "messages": messages}).to_string();
    let body = Body::split(bytes.as_bytes()).unwrap();
    let conversation = Conversation::new(bytes.as_bytes(), &body);
    let tenant = chain::start("t");
    ask(&Survey::in_bytes(&conversation, overlay, tenant, settings))
}

/// What a call gives back: lines of code, with numbers.
fn listing(seed: usize, lines: usize) -> String {
    let line = |at: usize| format!("    {at}→let value_{seed}_{at} = \"a\\n\\\\\".len() + {at};\n");
    (1..=lines).map(line).collect()
}

/// A read of a file and a file written.
fn cycle(at: usize, lines: usize) -> [Value; 2] {
    let call = |id: String, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: String, text: String| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let (read, write) = (format!("r{at}"), format!("w{at}"));
    let file = format!("/src/part_{at}.rs");
    [
        json!({"role": "assistant", "content": [
            call(read.clone(), "Read", json!({"file_path": file})),
            call(write.clone(), "Write", json!({"file_path": format!("{file}.new"), "content": listing(at, lines / 2)})),
        ]}),
        json!({"role": "user", "content": [
            result(read, listing(at, lines)), result(write, "ok".to_owned()),
        ]}),
    ]
}

fn session(cycles: usize, lines: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    messages.extend((0..cycles).flat_map(|at| cycle(at, lines)));
    messages
}

/// The text of each stub of a result.
fn stubs(overlay: &Overlay) -> Vec<String> {
    let stub = |change: &Change| match change {
        Change::Payload(with) if change.is_stub() => serde_json::from_str(with).ok(),
        _ => None,
    };
    let edits = overlay.edits.iter();
    edits.filter_map(|edit| stub(&edit.change)).collect()
}

#[test]
fn a_stub_carries_lines_of_its_result_and_no_more_than_is_set() {
    let messages = session(12, 120);
    let none = Overlay::default();
    for (size, most) in [
        (Size::default(), 0),
        (Size::USUAL, 700),
        (Size::new(Some(60), u64::MAX, 1), 180),
    ] {
        let settings = settings(size);
        let stubs = with(&messages, &none, &settings, |survey| {
            stubs(&survey.everything(u64::MAX).unwrap().overlay)
        });
        assert!(stubs.len() >= 9, "{}", stubs.len());
        for stub in stubs {
            let digest = stub
                .split_once("some of its lines:\n")
                .map_or("", |it| it.1);
            assert!(digest.len() <= most, "{size:?} {stub}");
            assert_eq!(digest.is_empty(), most == 0, "{size:?} {stub}");
            let lines = digest.strip_suffix("]").unwrap_or(digest).lines();
            assert!(lines.clone().all(|line| line.starts_with("| ")), "{stub}");
            assert!(stub.ends_with(']'));
        }
    }
}

#[test]
fn an_offer_says_what_clearing_frees_with_digests() {
    let messages = session(40, 200);
    let none = Overlay::default();
    let settings = settings(Size::USUAL);
    with(&messages, &none, &settings, |survey| {
        let offer = survey.offer(&[]);
        let take: Vec<usize> = (0..offer.items.len()).collect();
        let before: u64 = survey.weights().iter().sum();
        let draft = survey.draft(&take, Close::Nothing, Vec::new(), None, u64::MAX);
        let left = draft.unwrap().weight;
        let told = before - survey.clearable();
        assert!(told.abs_diff(left) * 10 <= left, "{told} {left}");
    });
}

/// A stub that has lost its digest.
fn gave_up(change: &Change) -> Option<Change> {
    match change {
        Change::Payload(with) => without_digest(with).map(|(with, _)| Change::Payload(with)),
        _ => None,
    }
}

/// The same file is read and cleared again and again, with nothing to sum it up:
/// what goes last has lines all the same, of what older stubs give up.
#[test]
fn old_stubs_behind_a_change_give_their_room_to_new_ones() {
    let settings = settings(Size::USUAL);
    let none = Overlay::default();
    let messages = session(40, 200);
    let few = with(&messages, &none, &settings, |survey| {
        let take: Vec<usize> = (10..20).collect();
        survey.draft(&take, Close::Nothing, Vec::new(), None, u64::MAX)
    });
    let few = few.unwrap().overlay;
    let lines = |overlay: &Overlay| -> Vec<(u32, bool)> {
        let has = |change: &Change| gave_up(change).is_some();
        let edits = overlay.edits.iter();
        edits.map(|e| (e.message, has(&e.change))).collect()
    };
    let before: Vec<u32> = lines(&few).iter().filter(|e| e.1).map(|e| e.0).collect();
    assert!(before.len() >= 5, "{before:?}");
    let all = with(&messages, &few, &settings, |survey| {
        let offer = survey.offer(&[]);
        // From in front of the old stubs on: they are written once more.
        let take: Vec<usize> = (8..offer.items.len()).collect();
        survey.draft(&take, Close::Nothing, Vec::new(), None, u64::MAX)
    });
    let draft = all.unwrap();
    let after = lines(&draft.overlay);
    let lost = before.iter().filter(|at| !after.contains(&(**at, true)));
    let lost = lost.count();
    assert!(
        lost > 0 && lost <= before.len() / 2 + 1,
        "{lost} {before:?}"
    );
    let newest = after.iter().filter(|e| e.0 > *before.last().unwrap());
    assert!(newest.clone().any(|e| e.1), "{after:?}");
    assert!(held_by_stubs(&draft.overlay) <= BOUND * TOKEN / 3);
    // Behind them nothing changes what stands before.
    let behind = with(&messages, &few, &settings, |survey| {
        let newest = survey.offer(&[]).items.len() - 1;
        survey.draft(&[newest], Close::Nothing, Vec::new(), None, u64::MAX)
    });
    let behind = behind.unwrap().overlay;
    for edit in &few.edits {
        let now = behind.change_at(edit.message as usize, edit.block as usize);
        assert_eq!(now, Some(&edit.change));
    }
}

/// Results come, passes clear them and hide the oldest: no view ever shows more
/// than the bound, and what stands stays as it is.
#[test]
fn the_bound_holds_over_a_thousand_requests() {
    let settings = settings(Size::USUAL);
    let mut messages = session(0, 0);
    let mut overlay = Overlay::default();
    let (mut most, mut hides) = (0, 0);
    for request in 0..1_000 {
        messages.extend(cycle(request, 20 + request % 17));
        if request % 40 != 39 {
            continue;
        }
        let target = if request % 3 == 0 { 90_000 } else { 200_000 };
        let draft = with(&messages, &overlay, &settings, |survey| {
            survey.everything(target)
        });
        let Some(draft) = draft else { continue };
        let (first, next) = (draft.first, draft.overlay);
        for edit in &overlay.edits {
            let place = (edit.message as usize, edit.block as usize);
            let now = next.change_at(place.0, place.1);
            let same = now == Some(&edit.change);
            let shorter = place.0 >= first && gave_up(&edit.change) == now.cloned();
            assert!(same || shorter || !next.shows(place.0), "{place:?}");
        }
        overlay = next;
        let held = held_by_stubs(&overlay) + held_by_segments(overlay.segments.iter());
        most = most.max(held);
        hides = hides.max(overlay.segments.len());
        assert!(held <= BOUND * TOKEN, "{request}: {held}");
    }
    assert!(most > BOUND * TOKEN / 2 && hides > 1, "{most} {hides}");
}
