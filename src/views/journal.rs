//! What a conversation tells the journal.
//!
//! Before an overlay is committed the history is put away, so that whatever the
//! overlay leaves out can be had again byte for byte, and every reference that
//! the new view shows is known to stand for something. What is found by
//! searching follows in the background: after a pass the content that it left
//! out, and after every reply what the turn decided, touched and failed at.

use std::collections::BTreeMap;
use std::ops::Range;

use super::archived::{Home, Known};
use super::prepare::Prepared;
use super::recognise::Recognised;
use super::{Fault, LARGE, Views};
use crate::compactor::errand::Finished;
use crate::config::RecallMcp;
use crate::engine::archive;
use crate::engine::chain;
use crate::engine::conversation::Conversation;
use crate::engine::facts::{Fact, facts, turns};
use crate::engine::ids::{BlobId, ChainHash};
use crate::engine::recall::entries::{LeftOut, Note, entries, noted};
use crate::engine::recall::entry::{Entry, EntryKind};
use crate::engine::recall::telling::{Telling, tools};
use crate::engine::reduce::Evicted;
use crate::engine::stub::blob_id;
use crate::store::journal::{Archive, Kept, Promise, Trace};

/// The most places that a history is looked for at.
const BEHIND: usize = 1_024;

/// The tools, where the operator says that every model has them.
const RECALL: &str = "the longhaul tool recall";
/// The other one.
const EXPAND: &str = "the longhaul tool expand";

#[derive(serde::Deserialize)]
struct Tool<'a> {
    #[serde(borrow, default)]
    name: std::borrow::Cow<'a, str>,
}

impl Views {
    /// How a model is told to get back what a view leaves out; none: it is not
    /// kept.
    pub(super) fn telling(&self, prepared: &Prepared) -> Option<Telling> {
        if !self.config.journal.enabled {
            return None;
        }
        if self.config.recall.mcp == RecallMcp::Never {
            return Some(Telling::Archived);
        }
        let recognised = &prepared.recognised;
        let field = recognised.body.field(&recognised.bytes, "tools");
        let named: Vec<Tool<'_>> = field
            .and_then(|field| serde_json::from_slice(field.of(&recognised.bytes)).ok())
            .unwrap_or_default();
        let found = tools(named.iter().map(|tool| tool.name.as_ref()));
        Some(found.unwrap_or_else(|| match self.config.recall.mcp {
            RecallMcp::Always => Telling::Tools {
                recall: RECALL.to_owned(),
                expand: EXPAND.to_owned(),
            },
            _ => Telling::Archived,
        }))
    }

    /// Puts the history away, and what the references stand for that the view of
    /// a draft shows. Of a request by a credential that is not accepted nothing
    /// is: that follows when it is.
    pub(super) async fn archive(
        &self,
        prepared: &Prepared,
        evicted: &[Evicted],
        summary: Option<&Finished>,
    ) -> Result<(), Fault> {
        if !self.config.journal.enabled || !prepared.credential.is_accepted {
            return Ok(());
        }
        let mut trace = self.trace(prepared).ok_or(Fault::Bug("no chain"))?;
        // What still waits to be told must find its place afterwards.
        self.feed.lead_to(&mut trace);
        let promises = evicted.iter().map(promise);
        let promises: Vec<Promise> = promises.chain(summary.and_then(promised_by)).collect();
        let lineage = prepared.lineage;
        self.archived.comes_to(lineage, &prepared.recognised);
        let known = self.archived.known(lineage);
        let home = self.put_away(prepared, &trace, promises.clone(), known.clone());
        let mut home = home.await?;
        if !known.holds_in(home) && !self.store.is_away() {
            // What was thought to be kept is kept elsewhere, or was forgotten.
            let whole = Known::default();
            home = self.put_away(prepared, &trace, promises, whole).await?;
        }
        self.archived.note(lineage, &prepared.recognised, home);
        Ok(())
    }

