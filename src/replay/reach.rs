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
                let Some(content) = content(history, overlay, *place) else {
                    continue;
                };
                let kept = self.store.blob(blob_id(tenant, content.as_bytes())).await;
                if let Ok(Some(_)) = kept {
                    return true;
                }
            }
            false
        })
    }
}

/// What was archived for a place: the whole message if it is hidden, what a
/// block held if that gave way.
fn content(history: &History, overlay: &Overlay, (message, block): Place) -> Option<String> {
    if !overlay.shows(message) {
        return history.written(message).map(str::to_owned);
    }
    let block = history.block(message, block)?;
    let payload = block.get("content").or_else(|| block.get("input"));
    Some(payload.unwrap_or(&Value::Null).to_string())
}
