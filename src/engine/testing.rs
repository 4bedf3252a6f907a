//! A reduction of everything that may go, for tests: sizes in bytes.

use super::conversation::Conversation;
use super::ids::ChainHash;
use super::overlay::Overlay;
use super::pinned;
use super::recall::telling::Telling;
use super::reduce::Draft;
use super::split::Split;
use super::tiers::{self, Survey};

/// What such a reduction goes by.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)]
pub struct Settings {
    pub keep_tool_uses: usize,
    pub exclude_tools: Vec<String>,
    pub clear: bool,
    pub tail_messages: usize,
    /// Bytes that the view's messages should come down to.
    pub target_bytes: usize,
    pub binds_thinking: bool,
    pub manual_thinking: bool,
    pub archives: bool,
    /// Turns that the journal style keeps, where it is the style.
    pub live_turns: Option<usize>,
}

/// Clears everything that may go, then hides down to the target.
pub fn reduce(
    conversation: &Conversation<'_>,
    current: &Overlay,
    seed: ChainHash,
    settings: &Settings,
) -> Option<Draft> {
    let target = settings.target_bytes as u64;
    let settings = tiers::Settings {
        clears: settings.clear.then(|| tiers::Clears {
            keep_tool_uses: settings.keep_tool_uses,
            exclude_tools: settings.exclude_tools.clone(),
            supersede: true,
            ..tiers::Clears::default()
        }),
        split: Split {
            tail_messages: settings.tail_messages,
            ..Split::default()
        },
        binds_thinking: settings.binds_thinking,
        manual_thinking: settings.manual_thinking,
        archives: settings.archives.then(Telling::default),
        live_turns: settings.live_turns,
        pins: settings.live_turns.map(|_| pinned::Settings {
            user_tokens: 500,
            plan_tokens: 1_200,
            former_plan: None,
            files: 20,
            errors: 2,
            digest_bytes: 0,
        }),
        max_segments: if settings.live_turns.is_some() { 2 } else { 0 },
        ..tiers::Settings::default()
    };
    Survey::in_bytes(conversation, current, seed, &settings).everything(target)
}
