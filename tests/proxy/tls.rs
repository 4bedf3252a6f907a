//! Encryption on both sides, both versions of HTTP, tunnels, IPv6.

use std::sync::atomic::Ordering;

use crate::support::secure::{Authority, echo, tunnel};
use crate::support::{Client, Process, Proxy, Tap, plain};

#[test]
fn upstream_is_spoken_to_in_the_version_it_offers() {
    let authority = Authority::new();
    let rows: [(&[&str], &str); 3] = [
        (&["h2", "http/1.1"], "HTTP/2.0:"),
        (&["http/1.1"], "HTTP/1.1:"),
        (&[], "HTTP/1.1:"),
    ];
    for (offered, version) in rows {
        let upstream = echo(&authority, offered, "127.0.0.1:0");
        let url = format!("https://localhost:{}", upstream.port());
        let process = Process::start(&url, &[("SSL_CERT_FILE", &authority.trusted())]);
        // Larger than one flow control window.
        let body = vec![b'x'; 3 << 20];
        for path in ["/v1/messages", "/v1/streamed", "/v1/messages"] {
            let answer = Client::connect(process.address)
                .post(path, "", &body)
                .answer();
            assert_eq!(answer.status(), 200);
            assert!(
                answer.complete && answer.body == [version.as_bytes(), &body].concat(),
                "{version} {path}"
            );
        }
    }
}

#[test]
fn an_upstream_nobody_vouches_for_is_refused_and_the_error_says_why() {
    let authority = Authority::new();
    let upstream = echo(&authority, &["h2"], "127.0.0.1:0");
    let stranger = Authority::new();
    let process = Process::start(
        &format!("https://localhost:{}", upstream.port()),
        &[("SSL_CERT_FILE", &stranger.trusted())],
    );
    let answer = Client::connect(process.address)
        .post("/v1/messages", "", b"{}")
        .answer();
    assert_eq!(answer.status(), 502);
    assert!(
        String::from_utf8_lossy(&answer.body).contains("certificate"),
        "{answer:?}"
    );
}

#[test]
fn an_https_proxy_of_the_environment_is_used_and_no_proxy_respected() {
    let authority = Authority::new();
    let upstream = echo(&authority, &["h2", "http/1.1"], "127.0.0.1:0");
    let (proxy, tunnels) = tunnel();
    let url = format!("https://localhost:{}", upstream.port());
    let root = authority.trusted();
    let proxy = format!("http://{proxy}");
    for (no_proxy, expected) in [("", 1), ("localhost", 1)] {
        let variables = [
            ("SSL_CERT_FILE", root.as_str()),
            ("HTTPS_PROXY", &proxy),
            ("NO_PROXY", no_proxy),
        ];
        let process = Process::start(&url, &variables);
        let answer = Client::connect(process.address)
            .post("/v1/messages", "", b"{}")
            .answer();
        assert_eq!(answer.body, b"HTTP/2.0:{}");
        assert_eq!(
            tunnels.load(Ordering::SeqCst),
            expected,
            "NO_PROXY={no_proxy}"
        );
    }
}

#[test]
fn the_listener_can_be_encrypted_in_both_versions() {
    let authority = Authority::new();
    let tap = Tap::start(|request| plain(&request.body));
    let proxy = Proxy::with(&tap.url(), &authority.config());
    let url = format!(
        "https://localhost:{}/v1/messages?beta=true",
        proxy.address.port()
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let body = vec![b'y'; 2 << 20];
    for (client, version) in [
        (authority.client(), reqwest::Version::HTTP_2),
        (authority.client().http1_only(), reqwest::Version::HTTP_11),
    ] {
        let client = client.build().unwrap();
        let (seen, answer) = runtime.block_on(async {
            let response = client.post(&url).body(body.clone()).send().await.unwrap();
            (response.version(), response.bytes().await.unwrap())
        });
        assert_eq!(seen, version);
        assert!(answer == body);
        let seen = tap.seen();
        assert_eq!(seen.line, "POST /v1/messages?beta=true HTTP/1.1");
        assert_eq!(seen.header("host"), tap.url().strip_prefix("http://"));
    }
}

#[test]
fn a_certificate_that_cannot_be_read_is_a_clear_error() {
    let authority = Authority::new();
    let garbage = authority.file("garbage.pem");
    std::fs::write(&garbage, "no certificate").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .env("LONGHAUL_TLS__CERT", authority.file("cert.pem"))
        .env("LONGHAUL_TLS__KEY", &garbage)
        .args(["--listen", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("garbage.pem") && text.contains("PEM"),
        "{text}"
    );
}

#[test]
fn ipv6_works_on_both_sides() {
    let authority = Authority::new();
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let upstream = echo(&authority, &["http/1.1"], "[::1]:0");
    let process = Process::with_listener(
        "[::1]:0",
        &format!("https://{upstream}"),
        &[("SSL_CERT_FILE", &authority.trusted())],
    );
    assert!(process.address.is_ipv6());
    let answer = Client::connect(process.address)
        .post("/v1/messages", "", b"six")
        .answer();
    assert_eq!(answer.body, b"HTTP/1.1:six");
}
