//! What upstream said of a request, taken into memory and store.
//!
//! As soon as a reply begins to stream the plan stands for ever, and the usage
//! it reports is worth keeping; the rest follows at its end. None of this is
//! waited for, but for one thing: where replicas share the store, that the plan
//! stands is written before the client sees anything of the reply. Else another
//! replica, asked the same a moment later, could still make a plan of its own.
//! A reply may take minutes, so of the request only what is to be remembered is
//! kept meanwhile, and none of its bytes.

use std::pin::Pin;

use http::{HeaderMap, StatusCode};
use tokio::time::timeout;

use super::Views;
use super::learned::Quirk;
use super::preparation::Preparation;
use super::prepare::Prepared;
use super::tally::{Gone, opens_turn};
use crate::config::models::Prices;
use crate::engine::accounts::{Sending, cost};
use crate::engine::figures::Figures;
use crate::engine::measure::{Anchor, Size, WindowKey};
use crate::engine::money::Money;
use crate::engine::policy::{Cache, Rates};
use crate::engine::request::Treatment;
use crate::engine::swift::Swift;
use crate::store::{MarkRow, Moment};
use crate::wire::reply::Reply;
use crate::wire::report::Report;

/// How many calls of a reply are kept to tell it.
const FINGERPRINT: usize = 4;

/// What has to happen before anything of a reply goes out.
pub type Sealing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request that was sent.
pub struct Sent {
    /// Its mark, unless it is not to be remembered.
    row: Option<MarkRow>,
    figures: Figures,
    model: String,
    at: Option<Swift>,
    parent: Option<Swift>,
    /// Others are to hear of it before anything of the reply goes out: the plan
    /// did not stand before this request.
    tells: bool,
    estimate: u64,
    anchor: Option<Anchor>,
    lessons: Vec<Quirk>,
    window_key: WindowKey,
    claimed: Option<u64>,
    sending: Sending,
    /// Tokens of the view outside of the working set.
    outside: u64,
    billed: bool,
    base_is_shared: bool,
    /// What the answer is to say of cleared results.
    pub report: Option<Report>,
    /// Something the client should know, in a word.
    pub notice: Option<&'static str>,
    /// The state of the session's breaker, where it is worth telling.
    pub breaker: Option<&'static str>,
    /// A summary that is to be prepared once the reply has come.
    preparation: Option<Box<Preparation>>,
    /// The session, for the log.
    pub session: String,
    /// The view, for the log.
    pub shape: String,
    /// What a pass did, for the log.
    pub compaction: String,
}

impl From<Prepared> for Sent {
    fn from(mut prepared: Prepared) -> Self {
        let Prepared { original, sent, .. } = &prepared;
        prepared.figures.removed = match &prepared.overlay {
            Some(_) => original.tokens.saturating_sub(sent.tokens),
            None => 0,
        };
        let recognised = &prepared.recognised;
        // Only an ordinary request is the conversation going on.
        let parent = prepared
            .grew_from
            .filter(|_| recognised.treatment == Treatment::Ordinary)
            .and_then(|messages| messages.checked_sub(1))
            .and_then(|at| recognised.swifts.get(at));
        Self {
            row: prepared
                .row(true, Moment(i64::MIN))
                .filter(|_| prepared.remembers),
            model: recognised.facts.model.clone(),
            window_key: recognised.window_key,
            claimed: prepared.claimed,
            at: recognised.swifts.last().copied(),
            parent: parent.copied(),
            tells: prepared.remembers && (!prepared.settled || prepared.refused),
            estimate: prepared.sent.tokens,
            report: report(&prepared),
            breaker: Views::breaker_word(&prepared),
            preparation: None,
            notice: prepared.notice(),
            session: prepared.session(),
            shape: prepared.shape(),
            compaction: prepared.compaction(),
            sending: Sending {
                removed: prepared.figures.removed,
                ..prepared.sending
            },
            outside: 0,
            billed: false,
            base_is_shared: prepared.base_is_shared,
            figures: prepared.figures,
            anchor: prepared.anchor,
            lessons: prepared
                .lessons
                .into_iter()
                .map(|(quirk, _)| quirk)
                .collect(),
        }
    }
}

/// What the client is told of the clearing it asked for, where that is done
/// here. The API tells it with every answer, and so is it told of everything
/// that the view has cleared by now.
fn report(prepared: &Prepared) -> Option<Report> {
    let (original, sent) = (prepared.original.tokens, prepared.sent.tokens);
    let overlay = prepared.overlay.as_ref();
    let stubs = overlay.map_or(0, |(_, overlay)| overlay.stubs());
    prepared.report.map(|_| Report {
        cleared_tool_uses: u64::try_from(stubs).unwrap_or(u64::MAX),
        cleared_input_tokens: original.saturating_sub(sent),
    })
}

