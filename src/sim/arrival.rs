//! A request as it arrived, and the page it gets in the ledger.

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use http::HeaderMap;

use super::account::Account;
use super::encoding;
use super::error::Checked;
use super::ledger::{Entry, Kind, Outcome};
use super::prices::{Cost, Tokens};
use super::state::Sim;
use crate::clock::Moment;

/// A request as it arrived.
#[derive(Debug)]
pub(super) struct Arrival {
    pub request_id: String,
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub at: Moment,
    /// `None` if it was over the limit.
    raw: Option<Bytes>,
}

impl Arrival {
    /// Reads a request to its end, or to the limit.
    pub async fn read(sim: &Sim, request: Request<Body>) -> Self {
        // The life of a cache entry counts from the start of the request.
        let at = sim.clock().now();
        let request_id = sim.request_id();
        let (parts, body) = request.into_parts();
        let raw = axum::body::to_bytes(body, sim.options().body_limit)
            .await
            .ok();
        let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
        Self {
            request_id,
            method: parts.method.to_string(),
            path: path.to_owned(),
            headers: parts.headers,
            at,
            raw,
        }
    }

    /// The body, decoded.
    pub fn body(&self, sim: &Sim) -> Checked<Bytes> {
        let raw = self.raw.as_ref().ok_or_else(encoding::too_large)?;
        encoding::decode(
            raw,
            self.header("content-encoding"),
            sim.options().body_limit,
        )
    }

    /// A header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A fresh page of the ledger.
    pub fn entry(&self, sim: &Sim, account: Option<&Account>) -> Entry {
        let hash = account.map_or("", |account| account.credential_hash.as_str());
        let headers = self.headers.iter().map(|(name, value)| {
            let secret = name == "x-api-key" || name == "authorization";
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (
                name.to_string(),
                if secret {
                    format!("hash:{hash}")
                } else {
                    value
                },
            )
        });
        Entry {
            at: self.at.as_millis(),
            request_id: self.request_id.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            headers: headers.collect(),
            body: self.raw.clone().filter(|_| sim.options().keep_bodies),
            model: None,
            kind: Kind::Other,
            streamed: false,
            outcome: Outcome::Answered {
                stop_reason: String::new(),
            },
            conversation: None,
            message_id: None,
            tokens: Tokens::default(),
            cost: Cost::default(),
            positions: 0,
            read_position: None,
            written_positions: Vec::new(),
            broken_at: None,
            transformations: Vec::new(),
            prefix_mismatch: None,
            applied_edits: Vec::new(),
        }
    }
}
