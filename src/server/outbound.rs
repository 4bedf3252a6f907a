//! Requests as upstream gets them.

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;

use super::headers;
use super::respond::Failure;
use super::worker::Worker;
use crate::upstream::RequestBody;
use crate::views::prepare::Prepared;

/// Readdresses the request: same method, path, query, end-to-end headers, body.
pub fn address(
    worker: &Worker,
    parts: Parts,
    body: RequestBody,
) -> Result<Request<RequestBody>, Failure> {
    let mut outbound = Request::new(body);
    *outbound.uri_mut() = worker.upstream.target(&parts.uri)?;
    *outbound.method_mut() = parts.method;
    *outbound.headers_mut() = parts.headers;
    // Holds how the client spelled its header names.
    *outbound.extensions_mut() = parts.extensions;
    headers::strip_request(outbound.headers_mut());
    Ok(outbound)
}

/// The same with a view: its own bytes, and what they need said in headers.
pub fn address_view(
    worker: &Worker,
    parts: &Parts,
    own: &Bytes,
    prepared: &Prepared,
) -> Result<Request<RequestBody>, Failure> {
    let view = &prepared.view;
    if !view.edited {
        return address(worker, parts.clone(), own.clone().into());
    }
    let body = RequestBody::pieces(view.pieces.clone());
    let mut outbound = address(worker, parts.clone(), body)?;
    let headers = outbound.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
    for beta in view.betas() {
        headers::announce_beta(headers, beta);
    }
    Ok(outbound)
}
