//! The sessions that the store knows, as an operator sees them.
//!
//! What is told comes from marks: sizes and sums, no content. The journal adds
//! what the client calls a session and how many turns it had.

use serde::Serialize;

use super::{Recall, Trouble};
use crate::engine::facts::FactKind;
use crate::engine::figures::Figures;
use crate::engine::ids::{LineageId, OverlayId};
use crate::engine::money::{Money, in_dollars};
use crate::engine::overlay::Overlay;
use crate::engine::passed::Passed;
use crate::engine::recall::entry::EntryKind;
use crate::store::journal::Branch;
use crate::store::sessions::{Behind, SessionRow};
use crate::store::{MarkRow, Moment};

/// Marks that a timeline shows.
const STEPS: u32 = 2_000;
/// Branches that are asked for at once when a label is looked for, and how often.
const BATCH: u32 = 1_000;
const BATCHES: usize = 50;

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// What the client calls it.
    pub label: Option<String>,
    /// The model that was asked last.
    pub model: String,
    /// Messages of its history.
    pub messages: u32,
    /// Turns, if that was noted.
    pub turns: Option<u32>,
    /// Requests so far.
    pub requests: u32,
    /// Tokens of the history, about; none if upstream has not said.
    pub original_tokens: Option<u64>,
    /// Tokens of what was sent.
    pub sent_tokens: Option<u64>,
    /// Tokens of it that came from the cache.
    pub cache_read_tokens: Option<u64>,
    /// Summaries in the view.
    pub segments: usize,
    /// Stubs in it.
    pub stubs: usize,
    /// Passes so far.
    pub passes: u32,
    /// Dollars that were spent on it, summaries included; these three are none if
    /// a model of it has no known price.
    pub spent_usd: Option<f64>,
    /// Dollars that it would have cost without any pass.
    pub without_usd: Option<f64>,
    /// Dollars that passes saved, net: the difference. May be negative.
    pub saved_usd: Option<f64>,
    /// The breaker: `closed`, `open` or `half_open`.
    pub breaker: &'static str,
    /// Passes do not last.
    pub thrashing: bool,
    /// Places that are remembered; for one session alone, at most those shown.
    pub marks: u64,
    /// When it was last seen.
    pub seen_at: String,
    /// The same in milliseconds since 1970.
    #[serde(skip)]
    pub seen: Moment,
}

/// A session and how it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Its requests as far as they are remembered, the oldest first.
    pub timeline: Vec<Step>,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// When.
    pub seen_at: String,
    /// Which model.
    pub model: String,
    /// Messages of the history.
    pub messages: u32,
    /// Tokens of the history, about.
    pub original_tokens: Option<u64>,
    /// Tokens of what was sent.
    pub sent_tokens: Option<u64>,
    /// Tokens of it that came from the cache.
    pub cache_read_tokens: Option<u64>,
    /// Tokens of the reply.
    pub output_tokens: Option<u64>,
    /// Passes so far.
    pub passes: u32,
    /// Its overlay is new with this request.
    pub new_view: bool,
    /// The pass that was made for it: why, by what means, and what came of it.
    pub pass: Option<Passed>,
    /// The breaker.
    pub breaker: &'static str,
}

impl Recall {
    /// Sessions, those used last first, and where the list goes on.
    pub async fn sessions(
        &self,
        behind: Option<Behind>,
        limit: u32,
    ) -> Result<(Vec<Session>, Option<Behind>), Trouble> {
        let rows = self.store.sessions().list(behind, limit).await?;
        let full = rows.len() >= limit as usize;
        let last = rows.last().filter(|_| full);
        let next = last.map(|row| (row.newest.seen_at, row.newest.lineage));
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows {
            sessions.push(self.session(row).await?);
        }
        Ok((sessions, next))
    }

    /// One session, with how it went.
    pub async fn timeline(&self, id: LineageId) -> Result<Timeline, Trouble> {
        let marks = self.store.sessions().marks_of(id, STEPS).await?;
        let Some(newest) = marks.first().cloned() else {
            return Err(Trouble::UnknownSession(id.to_string()));
        };
        let row = SessionRow {
            newest,
            marks: marks.len() as u64,
        };
        Ok(Timeline {
            session: self.session(row).await?,
            timeline: marks.iter().rev().map(step).collect(),
        })
    }

    /// One session, as it is now.
    pub async fn glance(&self, id: LineageId) -> Result<Session, Trouble> {
        let marks = self.store.sessions().marks_of(id, 1).await?;
        let Some(newest) = marks.into_iter().next() else {
            return Err(Trouble::UnknownSession(id.to_string()));
        };
        self.session(SessionRow { newest, marks: 1 }).await
    }

