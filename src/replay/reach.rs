//! Whether something that a view leaves out could be fetched again.
//!
//! A replay asks this of every probe that its view has lost. What answers is a
//! value of its own, so that whoever has a better way to look, such as a search
//! over the journal, can put it in its place.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use super::history::History;
use super::watch::{Need, Place};
use crate::engine::chain;
use crate::engine::overlay::Overlay;
use crate::engine::stub::blob_id;
use crate::store::Store;

/// The answer, later.
pub type Reached<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// What an agent could look in.
pub trait Reach: Send + Sync {
    /// Whether it would find what is needed, in this history under this overlay.
    fn reaches<'a>(
        &'a self,
        need: &'a Need,
        history: &'a History,
        overlay: &'a Overlay,
    ) -> Reached<'a>;
}

/// The content that was archived when it was left out.
pub struct Archive {
    store: Arc<dyn Store>,
    tenant: String,
}

impl Archive {
    /// What a store has archived of a tenant's.
    pub fn new(store: Arc<dyn Store>, tenant: &str) -> Self {
        Self {
            store,
            tenant: tenant.to_owned(),
        }
    }
}

impl Reach for Archive {
    fn reaches<'a>(
        &'a self,
        need: &'a Need,
        history: &'a History,
        overlay: &'a Overlay,
    ) -> Reached<'a> {
        Box::pin(async move {
            let tenant = chain::start(&self.tenant);
            for place in need.places.iter().rev() {
                for content in contents(history, overlay, *place) {
                    let kept = self.store.blob(blob_id(tenant, content.as_bytes())).await;
                    if let Ok(Some(_)) = kept {
                        return true;
                    }
                }
            }
            false
        })
    }
}

/// What was archived for a place: the whole message if it is hidden, as it is
/// written or as it was when it was one of the newest, with its mark; what a block
/// held if that gave way.
fn contents(history: &History, overlay: &Overlay, (message, block): Place) -> Vec<String> {
    if !overlay.shows(message) {
        let plain = history.written(message).map(str::to_owned);
        return plain.into_iter().chain(history.marked(message)).collect();
    }
    let held = history.block(message, block);
    let payload = held.and_then(|held| held.get("content").or_else(|| held.get("input")));
    payload.map(Value::to_string).into_iter().collect()
}
