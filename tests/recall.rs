//! What was left out of recorded sessions is found again.
//!
//! Everything in a recording is taken as left out and made into entries, and the
//! entries are kept in a plain index. Then 200 identifiers are chosen that occur
//! once in all recordings, by a fixed rule and a fixed seed, and each is asked
//! for in three ways: by itself, by the words it is made of, and by the two
//! rarest plain words near it. Found means: the entry that holds it is among the
//! first five. Some of the recordings do for every day. How often that is so is printed, in the session alone and with
//! all sessions in one index.
//!
//! Where there are no recordings, made-up ones are taken: see `recordings`.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs
)]

mod recordings;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use longhaul::engine::chain;
use longhaul::engine::conversation::Conversation;
use longhaul::engine::ids::BlobId;
use longhaul::engine::recall::entries::{LeftOut, entries};
use longhaul::engine::recall::entry::{Entry, Text};
use longhaul::engine::recall::rank::{Candidate, first, second, snippet, weights};
use longhaul::engine::recall::terms::{each, is_stop, query};
use longhaul::engine::recall::text;
use longhaul::engine::{archive, stub};
use longhaul::wire::body::Body;

/// How many recordings are taken where not all are.
const PART: usize = 4;
/// How many identifiers are asked for.
const SAMPLE: usize = 200;
/// How many candidates are looked at, and how many results.
const LOOKED_AT: usize = 60;
const RESULTS: usize = 5;
/// Every which of them is asked for among all sessions too, which takes longer.
const EVERY: usize = 4;
/// How far from an identifier its neighbours may stand.
const NEAR: usize = 240;

/// An entry that can be looked for, with its text.
struct Held {
    entry: Entry,
    text: String,
}

/// Everything in a recording.
fn everything(recording: &Path) -> Vec<Held> {
    let lines = recordings::lines(recording);
    let array = archive::join(lines.iter().map(String::as_bytes));
    let bytes = [&b"{\"messages\":"[..], &array, b"}"].concat();
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    let tenant = chain::start("t");
    let mut pieces: HashMap<BlobId, String> = HashMap::new();
    for at in 0..conversation.len() {
        for range in archive::parts(&conversation, at).contents() {
            let content = &bytes[range.clone()];
            pieces.insert(stub::blob_id(tenant, content), text::text(content));
        }
    }
    let all = entries(&LeftOut {
        conversation: &conversation,
        tenant,
        seed: tenant,
        hidden: 0..conversation.len(),
        blocks: &[],
    });
    let held = |entry: Entry| {
        let text = match &entry.text {
            Text::Inline(text) => text.clone(),
            Text::Content { blob, from, to } => text::passage(&pieces[blob], *from, *to).to_owned(),
        };
        Held { entry, text }
    };
    all.into_iter().map(held).collect()
}

/// Entries by their terms.
struct Index<'h> {
    held: Vec<&'h Held>,
    terms: HashMap<&'h str, Vec<usize>>,
}

impl<'h> Index<'h> {
    fn new(held: impl Iterator<Item = &'h Held>) -> Self {
        let held: Vec<&Held> = held.collect();
        let mut terms: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, held) in held.iter().enumerate() {
            for term in &held.entry.terms {
                terms.entry(term).or_default().push(number);
            }
        }
        Self { held, terms }
    }

    /// What is found, the best first.
    fn found(&self, asked: &str) -> Vec<&'h Held> {
        let sought = query(asked);
        let mut matches: BTreeMap<i64, u32> = BTreeMap::new();
        for (bit, term) in sought.iter().enumerate() {
            for number in self.terms.get(term.as_str()).into_iter().flatten() {
                *matches.entry(i64::try_from(*number).unwrap()).or_default() |= 1 << bit;
            }
        }
        let matches: Vec<(i64, u32)> = matches.into_iter().collect();
        let bits: HashMap<i64, u32> = matches.iter().copied().collect();
        let weights = weights(&matches, sought.len());
        let at = |number: i64| self.held[usize::try_from(number).unwrap()];
        let candidates: Vec<Candidate<'_>> = first(&matches, &weights, LOOKED_AT)
            .into_iter()
            .map(|number| {
                let Held { entry, text } = at(number);
                let blob = match entry.text {
                    Text::Content { blob, .. } => Some(blob),
                    Text::Inline(_) => None,
                };
                Candidate {
                    number,
                    kind: entry.kind,
                    tool: &entry.tool,
                    path: &entry.path,
                    text,
                    blob,
                    terms: bits[&number],
                }
            })
            .collect();
        let ranked = second(asked, &sought, &weights, &candidates);
        ranked
            .into_iter()
            .take(RESULTS)
            .map(|ranked| at(ranked.number))
            .collect()
    }
}

/// A session, an entry of it, and where in its text.
type Place = (usize, usize, usize);

/// Whether a word is made of at least two words, as identifiers are.
fn is_identifier(word: &str) -> bool {
    let parts = words_of(word);
    (8..=40).contains(&word.len())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
        && parts.len() > 1
        && parts.iter().all(|part| part.len() > 2)
}