    /// The session that is meant: by its id, the beginning of one, or what the
    /// client calls it.
    pub async fn named(&self, given: &str) -> Result<LineageId, Trouble> {
        let unknown = || Trouble::UnknownSession(given.chars().take(64).collect());
        let lower = given.to_ascii_lowercase();
        if let Some(id) = LineageId::from_text(&lower) {
            let known = self.has_marks(id).await? || self.has_branch(id).await?;
            return known.then_some(id).ok_or_else(unknown);
        }
        if given.is_empty() {
            return Err(unknown());
        }
        let mut labelled = Vec::new();
        let mut begun = self.store.sessions().named(&lower, BATCH).await?;
        let mut before = None;
        for _ in 0..BATCHES {
            let branches = self.store.journal().branches(before, BATCH).await?;
            before = branches.last().map(|branch| branch.seen_at);
            for Branch { lineage, label, .. } in &branches {
                if label.as_deref() == Some(given) {
                    labelled.push(*lineage);
                }
                if lineage.to_string().starts_with(&lower) {
                    begun.push(*lineage);
                }
            }
            if branches.len() < BATCH as usize {
                break;
            }
        }
        let mut meant = if labelled.is_empty() { begun } else { labelled };
        meant.sort_unstable();
        meant.dedup();
        match meant.as_slice() {
            [] => Err(unknown()),
            [one] => Ok(*one),
            several => Err(Trouble::Ambiguous {
                given: given.chars().take(64).collect(),
                several: several.len(),
            }),
        }
    }

    /// Whether marks tell of a session.
    pub(super) async fn has_marks(&self, id: LineageId) -> Result<bool, Trouble> {
        Ok(!self.store.sessions().marks_of(id, 1).await?.is_empty())
    }

    async fn has_branch(&self, id: LineageId) -> Result<bool, Trouble> {
        Ok(self.store.journal().branch(id).await?.is_some())
    }

    async fn session(&self, row: SessionRow) -> Result<Session, Trouble> {
        let SessionRow { newest, marks } = row;
        let figures = Figures::read(&newest.figures);
        let branch = self.store.journal().branch(newest.lineage).await?;
        let turns = match &branch {
            Some(branch) => self.turns(branch).await?,
            None => None,
        };
        let (segments, stubs) = self.shape(newest.overlay).await?;
        let (original, sent) = sizes(&figures);
        let money = money(&figures);
        Ok(Session {
            id: newest.lineage.to_string(),
            label: branch.and_then(|branch| branch.label),
            model: newest.model,
            messages: newest.messages,
            turns,
            requests: figures.requests,
            original_tokens: original,
            sent_tokens: sent,
            cache_read_tokens: figures.cache_read,
            segments,
            stubs,
            passes: figures.course.passes,
            spent_usd: money.map(|money| in_dollars(money.spent)),
            without_usd: money.map(|money| in_dollars(money.without)),
            saved_usd: money.map(|money| in_dollars(money.saved())),
            breaker: figures.breaker.phase().label(),
            thrashing: figures.course.thrashing,
            marks,
            seen_at: newest.seen_at.to_string(),
            seen: newest.seen_at,
        })
    }

    /// The turn of the newest fact.
    async fn turns(&self, branch: &Branch) -> Result<Option<u32>, Trouble> {
        let kinds = FactKind::ALL.into_iter().map(EntryKind::Fact).collect();
        let newest = self.entries_of(branch, kinds, 1).await?;
        Ok(newest.first().map(|row| row.entry.turn))
    }

    /// Summaries and stubs of a view; none where the overlay cannot be read,
    /// which is not an operator's question.
    async fn shape(&self, overlay: Option<OverlayId>) -> Result<(usize, usize), Trouble> {
        let Some(id) = overlay else {
            return Ok((0, 0));
        };
        let stored = self.store.overlay(id).await?;
        let overlay = stored.and_then(|bytes| Overlay::read(&bytes).ok());
        Ok(overlay.map_or((0, 0), |overlay| (overlay.segments.len(), overlay.stubs())))
    }
}

fn step(mark: &MarkRow) -> Step {
    let figures = Figures::read(&mark.figures);
    let (original, sent) = sizes(&figures);
    Step {
        seen_at: mark.seen_at.to_string(),
        model: mark.model.clone(),
        messages: mark.messages,
        original_tokens: original,
        sent_tokens: sent,
        cache_read_tokens: figures.cache_read,
        output_tokens: figures.output,
        passes: figures.course.passes,
        new_view: figures.swap,
        pass: figures.passed.clone(),
        breaker: figures.breaker.phase().label(),
    }
}

/// Tokens of the history and of the view.
fn sizes(figures: &Figures) -> (Option<u64>, Option<u64>) {
    let original = |sent: u64| sent.saturating_add(figures.removed);
    (figures.prompt.map(original), figures.prompt)
}

/// What was paid, where all of it was at known prices.
fn money(figures: &Figures) -> Option<Money> {
    let (spent, without) = figures.course.totals();
    figures
        .course
        .is_priced()
        .then_some(Money { spent, without })
}
