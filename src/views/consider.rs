//! Asks the policy about a request, and makes the draft that it wants.
//!
//! The numbers come first, and an ordinary request ends there: below the first
//! watermark, with a cache that is alive and nothing oversized in what is new,
//! nothing is looked at. Else the view is looked over once, away from the
//! streams: what could go, what the policy takes of it, the view that would give,
//! and whether the API will accept it.

use std::sync::Arc;
use std::time::Duration;

use super::build::{COUNTING, of_body, taken_apart};
use super::preparation::{native, segment};
use super::prepare::Prepared;
use super::recognise::Recognised;
use super::{Fault, Turn, Views, compute};
use crate::compactor::errand::Finished;
use crate::config::Ratio;
use crate::engine::cache_marks::Basis;
use crate::engine::client_edits;
use crate::engine::conversation::Conversation;
use crate::engine::ids::ChainHash;
use crate::engine::legal::{faults, keeps_newest};
use crate::engine::measure::{self, Anchor, Factor, Size};
use crate::engine::overlay::{Overlay, Segment};
use crate::engine::policy::{
    Ask, Closes, Decision, Finding, Offer, Rates, Rest, Situation, Trigger, Watermarks, decide,
};
use crate::engine::recall::telling::Telling;
use crate::engine::reduce::{Draft, Replacement};
use crate::engine::split;
use crate::engine::tiers::{Settings, Survey};
use crate::engine::view::{Recipe, View};
use crate::wire::body::Kind;
use crate::wire::scan::Span;

/// Shares of the usable window from which the journal style clears results and
/// keeps fewer turns, where nothing else is set.
const JOURNAL: (Ratio, Ratio) = (Ratio::percent(60), Ratio::percent(70));

/// How often a draft is made smaller until it fits.
const TRIES: u32 = 3;

/// A draft whose view has been looked at.
pub(super) struct Checked {
    pub draft: Draft,
    pub hash: ChainHash,
    pub size: Size,
    /// Tokens of the view.
    pub tokens: u64,
    /// What started it.
    pub trigger: Trigger,
    /// What was decided.
    pub decision: Decision,
}

/// What a look at a view has come to.
struct Looked {
    situation: Situation,
    decision: Decision,
    /// For the accounts of clearing and closing.
    findings: (Finding, Finding),
    checked: Option<Checked>,
}

fn closes_summary(decision: &Decision) -> bool {
    matches!(decision, Decision::Pass(pass) if pass.closes == Closes::Summary)
}

/// What a look at a view needs to know.
#[derive(Clone)]
struct Look {
    situation: Situation,
    settings: Settings,
    /// Tokens of system, tools and what of ours stands between messages.
    base: u64,
    /// Tokens that can be sent at all.
    fits: u64,
    /// Bytes of the view as it is, and that can be sent at all.
    bytes: (u64, u64),
    /// The first message that has never been sent.
    from: usize,
    anchor: Option<Anchor>,
    factor: Factor,
    /// The messages up to which the cache can still be read.
    living: Vec<usize>,
}

