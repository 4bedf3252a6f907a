//! Takes over what is remembered of a conversation: the request by the plan that
//! it has, what has changed since, and what its bill will be judged by.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::build::Plan;
use super::deferred::Deferred;
use super::prepare::{Asked, Prepared, Wish};
use super::recognise::Recognised;
use super::standing::Standing;
use super::{Fault, Views};
use crate::config::Mode;
use crate::engine::accounts::Sending;
use crate::engine::cache_marks::{Held, Lifetime};
use crate::engine::figures::Figures;
use crate::engine::ids::LineageId;
use crate::engine::measure::{self, Counter};
use crate::engine::overlay::Overlay;
use crate::engine::policy::{Age, Cache, LongPrefix, surcharge};
use crate::store::Moment;
use crate::wire::body::Kind;
use crate::wire::scan::Span;

/// The most models whose overlays a lineage keeps apart.
const MODELS: usize = 16;
/// The most results of one request whose sizes are noted.
const NOTED: usize = 32;
/// Bytes of each that are tokenised for that.
const TOKENISED: u64 = 2 * 1024;

impl Views {
    /// The request by the plan its conversation has.
    pub(super) async fn take_over(
        &self,
        recognised: Arc<Recognised>,
        standing: Option<&Standing>,
        asked: &Asked,
        begun: Instant,
    ) -> Result<Prepared, Fault> {
        let last = recognised.last().ok_or(Fault::Bug("no chain"))?;
        let (before, mut figures) = self.carried(&recognised, standing);
        if asked.wish == Wish::Off {
            figures.hold_no_place();
        }
        let plan = Plan {
            overlay: standing.and_then(|standing| standing.overlay.clone()),
            figures,
            view: None,
        };
        let settled = standing.is_some_and(|s| s.sealed && s.messages == recognised.len());
        let forked = match standing {
            Some(standing) => self.is_forked(&recognised, standing).await,
            None => false,
        };
        let lineage = standing.filter(|_| !forked).map(|s| s.lineage);
        let lineage = lineage.unwrap_or_else(|| LineageId::beginning(last.as_bytes()));
        let from = standing.map(|standing| (standing.messages, standing.view));
        let built = self.build(recognised.clone(), plan, from, &[]).await?;
        let factor = self.learned.factor(&recognised.facts.model);
        let anchor = standing
            .filter(|standing| standing.own)
            .and_then(|standing| standing.figures.anchor());
        let sent = measure::measure(anchor.as_ref(), &built.size, &factor);
        let original = if built.overlay.is_some() {
            measure::measure(anchor.as_ref(), &built.history, &factor)
        } else {
            sent
        };
        let crowded = self.is_crowded(built.overlay.as_ref().map(|(_, held)| held.as_ref()));
        let mut figures = built.figures;
        unsaid(&mut figures);
        figures.settings = settings(&recognised);
        let sending = self.sending(&before, &figures, standing);
        let base_is_shared = self.shares_base(&figures, lineage);
        let same = standing.filter(|standing| standing.is_exact(&recognised));
        let committed_at = same.map_or(Moment(i64::MIN), |standing| standing.seen_at);
        Ok(Prepared {
            view: built.view,
            overlay: built.overlay,
            figures,
            view_hash: built.hash,
            lineage,
            hint: asked.hint,
            former_plan: None,
            label: asked.label.clone(),
            grew_from: standing.map(|standing| standing.messages),
            edited: standing.and_then(|standing| standing.adopted),
            own: standing.is_some_and(|standing| standing.own),
            sending,
            base_is_shared,
            sender: asked.sender.clone(),
            instructions: asked.instructions.clone(),
            credential: asked.credential.clone(),
            counts: asked.counts,
            deferred: Deferred::default(),
            is_unrecorded: false,
            remembers: !asked.counts,
            settled,
            original,
            sent,
            anchor,
            kinds: Vec::new(),
            report: self.first_report(&recognised, asked.counts),
            wished: None,
            tried: Vec::new(),
            lessons: Vec::new(),
            before: None,
            bare: false,
            refused: false,
            replaced: false,
            repeated: false,
            claimed: None,
            may_pass: asked.wish != Wish::Off
                && !asked.counts
                && self.config.policy.mode == Mode::On,
            shrunk: 0,
            spares: false,
            waits: false,
            committed_at,
            at_most: None,
            crowded,
            begun,
            recognised,
        })
    }