    /// Puts away what is not known to be kept, and tells where.
    async fn put_away(
        &self,
        prepared: &Prepared,
        trace: &Trace,
        promises: Vec<Promise>,
        known: Known,
    ) -> Result<Option<Home>, Fault> {
        let recognised = prepared.recognised.clone();
        let tenant = trace.tenant;
        let packed = super::compute(recognised.bytes.len() * 2, "archive", move || {
            let conversation = recognised.conversation();
            let mut archive = Archive {
                promises,
                ..Archive::default()
            };
            let mut contents = BTreeMap::new();
            for at in 0..conversation.len() {
                if known.has(&recognised, at) {
                    continue;
                }
                let content = |range: Range<usize>| recognised.bytes.get(range).unwrap_or(&[]);
                let name = |range: Range<usize>| blob_id(tenant, content(range));
                let parts = archive::parts(&conversation, at);
                let pieces = parts.contents().iter().cloned();
                let (form, blobs) = archive::encode(&parts, &name);
                contents.extend(pieces.map(|range| (name(range.clone()), range)));
                archive.messages.push(Kept {
                    message: count(at),
                    parts: form,
                    blobs,
                });
            }
            let copied = |(id, range): (BlobId, Range<usize>)| {
                let content = recognised.bytes.get(range).unwrap_or(&[]);
                (id, content.to_vec())
            };
            archive.blobs = contents.into_iter().map(copied).collect();
            archive
        });
        let packed = packed.await?;
        let _room = self.journal_limit.reserve(size(&packed)).await?;
        let journal = self.store.journal();
        let put = journal.archive(trace, &packed, self.now());
        let branch = self.timed("archive", put).await?;
        let branch = match self.timed("branch", journal.branch(branch)).await {
            // It is kept until the store is back, and where that will be nobody
            // can tell: afterwards all of it is told once more.
            Err(Fault::Store(_)) if self.store.is_away() => None,
            branch => branch?,
        };
        Ok(branch.map(|branch| (branch.id, branch.began_at)))
    }

    /// Which conversation it is, for the journal. It goes on from the place that
    /// the journal has heard of last.
    fn trace(&self, prepared: &Prepared) -> Option<Trace> {
        let recognised = &prepared.recognised;
        let grew = prepared.grew_from.and_then(|messages| {
            let hash = recognised.hash_at(messages.checked_sub(1)?)?;
            Some((messages, hash))
        });
        let shorter = |(messages, _): &(usize, ChainHash)| *messages < recognised.len();
        let told = self.archived.place(prepared.lineage, &recognised.swifts);
        let from = grew
            .into_iter()
            .chain(told.filter(shorter))
            .max_by_key(|(messages, _)| *messages);
        let from = from.map(|(messages, hash)| (hash, count(messages)));
        let mut behind = behind(recognised);
        // Only places of this very history: what was told of another one under the
        // same name, and be it the one that was edited, may have gone another way.
        let fed = self.archived.fed_at(prepared.lineage, &recognised.swifts);
        let fed = fed.filter(shorter);
        behind.extend(fed.map(|(messages, hash)| (hash, count(messages))));
        Some(Trace {
            tenant: chain::start(&recognised.tenant),
            lineage: prepared.lineage,
            label: prepared.label.clone(),
            // An edited history goes on where the one before it was.
            from: prepared.edited.or(from),
            through: Vec::new(),
            behind,
            here: (recognised.last()?, count(recognised.len())),
        })
    }

    /// Lets what a pass left out be found, in the background.
    pub(super) fn index_pass(
        &self,
        prepared: &Prepared,
        evicted: Vec<Evicted>,
        summary: Option<&Finished>,
        told: String,
    ) {
        if !self.config.journal.enabled {
            return;
        }
        let Some(trace) = self.trace(prepared) else {
            return;
        };
        let recognised = prepared.recognised.clone();
        let (feed, at) = (self.feed.clone(), self.now());
        let summary = summary.and_then(|finished| {
            let reference = finished.reference()?;
            Some((finished.from, reference, finished.text()))
        });
        let work = move || {
            let conversation = recognised.conversation();
            let (seed, tenant) = (recognised.seed(), trace.tenant);
            let mut found = left_out(&conversation, tenant, seed, &evicted);
            let turn = turns(&conversation);
            if let Some((message, reference, text)) = summary {
                let mut told = noted(
                    seed,
                    &[told_by_us(EntryKind::Summary, message, turn, &text)],
                );
                for entry in &mut told {
                    entry.reference = reference;
                }
                found.append(&mut told);
            }
            let last = count(recognised.len()).saturating_sub(1);
            let pass = told_by_us(EntryKind::Snapshot, last, turn, &told);
            found.append(&mut noted(seed, &[pass]));
            feed.push(trace, found, at);
        };
        self.in_turn(prepared.recognised.bytes.len(), work);
    }

    /// Tells the journal what is new in a conversation.
    pub(super) fn feed_turn(&self, prepared: &Prepared) {
        let goes_on = prepared.remembers && self.config.journal.enabled;
        let Some(trace) = self.trace(prepared).filter(|_| goes_on) else {
            return;
        };
        let recognised = prepared.recognised.clone();
        // Without room the next request tells of this one too.
        let Some(room) = self.hold(&recognised.bytes) else {
            return;
        };
        let from = self.archived.fed(prepared.lineage, recognised.as_ref());
        let (feed, at) = (self.feed.clone(), self.now());
        let announced = self.feed.announce(&trace);
        let work = move || {
            let conversation = recognised.conversation();
            let facts = facts(&conversation, from, conversation.len());
            let notes: Vec<Note<'_>> = facts.iter().map(note).collect();
            feed.push(trace, noted(recognised.seed(), &notes), at);
            drop((announced, room));
        };
        self.in_turn(prepared.recognised.bytes.len(), work);
    }

