//! What the tiers go by, for one request: the configuration, and what its client
//! asks for.

use super::Views;
use super::prepare::Prepared;
use crate::config::{Aim, SplitBy, Style};
use crate::engine::client_edits::ClearToolUses;
use crate::engine::digest::Size;
use crate::engine::measure::Raw;
use crate::engine::pinned;
use crate::engine::policy::{Ask, Situation, Urge};
use crate::engine::recall::telling::Telling;
use crate::engine::request::Facts;
use crate::engine::span::Room;
use crate::engine::split::{Split, Strategy};
use crate::engine::tiers::{Clears, Inputs, Settings, Trims};
use crate::engine::weigh::raw_segments;

/// Results of fewer tokens are not worth clearing: most are so small, and all of
/// them together are a tenth of what there is.
const SMALL: u64 = 400;

/// Tokens of the plan block in a segment, at most, and the part of the view that
/// it may be: there is one in every segment.
const PLAN_TOKENS: u64 = 1_200;
const PLAN_SHARE: u64 = 12;

impl Views {
    /// The settings of the tiers, and the tokens of what is no message of the
    /// client's: system, tools and segments.
    pub(super) fn tiers(
        &self,
        prepared: &Prepared,
        situation: &Situation,
        archives: Option<Telling>,
    ) -> (Settings, u64) {
        let facts = &prepared.recognised.facts;
        let base = self.base_tokens(prepared);
        let theirs = facts.clears.as_ref();
        let theirs = theirs.filter(|_| matches!(situation.asked, Some(Ask::Client { .. })));
        let settings = Settings {
            clears: theirs
                .map(as_asked)
                .or_else(|| self.clears(situation))
                .map(|clears| Clears {
                    exclude_tools: self.excluded(facts),
                    ..clears
                }),
            trim: self.trims(),
            split: self.split(prepared, situation, base),
            closing: None,
            native: None,
            pins: Some(self.pins(self.floor(prepared), prepared.former_plan.clone())),
            max_segments: self.config.policy.max_segments,
            binds_thinking: self.config.models.lookup(&facts.model).binds_thinking,
            manual_thinking: facts.manual_thinking,
            archives,
            live_turns: self.live_turns(),
            closable: closable(prepared, situation),
            summaries_keep_thinking: self.asks_the_api(&prepared.recognised),
            // A client that asks for results to be cleared wants them gone.
            digest: Size::new(
                theirs.map_or(self.config.clear.digest, |_| Some(0)),
                self.floor(prepared),
                self.part_of_digests(situation),
            ),
        };
        (settings, base)
    }

    /// Tokens of what is no message of the client's: system, tools and segments.
    pub(super) fn base_tokens(&self, prepared: &Prepared) -> u64 {
        let factor = self.learned.factor(&prepared.recognised.facts.model);
        let (_, size) = prepared.figures.sizes().unwrap_or_default();
        let ours = prepared.overlay.as_ref();
        let ours: usize = ours.map_or(0, |(_, overlay)| {
            let segments = overlay.segments.iter().map(|segment| &segment.block);
            let ours = segments.chain(overlay.carried());
            ours.map(String::len).sum()
        });
        let text = raw_segments(ours);
        factor.tokens(size.base.raw)
            + factor.tokens(Raw {
                text,
                ..Raw::default()
            })
    }

    /// Turns that the journal style keeps, where it is the style.
    pub(super) fn live_turns(&self) -> Option<usize> {
        let journal = self.config.policy.style == Style::Journal;
        journal.then_some(self.config.journal.live_turns)
    }

    /// How much of the newest part stays, by configuration. No strategy keeps a
    /// view above the watermark that starts passes, nor one that was refused
    /// above the size that is tried next.
    fn split(&self, prepared: &Prepared, situation: &Situation, base: u64) -> Split {
        let (policy, split) = (&self.config.policy, &self.config.split);
        let watermarks = &situation.watermarks;
        let refused = situation.too_many_bytes || situation.asked == Some(Ask::Reactive);
        let most = if refused {
            watermarks.floor
        } else {
            watermarks.clear_at.unwrap_or(watermarks.hard_at)
        };
        let budget = split.turn_budget.of(self.usable(prepared));
        let budget = budget
            .max(split.turn_clamp.least)
            .min(split.turn_clamp.most);
        Split {
            strategy: match policy.split {
                SplitBy::RecentTurns => Strategy::RecentTurns {
                    turns: split.recent_turns,
                    budget,
                },
                SplitBy::TokenFraction => Strategy::TokenFraction {
                    share: split.token_fraction,
                },
                SplitBy::UserMessages => Strategy::UserMessages {
                    words: split.user_tokens,
                    turn_budget: budget,
                },
                SplitBy::TailMessages => Strategy::TailMessages,
            },
            tail_messages: policy.tail_messages,
            most: most.saturating_sub(base),
        }
    }

