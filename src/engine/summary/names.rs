//! The paths and identifiers that a text names.
//!
//! A narrative that names what it was not given is refused, so what counts as a
//! name is drawn narrowly: ordinary prose must never be refused. Counted are
//! words that nobody writes by chance: a path down to a file, an address, a word
//! with an underscore or digits among its humps, a long hexadecimal number, an
//! error code, a flag, a version, a long number. Not counted are bare file names,
//! `CamelCase` (which is also how products are spelled), round figures that are
//! said to be about right, and line numbers, which are often worked out.

use std::collections::BTreeSet;

/// Digits from which a hexadecimal number is one.
const HEX: usize = 7;
/// Digits from which a number says something exact.
const NUMBER: usize = 4;
/// Longer words are not looked at: they are data.
const LONGEST: usize = 400;
/// Words after which a number is not exact, or not the conversation's own.
const ABOUT: [&str; 18] = [
    "about",
    "almost",
    "approx",
    "approximately",
    "around",
    "circa",
    "least",
    "line",
    "lines",
    "message",
    "messages",
    "most",
    "nearly",
    "over",
    "roughly",
    "some",
    "than",
    "under",
];

/// What a text names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name<'a> {
    /// Must stand in the source like this.
    Word(&'a str),
    /// Likewise, and no digit may stand before it.
    Number(&'a str),
}

impl<'a> Name<'a> {
    /// As it was written.
    pub(super) fn as_str(&self) -> &'a str {
        match self {
            Self::Word(text) | Self::Number(text) => text,
        }
    }
}

/// Everything that a text names, each once.
pub(super) fn names(text: &str) -> BTreeSet<Name<'_>> {
    let mut found = BTreeSet::new();
    let mut is_about = false;
    for word in text.split_whitespace() {
        let marked = word.contains(['~', '≈', '<', '>']);
        for piece in pieces(word) {
            of_piece(piece, is_about || marked, &mut found);
        }
        // "lines 1200 to 1340" is one figure of speech.
        let goes_on = word.starts_with(|c: char| c.is_ascii_digit())
            || matches!(word, "to" | "and" | "-" | "–");
        is_about = announces(word) || (is_about && goes_on);
    }
    found
}

fn announces(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    ABOUT.iter().any(|about| word.eq_ignore_ascii_case(about))
}

/// The pieces of a word, as they are looked up: no quotes, no brackets, no
/// punctuation at the ends.
pub(super) fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let parts = |c: char| !(c.is_alphanumeric() || "_-./:".contains(c));
    let ends = |c: char| ".:_".contains(c);
    word.split(parts)
        .flat_map(split_line)
        .map(move |piece| {
            let piece = piece.trim_end_matches(|c| ends(c) || c == '-' || c == '/');
            // A dot at the start belongs to the name of a hidden file.
            piece.trim_start_matches([':', '_'])
        })
        .filter(|piece| !piece.is_empty())
}

/// `a::b:12` is `a::b` and `12`; the number of a line or port is a piece of its
/// own, and an address keeps its scheme apart.
fn split_line(piece: &str) -> impl Iterator<Item = &str> {
    let bytes = piece.as_bytes();
    let is_colon = |at: usize| bytes.get(at) == Some(&b':');
    let is_single = move |at: &usize| {
        is_colon(*at) && !is_colon(at + 1) && !at.checked_sub(1).is_some_and(is_colon)
    };
    let mut from = 0;
    let ends = (0..=bytes.len()).filter(move |at| *at == bytes.len() || is_single(at));
    ends.filter_map(move |end| {
        let part = piece.get(from..end);
        from = end + 1;
        part
    })
}

fn of_piece<'a>(piece: &'a str, is_about: bool, found: &mut BTreeSet<Name<'a>>) {
    if piece.len() > LONGEST {
        return;
    }
    if piece.contains('/') {
        let path = piece.trim_start_matches("./").trim_start_matches("../");
        // Two names of files with a slash between are two files.
        let stripped = path.trim_start_matches("//");
        let is_list = !piece.starts_with('/') && path.split('/').all(|part| part.contains('.'));
        if stripped.len() + 2 == path.len() {
            found.insert(Name::Word(stripped));
        } else if is_file(path) && !is_list {
            found.insert(Name::Word(path));
        }
        return;
    }
    if piece.starts_with("--") {
        let flag = piece.trim_start_matches('-');
        if flag.starts_with(|c: char| c.is_ascii_lowercase()) && flag.len() > 1 {
            found.insert(Name::Word(piece));
        }
        return;
    }
    if let Some(version) = version(piece) {
        found.insert(Name::Number(version));
        return;
    }
    // What was put together of known parts is as good as known: a method by its
    // type, a key by its table.
    for part in piece.split(['.', ':', '-']) {
        if is_number(part) {
            if !is_about {
                found.insert(Name::Number(part));
            }
            continue;
        }
        let is_step = piece.contains("::") && part.len() > 2;
        if is_step || is_hex(part) || is_code(part) || is_identifier(part) {
            found.insert(Name::Word(part));
        }
    }
}

