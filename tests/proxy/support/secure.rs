//! Encrypted upstreams, the authority that vouches for them, and a tunnel.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate authority, and a certificate of it for this machine's loopback.
pub struct Authority {
    folder: TempDir,
}

impl Authority {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let names = [
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        let server_key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(names)
            .unwrap()
            .signed_by(&server_key, &issuer)
            .unwrap();
        for (name, text) in [
            ("root.pem", root.pem()),
            ("cert.pem", server.pem()),
            ("key.pem", server_key.serialize_pem()),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a process needs to trust this authority.
    pub fn trusted(&self) -> String {
        self.file("root.pem").display().to_string()
    }

    /// For `[tls]`.
    pub fn config(&self) -> String {
        format!(
            "[tls]
cert = '{}'
key = '{}'
",
            self.file("cert.pem").display(),
            self.file("key.pem").display()
        )
    }

    /// Trusts this authority.
    pub fn client(&self) -> reqwest::ClientBuilder {
        let root =
            reqwest::Certificate::from_pem(&std::fs::read(self.file("root.pem")).unwrap()).unwrap();
        reqwest::Client::builder().tls_certs_only([root]).no_proxy()
    }
}

/// Starts an encrypted upstream that offers `protocols` and answers with the
/// version it was spoken to in, a colon, and the request's body.
pub fn echo(authority: &Authority, protocols: &[&str], address: &str) -> SocketAddr {
    let router = Router::new().fallback(|request: axum::extract::Request| async move {
        let version = format!("{:?}:", request.version());
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Body::from([version.as_bytes(), &body].concat())
    });
    encrypted(authority, protocols, address, move |stream| {
        let router = TowerToHyperService::new(router.clone());
        async move {
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), router)
                .await;
        }
    })
}

/// Starts an encrypted upstream that offers `protocols` and does `serve` with
/// each connection.
pub fn encrypted<F: Future<Output = ()> + Send + 'static>(
    authority: &Authority,
    protocols: &[&str],
    address: &str,
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
) -> SocketAddr {
    let mut config = longhaul::server::tls::server_config(
        &authority.file("cert.pem"),
        &authority.file("key.pem"),
    )
    .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let serve = Arc::new(serve);
    let listener = TcpListener::bind(address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, serve) = (acceptor.clone(), serve.clone());
                tokio::spawn(async move {
                    // A peer that does not trust us ends here.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream).await;
                    }
                });
            }
        });
    });
    address
}

/// A proxy that tunnels; counts its tunnels.
pub fn tunnel() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tunnels = Arc::new(AtomicUsize::new(0));
    let counted = tunnels.clone();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, counted) = (client.unwrap(), counted.clone());
            std::thread::spawn(move || {
                let mut reader = super::http::Reader::new(client.try_clone().unwrap());
                let head = reader.head().unwrap().unwrap();
                let target = head
                    .line
                    .strip_prefix("CONNECT ")
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap();
                let mut server = std::net::TcpStream::connect(target).unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
                let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || splice(&mut from, &mut to));
                splice(&mut client, &mut server);
            });
        }
    });
    (address, tunnels)
}

fn splice(from: &mut std::net::TcpStream, to: &mut std::net::TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}
