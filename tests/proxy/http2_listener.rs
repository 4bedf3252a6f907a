//! Clients that speak HTTP/2 get what those of HTTP/1 get: whole streams, plain
//! cuts, large bodies and headers, a polite end, and the same patience.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::secure::Authority;
use crate::support::{
    Gate, LAST_CHUNK, Process, Proxy, STREAM_HEAD, Step, Tap, chunk, plain, text,
};

/// A proxy whose listener is encrypted, and what finds it.
fn listening(tap: &Tap) -> (Proxy, reqwest::Client, String) {
    let authority = Authority::new();
    let proxy = Proxy::with(&tap.url(), &authority.config());
    let url = format!("https://localhost:{}", proxy.address.port());
    (proxy, authority.client().build().unwrap(), url)
}

fn block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(40), future).await };
    runtime.block_on(limited).unwrap()
}

/// Also of a client that takes little at a time, so that some of it still waits
/// when upstream breaks off.
#[test]
fn a_cut_after_much_data_loses_none_of_it() {
    let size = 3 << 20;
    let tap = Tap::start(move |_| {
        vec![
            Step::Send([STREAM_HEAD.as_bytes(), &chunk(vec![b'Z'; size])].concat()),
            Step::Close,
        ]
    });
    let authority = Authority::new();
    let proxy = Proxy::with(&tap.url(), &authority.config());
    let url = format!("https://localhost:{}/v1/x", proxy.address.port());
    for window in [None, Some(20_000), Some(70_000)] {
        let client = authority.client().http2_initial_stream_window_size(window);
        let client = client.build().unwrap();
        block(async {
            let mut answer = client.get(&url).send().await.unwrap();
            assert_eq!(answer.version(), http::Version::HTTP_2);
            let mut seen = 0;
            let ended = loop {
                match answer.chunk().await {
                    Ok(Some(piece)) => seen += piece.len(),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            assert!(!ended, "looks whole");
            assert_eq!(seen, size, "{window:?}");
        });
    }
}

/// A client may hang up on whoever sends it many tiny frames.
#[test]
fn many_small_events_reach_a_client_that_reads_them_late() {
    let event = "x".repeat(200);
    let events = chunk(event.as_str()).repeat(300);
    let tap = Tap::start(move |_| {
        vec![Step::Send(
            [STREAM_HEAD.as_bytes(), &events, LAST_CHUNK].concat(),
        )]
    });
    let authority = Authority::new();
    let proxy = Proxy::with(&tap.url(), &authority.config());
    let url = format!("https://localhost:{}/v1/x", proxy.address.port());
    let client = authority
        .client()
        .http2_initial_connection_window_size(65_535)
        .build()
        .unwrap();
    block(async {
        let answer = client.get(&url).send().await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(answer.bytes().await.unwrap().len(), 300 * 200);
    });
}

#[test]
fn a_stream_that_was_left_is_cancelled_upstream() {
    let (closed, noticed) = channel();
    let tap = Tap::start(move |_| {
        vec![
            Step::Send([STREAM_HEAD.as_bytes(), &chunk("first")].concat()),
            Step::UntilClosed(closed.clone()),
        ]
    });
    let (_proxy, client, url) = listening(&tap);
    block(async {
        let mut left = client.get(format!("{url}/v1/left")).send().await.unwrap();
        left.chunk().await.unwrap();
        drop(left);
        // The client's connection stays and is driven by this runtime.
        while noticed.try_recv().is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn a_stream_finishes_while_draining() {
    let gate = Gate::new();
    let steps = vec![
        Step::Send([STREAM_HEAD.as_bytes(), &chunk("first")].concat()),
        Step::Wait(gate.clone()),
        Step::Send([&chunk("last"), LAST_CHUNK].concat()),
    ];
    let tap = Tap::start(move |_| steps.clone());
    let authority = Authority::new();
    let file = |name: &str| authority.file(name).display().to_string();
    let process = Process::start(
        &tap.url(),
        &[
            ("LONGHAUL_TLS__CERT", &file("cert.pem")),
            ("LONGHAUL_TLS__KEY", &file("key.pem")),
        ],
    );
    let url = format!("https://localhost:{}", process.address.port());
    let client = authority.client().build().unwrap();
    block(async {
        let mut answer = client.get(format!("{url}/v1/x")).send().await.unwrap();
        let mut first = Vec::new();
        while text(&first) != "first" {
            first.extend_from_slice(&answer.chunk().await.unwrap().unwrap());
        }
        process.signal("-TERM");
        while tokio::net::TcpStream::connect(process.address)
            .await
            .is_ok()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        gate.open();
        let mut rest = Vec::new();
        while let Some(piece) = answer.chunk().await.unwrap() {
            rest.extend_from_slice(&piece);
        }
        assert_eq!(text(&rest), "last");
        drop(client);
    });
    assert_eq!(process.wait().0, Some(0));
}

#[test]
fn a_large_upload_passes() {
    let tap = Tap::start(|request| plain(request.body.len().to_string().as_bytes()));
    let (_proxy, client, url) = listening(&tap);
    block(async {
        for path in ["messages", "files"] {
            let request = client.post(format!("{url}/v1/{path}"));
            let answer = request.body(vec![b'x'; 20 << 20]).send().await.unwrap();
            assert_eq!(answer.text().await.unwrap(), (20 << 20).to_string());
        }
    });
}

#[test]
fn large_headers_are_as_welcome_as_over_http_1() {
    let tap = Tap::start(|_| plain(b"ok"));
    let (_proxy, client, url) = listening(&tap);
    block(async {
        let request = client
            .get(format!("{url}/v1/x"))
            .header("x-large", "y".repeat(40_000));
        assert_eq!(request.send().await.unwrap().status(), 200);
    });
}

#[test]
fn an_idle_encrypted_client_is_let_go_in_every_version() {
    let authority = Authority::new();
    let tap = Tap::start(|_| plain(b"ok"));
    let file = format!("limits.header_timeout = \"1s\"\n{}", authority.config());
    let proxy = Proxy::with(&tap.url(), &file);
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority.file("root.pem")).unwrap())
        .unwrap();
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    for (protocol, preface) in [("http/1.1", false), ("h2", false), ("h2", true)] {
        config.alpn_protocols = vec![protocol.into()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config.clone()));
        block(async {
            let stream = tokio::net::TcpStream::connect(proxy.address).await.unwrap();
            let mut stream = connector
                .connect("localhost".try_into().unwrap(), stream)
                .await
                .unwrap();
            if preface {
                stream
                    .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                    .await
                    .unwrap();
            }
            let mut all = Vec::new();
            let ended = stream.read_to_end(&mut all);
            let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
            assert!(ended.is_ok(), "{protocol} preface {preface}");
        });
    }
}

/// Here there is room for all of it, and it is the socket that holds it up when
/// upstream breaks off; somewhere among these sizes it does.
#[test]
fn a_cut_while_the_socket_is_full_loses_nothing_either() {
    const STEP: usize = 300 << 10;
    let authority = Authority::new();
    for size in (4..=28).map(|steps| steps * STEP) {
        let tap = Tap::start(move |_| {
            let data = chunk(vec![b'Z'; size]);
            vec![
                Step::Send([STREAM_HEAD.as_bytes(), &data].concat()),
                Step::Close,
            ]
        });
        let proxy = Proxy::with(&tap.url(), &authority.config());
        let url = format!("https://localhost:{}/v1/x", proxy.address.port());
        let room = Some(16 << 20);
        let client = authority.client().http2_initial_stream_window_size(room);
        let client = client.http2_initial_connection_window_size(room);
        let client = client.build().unwrap();
        block(async {
            let mut answer = client.get(&url).send().await.unwrap();
            // Nobody reads: this thread is the client's only one.
            std::thread::sleep(Duration::from_millis(100));
            let mut seen = 0;
            while let Ok(Some(piece)) = answer.chunk().await {
                seen += piece.len();
            }
            assert_eq!(seen, size);
        });
    }
}