impl Sent {
    /// What a summary is to be prepared from, once the reply has come whole.
    pub fn preparation(&mut self, reply: &Reply) -> Option<Preparation> {
        let preparation = self.preparation.take();
        preparation.filter(|_| reply.complete).map(|boxed| *boxed)
    }

    fn size(&self) -> Size {
        self.figures.sizes().unwrap_or_default().1
    }
}

impl Views {
    /// A request was sent and answered so. Its bytes are let go, unless a summary
    /// is to be made from them.
    pub fn sent(&self, mut prepared: Prepared, status: StatusCode, answer: &HeaderMap) -> Sent {
        // A request by a credential that nobody vouches for leaves no trace.
        let is_accepted = prepared.credential.is_accepted;
        if is_accepted && status == StatusCode::TOO_MANY_REQUESTS {
            self.hush(&prepared, answer);
        }
        let preparation = status
            .is_success()
            .then(|| self.preparation(&mut prepared))
            .flatten();
        if status.is_success() {
            self.feed_turn(&prepared);
        }
        if prepared.is_unrecorded {
            self.metrics.unrecorded();
        }
        let phase = prepared.figures.breaker.phase();
        if is_accepted {
            self.census.note(prepared.lineage, phase, self.now());
        }
        if status.is_success() && prepared.recognised.treatment == Treatment::Ordinary {
            self.tally.note(&Gone {
                lineage: prepared.lineage,
                opens_turn: opens_turn(&prepared.recognised.body),
                original: prepared.original.tokens,
                sent: prepared.sent.tokens,
            });
        }
        let within = self.base_tokens(&prepared) + self.config.policy.keep_tokens();
        Sent {
            preparation: preparation.map(Box::new),
            outside: prepared.sent.tokens.saturating_sub(within),
            ..Sent::from(prepared)
        }
    }

    /// A reply has begun: the plan stands. What is returned ends when every
    /// replica can know that, or when that has taken too long.
    pub fn began(&self, sent: &mut Sent, reply: &Reply) -> Option<Sealing> {
        for quirk in std::mem::take(&mut sent.lessons) {
            let of = match quirk {
                Quirk::NoNative => self.at_upstream(&sent.model),
                _ => sent.model.clone(),
            };
            self.note(self.learned.shown(quirk, &of));
        }
        // That it stood before does not mean that others have heard of it: the
        // reply may have broken off before that was written.
        let told = |row: &MarkRow| self.writer.pending(&[row.chain]).is_empty();
        let tells = sent.tells || !sent.row.as_ref().is_none_or(told);
        self.keep(sent, reply);
        if !tells || !self.store.is_shared() || self.store.is_away() {
            return None;
        }
        let (writer, patience) = (self.writer.clone(), self.config.store.timeout);
        Some(Box::pin(async move {
            // The writer itself says what goes wrong, and tries again.
            let _ = timeout(patience, writer.flush()).await;
        }))
    }

    /// A reply has ended, whole or not.
    pub fn ended(&self, sent: &mut Sent, reply: &Reply) {
        self.bill(sent, reply);
        let prompt = reply.usage.prompt().filter(|tokens| *tokens > 0);
        if let Some(prompt) = prompt {
            self.learn(sent, reply, prompt);
        }
        self.keep(sent, reply);
    }

    /// Learns from what upstream counted.
    fn learn(&self, sent: &mut Sent, reply: &Reply, prompt: u64) {
        self.metrics.measured(sent.estimate, prompt);
        if !sent.figures.drop_block && !reply.edited {
            // With thinking dropped, or results cleared, by upstream the two do
            // not count the same.
            let anchor = sent.anchor.as_ref();
            self.note(
                self.learned
                    .observe(&sent.model, anchor, &sent.size(), prompt),
            );
        }
        sent.figures.factor = self.learned.factor(&sent.model).to_text();
        let Sent {
            window_key,
            claimed,
            ..
        } = *sent;
        self.note_window(self.learned.answered(window_key, prompt, claimed));
    }