/// The words an identifier is made of.
fn words_of(word: &str) -> Vec<String> {
    let mut spaced = String::new();
    for (before, letter) in std::iter::once('_').chain(word.chars()).zip(word.chars()) {
        if letter.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if letter == '_' {
            ' '
        } else {
            letter.to_ascii_lowercase()
        });
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// The two rarest plain words near a place in a text, but for some.
fn neighbours(text: &str, at: usize, index: &Index<'_>, but: &[String]) -> Option<String> {
    let from = text.floor_char_boundary(at.saturating_sub(NEAR));
    let to = text.floor_char_boundary((at + NEAR).min(text.len()));
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    each(&text[from..to], |found| {
        // Words at the edges may have been cut.
        let is_whole = found.at.start > 0 && from + found.at.end < to;
        let is_plain = found.word.len() > 4 && found.word.bytes().all(|b| b.is_ascii_lowercase());
        let is_other = !but
            .iter()
            .any(|word| word.contains(found.word) || found.word.contains(word.as_str()));
        if is_whole
            && is_plain
            && is_other
            && !found.is_part
            && !found.is_identifier
            && !is_stop(found.word)
        {
            let count = index.terms.get(found.term).map_or(0, Vec::len);
            words.insert(found.word.to_owned(), count);
        }
    });
    let mut words: Vec<(usize, String)> = words
        .into_iter()
        .map(|(word, count)| (count, word))
        .collect();
    words.sort();
    let [(_, one), (_, other), ..] = words.as_slice() else {
        return None;
    };
    Some(format!("{one} {other}"))
}

/// All of the recordings, or enough of them.
fn chosen() -> Vec<PathBuf> {
    let mut recordings = recordings::all();
    if std::env::var_os("LONGHAUL_RECALL").is_none() {
        recordings.truncate(PART);
        println!("the first {PART} recordings; LONGHAUL_RECALL=all takes all");
    }
    recordings
}

/// Where the identifiers stand that occur once, in whatever case.
fn unique(sessions: &[Vec<Held>]) -> Vec<Place> {
    let mut counts: BTreeMap<String, (usize, Option<Place>)> = BTreeMap::new();
    for (session, held) in sessions.iter().enumerate() {
        for (number, held) in held.iter().enumerate() {
            each(&held.text, |found| {
                if found.is_part {
                    return;
                }
                let (count, place) = counts.entry(found.word.to_owned()).or_default();
                *count += 1;
                let word = &held.text[found.at.clone()];
                *place = is_identifier(word).then_some((session, number, found.at.start));
            });
        }
    }
    let once = counts.into_values().filter(|(count, _)| *count == 1);
    let mut places: Vec<Place> = once.filter_map(|(_, place)| place).collect();
    places.sort_unstable();
    places
}

#[test]
fn an_identifier_is_found_by_itself_and_by_its_words() {
    let recordings = chosen();
    let sessions: Vec<Vec<Held>> = recordings.iter().map(|path| everything(path)).collect();
    let mut places = unique(&sessions);
    fastrand::Rng::with_seed(11).shuffle(&mut places);
    println!(
        "{} recordings, {} entries, {} identifiers that occur once",
        sessions.len(),
        sessions.iter().map(Vec::len).sum::<usize>(),
        places.len()
    );
    places.truncate(SAMPLE);
    assert!(
        places.len() >= SAMPLE.min(50 * sessions.len() / PART),
        "{}",
        places.len()
    );
    let alone: Vec<Index<'_>> = sessions
        .iter()
        .map(|held| Index::new(held.iter()))
        .collect();
    let together = Index::new(sessions.iter().flatten());
    let mut table: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for (turn, (session, number, at)) in places.into_iter().enumerate() {
        let held = &sessions[session][number];
        let rest = &held.text[at..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let identifier = &rest[..end];
        let words = words_of(identifier);
        let near = neighbours(&held.text, at, &alone[session], &words);
        let asked = [
            ("1 by itself", Some(format!("what was {identifier} about"))),
            (
                "2 by its words",
                Some(format!("what was {} about", words.join(" "))),
            ),
            ("3 by two words near it", near),
        ];
        for (how, asked) in asked {
            let Some(asked) = asked else {
                continue;
            };
            let row = table.entry(how).or_default();
            for (column, index) in [(0, &alone[session]), (2, &together)] {
                if column > 0 && turn % EVERY > 0 {
                    continue;
                }
                row[column] += 1;
                let found = index.found(&asked);
                if found.iter().any(|found| std::ptr::eq(*found, held)) {
                    row[column + 1] += 1;
                } else {
                    println!(
                        "missed ({column}): {asked}: {} {}.{}.{} of {}",
                        held.entry.kind.name(),
                        held.entry.message,
                        held.entry.block,
                        held.entry.part,
                        identifier
                    );
                }
            }
            let shown = snippet(&held.text, &query(&asked), 480);
            assert!(shown.chars().count() <= 480);
        }
    }
    println!("asked for                 in the session       among all");
    for (how, [of, one, of_all, all]) in &table {
        println!(
            "{how:<24} {one:>4} of {of} ({:>3}%) {all:>4} of {of_all} ({:>3}%)",
            one * 100 / of,
            all * 100 / of_all
        );
    }
    for how in ["1 by itself", "2 by its words"] {
        let [of, found, ..] = table[how];
        assert!(found * 100 >= of * 95, "{how}: {found} of {of}");
    }
}
