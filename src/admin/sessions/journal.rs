//! What a session's views have left out: searched, listed, and shown in full.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::Response;
use serde_json::{Value, json};

use super::query::Asked;
use super::{Ordered, answered};
use crate::admin::problem::Problem;
use crate::admin::state::Admin;
use crate::engine::recall::reference;
use crate::recall::{Trouble, Who};
use crate::store::journal::Listing;

/// `?q=` searches, without it everything is listed, the newest first.
pub(super) async fn search(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let found = async {
        let session = ordered.session()?;
        let Asked {
            limit,
            query,
            kind,
            before,
            content,
            ..
        } = ordered.asked;
        if let Some(query) = query {
            let found = admin.recall.recall(Who::Session(session), &query, limit);
            let found = found.await?;
            let entries: Vec<Value> = found.hits.iter().map(|hit| hit.json(true)).collect();
            return Ok(json!({ "entries": entries, "more": found.more }));
        }
        let listing = Listing {
            kinds: kind.into_iter().collect(),
            before,
            limit,
        };
        let shown = admin.recall.show(session, &listing, content).await?;
        let entries: Vec<Value> = shown.entries.iter().map(|hit| hit.json(content)).collect();
        Ok(json!({ "entries": entries, "next": shown.next }))
    };
    answered(&admin, found.await)
}

/// A page of what a reference stands for, if it is one of the session's.
pub(super) async fn page(State(admin): State<Arc<Admin>>, ordered: Ordered) -> Response<Body> {
    let shown = async {
        let session = ordered.session()?;
        let given = ordered.path.get(1).map(String::as_str).unwrap_or_default();
        let reference = reference::read(given).ok_or_else(|| {
            Problem::malformed("a reference is lh- and 20 digits or letters from a to f")
        })?;
        let who = Who::Reference(reference);
        if !admin.recall.belongs(session, reference).await? {
            return Err(Trouble::UnknownReference.into());
        }
        let page = admin.recall.expand(who, ordered.asked.page).await?;
        Ok(json!({ "reference": page.reference, "page": page.page, "text": page.text }))
    };
    answered(&admin, shown.await)
}
