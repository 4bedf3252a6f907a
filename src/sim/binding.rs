//! Thinking that comes back: is it genuine, is it complete, does it still fit?
//!
//! Every thinking block is checked through its signature. On models that bind
//! thinking, everything before a block (system, loaded tools, messages) must
//! equal what was there when the block was made. One change invalidates all
//! thinking after it. A compaction written by the API itself is exempt: its
//! signature says which conversation it stands for.

use std::collections::{BTreeSet, HashMap};

use super::account::Account;
use super::betas::beta;
use super::canonical::Digest;
use super::error::{ApiError, Checked};
use super::options::{Enforcement, Options};
use super::request::{Block, Request, Role, is_thinking, kind, path, text};
use super::seal::{CompactionSeal, ThinkingSeal};
use super::thinking::MismatchBehavior;

/// Something the API did to its input, as the answer reports it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Transformation {
    /// `thinking_dropped` or `thinking_mismatch_allowed`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The block.
    pub path: String,
    /// Why.
    pub reason: &'static str,
}

/// What became of the thinking in a request.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Blocks the model does not get to see.
    pub dropped: BTreeSet<(usize, usize)>,
    /// What the answer reports, with the beta for it.
    pub transformations: Vec<Transformation>,
    /// The first block that does not fit its prefix, if that was tolerated.
    pub mismatch: Option<String>,
    /// System and loaded tools.
    pub base: Digest,
    /// The whole request, in every way it may be continued; the plain one first.
    pub ends: Vec<Digest>,
    /// The conversation that a signed compaction block at the start continues.
    pub conversation: Option<String>,
    /// Whether all compactions in the request ran on models that bind thinking.
    pub bound: bool,
}

/// Thinking signatures of replies that called tools, by the id of each call, and
/// whether the thinking came before the call.
pub type Issued = HashMap<String, Vec<(String, bool)>>;

struct Walk<'a> {
    request: &'a Request,
    account: &'a Account,
    options: &'a Options,
    latest: Option<usize>,
    /// The last compaction block; what comes before it is ignored.
    last_compaction: Option<(usize, usize)>,
    verdict: Verdict,
}

/// Checks all thinking of a request.
pub fn check(
    request: &Request,
    account: &Account,
    options: &Options,
    issued: &Issued,
) -> Checked<Verdict> {
    let base = base(request);
    let latest = request
        .messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let verdict = Verdict {
        dropped: BTreeSet::new(),
        transformations: Vec::new(),
        mismatch: None,
        base,
        ends: vec![base],
        conversation: None,
        bound: true,
    };
    let mut walk = Walk {
        request,
        account,
        options,
        latest,
        last_compaction: last_compaction(request),
        verdict,
    };
    for (number, message) in request.messages.iter().enumerate() {
        for (index, block) in message.blocks.iter().enumerate() {
            match kind(block) {
                "thinking" | "redacted_thinking" => walk.thinking(number, index, block)?,
                "compaction" => {
                    walk.compaction(number, index, block)?;
                    continue;
                }
                _ => {}
            }
            let digest = Digest::block(message.role, block);
            for end in &mut walk.verdict.ends {
                *end = end.then(digest);
            }
        }
    }
    super::round_trip::check(request, options, issued)?;
    Ok(walk.verdict)
}

/// Where the last compaction block with a summary stands.
fn last_compaction(request: &Request) -> Option<(usize, usize)> {
    let summary = |block: &Block| {
        let failed = block.get("content").is_none_or(serde_json::Value::is_null);
        kind(block) == "compaction" && !failed
    };
    let place = |(number, message): (usize, &super::request::Message)| {
        let index = message.blocks.iter().rposition(summary)?;
        Some((number, index))
    };
    request.messages.iter().enumerate().rev().find_map(place)
}

/// System and loaded tools as bound thinking sees them.
pub fn base(request: &Request) -> Digest {
    let system = super::prompt::rendered_system(request).map(|(_, block)| Digest::part(block));
    let tools = request
        .tools
        .iter()
        .filter(|tool| super::tools::is_loaded(tool))
        .map(Digest::part);
    let start = system.fold(Digest::of("system"), Digest::then);
    tools.fold(start.then(Digest::of("tools")), Digest::then)
}

