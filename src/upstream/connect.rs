//! Makes connections: TCP, a tunnel if the environment asks for one, TLS.
//!
//! `HTTPS_PROXY` and `NO_PROXY` are honoured for an `https` upstream, with the
//! proxy asked to tunnel, so that it sees nothing of the traffic. Small writes
//! must leave at once (`TCP_NODELAY`): without it each request waits some 40 ms
//! for an acknowledgement that the other side holds back.

use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt};

use super::UpstreamError;
use super::roots;

/// A connection to upstream, plain or encrypted.
pub type Stream = super::stream::Stream<Way>;
type Way = MaybeHttpsStream<TokioIo<TcpStream>>;

/// How long a connection may be silent before the system asks whether the other
/// side is still there, how often it asks, and how many times: a reply that is
/// thought about for minutes must not die unnoticed in some router's table.
const KEEPALIVE: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// Why no connector could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The environment names a proxy of a kind that is not supported.
    #[error("HTTPS_PROXY names {0}, only http:// proxies are supported: change or unset it")]
    ProxyScheme(String),
}

/// Makes connections to one upstream.
#[derive(Clone)]
pub struct Connector(Route);

#[derive(Clone)]
enum Route {
    Direct(HttpsConnector<HttpConnector>),
    Tunnel(HttpsConnector<Tunnel<HttpConnector>>),
}

impl Connector {
    /// A connector for `base`, by way of the proxy that `proxies` names for it.
    /// If the name has several addresses, they share the time `limit`.
    pub fn new(base: &Uri, proxies: &Matcher, limit: Duration) -> Result<Self, ConnectorError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(limit));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        tcp.enforce_http(false);
        let encrypted = base.scheme() == Some(&http::uri::Scheme::HTTPS);
        let proxy = proxies.intercept(base).filter(|_| encrypted);
        let Some(proxy) = proxy else {
            return Ok(Self(Route::Direct(encrypt(tcp))));
        };
        if proxy.uri().scheme_str() != Some("http") {
            let scheme = proxy.uri().scheme_str().unwrap_or("no scheme");
            return Err(ConnectorError::ProxyScheme(format!("a {scheme}:// proxy")));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Ok(Self(Route::Tunnel(encrypt(tunnel))))
    }

    /// Connects to `base`. Also tells whether the two sides agreed on HTTP/2.
    pub async fn connect(&self, base: &Uri) -> Result<(Stream, bool), UpstreamError> {
        let way = match &self.0 {
            Route::Direct(connector) => call(connector.clone(), base).await?,
            Route::Tunnel(connector) => call(connector.clone(), base).await?,
        };
        let http2 = way.connected().is_negotiated_h2();
        Ok((Stream::new(way), http2))
    }
}

fn encrypt<C>(inner: C) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new()
        .with_tls_config(roots::client_config())
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(inner)
}

async fn call<C>(mut connector: C, base: &Uri) -> Result<Way, UpstreamError>
where
    C: Service<Uri, Response = Way>,
    C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let failed = |error: C::Error| UpstreamError::Connect(reason(error.into().as_ref()));
    let ready = connector.ready().await.map_err(failed)?;
    ready.call(base.clone()).await.map_err(failed)
}

/// An error with all its causes, in one line: the outermost alone rarely says
/// what was wrong.
pub fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// The first cause of this type.
pub fn cause<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    let mut error = Some(error);
    while let Some(cause) = error {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        error = cause.source();
    }
    None
}
