//! The tiers that need no model: clear, trim, and what is left when they are not
//! enough.
//!
//! A survey lists what could go from a view and what each of it weighs; the
//! policy says which of it goes; here the words are put in its place. Where a
//! view must come down to some size whatever it takes, the tiers follow each
//! other: results that were spared are trimmed, then old messages are hidden,
//! and past everything else even the newest results are trimmed.

mod ages;
mod batches;
mod closing;
mod digests;
mod last_resort;
mod settings;
mod stubs;

pub use batches::Batches;
pub use closing::Close;
pub use settings::{Clears, Inputs, Settings, Trims};

use ages::{files_in_hand, newest, replies};
use std::collections::HashSet;

use super::candidates::{Candidate, Choice, Reason, candidates};
use super::conversation::Conversation;
use super::ids::ChainHash;
use super::overlay::{Change, Overlay};
use super::policy::{Item, Need, Offer};
use super::reduce::{Draft, Orders, Replacement, reduce};
use super::stub;
use super::trim::{Cut, Keep, trim};
use super::weigh::{Weights, pictures};
use crate::wire::body::Kind;
use crate::wire::canonical::unmarked;

/// Bytes of an input from which clearing it is worth the while.
const LARGE_INPUT: usize = 1024;
/// Tokens that a stub takes, about.
const STUB_TOKENS: u64 = 60;

/// What could go from a view.
pub struct Survey<'a> {
    conversation: &'a Conversation<'a>,
    current: &'a Overlay,
    seed: ChainHash,
    settings: &'a Settings,
    candidates: Vec<Candidate>,
    weights: Weights,
    /// Replies from each message on.
    replies: Vec<u32>,
    /// Results that show files in hand.
    in_hand: HashSet<(usize, usize)>,
    /// Bytes of the digest of each candidate, and of each that is trimmed.
    digests: digests::Rooms,
}

impl<'a> Survey<'a> {
    /// Looks a view over whose messages come to so many tokens.
    pub fn new(
        conversation: &'a Conversation<'a>,
        current: &'a Overlay,
        seed: ChainHash,
        settings: &'a Settings,
        tokens: u64,
    ) -> Self {
        let weights = Weights::new(conversation, current, tokens);
        Self::weighed(conversation, current, seed, settings, weights)
    }

    /// The same in bytes.
    pub fn in_bytes(
        conversation: &'a Conversation<'a>,
        current: &'a Overlay,
        seed: ChainHash,
        settings: &'a Settings,
    ) -> Self {
        let weights = Weights::in_bytes(conversation, current);
        Self::weighed(conversation, current, seed, settings, weights)
    }

    fn weighed(
        conversation: &'a Conversation<'a>,
        current: &'a Overlay,
        seed: ChainHash,
        settings: &'a Settings,
        weights: Weights,
    ) -> Self {
        let trim = settings.trim.as_ref();
        let mut candidates = settings.clears.as_ref().map_or_else(Vec::new, |clears| {
            let choice = Choice {
                keep_tool_uses: clears.keep_tool_uses,
                exclude_tools: &clears.exclude_tools,
                supersede: clears.supersede,
                oversized: trim.map_or(usize::MAX, |trim| trim.max_chars),
            };
            candidates(conversation, current, &choice)
        });
        let clears = settings.clears.as_ref();
        let small = clears.map_or(0, |clears| clears.small).max(STUB_TOKENS);
        let kept = newest(
            &weights.messages,
            clears.map_or(0, |clears| clears.keep_tokens),
        );
        candidates.retain(|candidate| {
            candidate.result.0 < kept && weights.block(candidate.result) > small
        });
        let replies = replies(conversation);
        let keep_files = clears.map_or(0, |clears| clears.keep_files);
        let in_hand = files_in_hand(&candidates, &weights, &replies, keep_files);
        let mut survey = Self {
            conversation,
            current,
            seed,
            settings,
            candidates,
            weights,
            replies,
            in_hand,
            digests: digests::Rooms::default(),
        };
        survey.digests = survey.share_digests();
        survey
    }

