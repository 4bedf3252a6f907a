//! What a line is worth for how it begins: definitions, headings and keys of
//! files, hunks of patches, titles of pages.
//!
//! Languages are told by their own words, so no parser is needed, and a wrong
//! guess costs a line.

use super::Kind;
use super::lines::unnumbered;

/// Worth of a line that defines something.
const DEFINES: u32 = 5;
/// Worth of a heading, of a hunk, of a file's name.
const HEADS: u32 = 14;
/// Worth of a key with its value.
const KEY: u32 = 3;

/// Words that stand before one that defines.
const BEFORE: [&str; 22] = [
    "pub",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "abstract",
    "final",
    "unsafe",
    "extern",
    "inline",
    "declare",
    "override",
    "virtual",
    "open",
    "sealed",
    "data",
    "local",
    "partial",
];

/// Words that define.
const WORDS: [&str; 39] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "impl",
    "type",
    "const",
    "mod",
    "macro_rules!",
    "union",
    "class",
    "def",
    "function",
    "interface",
    "namespace",
    "func",
    "package",
    "object",
    "record",
    "module",
    "actor",
    "primitive",
    "fun",
    "be",
    "new",
    "val",
    "var",
    "let",
    "sub",
    "proc",
    "typedef",
    "template",
    "#define",
    "service",
    "message",
    "resource",
    "variable",
    "defmodule",
    "defp",
];

/// Words of SQL that define, in either case.
const SQL: [&str; 2] = ["create", "alter"];

/// Worth of how a line begins.
pub(super) fn worth(kind: Kind, line: &str) -> u32 {
    let line = unnumbered(line);
    let indent = line.len() - line.trim_start().len();
    let line = line.trim_start();
    if is_hunk(line) {
        return HEADS;
    }
    let line = line.strip_prefix('+').unwrap_or(line).trim_start();
    if is_heading(line) {
        return HEADS;
    }
    match kind {
        Kind::File { .. } | Kind::Written | Kind::Other => {
            if defines(line, indent) {
                DEFINES
            } else if is_key(line) {
                KEY
            } else {
                0
            }
        }
        Kind::Found | Kind::Output if is_key(line) => KEY,
        Kind::Found | Kind::Output => 0,
    }
}

/// A line of a patch that says where it applies.
fn is_hunk(line: &str) -> bool {
    let starts = [
        "diff --git ",
        "@@ ",
        "+++ ",
        "*** Update File: ",
        "*** Add File: ",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

/// A heading of a text, a section of a configuration, the title of a page.
fn is_heading(line: &str) -> bool {
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let markdown = (1..=6).contains(&hashes)
        && line.get(hashes..).is_some_and(|rest| rest.starts_with(' '))
        && line.len() < 100;
    let section = line.starts_with('[') && line.ends_with(']') && line.len() < 60;
    let tag = ["<title", "<h1", "<h2", "<h3"]
        .iter()
        .any(|tag| line.starts_with(tag));
    markdown || section || tag
}

/// Whether a line defines something.
fn defines(line: &str, indent: usize) -> bool {
    let mut words = line.split_ascii_whitespace();
    for word in words.by_ref().take(5) {
        let word = word.split_once('(').map_or(word, |(word, _)| word);
        if WORDS.contains(&word) {
            // What is bound inside a function is of no use outside of it.
            let binds = matches!(word, "let" | "var" | "val" | "const" | "new");
            return !binds || indent <= 2;
        }
        if SQL.iter().any(|sql| word.eq_ignore_ascii_case(sql)) {
            return true;
        }
        if !BEFORE.contains(&word) {
            break;
        }
    }
    // A function of a language that has no word for it.
    indent <= 4 && line.ends_with('{') && line.contains('(') && !is_control(line)
}

fn is_control(line: &str) -> bool {
    let starts = [
        "if", "for", "while", "switch", "match", "}", "else", "return", "catch", "try",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

/// Whether a line is a key with its value: `key: value`, `key = value`.
fn is_key(line: &str) -> bool {
    let name = line.trim_start_matches(['"', '-', ' ', '\'']);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let length = name.bytes().take(41).take_while(is_part).count();
    let behind = name.get(length..).unwrap_or_default();
    let behind = behind.trim_start_matches(['"', '\'']).trim_start();
    (2..=40).contains(&length)
        && (behind.starts_with(": ") || behind.starts_with("= ") || behind.starts_with('='))
        && behind.len() > 2
}