impl Views {
    /// What is to become of a view, if anything. A large one waits for its turn
    /// to be looked over, and has it until what comes of that is done; one that
    /// need not be looked at waits for nobody.
    pub(super) async fn consider(
        &self,
        prepared: &mut Prepared,
        asked: Option<Ask>,
        archives: Option<Telling>,
        ready: Option<&(Arc<Finished>, bool)>,
    ) -> Result<Option<(Checked, Turn<'_>)>, Fault> {
        let mut situation = self.situation(prepared, asked);
        situation.ready = ready.map(|(_, heals)| *heals);
        situation.native = ready.is_some_and(|(finished, _)| finished.native.is_some());
        let from = first_new(prepared);
        if let Err(rest) = situation.urge()
            && (situation.waits || !self.has_oversized(prepared, from))
        {
            tracing::debug!(session = %prepared.lineage, size = situation.size, ?rest, "no pass");
            self.note_fullness(prepared, &situation);
            return Ok(None);
        }
        let turn = self.turn(prepared.recognised.bytes.len()).await;
        let ready = ready.map(|(finished, _)| finished.as_ref());
        let look = self.look(prepared, situation, from, archives, ready);
        let recognised = prepared.recognised.clone();
        let overlay = prepared.overlay.as_ref();
        let current = overlay.map(|(_, overlay)| overlay.clone());
        let looked = compute(recognised.bytes.len() * COUNTING, "draft", move || {
            look.over(&recognised, current.as_deref())
        });
        let Looked {
            situation,
            decision,
            findings: (clearing, closing),
            checked,
        } = looked.await??;
        self.note_fullness(prepared, &situation);
        let course = &mut prepared.figures.course;
        if situation.by_accounts() {
            let outside = situation.outside();
            course.accounts.looked(outside, clearing, closing);
        }
        let left = checked.as_ref().map_or(situation.size, |it| it.tokens);
        let short = left > situation.working_set() && situation.awaits_summary();
        let asked = situation.asked == Some(Ask::Manual) && !closes_summary(&decision);
        course.compacting = short && (course.compacting || asked);
        course.preparing = decision == Decision::Rest(Rest::Prepares);
        if let Decision::Rest(rest) = &decision {
            let size = situation.size;
            tracing::debug!(session = %prepared.lineage, size, ?rest, "no pass");
            if rest.has_looked() {
                prepared.figures.course.looked_at = size;
            }
        }
        Ok(checked.map(|checked| (checked, turn)))
    }

    /// Notes whether the view is full, and whether that is for want of passes
    /// that last.
    fn note_fullness(&self, prepared: &mut Prepared, situation: &Situation) {
        let is_full = situation.is_full();
        let thrashes = situation.course.thrashes(situation.thrash_limit);
        let course = &mut prepared.figures.course;
        course.latched |= is_full;
        if course.note_thrash(thrashes && is_full) {
            self.metrics.thrash();
            tracing::warn!(
                session = %prepared.lineage,
                size = situation.size,
                "passes are refilled at once: what cannot go fills the view, so none is made until it no longer fits"
            );
        }
    }

    /// The numbers that the policy goes by.
    pub(super) fn situation(&self, prepared: &Prepared, asked: Option<Ask>) -> Situation {
        let model = &prepared.recognised.facts.model;
        let known = self.config.models.lookup(model);
        let usable = self.usable(prepared);
        let policy = &self.config.policy;
        let size = prepared.sent.tokens;
        let lifetime = prepared.figures.lifetime.map(Duration::from_secs);
        let conversation = prepared.recognised.conversation();
        let live_turns = self.live_turns();
        let journal = live_turns.is_some();
        let overlay = prepared.overlay.as_ref();
        let hidden = overlay.map_or(0, |(_, overlay)| overlay.cut as usize);
        let floor = policy.floor.of(usable);
        // What was refused is too large, whatever was thought of it.
        let floor = match asked {
            Some(Ask::Reactive) => floor
                .min(size / 2)
                .min(prepared.at_most.unwrap_or(u64::MAX)),
            _ => floor,
        };
        // The journal style hides by size, whatever the accounts say.
        let limit = |set: Option<Ratio>, usual: Ratio| {
            let share = set.or(journal.then_some(usual));
            share.map(|share| share.of(usable))
        };
        Situation {
            size,
            expected: prepared.figures.recent.expected(),
            too_many_bytes: prepared.view.size() > self.config.window.bytes,
            watermarks: Watermarks {
                clear_at: limit(policy.clear_at, JOURNAL.0),
                summarize_at: limit(policy.summarize_at, JOURNAL.1),
                hard_at: policy.hard_at.of(usable),
                floor,
            },
            cache: prepared.sending.cache,
            rates: match known.prices(size) {
                Some(prices) => Rates::new(&prices, lifetime),
                None => Rates::usual(lifetime),
            },
            bill: self.bill_of(prepared, known.clone(), lifetime),
            course: prepared.figures.course.clone(),
            requests: prepared.figures.requests,
            horizon: policy.horizon,
            at_least: self.config.clear.at_least,
            thrash_limit: policy.thrash_limit,
            asked,
            switched: prepared.grew_from.is_some() && !prepared.own,
            ready: None,
            native: false,
            waits: self.store.is_away(),
            still: self.staging.stands_still(prepared.lineage),
            in_loop: conversation.is_in_tool_loop(),
            spares: prepared.spares,
            binds_in_loop: known.binds_thinking
                && conversation.is_in_tool_loop()
                && conversation.thinks(),
            journal,
            beyond: live_turns.is_some_and(|turns| split::shows_more(&conversation, hidden, turns)),
        }
    }

