//! Where the journal style cuts, and what it puts in the place of what it hides.

use super::super::{Settings, Trims};
use super::*;
use crate::engine::chain;
use crate::engine::conversation::Conversation;
use crate::engine::overlay::{Origin, Overlay};
use crate::engine::pinned;
use crate::engine::recall::telling::Telling;
use crate::engine::reduce::Draft;
use crate::wire::body::Body;
use serde_json::{Value, json};

/// Turns of so many cycles each; a message is about a thousand bytes.
fn session(turns: &[usize]) -> Vec<Value> {
    let mut messages = Vec::new();
    for (turn, cycles) in turns.iter().enumerate() {
        messages.push(json!({"role": "user", "content": format!("Turn {turn}: never push.")}));
        for cycle in 0..*cycles {
            let id = format!("t{turn}_{cycle}");
            let words = json!({"type": "text", "text": "I look. ".repeat(110)});
            let call =
                json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": id}});
            messages.push(json!({"role": "assistant", "content": [words, call]}));
            let result =
                json!({"type": "tool_result", "tool_use_id": id, "content": "x".repeat(900)});
            messages.push(json!({"role": "user", "content": [result]}));
        }
        let done = "It is done. ".repeat(70);
        messages.push(json!({"role": "assistant", "content": done}));
    }
    messages.push(json!({"role": "user", "content": "And now?"}));
    messages
}

fn settings(live_turns: usize) -> Settings {
    Settings {
        split: Split {
            tail_messages: 4,
            ..Split::default()
        },
        trim: Some(Trims {
            max_chars: 40_000,
            ..Trims::default()
        }),
        pins: Some(pinned::Settings {
            user_tokens: 2_000,
            plan_tokens: 1_200,
            former_plan: None,
            files: 10,
            errors: 2,
            digest_bytes: 0,
        }),
        max_segments: 3,
        archives: Some(Telling::default()),
        live_turns: Some(live_turns),
        ..Settings::default()
    }
}

fn look<T>(
    messages: &[Value],
    current: &Overlay,
    settings: &Settings,
    ask: impl FnOnce(&Survey<'_>) -> T,
) -> T {
    let bytes = json!({"model": "m", "messages": messages}).to_string();
    let body = Body::split(bytes.as_bytes()).unwrap();
    let conversation = Conversation::new(bytes.as_bytes(), &body);
    let tenant = chain::start("t");
    ask(&Survey::in_bytes(&conversation, current, tenant, settings))
}

/// Where the cuts would be.
fn cuts(turns: &[usize], live: usize, room: Option<u64>) -> [Option<u32>; 2] {
    look(
        &session(turns),
        &Overlay::default(),
        &settings(live),
        |survey| {
            let Batches { old_turns, more } = survey.batches(&[], room);
            [old_turns, more].map(|segment| segment.map(|segment| segment.to))
        },
    )
}

#[test]
fn the_last_turns_stay_and_fewer_only_where_they_are_too_large() {
    // Messages: turn 0 is 0 to 5, turn 1 from 6, turn 2 from 12, turn 3 from 18; the
    // user's last words open another.
    let four = [2, 2, 2, 2];
    assert_eq!(cuts(&four, 3, None), [Some(12), None]);
    assert_eq!(cuts(&four, 4, None), [Some(6), None]);
    assert_eq!(cuts(&four, 5, None), [None, None]);
    assert_eq!(cuts(&four, 4, Some(100_000)), [Some(6), None], "it fits");
    let [old_turns, more] = cuts(&four, 4, Some(9_000));
    assert_eq!(old_turns, Some(6));
    assert!(more > Some(12), "{more:?}");
}

#[test]
fn one_long_turn_is_split_inside_at_a_cycle() {
    let [old_turns, more] = cuts(&[40], 12, Some(20_000));
    assert_eq!(old_turns, None);
    let cut = more.unwrap();
    assert!(
        (50..70).contains(&cut) && cut % 2 == 1,
        "before a call: {cut}"
    );
    let [_, least] = cuts(&[40], 12, Some(1));
    assert_eq!(least, Some(79), "what the other style keeps");
}

#[test]
fn without_the_style_or_without_a_journal_there_is_nothing_to_hide() {
    let none = Overlay::default();
    for change in [
        (|settings| settings.live_turns = None) as fn(&mut Settings),
        |settings| settings.archives = None,
    ] {
        let mut settings = settings(1);
        change(&mut settings);
        let batches = look(&session(&[2; 4]), &none, &settings, |survey| {
            survey.batches(&[], Some(1))
        });
        assert_eq!(batches, Batches::default());
    }
}

/// Hides what the style hides, and nothing else.
fn hidden(turns: usize, current: &Overlay) -> Draft {
    look(&session(&vec![2; turns]), current, &settings(2), |survey| {
        let batches = survey.batches(&[], None);
        let close = batches.close(Closes::OldTurns);
        survey
            .draft(&[], close, Vec::new(), None, u64::MAX)
            .unwrap()
    })
}

#[test]
fn a_batch_is_added_behind_the_earlier_ones_until_there_are_too_many() {
    let mut overlay = Overlay::default();
    let mut counts = Vec::new();
    for turns in [6, 9, 12, 15, 18] {
        let draft = hidden(turns, &overlay);
        assert!(draft.freed.journaled.is_some());
        assert_eq!((draft.freed.truncated, draft.freed.summed_up), (None, None));
        let (before, now) = (&overlay.segments, &draft.overlay.segments);
        if now.len() > before.len() {
            assert_eq!(now[..before.len()], before[..], "{turns}");
        }
        let newest = &now.last().unwrap().block;
        let last = turns - 2;
        assert!(newest.contains(&format!("Turn {last}: never push.")));
        assert!(!newest.contains(&format!("Turn {}: never push.", last + 1)));
        assert!(
            now.iter()
                .all(|segment| segment.origin == Origin::Truncated)
        );
        counts.push(now.len());
        overlay = draft.overlay;
    }
    assert_eq!(counts, [1, 2, 3, 1, 2]);
}

#[test]
fn what_is_hidden_twice_in_one_pass_is_one_notice() {
    let none = Overlay::default();
    let draft = look(&session(&[2; 12]), &none, &settings(8), |survey| {
        let batches = survey.batches(&[], None);
        let close = batches.close(Closes::OldTurns);
        survey.draft(&[], close, Vec::new(), Some(12_000), u64::MAX)
    });
    let draft = draft.unwrap();
    let [segment] = &draft.overlay.segments[..] else {
        panic!("{:?}", draft.overlay.segments);
    };
    assert!(segment.from == 1 && segment.to > 50, "{segment:?}");
    assert!(draft.weight <= 13_000, "{}", draft.weight);
    assert_eq!(draft.freed.truncated, None);
}

#[test]
fn a_batch_saves_what_it_hides_less_what_it_says() {
    let none = Overlay::default();
    look(&session(&[2; 6]), &none, &settings(2), |survey| {
        let segment = survey.batches(&[], None).old_turns.unwrap();
        let closing = survey.saves(&segment, &[]);
        let (from, to) = (segment.from as usize, segment.to as usize);
        let hidden: u64 = survey.weights()[from..to].iter().sum();
        assert_eq!((closing.from, closing.to), (from, to));
        assert!(closing.frees < hidden && closing.frees > hidden / 2);
    });
}
