//! Where bytes of others come in, each with the laws that hold for any bytes.
//!
//! A law that does not hold panics, so that the same functions serve the property
//! tests here and a fuzzer. None may need memory out of proportion to what it is
//! given.

use bytes::Bytes;
use longhaul::config::{Sources, load};
use longhaul::engine::cache_marks::Basis;
use longhaul::engine::chain;
use longhaul::engine::conversation::Conversation;
use longhaul::engine::figures::Figures;
use longhaul::engine::ids::ChainHash;
use longhaul::engine::legal::faults;
use longhaul::engine::overlay::Overlay;
use longhaul::engine::recall::telling::Telling;
use longhaul::engine::split::Split;
use longhaul::engine::tiers::{Clears, Settings, Survey};
use longhaul::engine::view::{Recipe, View};
use longhaul::wire::body::Body;
use longhaul::wire::encoding::{Coding, Decoder};
use longhaul::wire::refusal::Refusal;
use longhaul::wire::reply::Reply;
use longhaul::wire::sse;

/// What a view may add to a history, whatever that is: stubs are never larger
/// than what they stand for, notices and bridges have a size.
const ADDED: usize = 16 << 10;

/// A request's body: without an overlay it goes on byte for byte; with one its
/// view is no worse than it was.
pub fn body(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    let Ok(body) = Body::split(&bytes) else {
        return;
    };
    let conversation = Conversation::new(&bytes, &body);
    assert_eq!(
        chain::chain("t", &bytes, &body).len(),
        body.messages().len()
    );
    assert!(made(&bytes, &conversation, None).is_some_and(|view| view == bytes));
    let settings = Settings {
        clears: Some(Clears {
            supersede: true,
            ..Clears::default()
        }),
        split: Split {
            tail_messages: 1,
            ..Split::default()
        },
        archives: Some(Telling::default()),
        ..Settings::default()
    };
    let none = Overlay::default();
    let survey = Survey::in_bytes(&conversation, &none, chain::start("t"), &settings);
    let Some(draft) = survey.everything(0) else {
        return;
    };
    let view = made(&bytes, &conversation, Some(&draft.overlay));
    let view = view.expect("a draft is of its own history");
    assert!(view.len() <= bytes.len() + ADDED, "{} bytes", view.len());
    let seen = Body::split(&view).expect("a view can be read again");
    assert!(faults(&view, &seen).is_subset(&faults(&bytes, &body)));
    let (_, stored) = draft
        .overlay
        .store(chain::start("t"))
        .expect("it can be stored");
    assert_eq!(Overlay::read(&stored).ok(), Some(draft.overlay));
}

fn made(
    bytes: &Bytes,
    conversation: &Conversation<'_>,
    overlay: Option<&Overlay>,
) -> Option<Bytes> {
    let recipe = Recipe {
        overlay,
        marks: Some(Basis::default()),
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(bytes, conversation, recipe).ok()?;
    Some(view.bytes())
}

/// An answer of upstream's: what is read of it does not depend on how it was cut,
/// nor on anything that can stand in it.
pub fn stream(input: &[u8]) {
    let read = |pieces: &[&[u8]]| {
        let (mut decoder, mut reply) = (sse::Decoder::default(), Reply::default());
        for piece in pieces {
            decoder.push(piece, &mut reply);
        }
        reply
    };
    let (first, second) = input.split_at(input.len() / 3);
    assert_eq!(read(&[input]), read(&[first, second]));
    Reply::default().read_message(input);
    let _ = Refusal::read(400, input);
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd, Coding::Brotli] {
        let mut decoder = Decoder::new(coding);
        decoder.push(first, |_| {});
        decoder.push(second, |_| {});
    }
}

/// A configuration file: every mistake is told in one line.
pub fn config(input: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a file can be made");
    std::fs::write(file.path(), input).expect("it can be written");
    let sources = Sources {
        file: Some(file.path().to_owned()),
        environment: vec![("HOME".to_owned(), "/".to_owned())],
        ..Sources::default()
    };
    if let Err(problems) = load(&sources) {
        for problem in &problems {
            assert_eq!(problem.to_string().lines().count(), 1);
        }
    }
}

/// A stored overlay: what can be read can be stored again, and on whatever history
/// it is used it makes a view or says that it does not fit.
pub fn overlay(input: &[u8], histories: &[Bytes]) {
    let Ok(overlay) = Overlay::read(input) else {
        return;
    };
    let anchor = ChainHash::from_bytes([7; 32]);
    let (_, stored) = overlay.store(anchor).expect("it can be stored");
    assert_eq!(Overlay::read(&stored).as_ref().ok(), Some(&overlay));
    for bytes in histories {
        let Ok(body) = Body::split(bytes) else {
            continue;
        };
        let conversation = Conversation::new(bytes, &body);
        if let Some(view) = made(bytes, &conversation, Some(&overlay)) {
            assert!(view.len() <= bytes.len() + input.len() * 8 + ADDED);
        }
    }
}

/// A stored mark's figures: whatever they say, they can be used and kept.
pub fn row(input: &[u8]) {
    let figures = Figures::read(input);
    let again = Figures::read(&figures.store());
    assert_eq!(again.store(), figures.store());
    let _ = (figures.basis(), figures.sizes(), figures.anchor());
    let _ = figures.overlay_of("m");
}
