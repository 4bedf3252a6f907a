//! Makes the view of a request: the steps in order, and what comes of them.
//!
//! A history that was sent before is rendered by the plan it had then. Any other
//! takes over the overlay of the place it grew from. Only an ordinary request
//! may start a pass; the others are reduced for once, if they would not fit, and
//! nothing is remembered of that.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::credentials::Credential;
use super::deferred::Deferred;
use super::learned::Quirk;
use super::provisional::Before;
use super::recognise::{Recognised, Unknown};
use super::standing::Standing;
use super::wishes::Wished;
use super::{Fault, Views, compute};
use crate::compactor::sender::Sender;
use crate::config::{Mode, Threads};
use crate::engine::accounts::Sending;
use crate::engine::figures::Figures;
use crate::engine::ids::{ChainHash, Hint, LineageId, OverlayId};
use crate::engine::measure::{Anchor, Measured};
use crate::engine::overlay::Overlay;
use crate::engine::pinned::FormerPlan;
use crate::engine::policy::Ask;
use crate::engine::request::{Thread, Treatment};
use crate::engine::view::View;
use crate::store::{MarkRow, Moment};
use crate::wire::refusal::Refusal;
use crate::wire::report::Report;

/// What a client wishes for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wish {
    /// Nothing in particular.
    #[default]
    None,
    /// To be sent as it is. A conversation that has an overlay goes on without
    /// one from here: this is the explicit reset.
    Off,
    /// To be made smaller now.
    Now,
    /// The same, and to wait for the summary that this takes.
    NowAndWait,
}

/// A request, as it is asked about.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its body, decoded.
    pub bytes: Bytes,
    /// It only asks for a count.
    pub counts: bool,
    /// What the client wishes.
    pub wish: Wish,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// By which credential it was sent.
    pub credential: Credential,
    /// Which session the client says it is of.
    pub hint: Option<Hint>,
    /// In whose name a summary may be asked for; none: in nobody's.
    pub sender: Option<Sender>,
    /// What the client wishes of a summary.
    pub instructions: Option<String>,
    /// What the client calls the session.
    pub label: Option<String>,
}

/// What is to be done with a request.
pub enum Verdict {
    /// It goes as the client sent it, and nothing is remembered of it.
    AsSent,
    /// The client is told to send its whole history.
    Decline,
    /// Its view goes.
    Send(Box<Prepared>),
}

/// A request whose view is ready.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the request"
)]
pub struct Prepared {
    /// The view.
    pub view: View,
    /// What was looked at.
    pub(super) recognised: Arc<Recognised>,
    /// The overlay it was made by.
    pub(super) overlay: Option<(OverlayId, Arc<Overlay>)>,
    /// What will be remembered, without what upstream says.
    pub(super) figures: Figures,
    pub(super) view_hash: ChainHash,
    pub(super) lineage: LineageId,
    pub(super) hint: Option<Hint>,
    /// The plan of the session before, if the client has summed that up itself.
    pub(super) former_plan: Option<FormerPlan>,
    pub(super) label: Option<String>,
    /// The messages of the place it grew from.
    pub(super) grew_from: Option<usize>,
    /// The place it grew from in the history as it was before the client edited
    /// it, if that is so.
    pub(super) edited: Option<(ChainHash, u32)>,
    /// That place is this model's own.
    pub(super) own: bool,
    /// What its bill is judged by.
    pub(super) sending: Sending,
    /// Another session keeps its system and tools in the cache.
    pub(super) base_is_shared: bool,
    /// In whose name a summary may be asked for.
    pub(super) sender: Option<Sender>,
    /// What the client wishes of one.
    pub(super) instructions: Option<String>,
    /// The credential it was sent by. Until upstream has accepted it nothing is
    /// stored, learned or asked for on account of this request.
    pub(super) credential: Credential,
    /// It only asks for a count.
    pub(super) counts: bool,
    /// What is recorded once the credential is accepted.
    pub(super) deferred: Deferred,
    /// Its view leaves something out that the journal does not hold.
    pub(super) is_unrecorded: bool,
    /// Whether it may be remembered.
    pub(super) remembers: bool,
    /// This very history was answered before, by the plan it has.
    pub(super) settled: bool,
    /// Tokens of the history, and of the view.
    pub(super) original: Measured,
    pub(super) sent: Measured,
    /// What upstream said of the prompt it grew out of.
    pub(super) anchor: Option<Anchor>,
    /// What a pass did for this request.
    pub(super) kinds: Vec<&'static str>,
    /// What the client is told of the clearing it asks for, where that is done
    /// here. The figures are those of the view that is sent in the end.
    pub(super) report: Option<Report>,
    /// What an operator wished for this session, if it is carried out here.
    pub wished: Option<Wished>,
    /// What was left out on a refusal, and stays so for this request.
    pub(super) tried: Vec<Quirk>,
    /// The same with the refusal, to be remembered if it helped.
    pub(super) lessons: Vec<(Quirk, Refusal)>,
    /// The plan before the first refusal.
    pub(super) before: Option<Box<Before>>,
    /// All thinking was left out on a refusal.
    pub(super) bare: bool,
    /// Upstream has refused the plan.
    pub(super) refused: bool,
    /// A plan made for a refusal may have been committed.
    pub(super) replaced: bool,
    /// The same bytes were sent again after a refusal.
    pub(super) repeated: bool,
    /// The window that refusals of this request have claimed.
    pub(super) claimed: Option<u64>,
    /// It may be made smaller, if upstream finds it too long.
    pub(super) may_pass: bool,
    /// How often it was.
    pub(super) shrunk: u32,
    /// There is too little to sum up for anybody to do it.
    pub(super) spares: bool,
    /// The client would rather wait for the summary that this takes.
    pub(super) waits: bool,
    /// Tokens it must not exceed, as upstream said.
    pub(super) at_most: Option<u64>,
    /// There are as many segments as there may be: a fresh session is better.
    pub(super) crowded: bool,
    /// When a mark of it was to be committed, or was written by whoever sent the
    /// same before: what is known of it later counts as later, whatever the clock
    /// says.
    pub(super) committed_at: Moment,
    pub(super) begun: Instant,
}

