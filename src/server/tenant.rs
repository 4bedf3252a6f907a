//! Whose a request is, asking upstream if only it can know.
//!
//! Where tenants are told apart by credential, the organization behind one is
//! upstream's to say. It is asked once for each credential, with the client's
//! own and for nothing but a list, before the first view is made: a request that
//! went under another tenant would not find its conversation.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response};
use tokio::time::timeout;

use super::headers;
use super::worker::Worker;
use crate::upstream::{RequestBody, ResponseBody};
use crate::views::tenants::Tenant;

/// How long upstream may take to say.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whose a request is.
pub async fn of(worker: &Worker, parts: &Parts) -> Arc<str> {
    let tenants = &worker.shared.views.tenants;
    let digest = match tenants.of(&parts.headers) {
        Tenant::Known(tenant) => return tenant,
        Tenant::Of(digest) => digest,
    };
    let answer = timeout(PATIENCE, ask(worker, parts)).await.ok().flatten();
    match answer {
        Some(answer) => worker.shared.views.learn_tenant(&digest, answer.headers()),
        // Not to be remembered: next time it may be known.
        None => format!("credential:{digest}").into(),
    }
}

async fn ask(worker: &Worker, parts: &Parts) -> Option<Response<ResponseBody>> {
    let mut outbound = Request::new(RequestBody::from(Bytes::new()));
    let target = "/v1/models?limit=1".parse().ok()?;
    *outbound.uri_mut() = worker.upstream.target(&target).ok()?;
    *outbound.method_mut() = Method::GET;
    let credential = ["authorization", "x-api-key", "anthropic-workspace-id"];
    let needed = ["anthropic-version", "anthropic-beta", "user-agent"];
    for name in credential.into_iter().chain(needed) {
        if let Some(value) = parts.headers.get(name) {
            outbound.headers_mut().insert(name, value.clone());
        }
    }
    headers::strip_request(outbound.headers_mut());
    let answer = worker.upstream.send(outbound).await.ok()?;
    // Who is refused says nothing of whom it belongs to, unless upstream does.
    let says = answer.headers().contains_key("anthropic-organization-id");
    (says || answer.status().is_success()).then_some(answer)
}