    /// The figures that stood, and as they are with this request.
    fn carried(&self, recognised: &Recognised, standing: Option<&Standing>) -> (Figures, Figures) {
        let exact = standing.is_some_and(|standing| standing.is_exact(recognised));
        let mut figures = standing.map(|s| s.figures.clone()).unwrap_or_default();
        while figures.others.len() > MODELS {
            figures.others.pop_first();
        }
        let Figures {
            others,
            others_drop,
            ..
        } = &mut figures;
        others_drop.retain(|model| others.contains_key(model));
        let before = figures.clone();
        let own = recognised.remembered.as_ref();
        let own =
            own.is_some_and(|own| Some(own.row.messages as usize) == standing.map(|s| s.messages));
        if standing.is_some_and(|standing| standing.own) && !own {
            // Another process was answered last, and has learned from that.
            self.learned.hear(&recognised.facts.model, &before.factor);
        }
        if !exact {
            figures.swap = false;
            figures.passed = None;
            figures.previous = figures.marked;
            figures
                .trail
                .goes_on(before.marked, self.now().0, before.lifetime);
            figures.trail.keeps(before.ours, self.now().0);
            self.hold_place(recognised, &before, &mut figures);
            self.lengthen(recognised, standing, &mut figures);
            figures.requests = figures.requests.saturating_add(1);
            figures.reply.clear();
            figures.course.goes_on();
            self.note_results(recognised, &mut figures);
        }
        // What was learned since the pass holds for it, as long as no answer has
        // shown that it need not.
        let unseen = |held: &Standing| held.own && !held.sealed && held.adopted.is_none();
        figures.unfit &= standing.is_some_and(unseen);
        figures.drop_block |= figures.unfit && self.should_drop(recognised);
        (before, figures)
    }

    /// Chooses the place that is kept in the cache for a summary of the API's own.
    fn hold_place(&self, recognised: &Recognised, before: &Figures, figures: &mut Figures) {
        let policy = &self.config.policy;
        let accounts = policy.clear_at.is_none() && self.summarizer().is_some();
        let keep = policy.keep_tokens();
        let view = before.prompt.filter(|view| *view > keep);
        let view = view.filter(|_| accounts && self.asks_the_api(recognised));
        let Some(view) = view else {
            figures.hold_no_place();
            return;
        };
        let living = figures.trail.living(self.now().0, before.lifetime);
        figures.ends.retain(|end| living.contains(&end.message()));
        figures
            .ends
            .extend(before.marked.map(|place| Held::new(place, view)));
        figures.held = Held::next(before.held, &figures.ends, view, keep);
    }

    /// Decides for how long the provider is asked to keep the stable prefix.
    fn lengthen(
        &self,
        recognised: &Recognised,
        standing: Option<&Standing>,
        figures: &mut Figures,
    ) {
        let policy = &self.config.policy;
        let ours = policy.mode == Mode::On && policy.clear_at.is_none();
        let short = figures.lifetime == Some(Lifetime::Short.seconds());
        let known = self.config.models.lookup(&recognised.facts.model);
        let prices = known.prices(figures.prompt.unwrap_or(0));
        let pause = self.idle(standing);
        let (Some(prices), Some(pause)) = (prices, pause) else {
            return;
        };
        if !ours || !short || self.config.cache.ttl.is_some() {
            figures.long = LongPrefix::default();
            return;
        }
        let base = figures.sizes().map_or(0, |(_, view)| view.base.raw.total());
        let cost = surcharge(
            base,
            prices.write_5m.pico_dollars_per_token(),
            prices.write_1h.pico_dollars_per_token(),
        );
        // What is counted raw may come to half as much again.
        let allowed = cost + cost / 2 <= figures.course.allowance(0, 0);
        figures.long = figures.long.after_pause(pause, allowed);
    }

    /// How long a session has been idle, if this model has been asked in it.
    fn idle(&self, standing: Option<&Standing>) -> Option<Duration> {
        let own = standing.filter(|standing| standing.own)?;
        let idle = self.now().0.saturating_sub(own.seen_at.0);
        Some(Duration::from_millis(u64::try_from(idle).unwrap_or(0)))
    }

    /// Whether another conversation has grown from the same place before: this
    /// one is a fork, and a session of its own. This process knows it of places
    /// where it has been; of others the store tells, by a mark of the session's
    /// that is farther on and so stands in another history. A store that is asked
    /// over a network has told so with the marks; for another question nobody
    /// waits longer than for any.
    async fn is_forked(&self, recognised: &Recognised, standing: &Standing) -> bool {
        if standing.messages >= recognised.len() {
            return false;
        }
        let known = recognised.known.as_ref();
        let here = known.filter(|(at, _)| at + 1 == standing.messages);
        if here.is_some_and(|(_, place)| place.moved_on || place.mark.is_some()) {
            return here.is_some_and(|(_, place)| place.moved_on);
        }
        // An edited history has left the other one behind for good.
        if standing.adopted.is_some() {
            return false;
        }
        if let Some(newest) = standing.newest {
            return newest > standing.messages;
        }
        let is_farther = |messages: u32| messages as usize > standing.messages;
        if self
            .writer
            .farthest(standing.lineage)
            .is_some_and(is_farther)
        {
            return true;
        }
        let marks = self.store.sessions().marks_of(standing.lineage, 1);
        let newest = timeout(self.config.store.timeout, self.timed("marks", marks)).await;
        newest.is_ok_and(|newest| {
            newest.is_ok_and(|marks| marks.iter().any(|mark| is_farther(mark.messages)))
        })
    }

