//! What the admin surface holds, and who may use it.
//!
//! Every request but health checks is looked at by `guard` first. A refusal is
//! counted; somebody who tries tokens is slowed down.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use http::{HeaderMap, Response, Uri};
use tokio_util::sync::CancellationToken;

use super::guesses::Guesses;
use crate::config::Listen;
use crate::recall::Recall;
use crate::server::connection::Peer;
use crate::server::guard::{self, Refusal};
use crate::server::worker::Shared;
use crate::store::Moment;

/// What the admin surface needs.
pub struct Admin {
    /// What the workers share.
    pub shared: Arc<Shared>,
    /// What gets back what views have left out.
    pub recall: Arc<Recall>,
    /// Whether `/metrics` needs no token.
    pub metrics_open: bool,
    /// The address it listens on, as it is configured.
    pub listen: Listen,
    /// The token, if there is one.
    pub token: Option<String>,
    /// Whether the listener encrypts.
    pub encrypts: bool,
    /// Set once the process is about to stop.
    pub draining: CancellationToken,
    /// Wrong tokens that were sent lately.
    pub guesses: Guesses,
}

impl Admin {
    /// The moment it is.
    pub(in crate::admin) fn now(&self) -> Moment {
        self.shared.views.now()
    }

    /// The configured token.
    pub(in crate::admin) fn token(&self) -> Option<&str> {
        guard::configured(self.token.as_deref())
    }

    /// Whether the admin surface may be used. Who is refused is counted.
    pub(in crate::admin) async fn admit(
        &self,
        peer: Option<Peer>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        self.slow_down(peer, headers).await;
        let admitted = guard::admit(self.token(), &self.listen, peer, uri, headers);
        admitted.map_err(|refusal| self.refused(peer, refusal))
    }

    /// Waits before a token is looked at, if its sender has sent wrong ones.
    pub(in crate::admin) async fn slow_down(&self, peer: Option<Peer>, headers: &HeaderMap) {
        if self.token().is_some() && guard::sends_token(headers) {
            self.slow_down_guess(peer).await;
        }
    }

    /// The same where the token comes by another way.
    pub(in crate::admin) async fn slow_down_guess(&self, peer: Option<Peer>) {
        let delay = self.guesses.delay(address(peer), Instant::now());
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Counts a refusal; a wrong token is logged and slows its sender down.
    pub(in crate::admin) fn refused(&self, peer: Option<Peer>, refusal: Refusal) -> Refusal {
        self.shared.metrics.admin_refused(refusal.reason());
        if refusal == Refusal::WrongToken {
            let address = address(peer);
            let count = self.guesses.count(address, Instant::now());
            tracing::warn!(%address, count, "a wrong admin token was sent");
        }
        refusal
    }
}

/// The address under which wrong tokens of a request are counted.
fn address(peer: Option<Peer>) -> IpAddr {
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |Peer(peer)| peer.ip())
}

/// Counts an answer.
pub(in crate::admin) fn finish(admin: &Admin, response: Response<Body>) -> Response<Body> {
    admin.shared.metrics.answered("admin", response.status());
    response
}