impl Walk<'_> {
    fn thinking(&mut self, number: usize, index: usize, block: &Block) -> Checked {
        if Some((number, index)) < self.last_compaction {
            return Ok(());
        }
        let seal = ThinkingSeal::open(signature(block));
        let Some(seal) = seal.filter(|seal| seal.content == content(block)) else {
            if self.options.foreign_signatures {
                self.verdict.dropped.insert((number, index));
                return Ok(());
            }
            return Err(self.forged(number, index, block));
        };
        if seal.model != self.request.model.id {
            self.drop(number, index, "model_binding_mismatch");
        } else if self.request.model.organization_locked
            && seal.organization != self.account.organization
        {
            self.drop(number, index, "organization_binding_mismatch");
        } else if self.request.model.binds_thinking && !self.verdict.ends.contains(&seal.prefix) {
            self.misfit(number, index, block)?;
        }
        Ok(())
    }

    /// A block whose prefix changed: refused, dropped or only reported.
    fn misfit(&mut self, number: usize, index: usize, block: &Block) -> Checked {
        const REASON: &str = "prefix_binding_mismatch";
        match (self.request.thinking.mismatch, self.options.enforcement) {
            (Some(MismatchBehavior::DropBlock), _) => self.drop(number, index, REASON),
            (Some(MismatchBehavior::Error), _) | (None, Enforcement::Enforced) => {
                let (field, name) = names(block);
                return Err(ApiError::invalid(format!(
                    "{}: Invalid `{field}` in `{name}` block. The block is bound to a different \
                     conversation. Remove the block, or set \
                     `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
                    path(number, index)
                )));
            }
            (None, Enforcement::Recorded) => {
                let place = path(number, index);
                self.report("thinking_mismatch_allowed", &place, REASON);
                self.verdict.mismatch.get_or_insert(place);
            }
        }
        Ok(())
    }

    fn forged(&self, number: usize, index: usize, block: &Block) -> ApiError {
        if self.latest == Some(number) && ThinkingSeal::open(signature(block)).is_some() {
            return super::round_trip::modified(number, index);
        }
        let (field, name) = names(block);
        ApiError::invalid(format!(
            "{}: Invalid `{field}` in `{name}` block",
            path(number, index)
        ))
    }

    fn drop(&mut self, number: usize, index: usize, reason: &'static str) {
        self.verdict.dropped.insert((number, index));
        self.report("thinking_dropped", &path(number, index), reason);
    }

    fn report(&mut self, kind: &'static str, place: &str, reason: &'static str) {
        if self.request.betas.has(beta::BINDING) {
            self.verdict.transformations.push(Transformation {
                kind,
                path: place.to_owned(),
                reason,
            });
        }
    }

    /// Everything before a compaction block is dead; what comes after may
    /// continue the block itself or, if it is signed, what it stands for.
    fn compaction(&mut self, number: usize, index: usize, block: &Block) -> Checked {
        if block.get("content").is_none_or(serde_json::Value::is_null) {
            return Ok(());
        }
        let place = path(number, index);
        let mut ends = vec![
            self.verdict
                .base
                .then(Digest::block(Role::Assistant, block)),
        ];
        match block.get("signature").and_then(serde_json::Value::as_str) {
            None if self.request.betas.has(beta::COMPACT_THRESHOLD) => self.verdict.bound = false,
            None => return Err(ApiError::required(format!("{place}.compaction.signature"))),
            Some(signature) => {
                if (number, index) != (0, 0) && !self.may_stand_later() {
                    return Err(ApiError::invalid(format!(
                        "{place}: a signed `compaction` block must come first in `messages`"
                    )));
                }
                let seal = CompactionSeal::open(signature)
                    .filter(|seal| seal.content == Digest::of(text(block, "content")))
                    .ok_or_else(|| {
                        ApiError::invalid(format!(
                            "{place}: Invalid `signature` in `compaction` block"
                        ))
                    })?;
                self.verdict.conversation = Some(seal.conversation.clone());
                self.verdict.bound &= seal.bound;
                if seal.bound
                    && seal.base == self.verdict.base
                    && self.continues(number, index, &seal)
                {
                    ends.extend(seal.ends);
                }
            }
        }
        self.verdict.ends = ends;
        Ok(())
    }

    /// A thread that was compacted holds on the server what the block replaces.
    fn may_stand_later(&self) -> bool {
        let thread = self.request.fields.get("thread");
        self.options.compaction_anywhere || thread.is_some_and(|thread| !thread.is_null())
    }

    /// Whether the first kept message has another role than the last summarised one.
    fn continues(&self, number: usize, index: usize, seal: &CompactionSeal) -> bool {
        let messages = &self.request.messages;
        let same = messages
            .get(number)
            .filter(|message| message.blocks.len() > index + 1);
        match same
            .or_else(|| messages.get(number + 1))
            .map(|message| message.role)
        {
            Some(Role::User) => seal.after_assistant,
            Some(Role::Assistant) => !seal.after_assistant,
            Some(Role::System) | None => false,
        }
    }
}

/// Where a thinking block keeps its signature.
pub fn signature(block: &Block) -> &str {
    if kind(block) == "thinking" {
        text(block, "signature")
    } else {
        text(block, "data")
    }
}

/// The digest of what a thinking block shows.
pub fn content(block: &Block) -> Digest {
    debug_assert!(is_thinking(block), "only thinking is signed");
    Digest::of(text(block, "thinking"))
}

fn names(block: &Block) -> (&'static str, &'static str) {
    if kind(block) == "thinking" {
        ("signature", "thinking")
    } else {
        ("data", "redacted_thinking")
    }
}
