//! Text that looks like an agent's day: prose, code, listings, test output.
//!
//! Made from a seed, so that a session is the same each time, and of words that
//! a tokenizer cuts as it cuts real ones: about four letters a token.

use fastrand::Rng;

const WORDS: [&str; 48] = [
    "request",
    "buffer",
    "parse",
    "index",
    "token",
    "stream",
    "handle",
    "config",
    "value",
    "entry",
    "cache",
    "reader",
    "writer",
    "socket",
    "table",
    "column",
    "commit",
    "branch",
    "module",
    "session",
    "user",
    "account",
    "price",
    "window",
    "window_size",
    "retry",
    "timeout",
    "error",
    "result",
    "option",
    "default",
    "builder",
    "worker",
    "queue",
    "message",
    "header",
    "status",
    "length",
    "offset",
    "cursor",
    "schema",
    "migrate",
    "render",
    "layout",
    "widget",
    "report",
    "ledger",
    "signal",
];

const SAYINGS: [&str; 8] = [
    "should be checked before",
    "is called once for each",
    "must not be larger than",
    "comes from the",
    "was changed together with the",
    "does not depend on the",
    "is written after the",
    "belongs to the",
];

pub fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.usize(0..WORDS.len())]
}

/// Sentences of about so many letters.
pub fn prose(rng: &mut Rng, letters: usize) -> String {
    let mut text = String::with_capacity(letters + 80);
    while text.len() < letters.max(1) {
        let saying = SAYINGS[rng.usize(0..SAYINGS.len())];
        text.push_str(&format!(
            "The {} of the {} {saying} {} {}. ",
            word(rng),
            word(rng),
            word(rng),
            word(rng)
        ));
    }
    text.trim_end().to_owned()
}

/// The path of a file of the project.
pub fn path(number: usize) -> String {
    let name = |at: usize| WORDS[at % WORDS.len()];
    format!(
        "src/{}/{}_{}.rs",
        name(number / 7),
        name(number * 5 + 3),
        number
    )
}

/// A file as a reading tool shows it: numbered lines.
pub fn file(rng: &mut Rng, letters: usize) -> String {
    let mut text = String::with_capacity(letters + 80);
    let mut line = 1;
    while text.len() < letters {
        let (a, b, c) = (word(rng), word(rng), word(rng));
        let code = match rng.u8(0..6) {
            0 => format!(
                "pub fn {a}_{b}(&self, {c}: usize) -> Result<{}, Error> {{",
                rng.u16(..)
            ),
            1 => format!("    let {a} = self.{b}.get({})?;", rng.u8(..)),
            2 => format!("    if {a}.{b}() > {c} {{ return Err(Error::{a}({b})); }}"),
            3 => format!("    // The {a} {b} of the {c}."),
            4 => "    }".to_owned(),
            _ => format!("    {a}.push({b}::{c}({}));", rng.u16(..)),
        };
        text.push_str(&format!("{line:>6}\t{code}\n"));
        line += 1;
    }
    text
}

/// What a search finds.
pub fn matches(rng: &mut Rng, letters: usize) -> String {
    let mut text = String::with_capacity(letters + 80);
    while text.len() < letters.max(1) {
        let place = path(rng.usize(0..200));
        text.push_str(&format!(
            "{place}:{}:    {}.{}({})\n",
            rng.u16(1..900),
            word(rng),
            word(rng),
            word(rng)
        ));
    }
    text
}

/// What a test run prints.
pub fn test_run(rng: &mut Rng, letters: usize) -> String {
    let mut text = String::with_capacity(letters + 80);
    text.push_str("   Compiling project v0.1.0\n");
    while text.len() < letters {
        let outcome = if rng.u8(0..20) == 0 { "FAILED" } else { "ok" };
        text.push_str(&format!(
            "test {}::{}_{}_{} ... {outcome}\n",
            word(rng),
            word(rng),
            word(rng),
            word(rng)
        ));
    }
    text.push_str(&format!(
        "finished in {}.{:02}s\n",
        rng.u8(..),
        rng.u8(0..100)
    ));
    text
}