/// Whether the last part of a path is the name of a file.
fn is_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some((_, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let is_word = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    is_word(extension)
        && extension.len() <= 12
        && folders.split('/').all(|folder| !folder.starts_with("..."))
}

/// The number of a version: three numbers at least, or two behind a `v`.
fn version(piece: &str) -> Option<&str> {
    let bare = piece.strip_prefix(['v', 'V']).unwrap_or(piece);
    let core = bare.split('-').next().unwrap_or(bare);
    let mut numbers = core.split('.');
    let are_numbers = numbers.all(|part| !part.is_empty() && part.len() <= 8 && all_digits(part));
    let least = if bare.len() < piece.len() { 2 } else { 3 };
    (are_numbers && core.split('.').count() >= least).then_some(core)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(part: &str) -> bool {
    part.len() >= NUMBER && all_digits(part)
}

fn is_hex(part: &str) -> bool {
    let digits = part.strip_prefix("0x").unwrap_or(part);
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.len() >= HEX
        && digits.bytes().all(is_digit)
        && digits.bytes().any(|byte| byte.is_ascii_digit())
}

/// An error code: one capital and three digits, or a few and four.
fn is_code(part: &str) -> bool {
    let letters = part.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = part.get(letters..).unwrap_or("");
    let enough = match letters {
        1 => 3,
        2..=4 => 4,
        _ => return false,
    };
    (enough..=6).contains(&digits.len()) && all_digits(digits)
}

/// A word with an underscore inside, or with humps and a digit.
fn is_identifier(part: &str) -> bool {
    let inner = part.trim_matches('_');
    if !inner.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return false;
    }
    let is_hump = |pair: &[u8]| matches!(pair, [one, other] if one.is_ascii_lowercase() && other.is_ascii_uppercase());
    let has_humps = inner.as_bytes().windows(2).any(is_hump);
    let has_digits = inner.bytes().any(|byte| byte.is_ascii_digit());
    inner.contains('_') || (has_humps && has_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<&str> {
        names(text).iter().map(Name::as_str).collect()
    }

    #[test]
    fn what_nobody_writes_by_chance_is_a_name() {
        let rows: &[(&str, &[&str])] = &[
            ("edited src/net/tcp.rs.", &["src/net/tcp.rs"]),
            ("see `./src/a.rs:120`, then", &["src/a.rs"]),
            ("(/x/y.toml#L3-L9)", &["/x/y.toml"]),
            ("\"src/a.rs:12:5\"", &["src/a.rs"]),
            ("~/.config/app.toml", &["/.config/app.toml"]),
            ("**max_tokens**=5", &["max_tokens"]),
            ("Overlay::new_one()", &["Overlay", "new_one"]),
            ("config.max_size", &["max_size"]),
            ("error[E0308]: mismatched", &["E0308"]),
            ("TS2345 and F401", &["F401", "TS2345"]),
            ("commit 3f2a9bc1", &["3f2a9bc1"]),
            ("run with --no-verify=true", &["--no-verify"]),
            ("tokio v1.2, serde 1.0.219-rc1", &["1.0.219", "1.2"]),
            ("port 8080; id 0012345", &["0012345", "8080"]),
            ("see https://example.com/a/b.", &["example.com/a/b"]),
            ("Utf8 as toText2", &["toText2"]),
            ("127.0.0.1:8443", &["127.0.0.1", "8443"]),
            (r"C:\work\my_file.rs", &["my_file"]),
            ("foo.py::test_bar", &["foo", "test_bar"]),
        ];
        for (text, expected) in rows {
            assert_eq!(named(text), *expected, "{text}");
        }
    }

    #[test]
    fn prose_names_nothing() {
        for text in [
            "Use TCP/IP and/or the client/server model (50/50); it's 1.5x faster.",
            "GitHub, JavaScript, PostgreSQL and OAuth2 on macOS; README.md and main.rs.",
            "Node.js/Vue.js, e.g. v8 or Python3. About 1500 lines, ~2000 tokens, >4096 bytes.",
            "lines 1200-1340 and lines 1200 to 1340 of the file; messages 1001 to 1200",
            "Then -- after a while --- it ended: ... etc... / or \\ and | & *bold* _it_ __very__",
            "src/*.rs, src/{a,b}.rs, src/engine/ and .../deep/down",
            "12,345 items, 99.9%, 1/2, 10:30, 3.14, 100ms, 2GB, #123, @user, $HOME",
            "die Übersicht/Größe, naïve façade, 日本語/テスト, “quoted” — dash…",
            "defaced facade effaced; HTTP 404; UTF-8; SHA256; x86-64; H.264; i18n",
            "",
        ] {
            assert_eq!(named(text), Vec::<&str>::new(), "{text}");
        }
    }
}
