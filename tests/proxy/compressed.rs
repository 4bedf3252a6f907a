//! Compressed bodies: however well something was compressed, reading it costs a
//! bounded amount of memory at once and does not hold up anybody else.

use std::io::Write;
use std::sync::LazyLock;

use longhaul::wire::encoding::{Coding, Decoder};

use crate::support::{GET, Proxy, Tap, eventually, plain};

const LARGE: usize = 60 << 20;

/// A few bytes that unfold into `LARGE`.
static BROTLI: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut packed = Vec::new();
    brotli::CompressorWriter::new(&mut packed, 1 << 16, 5, 22)
        .write_all(&vec![b' '; LARGE])
        .unwrap();
    packed
});

#[test]
fn a_compressed_answer_unfolds_in_bounded_pieces() {
    let zstd = zstd::encode_all(&vec![b' '; LARGE][..], 3).unwrap();
    for (coding, bytes) in [(Coding::Zstd, &zstd), (Coding::Brotli, &BROTLI)] {
        let (mut largest, mut all) = (0, 0);
        Decoder::new(coding).push(bytes, |piece| {
            largest = largest.max(piece.len());
            all += piece.len();
        });
        assert!(all > 0 && largest <= 16 << 20, "{coding:?} {largest}");
    }
}

/// Although all of it would be within the limit.
#[test]
fn few_bytes_that_unfold_into_millions_are_refused_before_they_do() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let answer = proxy
        .client()
        .post("/v1/messages", "content-encoding: br\r\n", &BROTLI)
        .answer();
    assert_eq!(answer.status(), 413);
    assert!(tap.saw_nothing());
}

/// The proxy has one worker here, and unfolding takes it much longer than a few
/// small requests do: those are at upstream before the large one.
#[test]
fn a_compressed_request_does_not_hold_up_the_worker() {
    let tap = Tap::start(|_| plain(b"ok"));
    let proxy = Proxy::before(&tap.url());
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    writer.write_all(&vec![b' '; LARGE]).unwrap();
    let packed = writer.finish().unwrap();
    let (last, most) = packed.split_last().unwrap();
    let mut stranger = proxy.client();
    stranger.send(GET).answer();
    tap.seen();
    let mut large = proxy.client();
    large
        .send(format!(
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            packed.len()
        ))
        .send(most);
    eventually("the body does not arrive", || {
        let held = proxy.metric("longhaul_buffered_bytes").unwrap();
        held >= f64::from(u32::try_from(most.len()).unwrap())
    });
    large.send([*last]);
    // The first may slip in before the large one is complete.
    for _ in 0..3 {
        stranger.send(GET).answer();
    }
    for _ in 0..3 {
        assert_eq!(tap.seen().line, "GET /v1/x HTTP/1.1");
    }
    assert_eq!(large.answer().status(), 200);
    assert_eq!(tap.seen().line, "POST /v1/messages HTTP/1.1");
}

/// There is room for two at a time. They took their room piece by piece, so that
/// each held some of it and none got enough.
#[test]
fn compressed_requests_that_do_not_all_fit_go_one_after_another() {
    let tap = Tap::start(|_| plain(b"ok"));
    let file = "limits.body_bytes = \"4MiB\"\nlimits.buffered_bytes = \"8MiB\"\nlimits.buffer_wait = \"30s\"";
    let proxy = Proxy::with(&tap.url(), file);
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    // Packs well, but not so well that one step of unfolding sees all of it.
    for line in 0..30_000 {
        write!(writer, "{line:<100}").unwrap();
    }
    let packed = writer.finish().unwrap();
    let mut clients: Vec<_> = (0..12).map(|_| proxy.client()).collect();
    for client in &mut clients {
        client.post("/v1/messages", "content-encoding: gzip\r\n", &packed);
    }
    for mut client in clients {
        assert_eq!(client.answer().status(), 200);
        assert!(tap.seen().body == packed);
    }
    eventually("the room is not given back", || {
        proxy.metric("longhaul_buffered_bytes") == Some(0.0)
    });
}