    fn look(
        &self,
        prepared: &Prepared,
        situation: Situation,
        from: usize,
        archives: Option<Telling>,
        ready: Option<&Finished>,
    ) -> Look {
        let model = &prepared.recognised.facts.model;
        let (mut settings, base) = self.tiers(prepared, &situation, archives);
        match ready.map(|finished| (finished, native(finished))) {
            Some((_, Some(native))) => settings.native = Some(native),
            Some((finished, None)) => settings.closing = Some(segment(finished)),
            None => {}
        }
        Look {
            settings,
            base,
            fits: self.room(prepared),
            bytes: (prepared.view.size(), self.config.window.bytes),
            from,
            anchor: prepared.anchor,
            factor: self.learned.factor(model),
            living: prepared
                .figures
                .trail
                .living(self.now().0, prepared.figures.lifetime),
            situation,
        }
    }

    /// Whether it is time for the clearing that a client asks for, where that is
    /// done here.
    pub(super) fn client_asks(&self, prepared: &Prepared) -> Option<Ask> {
        let recognised = &prepared.recognised;
        let clears = recognised.facts.clears.as_ref();
        let clears = clears.filter(|_| self.clears_itself(recognised))?;
        let due = match clears.trigger {
            client_edits::Trigger::InputTokens(tokens) => prepared.sent.tokens > tokens,
            client_edits::Trigger::ToolUses(uses) => {
                let stubs = prepared.overlay.as_ref();
                let stubs = stubs.map_or(0, |(_, overlay)| overlay.stubs());
                let calls = recognised.conversation().calls().len();
                calls.saturating_sub(stubs) as u64 > uses
            }
        };
        let grown = prepared.sent.tokens > prepared.figures.course.looked_at;
        (due && grown).then(|| Ask::Client {
            at_least: clears.at_least(),
        })
    }

    /// Whether there is an oversized result in what was never sent.
    fn has_oversized(&self, prepared: &Prepared, from: usize) -> bool {
        let trim = &self.config.trim;
        let conversation = prepared.recognised.conversation();
        let large = |at: usize| {
            let mut blocks = conversation.blocks(at).iter();
            blocks.any(|block| {
                let payload = block.payload.map_or(0, Span::len);
                block.kind == Kind::ToolResult && payload > trim.max_chars
            })
        };
        trim.enabled && (from..conversation.len()).any(large)
    }
}

/// The first message that upstream has not seen yet, for certain: what follows
/// the newest message of the assistant's.
fn first_new(prepared: &Prepared) -> usize {
    let conversation = prepared.recognised.conversation();
    let said = conversation.last_assistant().map_or(0, |last| last + 1);
    said.max(prepared.grew_from.unwrap_or(0))
}

impl Look {
    /// How things stand when what has arrived is trimmed.
    fn after(&self, arrivals: &[Replacement], conversation: &Conversation<'_>) -> Situation {
        let mut situation = self.situation.clone();
        let (mut bytes, most) = self.bytes;
        for Replacement {
            place,
            with,
            spares,
            ..
        } in arrivals
        {
            let payload = conversation.block_at(*place).and_then(|b| b.payload);
            let shorter = payload.map_or(0, Span::len).saturating_sub(with.len());
            bytes = bytes.saturating_sub(shorter as u64);
            situation.size = situation.size.saturating_sub(*spares);
        }
        situation.too_many_bytes = bytes > most;
        if situation.too_many_bytes {
            // Where bytes are what there is too much of, tokens say nothing; but
            // the one goes with the other.
            let half = u128::from(situation.size) * u128::from(most / 2) / u128::from(bytes.max(1));
            let floor = &mut situation.watermarks.floor;
            *floor = u64::try_from(half).unwrap_or(*floor).min(*floor);
        }
        situation
    }

