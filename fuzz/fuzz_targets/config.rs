//! A configuration file.
#![no_main]

#[path = "../../tests/mangled/entries.rs"]
#[allow(dead_code, reason = "the other targets use the rest")]
mod entries;

libfuzzer_sys::fuzz_target!(|input: &[u8]| entries::config(input));
