//! The sentences of a text that somebody wrote, as they stand there.
//!
//! Only prose: code, headings, tables and what is quoted from elsewhere are no
//! statements of whoever sends them. A line is a paragraph of its own, as people
//! write in a chat, unless the one before it was long and broke off within a
//! sentence.

/// A line at least so long may have been wrapped.
const WRAPPED: usize = 60;

/// Words before a full stop that does not end a sentence.
const SHORT_FORMS: [&str; 9] = [
    "e.g", "i.e", "vs", "etc", "cf", "approx", "incl", "resp", "no",
];

/// The sentences, in order.
pub(in crate::engine) fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for paragraph in paragraphs(text) {
        split(paragraph, &mut sentences);
    }
    sentences
}

/// Stretches of prose.
fn paragraphs(text: &str) -> Vec<&str> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut is_code, mut goes_on) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let from = at;
        at += line.len();
        let bare = line.trim();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            is_code = !is_code;
            goes_on = false;
            continue;
        }
        if is_code || !is_prose(bare) {
            goes_on = false;
            continue;
        }
        let from = from + line.len() - line.trim_start().len();
        let item = unmarked(bare);
        let end = from + bare.len();
        let is_lower = bare.starts_with(|letter: char| letter.is_lowercase());
        match ranges.last_mut() {
            Some(last) if goes_on && is_lower && item.len() == bare.len() => last.1 = end,
            _ => ranges.push((end - item.len(), end)),
        }
        goes_on = bare.len() >= WRAPPED && !bare.ends_with(['.', '!', '?', ':', ';']);
    }
    let ranges = ranges.into_iter();
    ranges.filter_map(|(from, to)| text.get(from..to)).collect()
}

/// Whether a line may be what somebody says.
fn is_prose(line: &str) -> bool {
    let is_heading = || line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
    let is_tag = || line.starts_with('<') && line.ends_with('>');
    let is_code = || line.ends_with([';', '{', '}']) || line.starts_with("//");
    !line.is_empty()
        && !line.starts_with(['>', '|', '+', '$'])
        && !is_heading()
        && !is_tag()
        && !is_code()
}

/// A line without the mark and the box of a list.
fn unmarked(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = line.get(digits..).filter(|_| (1..4).contains(&digits));
    let rest = ["- ", "* ", "• ", "– "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .or_else(|| numbered?.strip_prefix(". "))
        .or_else(|| numbered?.strip_prefix(") "));
    let rest = rest.map_or(line, str::trim_start);
    let boxes = ["[ ] ", "[x] "];
    let open = boxes.iter().find_map(|mark| rest.strip_prefix(mark));
    open.map_or(rest, str::trim_start)
}

/// Splits prose where sentences end, but not within code.
fn split<'t>(paragraph: &'t str, into: &mut Vec<&'t str>) {
    let mut from = 0;
    let mut is_code = false;
    for (at, letter) in paragraph.char_indices() {
        match letter {
            // A closing mark was stepped over.
            _ if at < from => {}
            '`' => is_code = !is_code,
            '.' | '!' | '?' if !is_code => {
                let behind = paragraph.get(at + 1..).unwrap_or_default();
                let closed = behind.trim_start_matches([')', '"', '\'', '”', '’', '*', '_', '`']);
                let ends = closed.is_empty() || closed.starts_with(char::is_whitespace);
                let said = paragraph.get(from..at).unwrap_or_default();
                if ends && !(letter == '.' && is_short_form(said)) {
                    let end = paragraph.len() - closed.len();
                    push(paragraph.get(from..end), into);
                    from = end;
                }
            }
            _ => {}
        }
    }
    push(paragraph.get(from..), into);
}

fn push<'t>(sentence: Option<&'t str>, into: &mut Vec<&'t str>) {
    into.extend(sentence.map(str::trim).filter(|text| !text.is_empty()));
}

/// Whether a text ends with a word that is written with a full stop.
fn is_short_form(text: &str) -> bool {
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = text.get(start..).unwrap_or_default();
    let word = word.trim_start_matches(['(', '*', '_']);
    let lower = word.get(..8).unwrap_or(word).to_ascii_lowercase();
    SHORT_FORMS.contains(&lower.as_str())
        || (word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_prose_is_split_and_only_where_a_sentence_ends() {
        let rows = [
            (
                "One. Two! three? four",
                &["One.", "Two!", "three?", "four"][..],
            ),
            ("See a.rs, e.g. b.rs. Go.", &["See a.rs, e.g. b.rs.", "Go."]),
            (
                "- never push\n2. ask first\n* [ ] open",
                &["never push", "ask first", "open"],
            ),
            ("one\ntwo", &["one", "two"]),
            (
                "a line that is long enough to have been wrapped somewhere in\nthe middle of it. Then more",
                &[
                    "a line that is long enough to have been wrapped somewhere in\nthe middle of it.",
                    "Then more",
                ],
            ),
            (
                "# Never\n> never\n| never |\n```\nnever\n```\nsay it",
                &["say it"],
            ),
            ("let x = 1;\nif a {\n<plan>\nsay it", &["say it"]),
            (
                "Run `a. b` now. **Done.** ok",
                &["Run `a. b` now.", "**Done.**", "ok"],
            ),
            ("Uses `x.` Then y", &["Uses `x.` Then y"]),
            ("  \n \n", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(sentences(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_text_costs_no_more_than_it_is_long() {
        for part in ["a. ", "```\n", "`", "a\n", "e.g. ", "- ", "?)", "x"] {
            let _ = sentences(&part.repeat(100_000));
        }
    }

    proptest! {
        #[test]
        fn sentences_are_pieces_of_the_text_in_order(text in "[a-z.!?`\\n\\-# )é“”]{0,120}") {
            let mut rest = text.as_str();
            for sentence in sentences(&text) {
                let at = rest.find(sentence).unwrap();
                rest = &rest[at + sentence.len()..];
            }
        }
    }
}
