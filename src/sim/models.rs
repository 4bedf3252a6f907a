//! The models the simulator knows: windows, prices and what each one refuses.
//!
//! This table is written from the vendor's documentation and is independent of
//! the proxy's own on purpose: a mistake in one of them shows as a difference.

use super::prices::{PriceStep, Prices, Tokens};

/// When `thinking: {type: "disabled"}` is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disabling {
    /// Always.
    Accepted,
    /// Never: thinking is always on.
    Refused,
    /// Unless the effort is `xhigh` or `max`.
    RefusedAtHighEffort,
}

/// What a model accepts as thinking settings.
#[allow(
    clippy::struct_excessive_bools,
    reason = "a row of a table of yes and no"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinkingSupport {
    /// `adaptive` is accepted.
    pub adaptive: bool,
    /// `enabled` with a budget is accepted.
    pub enabled: bool,
    /// When `disabled` is accepted.
    pub disabled: Disabling,
    /// `between_tools` is accepted.
    pub between_tools: bool,
    /// The model thinks when the request says nothing.
    pub on_by_default: bool,
    /// Thinking text is left out unless it is asked for.
    pub omitted_by_default: bool,
}

/// One model.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a row of a table of yes and no"
)]
pub struct Model {
    /// The id without a date.
    pub id: &'static str,
    /// Largest prompt in tokens.
    pub window: u64,
    /// Largest `max_tokens`.
    pub max_output: u64,
    /// Prices.
    pub prices: Prices,
    /// Dearer prices for long prompts.
    pub step: Option<PriceStep>,
    /// Shortest prefix that is cached, in tokens.
    pub min_cacheable: u64,
    /// Thinking is bound to the conversation before it.
    pub binds_thinking: bool,
    /// Thinking of another organization is left out.
    pub organization_locked: bool,
    /// Thinking settings.
    pub thinking: ThinkingSupport,
    /// In manual mode too, thinking may come between tool calls.
    pub interleaves: bool,
    /// A trailing assistant message is continued.
    pub prefill: bool,
    /// Thinking of earlier turns is stripped when a new user turn arrives.
    pub strips_thinking: bool,
    /// `role: "system"` inside `messages` is accepted.
    pub system_messages: bool,
    /// `temperature` and its kin may differ from their defaults.
    pub sampling: bool,
    /// `tool_choice` may force a tool.
    pub forced_tools: bool,
    /// Input plus `max_tokens` beyond the window is refused, not cut short.
    pub strict_output: bool,
    /// Compaction beyond a threshold is supported.
    pub compaction: bool,
    /// On-demand compaction is supported.
    pub summarizes: bool,
}

impl Model {
    /// The prices for a prompt of this size.
    pub fn prices_for(&self, tokens: &Tokens) -> &Prices {
        match &self.step {
            Some(step) if tokens.prompt() > step.above => &step.prices,
            _ => &self.prices,
        }
    }
}

/// The model of that name; a date suffix is ignored.
pub fn find(name: &str) -> Option<&'static Model> {
    let base = match name.rsplit_once('-') {
        Some((base, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    };
    TABLE.iter().find(|model| model.id == base)
}

/// All models, newest first.
pub fn all() -> &'static [Model] {
    TABLE
}

const ALWAYS_ON: ThinkingSupport = ThinkingSupport {
    adaptive: true,
    enabled: false,
    disabled: Disabling::Refused,
    between_tools: false,
    on_by_default: true,
    omitted_by_default: true,
};
const BETWEEN: ThinkingSupport = ThinkingSupport {
    between_tools: true,
    ..ALWAYS_ON
};
const OFF_BY_DEFAULT: ThinkingSupport = ThinkingSupport {
    disabled: Disabling::Accepted,
    on_by_default: false,
    ..ALWAYS_ON
};
const BOTH_KINDS: ThinkingSupport = ThinkingSupport {
    enabled: true,
    omitted_by_default: false,
    ..OFF_BY_DEFAULT
};
const MANUAL: ThinkingSupport = ThinkingSupport {
    adaptive: false,
    ..BOTH_KINDS
};

