//! Under which conditions a session is played.

use super::play::Run;

/// How much a conversation may occupy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    Tokens(u64),
    /// This share of what the session grows to if nothing is cleared, unless that
    /// is less than anybody would give it.
    OfPeak(f64),
}

/// A model, how its client caches, and how the proxy is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    pub model: &'static str,
    /// Of the client's cache marks.
    pub lifetime: &'static str,
    pub budget: Budget,
    /// The rest of the proxy's configuration.
    pub file: &'static str,
}

/// The smallest budget: five times what system and tools take alone.
const SMALLEST: u64 = 60_000;

/// No tier but clearing.
const CLEAR: &str = "[trim]\nenabled = false\n";

/// Every tier, and what decides by default; the cheapest model sums up.
const SUMMARIES: &str = "[summarizer]\nmode = \"auto\"\n[policy]\naim = \"balanced\"\n";

/// The same without clearing.
const ONLY_SUMMARIES: &str = "[summarizer]\nmode = \"auto\"\n[policy]\naim = \"balanced\"\n\
    [clear]\nenabled = false\n";

/// Every tier; the conversation's own model sums up.
const FORK: &str = "[summarizer]\nmode = \"fork\"\n";

/// The same for whoever minds the bill more than the memory: a conversation is
/// kept at a fraction of its budget.
const LEAN: &str = "[summarizer]\nmode = \"auto\"\n\
    [policy]\nclear_at = 0.30\nsummarize_at = 0.35\nfloor = 0.15\n";

/// Nobody sums up: old turns are left to the journal.
const JOURNAL: &str = "[policy]\nstyle = \"journal\"\n";

/// The same for whoever minds the bill more.
const LEAN_JOURNAL: &str = "[policy]\nstyle = \"journal\"\n\
    clear_at = 0.30\nsummarize_at = 0.35\nfloor = 0.15\n";

/// Three prices of reading a cache: a tenth, a twentieth and a fortieth of input.
pub const MODELS: [&str; 3] = ["claude-opus-4-8", "claude-opus-5-5", "claude-fable-5-2"];

const fn setting(model: &'static str, budget: Budget) -> Setting {
    Setting {
        model,
        lifetime: "5m",
        budget,
        file: CLEAR,
    }
}

const fn an_hour(setting: Setting) -> Setting {
    Setting {
        lifetime: "1h",
        ..setting
    }
}

/// Every model with every budget; caches that live an hour; trimming too.
pub const ALL: [Setting; 11] = [
    setting(MODELS[0], Budget::Tokens(200_000)),
    setting(MODELS[0], Budget::OfPeak(0.7)),
    setting(MODELS[0], Budget::OfPeak(0.5)),
    setting(MODELS[1], Budget::Tokens(200_000)),
    setting(MODELS[1], Budget::OfPeak(0.7)),
    setting(MODELS[1], Budget::OfPeak(0.5)),
    setting(MODELS[2], Budget::Tokens(200_000)),
    setting(MODELS[2], Budget::OfPeak(0.7)),
    setting(MODELS[2], Budget::OfPeak(0.5)),
    an_hour(setting(MODELS[0], Budget::OfPeak(0.7))),
    Setting {
        file: "",
        ..setting(MODELS[1], Budget::OfPeak(0.7))
    },
];

/// One for each session of a usual run.
pub const FEW: [Setting; 3] = [ALL[1], ALL[4], ALL[1]];

/// Every tier, summaries too.
const fn summing_up(setting: Setting) -> Setting {
    Setting {
        file: SUMMARIES,
        ..setting
    }
}

const fn lean(setting: Setting) -> Setting {
    Setting {
        file: LEAN,
        ..setting
    }
}

/// Every model with every tier.
pub const BOTH: [Setting; 6] = [
    summing_up(setting(MODELS[0], Budget::Tokens(200_000))),
    summing_up(setting(MODELS[1], Budget::Tokens(200_000))),
    summing_up(setting(MODELS[2], Budget::Tokens(200_000))),
    summing_up(an_hour(setting(MODELS[0], Budget::Tokens(200_000)))),
    lean(setting(MODELS[0], Budget::Tokens(200_000))),
    lean(setting(MODELS[1], Budget::Tokens(200_000))),
];

/// What decides by default, with clearing or without, on a model that reads its
/// cache at a tenth of the price.
pub const fn failing(clearing: bool) -> Setting {
    Setting {
        file: if clearing { SUMMARIES } else { ONLY_SUMMARIES },
        ..setting(MODELS[0], Budget::Tokens(200_000))
    }
}

/// On a session that is not long enough for that budget; its own model sums up.
pub const SMALL: Setting = Setting {
    file: FORK,
    ..setting(MODELS[0], Budget::OfPeak(0.5))
};

/// Every price of reading, at the budget that most sessions outgrow.
pub const IN_JOURNAL: [Setting; 4] = [
    journal(setting(MODELS[0], Budget::Tokens(100_000))),
    journal(setting(MODELS[0], Budget::Tokens(200_000))),
    journal(setting(MODELS[1], Budget::Tokens(100_000))),
    journal(setting(MODELS[1], Budget::Tokens(200_000))),
];

/// The same at a budget that short sessions outgrow too.
pub const SMALL_JOURNAL: Setting = journal(setting(MODELS[1], Budget::OfPeak(0.5)));

const fn journal(setting: Setting) -> Setting {
    Setting {
        file: JOURNAL,
        ..setting
    }
}

impl Setting {
    /// The same in the journal style.
    pub fn in_journal_style(&self) -> Self {
        let file = match self.file {
            LEAN => LEAN_JOURNAL,
            _ => JOURNAL,
        };
        Self { file, ..*self }
    }

    pub fn name(&self) -> String {
        let budget = match self.budget {
            Budget::Tokens(tokens) => format!("{}K tokens", tokens / 1_000),
            Budget::OfPeak(share) => format!("{share} of the peak"),
        };
        let tiers = match self.file {
            CLEAR => "",
            SUMMARIES => ", summaries",
            FORK => ", summaries by fork",
            LEAN => ", summaries, lean",
            JOURNAL | LEAN_JOURNAL => ", journal",
            _ => ", trimming",
        };
        format!(
            "{}, {} caches, budget {budget}{tiers}",
            self.model, self.lifetime
        )
    }

    /// The budget in tokens, for a session that was played without any.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn budget(&self, none: &Run) -> u64 {
        match self.budget {
            Budget::Tokens(tokens) => tokens,
            Budget::OfPeak(share) => ((none.peak() as f64 * share) as u64).max(SMALLEST),
        }
    }
}
