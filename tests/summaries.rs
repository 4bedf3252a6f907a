//! Summaries of recordings of real agents: what is really there is believed,
//! what is not is found out, and a record of them fits any room.
//!
//! Where there are no recordings, made-up ones are taken: see `recordings`.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod recordings;

use longhaul::engine::conversation::Conversation;
use longhaul::engine::summary::Narrative;
use longhaul::engine::summary::check::{Problem, Source, check};
use longhaul::engine::summary::parts::parts;
use longhaul::engine::summary::transcript::{Room, transcript};
use longhaul::wire::body::Body;

/// Every recording as a request, by name.
fn recordings() -> Vec<(String, Vec<u8>)> {
    let request = |path: std::path::PathBuf| {
        let lines = recordings::lines(&path);
        let body = format!(r#"{{"messages":[{}]}}"#, lines.join(","));
        (recordings::name(&path), body.into_bytes())
    };
    recordings::all().into_iter().map(request).collect()
}

fn saying(items: Vec<String>) -> Narrative {
    Narrative {
        session_intent: "go on".to_owned(),
        decisions: items,
        ..Narrative::default()
    }
}

#[test]
fn what_was_said_is_believed_and_what_was_made_up_is_not() {
    for (name, bytes) in recordings() {
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let span = 0..conversation.len();
        let source = Source::of(&conversation, span.clone());
        let record = transcript(&conversation, span.clone(), Room::of_bytes(usize::MAX)).text;
        // Lines as they stand, and cut off in the middle as a summarizer may do.
        let lines = record.lines().filter(|line| line.starts_with(' '));
        let cut = |line: &str| line.chars().take(200).collect::<String>();
        let lines: Vec<String> = lines.step_by(11).map(cut).collect();
        let begun = std::time::Instant::now();
        let judged = check(&saying(lines.clone()), &source, span.len());
        println!("{name}: {} lines in {:?}", lines.len(), begun.elapsed());
        assert_eq!(judged, Ok(()), "{name}");
        let made_up = "src/invented/by_nobody_at_all.rs".to_owned();
        let judged = check(&saying(vec![made_up.clone()]), &source, span.len());
        assert_eq!(judged, Err(Problem::Invented(vec![made_up])), "{name}");
    }
}

/// Where a client summed its own history up, a model really wrote, and wrote the
/// truth. Only the path that the client itself adds, and the recordings hide, was
/// not given to the model.
#[test]
fn summaries_that_models_wrote_are_believed() {
    for (name, bytes) in recordings() {
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let mut from = 0;
        for at in 1..conversation.len() {
            let message = conversation.message(at).unwrap().span.of(&bytes);
            let message: serde_json::Value = serde_json::from_slice(message).unwrap();
            let blocks = message["content"].as_array().into_iter().flatten();
            let texts = blocks.filter_map(|block| block["text"].as_str());
            let is_summary = |text: &&str| text.contains("continued from a previous conversation");
            let Some(text) = texts.rev().find(is_summary) else {
                continue;
            };
            let source = Source::of(&conversation, from..at);
            let judged = check(&saying(vec![text.to_owned()]), &source, at - from);
            let invented = match judged {
                Err(Problem::Invented(names)) => names,
                judged => {
                    assert_eq!(judged, Ok(()), "{name}, message {at}");
                    Vec::new()
                }
            };
            let is_added = |name: &String| name.ends_with("REDACTED.jsonl");
            assert!(invented.iter().all(is_added), "{name}: {invented:?}");
            from = at;
        }
    }
}

#[test]
fn a_record_fits_any_room_and_parts_cover_everything() {
    for (name, bytes) in recordings() {
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let span = conversation.head()..conversation.len();
        for room in [1_000, 20_000, 100_000] {
            let record = transcript(&conversation, span.clone(), Room::of_bytes(room));
            assert!(record.text.len() <= room, "{name}: {}", record.text.len());
        }
        let weight = |at: usize| conversation.message(at).map_or(0, |m| m.span.len() as u64);
        let found = parts(&conversation, span.clone(), weight, 100_000);
        assert!(found.iter().cloned().flatten().eq(span), "{name}");
        let sizes: Vec<u64> = found
            .iter()
            .map(|part| part.clone().map(weight).sum())
            .collect();
        println!("{name}: parts of {sizes:?} bytes");
    }
}
