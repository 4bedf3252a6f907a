//! Identifiers that are spoken of in words.
//!
//! Who asks for "the retry budget function" may mean `retry_budget` or
//! `retryBudget`. Words that follow each other in a question are therefore also
//! looked for joined in both ways, and so are the parts of an identifier, whose
//! spelling is remembered less well than its words. What nothing is called costs
//! nothing: a term that no entry has weighs nothing.

use super::is_stop;
use super::stem::stem;
use super::words::{LONGEST, each, is_reserved};

/// Words that are joined, at most.
const WORDS: usize = 5;
/// Words of a question that are looked at.
const LOOKED_AT: usize = 64;

/// The terms that words of a question may be joined to, the likeliest first.
pub(super) fn joined(text: &str) -> Vec<String> {
    let (runs, parts) = runs(text);
    let mut plain: Vec<&[String]> = Vec::new();
    let mut rest: Vec<&[String]> = Vec::new();
    for length in (2..=WORDS).rev() {
        for words in runs.iter().flat_map(|run| run.windows(length)) {
            let stops = words.iter().filter(|word| is_stop(word)).count();
            if stops == 0 {
                plain.push(words);
            } else if stops < length {
                rest.push(words);
            }
        }
    }
    // Of those with a word in them that says nothing, the short ones are likelier.
    rest.sort_by_key(|words| words.len());
    let whole = parts
        .iter()
        .map(Vec::as_slice)
        .filter(|parts| parts.len() > 1);
    let mut terms = Vec::new();
    for words in whole.chain(plain).chain(rest) {
        let mut closed = words.concat();
        stem(&mut closed);
        terms.push(closed);
        terms.push(words.join("_"));
    }
    terms.retain(|term| term.len() <= LONGEST && !is_reserved(term));
    terms
}

/// Plain words that follow each other with nothing but space between them; and
/// the parts of identifiers.
fn runs(text: &str) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let (mut runs, mut parts): (Vec<Vec<String>>, Vec<Vec<String>>) = (Vec::new(), Vec::new());
    let (mut identifier, mut end, mut count) = (0, 0, 0);
    each(text, |found| {
        let is_plain = found.word.bytes().all(|byte| byte.is_ascii_lowercase());
        if count >= LOOKED_AT || !is_plain {
            return;
        }
        count += 1;
        let word = found.word.to_owned();
        if found.is_part {
            match parts.last_mut().filter(|_| identifier == found.ordinal) {
                Some(parts) => parts.push(word),
                None => parts.push(vec![word]),
            }
            identifier = found.ordinal;
        } else if !found.is_identifier {
            let between = text.get(end..found.at.start).unwrap_or_default();
            let is_near = between.chars().all(|letter| letter == ' ' || letter == '-');
            match runs.last_mut().filter(|_| is_near) {
                Some(run) => run.push(word),
                None => runs.push(vec![word]),
            }
            end = found.at.end;
        }
    });
    (runs, parts)
}
