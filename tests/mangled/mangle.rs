//! Changes to an input that keep most of it: what is all noise is refused at its
//! first byte and tests nothing behind it.

use fastrand::Rng;

/// Bytes that mean something somewhere.
const SHARP: &[u8] = b"{}[]\",:\\\n\r\x00\xff\x80 0-.eu[tn]=#'";

/// Words that mean something somewhere.
const WORDS: [&str; 12] = [
    "null",
    "1e999",
    "-1",
    "18446744073709551616",
    "\\ud800",
    "\"cache_control\":{\"type\":\"ephemeral\"},",
    "\"messages\":[],",
    "data: ",
    "\r\n\r\n",
    "[[[[[[[[",
    "{\"type\":\"tool_result\",\"tool_use_id\":\"t0\"},",
    "\u{feff}",
];

/// One of these inputs, changed in a few places.
pub fn mangle(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = pick(rng, corpus).clone();
    for _ in 0..rng.usize(1..6) {
        let length = input.len();
        let at = rng.usize(0..=length);
        let until = (at + rng.usize(0..64)).min(length);
        match rng.u8(0..9) {
            0 if at < length => input[at] ^= 1 << rng.u8(0..8),
            1 if at < length => input[at] = SHARP[rng.usize(0..SHARP.len())],
            2 => input.insert(at, SHARP[rng.usize(0..SHARP.len())]),
            3 => drop(input.drain(at..until)),
            4 => {
                let again = input[at..until].to_vec();
                input.splice(at..at, again);
            }
            5 => {
                let word = WORDS[rng.usize(0..WORDS.len())];
                input.splice(at..at, word.bytes());
            }
            6 => {
                let other = pick(rng, corpus);
                let from = rng.usize(0..=other.len());
                let to = (from + rng.usize(0..400)).min(other.len());
                input.splice(at..until, other[from..to].iter().copied());
            }
            7 => input.truncate(at),
            // A number becomes another one.
            _ => {
                if let Some(digit) = input.iter().skip(at).position(u8::is_ascii_digit) {
                    input[at + digit] = b'0' + rng.u8(0..10);
                }
            }
        }
    }
    input
}

/// Any bytes at all.
pub fn noise(rng: &mut Rng) -> Vec<u8> {
    (0..rng.usize(0..600)).map(|_| rng.u8(..)).collect()
}

fn pick<'a>(rng: &mut Rng, corpus: &'a [Vec<u8>]) -> &'a Vec<u8> {
    &corpus[rng.usize(0..corpus.len())]
}
