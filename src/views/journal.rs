//! What a conversation tells the journal.
//!
//! Before an overlay is committed the history is put away, so that whatever the
//! overlay leaves out can be had again byte for byte, and every reference that
//! the new view shows is known to stand for something. What is found by
//! searching follows in the background: after a pass the content that it left
//! out, and after every reply what the turn decided, touched and failed at.

use std::ops::Range;

use super::prepare::Prepared;
use super::{Fault, Views};
use crate::compactor::errand::Finished;
use crate::config::RecallMcp;
use crate::engine::archive;
use crate::engine::chain;
use crate::engine::facts::facts;
use crate::engine::recall::entries;
use crate::engine::recall::entry::{Entry, EntryKind};
use crate::engine::recall::telling::{Telling, tools};
use crate::engine::reduce::Evicted;
use crate::engine::stub::blob_id;
use crate::store::journal::{Archive, Kept, Promise, Trace};

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
    /// a draft shows.
    pub(super) async fn archive(
        &self,
        prepared: &Prepared,
        evicted: &[Evicted],
        summary: Option<&Finished>,
    ) -> Result<(), Fault> {
        if !self.config.journal.enabled {
            return Ok(());
        }
        let trace = trace(prepared).ok_or(Fault::Bug("no chain"))?;
        let promises = evicted
            .iter()
            .map(promise)
            .chain(summary.and_then(promised_by))
            .collect();
        let recognised = prepared.recognised.clone();
        let known = self.archived.known(prepared.lineage);
        let tenant = trace.tenant;
        let packed = super::compute(recognised.bytes.len() * 2, "archive", move || {
            let conversation = recognised.conversation();
            let mut archive = Archive {
                promises,
                ..Archive::default()
            };
            for at in 0..conversation.len() {
                if known.has(&recognised, at) {
                    continue;
                }
                let mut keep = |range: Range<usize>| {
                    let content = recognised.bytes.get(range).unwrap_or(&[]);
                    let id = blob_id(tenant, content);
                    archive.blobs.push((id, content.to_vec()));
                    id
                };
                let parts = archive::parts(&conversation, at);
                let (parts, blobs) = archive::encode(&recognised.bytes, &parts, &mut keep);
                archive.messages.push(Kept {
                    message: count(at),
                    parts,
                    blobs,
                });
            }
            archive.blobs.sort_by_key(|(id, _)| *id);
            archive.blobs.dedup_by_key(|(id, _)| *id);
            archive
        });
        let packed = packed.await?;
        let journal = self.store.journal();
        let put = journal.archive(&trace, &packed, self.now());
        self.timed("archive", put).await?;
        self.archived.note(prepared.lineage, &prepared.recognised);
        Ok(())
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
        let Some(trace) = trace(prepared) else { return };
        let recognised = prepared.recognised.clone();
        let (feed, at) = (self.feed.clone(), self.now());
        let summary = summary.and_then(|finished| {
            let reference = finished.reference()?;
            Some((finished.from, reference, finished.text()))
        });
        let work = move || {
            let conversation = recognised.conversation();
            let mut found = Vec::new();
            let seed = recognised.seed();
            for gone in evicted {
                found.extend(entries::entries(&conversation, trace.tenant, seed, &gone));
            }
            if let Some((message, reference, text)) = summary {
                found.push(Entry::inline(EntryKind::Summary, message, reference, text));
            }
            found.push(entries::snapshot(&conversation, seed, told));
            feed.push(trace, found, at);
        };
        self.tasks.spawn_blocking_on(work, &self.background);
    }

    /// Tells the journal what is new in a conversation.
    pub(super) fn feed_turn(&self, prepared: &Prepared) {
        let goes_on = prepared.remembers && self.config.journal.enabled;
        let Some(trace) = trace(prepared).filter(|_| goes_on) else {
            return;
        };
        let recognised = prepared.recognised.clone();
        let from = self.archived.fed(prepared.lineage, recognised.len());
        let (feed, at) = (self.feed.clone(), self.now());
        let work = move || {
            let conversation = recognised.conversation();
            let facts = facts(&conversation, from, conversation.len());
            let found = entries::of_facts(recognised.seed(), &facts);
            feed.push(trace, found, at);
        };
        self.tasks.spawn_blocking_on(work, &self.background);
    }
}

/// Which conversation it is, for the journal.
fn trace(prepared: &Prepared) -> Option<Trace> {
    let recognised = &prepared.recognised;
    let from = prepared.grew_from.and_then(|messages| {
        let hash = recognised.hash_at(messages.checked_sub(1)?)?;
        Some((hash, count(messages)))
    });
    Some(Trace {
        tenant: chain::start(&recognised.tenant),
        lineage: prepared.lineage,
        label: prepared.label.clone(),
        from,
        here: (recognised.last()?, count(recognised.len())),
    })
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

fn count(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