const FABLE_5: Model = Model {
    id: "claude-fable-5",
    window: 1_000_000,
    max_output: 128_000,
    prices: Prices::tenths(10_000, 12_500, 20_000, 1_000, 50_000),
    step: None,
    min_cacheable: 512,
    binds_thinking: false,
    organization_locked: false,
    thinking: ALWAYS_ON,
    interleaves: true,
    prefill: false,
    strips_thinking: false,
    system_messages: true,
    sampling: false,
    forced_tools: true,
    strict_output: false,
    compaction: true,
    summarizes: true,
};
const FABLE_5_1: Model = Model {
    id: "claude-fable-5-1",
    prices: Prices::tenths(10_000, 12_500, 20_000, 250, 50_000),
    binds_thinking: true,
    forced_tools: false,
    ..FABLE_5
};
const FABLE_5_2: Model = Model {
    id: "claude-fable-5-2",
    prices: Prices::tenths(8_000, 10_000, 16_000, 200, 40_000),
    organization_locked: true,
    // Not in the list of models for it, which ends with 5.1.
    summarizes: false,
    ..FABLE_5_1
};
const OPUS_5_5: Model = Model {
    id: "claude-opus-5-5",
    prices: Prices::tenths(4_000, 5_000, 8_000, 200, 20_000),
    ..FABLE_5_1
};
const OPUS_5: Model = Model {
    id: "claude-opus-5",
    prices: Prices::tenths(5_000, 6_250, 10_000, 500, 25_000),
    thinking: ThinkingSupport {
        disabled: Disabling::RefusedAtHighEffort,
        ..ALWAYS_ON
    },
    ..FABLE_5
};
const OPUS_4_8: Model = Model {
    id: "claude-opus-4-8",
    min_cacheable: 1_024,
    thinking: OFF_BY_DEFAULT,
    ..OPUS_5
};
const OPUS_4_6: Model = Model {
    id: "claude-opus-4-6",
    min_cacheable: 4_096,
    thinking: BOTH_KINDS,
    system_messages: false,
    sampling: true,
    ..OPUS_4_8
};
const OPUS_4_5: Model = Model {
    id: "claude-opus-4-5",
    window: 200_000,
    max_output: 64_000,
    thinking: MANUAL,
    prefill: true,
    compaction: false,
    summarizes: false,
    ..OPUS_4_6
};
const SONNET_5_5: Model = Model {
    id: "claude-sonnet-5-5",
    prices: Prices::tenths(2_000, 2_500, 4_000, 100, 10_000),
    organization_locked: true,
    thinking: BETWEEN,
    ..FABLE_5_1
};
const SONNET_4_5: Model = Model {
    id: "claude-sonnet-4-5",
    prices: Prices::tenths(3_000, 3_750, 6_000, 300, 15_000),
    min_cacheable: 1_024,
    strips_thinking: true,
    ..OPUS_4_5
};