impl Views {
    /// Makes the view of a request.
    pub async fn prepare(&self, asked: Asked) -> Verdict {
        let begun = Instant::now();
        let fault = match self.steps(&asked, begun).await {
            Ok(verdict) => return verdict,
            Err(fault) => fault,
        };
        self.metrics.fail_open(fault.stage());
        tracing::error!(error = %fault, "what is remembered is out of reach, the request goes without");
        // What is lost for good is best gone on without.
        let lost = matches!(fault, Fault::LostOverlay(_));
        let afresh = self.afresh(&asked, begun, lost).await;
        afresh.unwrap_or_else(|fault| {
            self.metrics.fail_open(fault.stage());
            tracing::error!(error = %fault, "no view could be made, the request goes as it came");
            Verdict::AsSent
        })
    }

    /// The client's own request, reduced if it cannot fit, when what is
    /// remembered cannot be looked at. Unless it is lost nothing is added to it,
    /// so that the conversation has its overlay again later. What upstream
    /// refuses can still be healed, above all thinking that belongs to a view.
    async fn afresh(&self, asked: &Asked, begun: Instant, lost: bool) -> Result<Verdict, Fault> {
        let Ok(recognised) = self.recognise(asked).await? else {
            return Ok(Verdict::AsSent);
        };
        let recognised = Arc::new(recognised);
        let mut prepared = self.take_over(recognised, None, asked, begun).await?;
        prepared.remembers &= lost;
        // Who wants nothing changed gets it refused, as without us.
        let may = self.config.policy.mode == Mode::On && asked.wish != Wish::Off;
        if may && !asked.counts && !self.fits(&prepared) {
            self.reduce_once(&mut prepared).await;
        }
        Ok(Verdict::Send(Box::new(prepared)))
    }

    async fn steps(&self, asked: &Asked, begun: Instant) -> Result<Verdict, Fault> {
        let mut recognised = match self.recognise(asked).await? {
            Ok(recognised) => recognised,
            Err(unknown) => {
                tracing::debug!(reason = %unknown, "the request is not understood");
                return Ok(Verdict::AsSent);
            }
        };
        if recognised.treatment == Treatment::Untouched {
            let opens = recognised.facts.thread == Some(Thread::Create) && !asked.counts;
            let decline = opens && self.config.threads == Threads::Decline;
            return Ok(if decline {
                Verdict::Decline
            } else {
                Verdict::AsSent
            });
        }
        if asked.counts && asked.wish == Wish::Off {
            return Ok(Verdict::AsSent);
        }
        let standing = self.where_it_stands(&mut recognised, asked.hint).await?;
        let recognised = Arc::new(recognised);
        let mut prepared = self
            .take_over(recognised, standing.as_ref(), asked, begun)
            .await?;
        match (prepared.recognised.treatment, asked.wish) {
            (Treatment::Ordinary, _) if prepared.settled => {}
            (Treatment::Ordinary, Wish::Off) if prepared.overlay.is_some() => {
                self.reset(&mut prepared).await?;
            }
            (Treatment::Ordinary, Wish::Off) => {}
            (Treatment::Ordinary, _) if self.config.policy.mode == Mode::Off => {}
            (Treatment::Ordinary, wish) => {
                self.note_rereads(&mut prepared).await;
                self.find_former_plan(&mut prepared).await;
                prepared.wished = self.wished(&mut prepared);
                prepared.waits = wish == Wish::NowAndWait;
                let now = prepared.waits || wish == Wish::Now || prepared.wished.is_some();
                let asked = now.then_some(Ask::Manual);
                let asked = asked.or_else(|| self.client_asks(&prepared));
                self.pass(&mut prepared, asked).await;
            }
            _ if asked.counts || self.config.policy.mode != Mode::On => {}
            _ if asked.wish == Wish::Off || self.fits(&prepared) => {}
            _ => self.reduce_once(&mut prepared).await,
        }
        self.metrics
            .view_tokens(prepared.original.tokens, prepared.sent.tokens);
        Ok(Verdict::Send(Box::new(prepared)))
    }

