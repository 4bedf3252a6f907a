//! The pinned index of recordings of real agents.
//!
//! What clients put into the user's messages differs from version to version, so
//! real ones are looked at: nothing that is known to be a client's may come out
//! as the user's, every prompt that was typed must, and the same span gives the
//! same text. Sizes are printed.
//!
//! Where there are no recordings, made-up ones are taken: see `recordings`.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod recordings;

use longhaul::engine::conversation::Conversation;
use longhaul::engine::pinned::{Settings, genuine, pinned};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

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
    for recording in recordings::all() {
        let name = recordings::name(&recording);
        let messages: Vec<Value> = recordings::lines(&recording)
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let bytes = serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap();
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let all = conversation.len();
        let settings = Settings {
            user_tokens: 20_000,
            plan_tokens: 1_200,
            former_plan: None,
            files: 200,
            errors: 5,
            digest_bytes: 4_000,
        };
        for span in [0..all, 1..all / 2, all / 2..all] {
            let index = pinned(&conversation, span.clone(), &settings);
            let text = index.text();
            assert_eq!(text, pinned(&conversation, span.clone(), &settings).text());
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
        let text = pinned(&conversation, 0..all, &settings).text();
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