static TABLE: &[Model] = &[
    FABLE_5_2,
    Model {
        id: "claude-mythos-5-2",
        ..FABLE_5_2
    },
    FABLE_5_1,
    Model {
        id: "claude-mythos-5-1",
        ..FABLE_5_1
    },
    FABLE_5,
    Model {
        id: "claude-mythos-5",
        ..FABLE_5
    },
    OPUS_5_5,
    OPUS_5,
    OPUS_4_8,
    Model {
        id: "claude-opus-4-7",
        min_cacheable: 2_048,
        system_messages: false,
        ..OPUS_4_8
    },
    OPUS_4_6,
    OPUS_4_5,
    Model {
        id: "claude-opus-4-1",
        prices: Prices::tenths(15_000, 18_750, 30_000, 1_500, 75_000),
        max_output: 32_000,
        min_cacheable: 1_024,
        strips_thinking: true,
        strict_output: true,
        ..OPUS_4_5
    },
    SONNET_5_5,
    Model {
        id: "claude-sonnet-5",
        prices: Prices::tenths(2_000, 2_500, 4_000, 200, 10_000),
        min_cacheable: 1_024,
        thinking: ThinkingSupport {
            disabled: Disabling::Accepted,
            ..ALWAYS_ON
        },
        ..FABLE_5
    },
    Model {
        id: "claude-sonnet-4-6",
        prices: Prices::tenths(3_000, 3_750, 6_000, 300, 15_000),
        min_cacheable: 1_024,
        ..OPUS_4_6
    },
    SONNET_4_5,
    Model {
        id: "claude-sonnet-4",
        strict_output: true,
        ..SONNET_4_5
    },
    Model {
        id: "claude-haiku-5-5",
        prices: Prices::tenths(100, 125, 200, 10, 500),
        step: Some(PriceStep {
            above: 100_000,
            prices: Prices::tenths(500, 625, 1_000, 50, 2_500),
        }),
        forced_tools: true,
        system_messages: false,
        ..SONNET_5_5
    },
    Model {
        id: "claude-haiku-4-5",
        prices: Prices::tenths(1_000, 1_250, 2_000, 100, 5_000),
        min_cacheable: 4_096,
        interleaves: false,
        ..SONNET_4_5
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Fact: ids with a date name the same model.
    #[test]
    fn a_date_suffix_is_ignored() {
        assert_eq!(
            find("claude-haiku-4-5-20251001").unwrap().id,
            "claude-haiku-4-5"
        );
        assert_eq!(find("claude-opus-5-5").unwrap().id, "claude-opus-5-5");
        assert!(find("claude-foo").is_none());
    }

    /// Fact: Haiku 5.5 costs five times as much beyond 100,000 prompt tokens.
    #[test]
    fn the_price_step_counts_the_whole_prompt() {
        let haiku = find("claude-haiku-5-5").unwrap();
        let small = Tokens {
            input: 1,
            read: 99_999,
            ..Tokens::default()
        };
        let large = Tokens {
            input: 1,
            read: 100_000,
            ..Tokens::default()
        };
        assert_eq!(haiku.prices_for(&small).input, 100_000);
        assert_eq!(haiku.prices_for(&large).input, 500_000);
    }

    /// Fact: thinking is bound on the 5.1, 5.2 and 5.5 generations only.
    #[test]
    fn the_newest_generations_bind_thinking() {
        let binding: Vec<_> = all()
            .iter()
            .filter(|m| m.binds_thinking)
            .map(|m| m.id)
            .collect();
        assert_eq!(
            binding,
            [
                "claude-fable-5-2",
                "claude-mythos-5-2",
                "claude-fable-5-1",
                "claude-mythos-5-1",
                "claude-opus-5-5",
                "claude-sonnet-5-5",
                "claude-haiku-5-5"
            ]
        );
    }

    /// Fact: a cache write costs 1.25 times the input for five minutes, twice for an hour.
    #[test]
    fn writes_cost_a_quarter_more_or_twice() {
        for model in all() {
            assert_eq!(
                model.prices.write_5m * 4,
                model.prices.input * 5,
                "{}",
                model.id
            );
            assert_eq!(
                model.prices.write_1h,
                model.prices.input * 2,
                "{}",
                model.id
            );
        }
    }

    /// Fact: on-demand compaction is listed for Opus and Sonnet 4.6 to 5.5, Haiku 5.5
    /// and Fable and Mythos 5 and 5.1; threshold compaction for Fable and Mythos 5
    /// and later too.
    #[test]
    fn which_models_compact() {
        let without: Vec<_> = all()
            .iter()
            .filter(|m| !m.summarizes)
            .map(|m| m.id)
            .collect();
        assert_eq!(
            without,
            [
                "claude-fable-5-2",
                "claude-mythos-5-2",
                "claude-opus-4-5",
                "claude-opus-4-1",
                "claude-sonnet-4-5",
                "claude-sonnet-4",
                "claude-haiku-4-5"
            ]
        );
        assert!(find("claude-fable-5-2").unwrap().compaction);
        assert!(!find("claude-haiku-4-5").unwrap().compaction);
    }

    /// Fact: the smallest cacheable prefix per model.
    #[test]
    fn minimum_prefixes() {
        let table = [
            ("claude-opus-5", 512),
            ("claude-opus-5-5", 512),
            ("claude-opus-4-8", 1_024),
            ("claude-sonnet-5", 1_024),
            ("claude-sonnet-4-6", 1_024),
            ("claude-sonnet-4-5", 1_024),
            ("claude-opus-4-7", 2_048),
            ("claude-opus-4-6", 4_096),
            ("claude-opus-4-5", 4_096),
            ("claude-haiku-4-5", 4_096),
        ];
        for (id, minimum) in table {
            assert_eq!(find(id).unwrap().min_cacheable, minimum, "{id}");
        }
    }

    /// Fact: prefill and the stripping of old thinking end with the 4.5 generation
    /// (Opus 4.5 already keeps it).
    #[test]
    fn prefill_and_stripping_are_old() {
        let prefill: Vec<_> = all().iter().filter(|m| m.prefill).map(|m| m.id).collect();
        assert_eq!(
            prefill,
            [
                "claude-opus-4-5",
                "claude-opus-4-1",
                "claude-sonnet-4-5",
                "claude-sonnet-4",
                "claude-haiku-4-5"
            ]
        );
        assert!(!find("claude-opus-4-5").unwrap().strips_thinking);
        assert!(find("claude-haiku-4-5").unwrap().strips_thinking);
    }
}
