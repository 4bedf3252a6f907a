//! Something that was done without the store, and is to be done again there.

use crate::engine::bound;
use crate::engine::ids::{BlobId, LineageId, SegmentId};
use crate::store::journal::{Archive, Trace};
use crate::store::{Commit, Committed, MarkRow, Moment, Store, StoreError};

/// A conversation; none: what belongs to no conversation.
pub(super) type Lane = Option<LineageId>;

#[derive(Clone)]
pub(super) enum Deed {
    Commit(Box<Commit>),
    Segment(SegmentId, Vec<u8>, Moment),
    Blobs(Vec<(BlobId, Vec<u8>)>, Moment),
    Learn(String, String),
    Record(Vec<MarkRow>),
    Archive(Box<(Trace, Archive, Moment)>),
}

impl Deed {
    /// What belongs together is done in order.
    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Commit(commit) => Some(commit.mark.lineage),
            Self::Archive(kept) => Some(kept.0.lineage),
            Self::Record(marks) => marks.first().map(|mark| mark.lineage),
            Self::Segment(..) | Self::Blobs(..) | Self::Learn(..) => None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        // Twice: it stands in the memory too.
        2 * match self {
            Self::Commit(commit) => {
                let overlay = commit.overlay.as_ref().map_or(0, |(_, body)| body.len());
                overlay + commit.mark.figures.len() + 1_000
            }
            Self::Segment(_, body, _) => body.len() + 100,
            Self::Blobs(blobs, _) => blobs.iter().map(|(_, body)| body.len() + 100).sum(),
            Self::Learn(key, value) => key.len() + value.len() + 100,
            Self::Record(marks) => marks.iter().map(|mark| mark.figures.len() + 1_000).sum(),
            Self::Archive(kept) => {
                let (trace, archive, _) = kept.as_ref();
                let blobs = archive.blobs.iter().map(|(_, body)| body.len() + 100);
                let messages = archive.messages.iter().map(|kept| kept.parts.len() + 100);
                blobs.chain(messages).sum::<usize>() + trace.behind.len() * 40
            }
        }
    }

    /// Does it in the store; whether it holds there.
    pub(super) async fn again(&self, store: &dyn Store) -> Result<bool, StoreError> {
        match self {
            Self::Commit(commit) => {
                let done = store.commit(commit).await? == Committed::Done;
                if let (false, Some((id, _))) = (done, &commit.overlay) {
                    // Its view may have been sent, and have a reply: the overlay
                    // is kept for the mark that will say so.
                    let mut beside = Commit::clone(commit);
                    beside.mark.chain = bound::place(commit.mark.chain, &id.to_string());
                    beside.parent = None;
                    store.commit(&beside).await?;
                }
                return Ok(done);
            }
            Self::Segment(id, body, now) => drop(store.put_segment(*id, body, *now).await?),
            Self::Blobs(blobs, now) => store.put_blobs(blobs, *now).await?,
            Self::Learn(key, value) => store.learn(key, value).await?,
            Self::Record(marks) => {
                let lost = store.record(marks).await?;
                let beside: Vec<MarkRow> = lost.into_iter().filter_map(MarkRow::beside).collect();
                store.record(&beside).await?;
            }
            Self::Archive(kept) => {
                let (trace, archive, now) = kept.as_ref();
                store.journal().archive(trace, archive, *now).await?;
            }
        }
        Ok(true)
    }
}