    /// What the policy chooses from, when these have been trimmed.
    pub fn offer(&self, arrivals: &[Replacement]) -> Offer {
        let item = |(at, candidate): (usize, &Candidate)| {
            let (result, input) = self.digests.of(at);
            let left = |place: (usize, usize), digest: usize| {
                let stub = STUB_TOKENS + self.weights.of_length(digest);
                self.weights.block(place).saturating_sub(stub)
            };
            let result = left(candidate.result, result).max(1);
            let input = self
                .input_of(candidate)
                .map_or(0, |_| left(candidate.used, input));
            Item {
                message: if input > 0 {
                    candidate.used.0
                } else {
                    candidate.result.0
                },
                frees: result + input,
                useless: candidate.reason < Reason::Old,
                in_hand: self.in_hand.contains(&candidate.result),
                images: pictures(self.conversation, candidate.result),
                need: Need {
                    hazard: candidate.hazard,
                    age: self.requests_since(candidate.result.0),
                },
            }
        };
        let in_loop = self.conversation.is_in_tool_loop();
        let thinking = if self.settings.binds_thinking && !in_loop {
            Weights::behind(&self.weights.thinking)
        } else {
            Vec::new()
        };
        let messages = self.messages(arrivals);
        Offer {
            items: self.candidates.iter().enumerate().map(item).collect(),
            behind: Weights::behind(&messages),
            thinking,
            images: self.weights.images,
            closing: self.closing(&messages),
            closable: self.closable(&messages),
            segments: self.segments(),
            ..Offer::default()
        }
    }

    /// Tokens of each message, when these have been trimmed.
    fn messages(&self, arrivals: &[Replacement]) -> Vec<u64> {
        let mut messages = self.weights.messages.clone();
        for arrival in arrivals {
            if let Some(weight) = messages.get_mut(arrival.place.0) {
                *weight = weight.saturating_sub(arrival.spares);
            }
        }
        messages
    }

    /// Requests that have followed a message: one for each reply.
    fn requests_since(&self, message: usize) -> u32 {
        let later = self.replies.get(message).copied().unwrap_or(0);
        self.replies.first().copied().unwrap_or(0).min(later)
    }

    /// Tokens that could go without hiding anything.
    pub fn clearable(&self) -> u64 {
        self.offer(&[]).items.iter().map(|item| item.frees).sum()
    }

    /// Tokens of each message, as it is shown.
    pub fn weights(&self) -> &[u64] {
        &self.weights.messages
    }

    /// The input of a call that goes with its result, if it does.
    fn input_of(&self, candidate: &Candidate) -> Option<std::ops::Range<usize>> {
        let Candidate { used, tool, .. } = candidate;
        let last = self.conversation.last_assistant();
        let input = self.conversation.block_at(*used)?.payload?;
        let inputs = self.settings.clears.as_ref().map(|clears| &clears.inputs);
        let goes = inputs.is_some_and(|inputs| inputs.of(tool))
            && input.len() >= LARGE_INPUT
            && Some(used.0) != last
            && used.0 >= self.conversation.head()
            && self.current.change_at(used.0, used.1).is_none();
        goes.then(|| input.range())
    }

    /// Everything that may go, and whatever else it takes to come down to a size.
    pub fn everything(&self, target: u64) -> Option<Draft> {
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        let Batches { old_turns, more } = self.batches(&[], Some(target));
        let batch = old_turns.as_ref().or(more.as_ref());
        let close = batch.map_or(Close::Nothing, Close::Batch);
        self.draft(&all, close, Vec::new(), Some(target), u64::MAX)
    }

    /// Carries a decision out: what is taken of the offer, what is closed with it,
    /// what is trimmed as it arrives, and what must be reached by whatever means.
    /// `fits` is the size that can be sent at all; both are tokens of the messages
    /// alone.
    pub fn draft(
        &self,
        take: &[usize],
        close: Close<'_>,
        arrivals: Vec<Replacement>,
        must_reach: Option<u64>,
        fits: u64,
    ) -> Option<Draft> {
        let mut orders = self.orders();
        match close {
            Close::Nothing => {}
            Close::Summary => {
                orders.native.clone_from(&self.settings.native);
                orders.closing.clone_from(&self.settings.closing);
            }
            Close::Batch(batch) => orders.closing = Some(batch.clone()),
        }
        orders.replacements = arrivals;
        orders.replacements.extend(self.stubs(take, close));
        let draft = self.reduce(&orders);
        let Some(target) = must_reach else {
            return draft;
        };
        let before: u64 = self.weights.messages.iter().sum();
        let size = |draft: &Option<Draft>| draft.as_ref().map_or(before, |draft| draft.weight);
        if size(&draft) <= target {
            return draft;
        }
        let last = self.conversation.last_assistant().unwrap_or(0);
        if let Some(trims) = &self.settings.trim {
            orders
                .replacements
                .extend(self.spared(take, trims, self.conversation.head()..last));
        }
        orders.hide_to = Some(target);
        self.last_resort(orders, fits)
    }

