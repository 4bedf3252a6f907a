//! Makes connections: TCP, a tunnel if the environment asks for one, TLS.
//!
//! `HTTPS_PROXY` and `NO_PROXY` are honoured for an `https` upstream, with the
//! proxy asked to tunnel, so that it sees nothing of the traffic. Small writes
//! must leave at once (`TCP_NODELAY`): without it each request waits some 40 ms
//! for an acknowledgement that the other side holds back.

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
pub type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Why no connector could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The environment names a proxy of a kind that is not supported.
    #[error("HTTPS_PROXY names {0}, only http:// proxies are supported: change or unset it")]
    ProxyScheme(String),
}

/// Makes connections to one upstream.
#[derive(Clone)]
pub struct Connector(Way);

#[derive(Clone)]
enum Way {
    Direct(HttpsConnector<HttpConnector>),
    Tunnel(HttpsConnector<Tunnel<HttpConnector>>),
}

impl Connector {
    /// A connector for `base`, by way of the proxy that `proxies` names for it.
    pub fn new(base: &Uri, proxies: &Matcher) -> Result<Self, ConnectorError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let encrypted = base.scheme() == Some(&http::uri::Scheme::HTTPS);
        let proxy = proxies.intercept(base).filter(|_| encrypted);
        let Some(proxy) = proxy else {
            return Ok(Self(Way::Direct(encrypt(tcp))));
        };
        if proxy.uri().scheme_str() != Some("http") {
            let scheme = proxy.uri().scheme_str().unwrap_or("no scheme");
            return Err(ConnectorError::ProxyScheme(format!("a {scheme}:// proxy")));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Ok(Self(Way::Tunnel(encrypt(tunnel))))
    }

    /// Connects to `base`.
    pub async fn connect(&self, base: &Uri) -> Result<Stream, UpstreamError> {
        match &self.0 {
            Way::Direct(connector) => call(connector.clone(), base).await,
            Way::Tunnel(connector) => call(connector.clone(), base).await,
        }
    }
}

/// Whether the two sides agreed on HTTP/2.
pub fn negotiated_http2(stream: &Stream) -> bool {
    stream.connected().is_negotiated_h2()
}

fn encrypt<C>(inner: C) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new()
        .with_tls_config(roots::client_config())
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(inner)
}

async fn call<C>(mut connector: C, base: &Uri) -> Result<Stream, UpstreamError>
where
    C: Service<Uri, Response = Stream>,
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