    /// The same without the API's own summary, which did not make it small enough.
    fn without_native(&self) -> Self {
        let mut look = self.clone();
        look.settings.native = None;
        look.situation.native = false;
        look.situation.ready = None;
        look
    }

    /// Decides, drafts, and makes sure that the API will take it.
    fn over(&self, recognised: &Recognised, current: Option<&Overlay>) -> Result<Looked, Fault> {
        let conversation = recognised.conversation();
        let none = Overlay::default();
        let current = current.unwrap_or(&none);
        let tokens = self.situation.size.saturating_sub(self.base);
        let survey = Survey::new(
            &conversation,
            current,
            recognised.seed(),
            &self.settings,
            tokens,
        );
        // What is trimmed as it arrives was never there, as far as the policy
        // is concerned.
        let arrivals = survey.arrivals(self.from);
        let situation = self.after(&arrivals, &conversation);
        let floor = situation.watermarks.floor.saturating_sub(self.base);
        let batches = survey.batches(&arrivals, situation.shortens().then_some(floor));
        let saves = |batch: &Segment| survey.saves(batch, &arrivals);
        let offer = Offer {
            living: self.living.clone(),
            old_turns: batches.old_turns.as_ref().map(saves),
            more: batches.more.as_ref().map(saves),
            ..survey.offer(&arrivals)
        };
        let findings = situation.findings(&offer);
        let decision = decide(&situation, &offer);
        let looked = |situation, decision, checked| Looked {
            situation,
            decision,
            findings,
            checked,
        };
        let (pass, trigger) = match &decision {
            Decision::Pass(pass) => (Some(pass), pass.trigger),
            Decision::Rest(_) => (None, Trigger::Budget),
        };
        let mut target = pass.and_then(|pass| pass.must_reach);
        let mut fits = self.fits.saturating_sub(self.base);
        for left in (0..TRIES).rev() {
            let less_base = |tokens: u64| tokens.saturating_sub(self.base);
            let reach = target.map(less_base);
            let taken = pass.map_or(&[][..], |pass| &pass.take);
            let closes = pass.map_or(Closes::Nothing, |pass| pass.closes);
            let close = batches.close(closes);
            let draft = survey.draft(taken, close, arrivals.clone(), reach, fits);
            let Some(draft) = draft else {
                return Ok(looked(situation, decision, None));
            };
            let (hash, size, bytes) = check(recognised, &conversation, &draft)?;
            let tokens = measure::measure(self.anchor.as_ref(), &size, &self.factor).tokens;
            let natively = closes == Closes::Summary && self.settings.native.is_some();
            if natively && tokens > situation.watermarks.hard_at {
                return self.without_native().over(recognised, Some(current));
            }
            // Weights are estimates: what must fit is made to.
            if let Some(wanted) = target
                && (tokens > self.fits || bytes > self.bytes.1)
                && left > 0
            {
                target = Some(wanted / 4 * 3);
                fits = fits / 4 * 3;
                continue;
            }
            let checked = Checked {
                draft,
                hash,
                size,
                tokens,
                trigger,
                decision: decision.clone(),
            };
            return Ok(looked(situation, decision, Some(checked)));
        }
        Ok(looked(situation, decision, None))
    }
}

/// Makes sure that the API will take the view of a draft; its hash, its size and
/// its bytes.
fn check(
    recognised: &Recognised,
    conversation: &Conversation<'_>,
    draft: &Draft,
) -> Result<(ChainHash, Size, u64), Fault> {
    let recipe = Recipe {
        overlay: Some(&draft.overlay),
        marks: Some(Basis {
            swap: true,
            ..Basis::default()
        }),
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(&recognised.bytes, conversation, recipe)?;
    let (bytes, body) = taken_apart(&view)?;
    let theirs = faults(&recognised.bytes, &recognised.body);
    let shown = Conversation::new(&bytes, &body);
    if !faults(&bytes, &body).is_subset(&theirs) || !keeps_newest(conversation, &shown) {
        return Err(Fault::Bug("a view breaks the rules of the API"));
    }
    let (hash, size) = of_body(&bytes, &body, &recognised.tenant)?;
    Ok((hash, size, bytes.len() as u64))
}