    /// Of the usual room for digests, how many times less they have. Where reads are
    /// cheap a pass pays back slowly, and what it leaves behind delays the next.
    fn part_of_digests(&self, situation: &Situation) -> usize {
        let rates = &situation.rates;
        match self.config.policy.aim {
            Aim::Thrifty => 3,
            _ if rates.read * 10 < rates.input => 2,
            _ => 1,
        }
    }

    /// How much is pinned, by configuration, in views that come down to `floor`
    /// tokens. In a small window it is less: what is left out must not come back
    /// as a quotation.
    pub(super) fn pins(
        &self,
        floor: u64,
        former_plan: Option<pinned::FormerPlan>,
    ) -> pinned::Settings {
        let pin = &self.config.pin;
        pinned::Settings {
            user_tokens: pin.user_tokens.min(floor / 2),
            files: pin.files,
            errors: pin.errors,
            // As much as the segments before it leave.
            digest_bytes: 0,
            former_plan,
            plan_tokens: PLAN_TOKENS.min(floor / PLAN_SHARE),
        }
    }

    /// How results are trimmed, by configuration.
    pub(super) fn trims(&self) -> Option<Trims> {
        let trim = &self.config.trim;
        let kept = trim.tools.iter();
        trim.enabled.then(|| Trims {
            max_chars: trim.max_chars,
            tools: kept
                .map(|(name, keep)| (name.clone(), (keep.head, keep.tail)))
                .collect(),
        })
    }

    /// Tools whose results nobody wants touched: neither who runs this nor who
    /// asks, whatever starts a pass.
    fn excluded(&self, facts: &Facts) -> Vec<String> {
        let theirs = facts
            .clears
            .as_ref()
            .map_or(&[][..], |asked| asked.excluded());
        let ours = &self.config.clear.exclude_tools;
        ours.iter().chain(theirs).cloned().collect()
    }

    /// How results are cleared, by configuration.
    fn clears(&self, situation: &Situation) -> Option<Clears> {
        let clear = &self.config.clear;
        // Where something must go, the newest results are worth less than what
        // would be left out instead.
        let urge = situation.urge().map(|(_, urge)| urge);
        let by_accounts =
            situation.by_accounts() && matches!(urge, Ok(Urge::IfDue | Urge::All | Urge::Swap));
        let only_by_accounts = |tokens: u64| if by_accounts { tokens } else { 0 };
        clear.enabled.then(|| Clears {
            keep_tool_uses: clear.keep_tool_uses,
            keep_tokens: only_by_accounts(situation.bill.keep),
            // Who asks for a pass gets the working set and nothing more.
            keep_files: match urge {
                Ok(Urge::All) => 0,
                _ => only_by_accounts(situation.bill.keep / 4 * 3),
            },
            small: only_by_accounts(SMALL),
            exclude_tools: Vec::new(),
            supersede: clear.supersede,
            inputs: if clear.clear_inputs {
                Inputs::All
            } else {
                Inputs::None
            },
        })
    }
}

/// How results are cleared, as a client asks for it.
fn as_asked(clears: &ClearToolUses) -> Clears {
    Clears {
        keep_tool_uses: clears.keep(),
        keep_tokens: 0,
        keep_files: 0,
        small: 0,
        exclude_tools: Vec::new(),
        supersede: false,
        inputs: clears.inputs(),
    }
}

/// How much a summary would hide that is still to be written. The API's own
/// is made up to the place that is kept in the cache, once enough stands
/// behind it.
fn closable(prepared: &Prepared, situation: &Situation) -> Option<Room> {
    let keep = situation.bill.keep;
    let held = prepared.figures.held.filter(|_| situation.awaits_summary());
    let asked = situation.asked == Some(Ask::Manual) || situation.course.compacting;
    match held {
        Some(held) if held.is_far_enough(situation.size, keep) => Some(Room::Before(held.end())),
        Some(_) if !asked => None,
        _ => situation.awaits_summary().then_some(Room::Keep(keep)),
    }
}
