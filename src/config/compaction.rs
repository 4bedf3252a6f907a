//! The sections about compaction: when a pass starts and what it may do.
//!
//! Plain values with their defaults. Ranges stand in `keys`, rules between
//! keys in `rules`; a section found here has passed both.

use super::choice::{Aim, Breakpoints, Mode, SplitBy, Style};
use super::ratio::Ratio;
use super::unit::MIB;
use std::collections::BTreeMap;
use std::time::Duration;

/// `[window]`: how much a view may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Tokens, for a model no table knows.
    pub default: u64,
    /// Kept free for tokenizer drift.
    pub margin: Ratio,
    /// Tokens a conversation may occupy; none: the whole window.
    pub budget: Option<u64>,
    /// Largest request body to send upstream.
    pub bytes: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            default: 200_000,
            margin: Ratio::percent(5),
            budget: None,
            bytes: 30 * MIB,
        }
    }
}

/// `[policy]`: when a pass starts and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Whether views are changed.
    pub mode: Mode,
    /// What to weigh more, cost or memory: sets what the keys below leave open.
    pub aim: Aim,
    /// Newest tokens that a pass leaves alone; none: as the aim says.
    pub keep_tokens: Option<u64>,
    /// Share of the usable window from which old tool results may go; none: the
    /// bill decides, at any size.
    pub clear_at: Option<Ratio>,
    /// Share from which summaries are prepared; none: at no size.
    pub summarize_at: Option<Ratio>,
    /// Share no request may pass.
    pub hard_at: Ratio,
    /// Share that a forced pass must get down to.
    pub floor: Ratio,
    /// How a long history is kept small.
    pub style: Style,
    /// Messages at the end that stay verbatim.
    pub tail_messages: usize,
    /// Where the tail starts.
    pub split: SplitBy,
    /// Segments in a view before the oldest are merged.
    pub max_segments: usize,
    /// Further requests to reckon with; none: judged from the past ones.
    pub horizon: Option<u32>,
    /// Passes refilled at once, in a row, that count as thrash.
    pub thrash_limit: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::On,
            aim: Aim::Balanced,
            keep_tokens: None,
            clear_at: None,
            summarize_at: None,
            hard_at: Ratio::percent(95),
            floor: Ratio::percent(35),
            style: Style::Compact,
            tail_messages: 10,
            split: SplitBy::RecentTurns,
            max_segments: 8,
            horizon: None,
            thrash_limit: 3,
        }
    }
}

impl Policy {
    /// Newest tokens that a pass leaves alone.
    pub fn keep_tokens(&self) -> u64 {
        self.keep_tokens.unwrap_or(match self.aim {
            Aim::Faithful => 30_000,
            Aim::Balanced => 12_800,
            Aim::Thrifty => 7_000,
        })
    }

    /// How many times its price a pass must have cost by not being made.
    pub fn factor(&self) -> u32 {
        match self.aim {
            Aim::Faithful | Aim::Balanced => 2,
            Aim::Thrifty => 1,
        }
    }
}

/// `[split]`: the measures of each way to place the cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Turns kept by `recent-turns`.
    pub recent_turns: usize,
    /// Share of the usable window that the turns kept by `recent-turns` may take
    /// together, and each turn kept by `user-messages`.
    pub turn_budget: Ratio,
    /// Tokens between which that share is held.
    pub turn_clamp: Clamp,
    /// Share of the tokens kept by `token-fraction`.
    pub token_fraction: Ratio,
    /// Tokens of the user's own words whose turns `user-messages` keeps.
    pub user_tokens: u64,
}

/// The least and the most a number of tokens may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clamp {
    /// The least.
    pub least: u64,
    /// The most; never under the least.
    pub most: u64,
}

impl Default for Split {
    fn default() -> Self {
        Self {
            recent_turns: 2,
            turn_budget: Ratio::percent(25),
            turn_clamp: Clamp {
                least: 2_000,
                most: 8_000,
            },
            token_fraction: Ratio::percent(30),
            user_tokens: 20_000,
        }
    }
}

/// `[clear]`: stubs for consumed tool results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clear {
    /// Whether this tier is used.
    pub enabled: bool,
    /// Newest tool uses that are never cleared.
    pub keep_tool_uses: usize,
    /// Tools whose results are never cleared.
    pub exclude_tools: Vec<String>,
    /// Whether the inputs of cleared calls go too.
    pub clear_inputs: bool,
    /// Whether outdated reads and repeated commands go first.
    pub supersede: bool,
    /// Tokens a pass must free to be worth it.
    pub at_least: u64,
    /// Tokens that stay of a cleared result, at the most; none: about a tenth.
    pub digest: Option<u64>,
}

impl Default for Clear {
    fn default() -> Self {
        Self {
            enabled: true,
            keep_tool_uses: 3,
            exclude_tools: Vec::new(),
            clear_inputs: false,
            supersede: true,
            at_least: 5_000,
            digest: None,
        }
    }
}

/// `[trim]`: head and tail of oversized tool results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trim {
    /// Whether this tier is used.
    pub enabled: bool,
    /// Characters from which a result counts as oversized.
    pub max_chars: usize,
    /// What is kept, by tool.
    pub tools: BTreeMap<String, TrimTool>,
}

/// `[trim.tools."NAME"]`: what is kept of one tool's oversized results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimTool {
    /// Characters kept at the start.
    pub head: usize,
    /// Characters kept at the end.
    pub tail: usize,
}

impl Default for Trim {
    fn default() -> Self {
        Self {
            enabled: true,
            max_chars: 40_000,
            tools: BTreeMap::from([("Bash".to_owned(), TrimTool::default())]),
        }
    }
}

impl Default for TrimTool {
    fn default() -> Self {
        Self {
            head: 4_000,
            tail: 12_000,
        }
    }
}

/// `[pin]`: facts that code, not a model, carries into segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Tokens of the user's own words per view.
    pub user_tokens: u64,
    /// Files listed.
    pub files: usize,
    /// Unresolved errors quoted.
    pub errors: usize,
}

impl Default for Pin {
    fn default() -> Self {
        Self {
            user_tokens: 20_000,
            files: 200,
            errors: 5,
        }
    }
}

/// `[cache]`: the provider's prompt cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// How long an entry lives; none: as the request's marks say.
    pub ttl: Option<Duration>,
    /// Idle time beyond the lifetime before a cache counts as cold.
    pub margin: Duration,
    /// Who places cache marks.
    pub breakpoints: Breakpoints,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            ttl: None,
            margin: Duration::from_mins(1),
            breakpoints: Breakpoints::Auto,
        }
    }
}