    /// Reckons what the request cost and saved, and whether what was predicted
    /// of the cache came true.
    fn bill(&self, sent: &mut Sent, reply: &Reply) {
        let Some(prompt) = reply.usage.prompt().filter(|tokens| *tokens > 0) else {
            return;
        };
        if std::mem::replace(&mut sent.billed, true) {
            return;
        }
        let Sent {
            sending,
            figures,
            model,
            base_is_shared,
            outside,
            ..
        } = sent;
        let called = reply.tool_calls.iter().map(|call| call.name.clone());
        let output = reply.usage.output.unwrap_or(0);
        figures.recent.replied(output, called);
        self.metrics.cache_read_ratio(&reply.usage);
        self.metrics
            .thinking_dropped("upstream", reply.thinking_dropped);
        // What upstream clears by the client's wish is missing from the cache too.
        sending.client_edited |= reply.edited;
        if let Some(cause) = sending.broken(&reply.usage) {
            self.metrics.prefix_break(cause.label());
        }
        if let Some(right) = sending.came_true(&reply.usage, *base_is_shared) {
            figures.course.predicted(right);
            self.metrics.cold_prediction(right);
        }
        if let Some(passed) = &mut figures.passed
            && passed.writes.is_none()
        {
            let read = reply.usage.cache_read.unwrap_or(0);
            passed.writes = Some(prompt.saturating_sub(read));
            if let Some((expected, writes)) = passed.writes() {
                self.metrics.pass_wrote(writes, expected);
            }
        }
        let known = self.config.models.lookup(model).prices(prompt);
        // What a pass may lose is a part of what was spent, in whatever money.
        let prices = known.unwrap_or(Prices::USUAL);
        let lifetime = figures.lifetime.map(std::time::Duration::from_secs);
        let rates = Rates::new(&prices, lifetime);
        let saved = sending.saved(&reply.usage, &prices, &rates);
        let money = Money::of_request(cost(&reply.usage, &prices), saved);
        figures.course.billed(money.spent, saved);
        let read = reply.usage.cache_read.unwrap_or(0);
        let unread = prompt.saturating_sub(read);
        let unread = unread.saturating_sub(self.config.policy.keep_tokens());
        let price = match sending.cache {
            Cache::Unused => rates.input,
            _ => rates.mean(*outside, unread),
        };
        figures.course.accounts.carried(*outside, price);
        if known.is_some() {
            self.metrics.paid(self.config.models.label(model), money);
        } else {
            figures.course.note_unpriced();
        }
    }

    fn keep(&self, sent: &mut Sent, reply: &Reply) {
        let figures = &mut sent.figures;
        figures.unfit = false;
        figures.provisional = None;
        figures.prompt = reply.usage.prompt().filter(|tokens| *tokens > 0);
        figures.output = reply.usage.output;
        figures.cache_read = reply.usage.cache_read;
        let hour = reply.usage.cache_write_1h.unwrap_or(0);
        figures
            .long
            .reported(reply.usage.cache_read.unwrap_or(0), hour);
        let written = reply.usage.cache_write.unwrap_or(0);
        figures.cached = reply.usage.cache_read.map(|read| read + written);
        let calls = reply.tool_calls.iter().map(|call| call.id.clone());
        figures.reply = calls.take(FINGERPRINT).collect();
        let (Some(row), Some(at)) = (&mut sent.row, sent.at) else {
            return;
        };
        row.figures = sent.figures.store();
        row.seen_at = self.now().max(row.seen_at);
        self.writer.record(row.clone());
        let remembered = MarkRow {
            sealed: true,
            ..row.clone()
        };
        self.known.remember(at, sent.parent, remembered);
        // Only the first word of an answer takes the place of what was not
        // answered: until the last one upstream may have refused this view.
        row.sealed = false;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::forgetful::{prepared, views, worked};
    use super::super::prepare::Wish;
    use super::*;
    use crate::store::{Commit, Committed, Memory, Store};

    /// A reply may take minutes, and the same may be asked and refused meanwhile.
    #[tokio::test]
    async fn the_end_of_a_reply_does_not_bring_back_a_view_that_was_refused_meanwhile() {
        let store = Arc::new(Memory::new());
        let views = views(store.clone()).await;
        let prepared = prepared(&views, &worked(), Wish::Now).await;
        let mut sent = views.sent(*prepared, StatusCode::OK, &HeaderMap::new());
        views.began(&mut sent, &Reply::default());
        views.writer.flush().await.unwrap();
        let chain = sent.row.as_ref().unwrap().chain;
        let held = store.marks(&[chain]).await.unwrap().remove(0);
        assert!(held.sealed && held.overlay.is_some());
        let instead = MarkRow {
            overlay: None,
            sealed: false,
            ..held.clone()
        };
        let commit = Commit {
            overlay: None,
            mark: instead.clone(),
            parent: held.overlay,
            refused: true,
        };
        assert_eq!(store.commit(&commit).await.unwrap(), Committed::Done);
        views.ended(&mut sent, &Reply::default());
        views.writer.flush().await.unwrap();
        assert_eq!(store.marks(&[chain]).await.unwrap(), [instead]);
    }
}