    /// Does something in the background; with a large body one after the other,
    /// since each takes several times its size meanwhile.
    fn in_turn(&self, size: usize, work: impl FnOnce() + Send + 'static) {
        if size < LARGE {
            self.tasks.spawn_blocking_on(work, &self.background);
            return;
        }
        let (turns, background) = (self.telling.clone(), self.background.clone());
        let waits = async move {
            let _turn = turns.acquire().await;
            // That it failed is its own affair: nobody waits for it.
            let _ = background.spawn_blocking(work).await;
        };
        self.tasks.spawn_on(waits, &self.background);
    }
}

/// What a pass has left out, as entries.
fn left_out(
    conversation: &Conversation<'_>,
    tenant: ChainHash,
    seed: ChainHash,
    evicted: &[Evicted],
) -> Vec<Entry> {
    let place = |gone: &Evicted| Some((gone.messages.start, gone.block?));
    let blocks: Vec<(usize, usize)> = evicted.iter().filter_map(place).collect();
    let spans = evicted.iter().filter(|gone| gone.block.is_none());
    let spans = spans.map(|gone| (gone.messages.clone(), &[][..]));
    let left = |(hidden, blocks)| {
        entries(&LeftOut {
            conversation,
            tenant,
            seed,
            hidden,
            blocks,
        })
    };
    spans.chain([(0..0, &blocks[..])]).flat_map(left).collect()
}

/// What we ourselves have to tell.
fn told_by_us(kind: EntryKind, message: u32, turn: u32, text: &str) -> Note<'_> {
    Note {
        kind,
        message,
        block: 0,
        turn,
        tool: "",
        path: "",
        text,
    }
}

fn note(fact: &Fact) -> Note<'_> {
    Note {
        kind: EntryKind::Fact(fact.kind),
        message: fact.message,
        block: fact.block,
        turn: fact.turn,
        tool: fact.tool.as_deref().unwrap_or_default(),
        path: fact.path.as_deref().unwrap_or_default(),
        text: &fact.text,
    }
}

/// The places that are known before the end of a history, the newest first: what
/// came before this process had a word of it is mostly not among them, and need
/// not be.
fn behind(recognised: &Recognised) -> Vec<(ChainHash, u32)> {
    let (_, hashes) = recognised.hashes();
    let newest = hashes.iter().rev().copied();
    let mut places = newest.zip((0..=count(recognised.len())).rev()).skip(1);
    let mut behind: Vec<_> = places.by_ref().take(BEHIND).collect();
    behind.extend(places.last());
    behind
}

fn promise(gone: &Evicted) -> Promise {
    Promise {
        reference: gone.reference,
        messages: (count(gone.messages.start), count(gone.messages.end)),
        block: gone.block.map(count),
        blob: None,
    }
}

fn promised_by(finished: &Finished) -> Option<Promise> {
    Some(Promise {
        reference: finished.reference()?,
        messages: (finished.from, finished.to),
        block: None,
        blob: None,
    })
}

/// Bytes of what is put away, before it is packed.
fn size(archive: &Archive) -> u64 {
    let blobs = archive.blobs.iter().map(|(_, content)| content.len());
    let messages = archive.messages.iter().map(|kept| kept.parts.len());
    blobs.chain(messages).sum::<usize>() as u64
}

fn count(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::forgetful::{prepared, views, worked};
    use super::super::prepare::Wish;
    use super::*;
    use crate::store::Memory;

    /// What went another way under the same name is no beginning of a history,
    /// though it was told of, and though it is as long.
    #[tokio::test]
    async fn an_edited_history_has_only_its_own_places_behind_it() {
        let views = views(Arc::new(Memory::new())).await;
        let history = worked();
        let other = prepared(&views, &history[..9], Wish::None).await;
        views.archived.comes_to(other.lineage, &other.recognised);
        views.feed_turn(&other);
        let mut edited = history;
        edited[2]["content"][0]["content"] = "another result".into();
        let mut edited = prepared(&views, &edited[..11], Wish::None).await;
        let before = (ChainHash::from_bytes([3; 32]), 9);
        (edited.lineage, edited.edited) = (other.lineage, Some(before));
        let trace = views.trace(&edited).unwrap();
        assert_eq!(
            trace.before().first(),
            Some(&(edited.recognised.hash_at(9).unwrap(), 10))
        );
        let (_, own) = edited.recognised.hashes();
        let strange = |(place, _): &(ChainHash, u32)| *place != before.0 && !own.contains(place);
        assert!(!trace.before().iter().any(strange), "{trace:?}");
        assert!(trace.before().contains(&before));
    }
}