    /// Notes how much the tools have returned that were called last, as it is
    /// shown: pictures by their pixels, and of what is trimmed the rest.
    fn note_results(&self, recognised: &Recognised, figures: &mut Figures) {
        let conversation = recognised.conversation();
        let Some(last) = conversation.last_assistant() else {
            return;
        };
        let text = |span: Span| span.of(&recognised.bytes);
        let calls = conversation.blocks(last).iter();
        let calls: Vec<_> = calls.filter(|block| block.kind == Kind::ToolUse).collect();
        let results = (last + 1..conversation.len()).flat_map(|at| conversation.blocks(at));
        let trims = self.trims();
        let spares = |name: &String| self.config.clear.exclude_tools.contains(name);
        for result in results
            .filter(|block| block.kind == Kind::ToolResult)
            .take(NOTED)
        {
            let called = calls
                .iter()
                .find(|call| call.id.map(text) == result.id.map(text));
            let name =
                called.and_then(|call| serde_json::from_slice::<String>(text(call.name?)).ok());
            let Some(name) = name else {
                continue;
            };
            let block = text(result.span);
            let mut counter = Counter::bounded(TOKENISED, block.len() as u64);
            let raw = measure::raw_block(block, &mut counter);
            let trims = trims.as_ref().filter(|_| !spares(&name));
            let most = trims.and_then(|trims| trims.shown(&name, block.len()));
            let text = raw.text.min(most.unwrap_or(u64::MAX));
            let tokens = text.saturating_add(raw.fixed);
            figures.recent.returned(&name, tokens);
        }
    }

    /// Whether there are as many segments as there may be. From then on older
    /// ones are merged, and each time something is lost.
    pub(super) fn is_crowded(&self, overlay: Option<&Overlay>) -> bool {
        let most = self.config.policy.max_segments;
        most > 0 && overlay.is_some_and(|overlay| overlay.segments.len() >= most)
    }

    /// Whether another session has used the same system and tools within the
    /// lifetime of a cache.
    fn shares_base(&self, figures: &Figures, lineage: LineageId) -> bool {
        let Some((_, view)) = figures.sizes() else {
            return false;
        };
        let now = self.now();
        let lifetime = i64::try_from(figures.lifetime.unwrap_or(0)).unwrap_or(0);
        let since = Moment(now.0.saturating_sub(lifetime.saturating_mul(1_000)));
        self.bases.uses(view.base.digest, lineage, now, since)
    }

    /// What the bill of a request will be judged by.
    fn sending(&self, before: &Figures, now: &Figures, standing: Option<&Standing>) -> Sending {
        let own = standing.filter(|standing| standing.own);
        let idle = self.idle(standing);
        let forced = self.config.cache.ttl.filter(|_| now.lifetime.is_some());
        let lifetime = forced.or(now.lifetime.map(Duration::from_secs));
        let base = |figures: &Figures| figures.sizes().map(|(_, view)| view.base.digest);
        // Marks, and what names the bill, are in the digest but in no cache.
        let tokens = |figures: &Figures| figures.sizes().map(|(_, view)| view.base.raw.total());
        let grown = standing.is_some();
        let age = Age {
            idle,
            lifetime,
            margin: self.config.cache.margin,
            distrusted: before.course.distrusts(),
        };
        let client_edited = base(before) != base(now) || before.settings != now.settings;
        let alive = idle.filter(|_| !client_edited);
        Sending {
            alive: alive.map_or(0, |idle| before.long.alive_after(idle)),
            cached: own.and(before.cached).unwrap_or(0),
            cache: Cache::of(&age),
            outlived: idle >= lifetime && idle.is_some() && lifetime.is_some(),
            client_edited,
            invalidated: grown
                && (tokens(before) != tokens(now) || before.settings != now.settings),
            removed_before: before.removed,
            removed: 0,
            unchanged: None,
            base: now.sizes().map_or(0, |(_, view)| view.base.raw.total()),
        }
    }
}

/// Upstream has said nothing of this request yet.
fn unsaid(figures: &mut Figures) {
    figures.provisional = None;
    figures.prompt = None;
    figures.output = None;
    figures.cache_read = None;
    figures.cached = None;
}

/// Tells the fields, besides system and tools, that a cache goes by.
fn settings(recognised: &Recognised) -> u64 {
    let Recognised { bytes, body, .. } = recognised;
    let mut hasher = blake3::Hasher::new();
    for name in ["tool_choice", "thinking", "output_config", "speed"] {
        let value = body.field(bytes, name).map(|value| value.of(bytes));
        hasher.update(value.unwrap_or(b"-"));
        hasher.update(b"\n");
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}
