//! Answers that come before the request has been sent: they reach the client,
//! and what is left of the request holds nothing and nobody.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::support::http::Reader;
use crate::support::{GET, Proxy, eventually, raw, swallow, text};

const REFUSAL: &[u8] = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig";

fn head(path: &str, body: &[u8]) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
}

#[test]
fn an_early_answer_does_not_stop_the_upload_when_upstream_reads_on() {
    let url = raw(|mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        reader.head().unwrap();
        stream.write_all(REFUSAL).unwrap();
        swallow(&mut stream);
    });
    let proxy = Proxy::before(&url);
    let body = vec![b'x'; 40 << 20];
    for path in ["/v1/messages", "/v1/files"] {
        let mut client = proxy.client();
        let begun = Instant::now();
        client.try_send(head(path, &body)).try_send(&body);
        let took = begun.elapsed();
        let answer = client.answer();
        assert_eq!(answer.status(), 413, "{path}");
        assert!(took < Duration::from_secs(20), "{path}: {took:?}");
    }
}

#[test]
fn an_early_answer_frees_the_body_although_upstream_neither_reads_nor_closes() {
    let url = raw(|mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        reader.head().unwrap();
        stream.write_all(REFUSAL).unwrap();
        loop {
            std::thread::park();
        }
    });
    let proxy = Proxy::before(&url);
    let body = vec![b'x'; 20 << 20];
    let answer = proxy.client().post("/v1/messages", "", &body).answer();
    assert_eq!(answer.status(), 413);
    eventually("the body is still held", || {
        proxy.metric("longhaul_buffered_bytes") == Some(0.0)
    });
}

#[test]
fn an_early_answer_and_a_close_reach_the_client() {
    let body = vec![b'x'; 5 << 20];
    let mut bad = Vec::new();
    for linger in [true, false] {
        let url = raw(move |mut stream| {
            stream.read_exact(&mut [0; 10_000]).unwrap();
            stream
                .write_all(
                    b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig",
                )
                .unwrap();
            // Without lingering, what was not read makes it a reset.
            if linger {
                stream.shutdown(Shutdown::Write).unwrap();
                swallow(&mut stream);
            }
        });
        for path in ["/v1/messages", "/v1/files"] {
            for round in 0..10 {
                let proxy = Proxy::before(&url);
                let mut client = proxy.client();
                client.try_send(head(path, &body)).try_send(&body);
                match client.try_answer() {
                    Some(answer) if answer.status() == 413 && answer.body == b"big" => {}
                    other => bad.push(format!("linger {linger} {path} {round}: {other:?}")),
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn a_client_connection_goes_on_or_ends_after_an_early_answer_but_does_not_hang() {
    let url = raw(|mut stream| {
        let mut reader = Reader::new(stream.try_clone().unwrap());
        while let Ok(Some(_)) = reader.head() {
            stream.write_all(REFUSAL).unwrap();
        }
    });
    let proxy = Proxy::before(&url);
    let mut client = proxy.client();
    client.send("POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n01234");
    assert_eq!(client.answer().status(), 413);
    let begun = Instant::now();
    client.try_send("56789").try_send(GET);
    let next = text(&client.try_some().unwrap_or_default());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?} {next}");
}