    /// What is trimmed because it came oversized, from some message on.
    pub fn arrivals(&self, from: usize) -> Vec<Replacement> {
        let Some(trims) = &self.settings.trim else {
            return Vec::new();
        };
        let keep = |tool: &str| trims.keep(tool);
        self.trims(from..self.conversation.len(), &keep)
    }

    fn orders(&self) -> Orders {
        Orders {
            closing: None,
            native: None,
            notice: self.settings.notice(),
            text: self.weights.of_each_text(),
            replacements: Vec::new(),
            weights: self.weights.messages.clone(),
            hide_to: None,
            split: self.settings.split.clone(),
            binds_thinking: self.settings.binds_thinking,
            manual_thinking: self.settings.manual_thinking,
        }
    }

    fn reduce(&self, orders: &Orders) -> Option<Draft> {
        reduce(self.conversation, self.current, self.seed, orders)
    }

    /// Results that were not taken, trimmed harder than on arrival.
    fn spared(
        &self,
        taken: &[usize],
        trims: &Trims,
        messages: std::ops::Range<usize>,
    ) -> Vec<Replacement> {
        let taken = taken.iter().filter_map(|at| self.candidates.get(*at));
        let gone: std::collections::HashSet<_> = taken.map(|taken| taken.result).collect();
        let keep = |tool: &str| {
            let keep = trims.keep(tool);
            Keep {
                max_chars: keep.head + keep.tail + keep.max_chars / 10,
                ..keep
            }
        };
        let mut trims = self.trims(messages, &keep);
        trims.retain(|trim| !gone.contains(&trim.place));
        trims
    }

    /// The results of some messages, trimmed.
    fn trims(
        &self,
        messages: std::ops::Range<usize>,
        keep: &dyn Fn(&str) -> Keep,
    ) -> Vec<Replacement> {
        let change = |place: (usize, usize)| self.current.change_at(place.0, place.1);
        let oversized = |place: (usize, usize)| {
            let block = self.conversation.block_at(place)?;
            let payload = block.payload?;
            let shown = change(place).is_none_or(Change::is_trim);
            (block.kind == Kind::ToolResult && !block.has_tool_references && shown)
                .then_some(payload)
        };
        // Whose results they are is only asked where one is large.
        let mut found = Vec::new();
        let large = messages.clone().any(|at| {
            let blocks = self.conversation.blocks(at).len();
            let mut places = (0..blocks).map(|index| (at, index));
            places.any(|place| oversized(place).is_some_and(|payload| payload.len() > LARGE_INPUT))
        });
        if !large {
            return found;
        }
        let bytes = self.conversation.bytes();
        let mut left = self.digests.for_trims();
        for call in self.conversation.calls() {
            let Some(place) = call.result.filter(|place| messages.contains(&place.0)) else {
                continue;
            };
            let name = self.conversation.block_at(call.used).and_then(|b| b.name);
            let name = name.and_then(|name| serde_json::from_slice::<String>(name.of(bytes)).ok());
            let (Some(name), Some(payload)) = (name, oversized(place)) else {
                continue;
            };
            let clears = self.settings.clears.as_ref();
            if clears.is_some_and(|clears| clears.exclude_tools.contains(&name)) {
                continue;
            }
            let Some(message) = self.conversation.message(place.0) else {
                continue;
            };
            let body = self.conversation.body();
            let payload = unmarked(bytes, body, message, payload);
            let keep = keep(&name);
            let notice = |cut: Cut<'_>| {
                let digest = self.digest_cut((call.used, &name), keep, &cut, &mut left);
                stub::trimmed(cut.cut_chars, cut.cut_lines, &digest, self.archived(place))
            };
            // What was trimmed before can only be trimmed harder.
            let stands = match change(place) {
                Some(Change::Payload(with)) => with.len(),
                _ => payload.len(),
            };
            let trimmed = trim(&payload, keep, notice);
            if let Some(with) = trimmed.filter(|with| with.len() < stands) {
                let shown = self.weights.block(place);
                let left = u128::from(shown) * with.len() as u128 / stands.max(1) as u128;
                found.push(Replacement {
                    place,
                    spares: shown.saturating_sub(u64::try_from(left).unwrap_or(shown)),
                    with,
                    trims: true,
                });
            }
        }
        found
    }
}

#[cfg(test)]
#[path = "tiers_tests.rs"]
mod tests;
