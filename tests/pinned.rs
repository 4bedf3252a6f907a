//! The pinned index of recordings of real agents.
//!
//! What clients put into the user's messages differs from version to version, so
//! real ones are looked at: nothing that is known to be a client's may come out
//! as the user's, every prompt that was typed must, and the same span gives the
//! same text. Sizes are printed.
//!
//! The recordings are not part of the project: `LONGHAUL_TRANSCRIPTS` says where
//! they are, and without them there is nothing to do.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use longhaul::engine::conversation::Conversation;
use longhaul::engine::pinned::{Settings, genuine, pinned};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    let said = std::env::var_os("LONGHAUL_TRANSCRIPTS").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    said.unwrap_or_else(|| root.join("../shared/transcripts"))
}

/// What no user types.
const INJECTED: [&str; 10] = [
    "<system-reminder>",
    "<system_reminder>",
    "<task-notification>",
    "<local-command-",
    "<command-name>",
    "<command-args>",
    "<environment_context>",
    "<turn_aborted>",
    "[Request interrupted by user]",
    "This session is being continued from a previous conversation",
];

#[test]
fn real_sessions_are_pinned_without_what_clients_wrote() {
    let Ok(entries) = std::fs::read_dir(folder()) else {
        println!("no recordings: nothing to do");
        return;
    };
    let mut recordings: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    recordings.retain(|path| path.join("messages.jsonl").exists());
    recordings.sort();
    for recording in recordings {
        let name = recording
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let lines = std::fs::read_to_string(recording.join("messages.jsonl")).unwrap();
        let messages: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let bytes = serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap();
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let all = conversation.len();
        let settings = Settings {
            user_tokens: 20_000,
            files: 200,
            errors: 5,
        };
        for span in [0..all, 1..all / 2, all / 2..all] {
            let index = pinned(&conversation, span.clone(), settings);
            let text = index.text();
            assert_eq!(text, pinned(&conversation, span.clone(), settings).text());
            assert!(index.user_tokens() <= settings.user_tokens);
            for injected in INJECTED {
                let leaks = text.lines().any(|line| line.contains(injected));
                assert!(!leaks, "{name}: {injected} came out");
            }
            let tokens = index.user_tokens();
            println!(
                "{name} {span:?}: {} bytes, {tokens} tokens of the user's",
                text.len()
            );
        }
        let text = pinned(&conversation, 0..all, settings).text();
        let fits = !text.contains(" left out here]\n> ") && !text.contains(" had no room]");
        for at in (0..all).filter(|_| fits) {
            for line in genuine(&conversation, at)
                .iter()
                .flat_map(|words| words.lines())
            {
                assert!(text.contains(line), "{name}: {line} is lost");
            }
        }
    }
}
