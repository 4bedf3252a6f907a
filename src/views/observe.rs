//! What upstream said of a request, taken into memory and store.
//!
//! As soon as a reply begins to stream the plan stands for ever, and the usage
//! it reports is worth keeping; the rest follows at its end. None of this is
//! waited for.

use super::Views;
use super::prepare::Prepared;
use crate::engine::request::Treatment;
use crate::wire::reply::Reply;

/// How many marks of a reply are kept to tell it.
const FINGERPRINT: usize = 32;

impl Views {
    /// A reply has begun: the plan stands.
    pub fn began(&self, prepared: &mut Prepared, reply: &Reply) {
        let model = prepared.recognised.facts.model.clone();
        for (quirk, _) in std::mem::take(&mut prepared.lessons) {
            self.note(self.learned.shown(quirk, &model));
        }
        self.keep(prepared, reply);
    }

    /// A reply has ended, whole or not.
    pub fn ended(&self, prepared: &mut Prepared, reply: &Reply) {
        self.keep(prepared, reply);
        let Some(prompt) = prepared.figures.prompt else {
            return;
        };
        let model = &prepared.recognised.facts.model;
        let (_, size) = prepared.figures.sizes();
        self.metrics.measured(prepared.sent.tokens, prompt);
        if !prepared.figures.drop_block {
            // With thinking dropped by upstream the two do not count the same.
            self.note(self.learned.observe(model, size.raw(), prompt));
        }
        self.note(self.learned.accepted(model, prompt));
    }

    fn keep(&self, prepared: &mut Prepared, reply: &Reply) {
        if !prepared.remembers {
            return;
        }
        let figures = &mut prepared.figures;
        figures.prompt = reply.usage.prompt().filter(|tokens| *tokens > 0);
        figures.output = reply.usage.output;
        figures.cache_read = reply.usage.cache_read;
        let calls = reply.tool_calls.iter().map(|call| call.id.clone());
        figures.reply = reply
            .id
            .iter()
            .cloned()
            .chain(calls)
            .take(FINGERPRINT)
            .collect();
        let Some(row) = prepared.row(true) else {
            return;
        };
        let recognised = &prepared.recognised;
        // Only an ordinary request is the conversation going on.
        let parent = prepared
            .grew_from
            .filter(|_| recognised.treatment == Treatment::Ordinary)
            .and_then(|messages| messages.checked_sub(1))
            .and_then(|at| recognised.swifts.get(at));
        if let Some(swift) = recognised.swifts.last() {
            let overlay = prepared
                .overlay
                .as_ref()
                .map(|(_, overlay)| overlay.clone());
            self.known
                .remember(*swift, parent.copied(), row.clone(), overlay);
        }
        self.writer.record(row);
    }
}
