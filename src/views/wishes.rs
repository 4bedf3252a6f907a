//! What an operator wishes for a session, until its next request comes.
//!
//! Nothing is sent upstream for a wish alone: the client owns the history, so a
//! pass has to wait until it is here. Where one process answers all requests a
//! wish lives in it, and no longer: it is for the next request, not for one after
//! a restart. Where replicas share a store the next request may land on any: the
//! wish stands with the mark that the request will go on from, which is read with
//! each request anyway.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Views;
use crate::engine::figures::Figures;
use crate::engine::ids::LineageId;
use crate::store::StoreError;

/// The most sessions that wait; beyond it the oldest wish goes.
const MOST: usize = 1_024;

/// How many marks of a session are looked at for the newest of each model.
const MARKS: u32 = 16;

/// A pass that was wished for.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Wished {
    /// What a summary should mind, in the words of whoever wished.
    pub instructions: Option<String>,
}

impl Wished {
    /// From the words; empty ones say nothing.
    pub(super) fn saying(words: String) -> Self {
        Self {
            instructions: Some(words).filter(|words| !words.is_empty()),
        }
    }
}

/// The wishes, by session.
#[derive(Default)]
pub struct Wishes(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    wishes: HashMap<LineageId, (u64, Wished)>,
    /// Grows with each wish, so that the oldest can be told.
    count: u64,
}

impl Wishes {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wishes for a pass at the next request of a session, in place of what was
    /// wished for it before.
    pub fn wish(&self, lineage: LineageId, instructions: Option<String>) {
        let mut waiting = self.waiting();
        waiting.count += 1;
        let number = waiting.count;
        let wishes = &mut waiting.wishes;
        wishes.insert(lineage, (number, Wished { instructions }));
        if wishes.len() > MOST {
            let oldest = wishes.iter().min_by_key(|(_, (number, _))| *number);
            if let Some(oldest) = oldest.map(|(lineage, _)| *lineage) {
                wishes.remove(&oldest);
            }
        }
    }

    /// Whether something is wished for a session.
    pub fn has(&self, lineage: LineageId) -> bool {
        self.waiting().wishes.contains_key(&lineage)
    }

    /// What was wished for a session, once.
    pub fn take(&self, lineage: LineageId) -> Option<Wished> {
        let (_, wished) = self.waiting().wishes.remove(&lineage)?;
        Some(wished)
    }
}

impl Views {
    /// Wishes for a pass at the next request of a session; whether anybody knows
    /// the session.
    pub async fn wish(&self, lineage: LineageId, instructions: Option<String>) -> bool {
        if self.store.is_shared() {
            let words = instructions.as_deref().unwrap_or_default();
            match self.share_wish(lineage, words).await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "a wish is known to this process only");
                }
            }
        }
        let known = self.known.has(lineage);
        if known {
            self.wishes.wish(lineage, instructions);
        }
        known
    }

    /// Writes a wish to where the session's next request will look. Questions on
    /// the side have marks of their own, so every model's newest gets it, and the
    /// session's own takes it.
    async fn share_wish(&self, lineage: LineageId, words: &str) -> Result<bool, StoreError> {
        self.writer.flush().await?;
        let mut newest = self.store.sessions().marks_of(lineage, MARKS).await?;
        let mut models = HashSet::new();
        newest.retain(|mark| models.insert(mark.model.clone()));
        for mark in &mut newest {
            let mut figures = Figures::read(&mark.figures);
            if let Some(earlier) = &mut figures.provisional {
                earlier.figures.wished = Some(words.to_owned());
            }
            figures.wished = Some(words.to_owned());
            mark.figures = figures.store();
            // A word about a view takes nobody's place.
            mark.sealed = false;
            mark.seen_at = mark.seen_at.max(self.now());
        }
        self.store.record(&newest).await?;
        Ok(!newest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::forgetful::{prepared, views, worked};
    use super::super::observe::Sent;
    use super::super::prepare::Wish;
    use super::*;
    use crate::store::Memory;
    use crate::wire::reply::Reply;
    use serde_json::json;
    use std::sync::Arc;

    fn of(number: usize) -> LineageId {
        LineageId::beginning(blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    fn saying(instructions: &str) -> Wished {
        let instructions = Some(instructions.to_owned());
        Wished { instructions }
    }

    #[test]
    fn a_wish_is_taken_once_and_the_newest_holds() {
        let wishes = Wishes::default();
        assert!(wishes.take(of(1)).is_none());
        wishes.wish(of(1), Some("keep the names".into()));
        wishes.wish(of(2), None);
        wishes.wish(of(1), Some("keep the paths".into()));
        assert!(wishes.take(of(2)) == Some(Wished::default()));
        assert!(wishes.take(of(1)) == Some(saying("keep the paths")));
        assert!(wishes.take(of(1)).is_none());
    }

    #[tokio::test]
    async fn the_next_request_of_the_session_has_the_instructions() {
        let views = views(Arc::new(Memory::new())).await;
        let mut messages = worked();
        let first = prepared(&views, &messages, Wish::None).await;
        let (lineage, mut sent) = (first.lineage, Sent::from(*first));
        assert!(!views.takes_wishes(lineage));
        views.began(&mut sent, &Reply::default());
        views.ended(&mut sent, &Reply::default());
        assert!(views.takes_wishes(lineage));
        assert!(views.wish(lineage, Some("keep the names".into())).await);
        messages.push(json!({"role": "assistant", "content": "yes"}));
        messages.push(json!({"role": "user", "content": "on"}));
        let next = prepared(&views, &messages, Wish::None).await;
        assert!(next.lineage == lineage && next.overlay.is_some());
        assert!(next.wished == Some(saying("keep the names")));
    }

    #[test]
    fn without_room_the_oldest_wish_goes() {
        let wishes = Wishes::default();
        for number in 0..MOST {
            wishes.wish(of(number), None);
        }
        // Wished again, it is not the oldest any more, and takes no more room.
        wishes.wish(of(0), None);
        wishes.wish(of(MOST), None);
        assert_eq!(wishes.waiting().wishes.len(), MOST);
        let missing: Vec<_> = (0..=MOST)
            .filter(|number| wishes.take(of(*number)).is_none())
            .collect();
        assert_eq!(missing, [1]);
    }
}