    /// What an operator has wished for the session. A question on the side, to
    /// another model, leaves it to the session itself.
    fn wished(&self, prepared: &mut Prepared) -> Option<Wished> {
        if !prepared.own || !prepared.credential.is_accepted {
            return None;
        }
        let elsewhere = prepared.figures.wished.take().map(Wished::saying);
        self.wishes.take(prepared.lineage).or(elsewhere)
    }

    /// Where the conversation stands. That its session may have other overlays
    /// is worth a look, and no more.
    async fn where_it_stands(
        &self,
        recognised: &mut Recognised,
        hint: Option<Hint>,
    ) -> Result<Option<Standing>, Fault> {
        let standing = self.standing(recognised).await?;
        let Some(hint) = hint else {
            return Ok(standing);
        };
        let adopted = self.adopt(recognised, hint, standing.as_ref()).await;
        let adopted = adopted.unwrap_or_else(|fault| {
            self.metrics.fail_open(fault.stage());
            tracing::error!(error = %fault, "other overlays of a session are out of reach");
            None
        });
        Ok(adopted.or(standing))
    }

    async fn recognise(&self, asked: &Asked) -> Result<Result<Recognised, Unknown>, Fault> {
        let Asked {
            bytes,
            counts,
            tenant,
            ..
        } = asked.clone();
        let (key, known) = (self.key.clone(), self.known.clone());
        let mut recognised = compute(bytes.len(), "recognise", move || {
            Recognised::new(bytes, tenant, counts, &key, &known)
        })
        .await?;
        if let Ok(recognised) = &mut recognised {
            let model = &recognised.facts.model;
            recognised.window_key = self.window_key(model, &asked.tenant, asked.sender.as_ref());
        }
        Ok(recognised)
    }

    /// Whether upstream will find that a view fits. The margin and the operator's
    /// budget are for conversations, and no reason to change what may start no
    /// pass.
    pub(super) fn fits(&self, prepared: &Prepared) -> bool {
        prepared.sent.tokens <= self.window(prepared)
    }
}

impl Prepared {
    /// What is remembered of this request.
    pub(super) fn row(&self, sealed: bool, now: Moment) -> Option<MarkRow> {
        Some(MarkRow {
            chain: self.recognised.last()?,
            model: self.recognised.facts.model.clone(),
            lineage: self.lineage,
            messages: u32::try_from(self.recognised.len()).ok()?,
            overlay: self.overlay.as_ref().map(|(id, _)| *id),
            view: self.view_hash,
            hint: self.hint,
            sealed,
            figures: self.figures.store(),
            seen_at: now.max(self.committed_at),
        })
    }

    /// The session, as a header shows it.
    pub fn session(&self) -> String {
        self.lineage.to_string()
    }

    /// The view, as a header shows it.
    pub fn shape(&self) -> String {
        let overlay = self.overlay.as_ref().map(|(_, overlay)| overlay);
        format!(
            "original={};sent={};stubs={};segments={}",
            self.original.tokens,
            self.sent.tokens,
            overlay.map_or(0, |overlay| overlay.stubs()),
            overlay.map_or(0, |overlay| overlay.segments.len()),
        )
    }

    /// Something the client should know, in a word.
    pub(super) fn notice(&self) -> Option<&'static str> {
        let thrashes = self.figures.course.thrashing;
        match () {
            () if self.is_unrecorded => Some("unrecorded"),
            () if thrashes => Some("thrash"),
            () if self.crowded => Some("handoff"),
            () => None,
        }
    }

    /// What a pass did, as a header shows it.
    pub fn compaction(&self) -> String {
        if self.kinds.is_empty() {
            return "none".to_owned();
        }
        self.kinds.join("+")
    }
}
