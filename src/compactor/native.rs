//! Asking the API itself for a summary.
//!
//! What it gives is signed: on models that bind thinking to what stands before
//! it, this is the one summary under which the thinking behind it stays valid. Its
//! text can be read, and is held to the same rules as any other. An API or a model
//! that does not know it is not asked again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::time::Instant;

use super::Compactor;
use super::asking::{Failed, Written};
use super::client::Call;
use super::errand::Errand;
use crate::engine::recovery::Failure;
use crate::engine::summary::check::Problem;
use crate::engine::summary::prompt::Ask;
use crate::engine::summary::read::read;
use crate::wire::body::Body;
use crate::wire::native::{BETA, native};
use crate::wire::splice::joined;

/// The models that have refused to.
#[derive(Default)]
pub struct Refusers(Mutex<BTreeSet<String>>);

impl Refusers {
    fn add(&self, model: &str) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.insert(model.to_owned());
    }

    /// Those that have refused since this was last asked.
    pub fn take(&self) -> BTreeSet<String> {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *models)
    }
}

impl Compactor {
    pub(super) async fn natively(
        self: &Arc<Self>,
        errand: &Arc<Errand>,
        refused: Option<&Problem>,
        until: Instant,
    ) -> Result<Written, Failed> {
        let (Some(cached), Some(messages)) = (&errand.cached, errand.native) else {
            return Err(Failure::Unsupported.into());
        };
        let ask = Ask {
            wishes: self.wishes(errand),
            refused,
        };
        let bytes = joined(&cached.pieces);
        let body = Body::split(&bytes).map_err(|_| Failure::Unsupported)?;
        let body = native(&bytes, &body, messages, &ask.native());
        let body = body.ok_or(Failure::Unsupported)?;
        let mut betas = cached.betas.clone();
        betas.push(BETA);
        let (to, headers) = errand.sender.again(&self.base, &betas);
        let call = Call { to, headers, body };
        let said = self.call(&call, errand, &errand.model, until).await;
        let said = said.inspect_err(|failed| {
            if failed.failure == Failure::Unsupported {
                self.refusers.add(&errand.model);
            }
        })?;
        let block = said
            .compaction()
            .filter(|_| said.stop_reason == "compaction");
        let block = block.ok_or(Problem::Malformed)?;
        let text = block.get("content").and_then(Value::as_str);
        let narrative = read(text.unwrap_or_default())?;
        Ok(Written {
            narrative,
            block: Some(block.to_string()),
        })
    }
}
