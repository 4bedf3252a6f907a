//! How large the window of a request is, and what upstream says of that.
//!
//! Which window counts is decided in [`crate::engine::measure`]; here it is put
//! together from the table, from what was learned for the request's account, and
//! from what refusals of this very request have claimed. A claim that does not
//! count for others still holds for the request that it was made to: else it
//! could not be made to fit.

use super::Views;
use super::learned::{Note, merged_window, window_note};
use super::prepare::Prepared;
use super::recognise::Recognised;
use crate::compactor::sender::Sender;
use crate::engine::measure::{Account, WindowKey};

impl Views {
    /// What the window of a request is learned for. Where tenants are not told
    /// apart the credential stands for whoever holds it.
    pub(super) fn window_key(
        &self,
        model: &str,
        tenant: &str,
        sender: Option<&Sender>,
    ) -> WindowKey {
        let account = match sender {
            Some(sender) if tenant.is_empty() => Account::Credential(sender.digest()),
            _ => Account::Tenant(tenant),
        };
        let long = sender.is_some_and(Sender::wants_long_context);
        WindowKey::new(&self.config.upstream.to_string(), model, account, long)
    }

    fn window_of(&self, recognised: &Recognised) -> u64 {
        let table = self.config.models.lookup(&recognised.facts.model).window;
        let key = &recognised.window_key;
        self.learned.window(key, table, self.now())
    }

    /// Tokens of the window of a request.
    pub(super) fn window(&self, prepared: &Prepared) -> u64 {
        let window = self.window_of(&prepared.recognised);
        prepared
            .claimed
            .map_or(window, |claimed| window.min(claimed))
    }

    /// Tokens that a prompt can have.
    pub(super) fn room(&self, prepared: &Prepared) -> u64 {
        self.room_in(self.window(prepared))
    }

    fn room_in(&self, window: u64) -> u64 {
        window - self.config.window.margin.of(window)
    }

    /// Tokens that a prompt may hold, by the window and the operator's budget.
    pub(super) fn usable(&self, prepared: &Prepared) -> u64 {
        let model = &prepared.recognised.facts.model;
        self.usable_in(self.window(prepared), model)
    }

    fn usable_in(&self, window: u64, model: &str) -> u64 {
        let (room, budget) = (
            self.room_in(window),
            self.config.models.lookup(model).budget,
        );
        budget.map_or(room, |budget| room.min(budget))
    }

    /// Tokens that a prompt may hold by the table and the operator's budget,
    /// whoever asks.
    pub fn usable_by_table(&self, model: &str) -> u64 {
        self.usable_in(self.config.models.lookup(model).window, model)
    }

    /// Tokens that a prompt should come down to.
    pub(super) fn floor(&self, prepared: &Prepared) -> u64 {
        self.config.policy.floor.of(self.usable(prepared))
    }

    /// The same for whatever grows out of a request that was answered.
    pub(super) fn floor_of(&self, recognised: &Recognised) -> u64 {
        let usable = self.usable_in(self.window_of(recognised), &recognised.facts.model);
        self.config.policy.floor.of(usable)
    }

    /// A refusal of a request claims a window. Replicas may know better: what
    /// they have stored is read first.
    pub(super) async fn learn_claim(&self, prepared: &Prepared, window: u64) {
        let key = prepared.recognised.window_key;
        if self.store.is_shared() && !self.store.is_away() {
            let keys = [window_note(key)];
            let stored = self.timed("learned", self.store.learned_of(&keys)).await;
            for (_, stored) in stored.unwrap_or_default() {
                self.learned.merge_window(key, &stored);
            }
        }
        self.note_window(self.learned.window_claimed(key, window, self.now()));
    }

    /// Writes down what was learned about a window, without waiting. What another
    /// replica has written meanwhile is kept.
    pub(super) fn note_window(&self, note: Option<Note>) {
        let Some((key, ours)) = note else {
            return;
        };
        if !self.store.is_shared() {
            self.note([(key, ours)]);
            return;
        }
        let (store, metrics) = (self.store.clone(), self.metrics.clone());
        let learn = async move {
            let begun = std::time::Instant::now();
            let keys = [key.clone()];
            let stored = store.learned_of(&keys).await.unwrap_or_default();
            let stored = stored.first().map_or("", |(_, stored)| stored.as_str());
            let learned = store.learn(&key, &merged_window(&ours, stored)).await;
            metrics.store("learn", begun.elapsed(), learned.is_err());
            if let Err(error) = learned {
                tracing::warn!(%error, "what was learned about a window could not be stored; it is learned again after a restart");
            }
        };
        self.tasks.spawn_on(learn, &self.background);
    }
}
