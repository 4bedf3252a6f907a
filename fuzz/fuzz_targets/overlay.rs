//! A stored overlay, and the views it makes.
#![no_main]

#[path = "../../tests/mangled/entries.rs"]
#[allow(dead_code, reason = "the other targets use the rest")]
mod entries;

fn histories() -> Vec<bytes::Bytes> {
    let corpus: [&[u8]; 2] = [
        include_bytes!("../../tests/corpus/body/loop.json"),
        include_bytes!("../../tests/corpus/body/1-stubs.json"),
    ];
    corpus.map(bytes::Bytes::from_static).to_vec()
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| entries::overlay(input, &histories()));
