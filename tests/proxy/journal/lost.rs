//! Facts that a view no longer shows, and questions that should find them.
//!
//! A fact is an identifier, a path or a number that stands once in a session and
//! not at all in its last view. Which are taken is a fixed rule with a fixed
//! seed. Each is asked for by its name, and by the rarest ordinary words beside
//! it, through the tool that a model would call.

use std::collections::{BTreeMap, HashMap};

use fastrand::Rng;
use longhaul::engine::ids::Reference;
use longhaul::engine::recall::terms::is_stop;
use memchr::memmem;
use serde_json::{Value, json};

use super::player::Player;
use super::promised::{references, says};
use super::returned::pages;
use crate::support::Client;

/// How far from a fact its neighbours may stand, in bytes.
const NEAR: usize = 240;
/// Words of a question that does not name the fact.
const WORDS: usize = 3;
/// Results that are looked at.
const RESULTS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Identifier,
    Path,
    Number,
}

/// A fact, and the block it stands in.
pub struct Fact {
    pub sort: Sort,
    pub text: String,
    block: String,
}

/// How many were asked for, found first, and found among the first five.
#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    pub asked: usize,
    pub first: usize,
    pub found: usize,
}

impl Score {
    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.first += other.first;
        self.found += other.found;
    }

    pub fn percent(&self) -> usize {
        self.found * 100 / self.asked.max(1)
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_./-".contains(letter)
}

/// The words of a text as facts go: paths and numbers are words too.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !is_of_word(letter));
    words.map(|word| word.trim_matches(['.', '-', '/']))
}

fn sort(word: &str) -> Option<Sort> {
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let lower = word.bytes().any(|byte| byte.is_ascii_lowercase());
    let plain = word
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let bytes = word.as_bytes();
    let joined = word.trim_matches('_').contains('_')
        || bytes
            .windows(2)
            .any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    match word.len() {
        5..=12 if digits => Some(Sort::Number),
        8..=40 if plain && lower && joined => Some(Sort::Identifier),
        8..=100 if word.contains('/') && letters * 2 > word.len() && !word.contains("//") => {
            Some(Sort::Path)
        }
        _ => None,
    }
}

/// Every block of a history as text.
fn blocks(history: &[Value]) -> Vec<String> {
    let contents = history.iter().map(|message| &message["content"]);
    contents
        .flat_map(|content| match content {
            Value::Array(blocks) => blocks.iter().map(says).collect(),
            other => vec![other.as_str().unwrap_or_default().to_owned()],
        })
        .collect()
}

/// At most so many facts that only the journal has, some of each sort.
pub fn facts(history: &[Value], view: &[Value], most: usize) -> Vec<Fact> {
    let blocks = blocks(history);
    let (whole, shown) = (blocks.join("\n"), self::blocks(view).join("\n"));
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for (at, block) in blocks.iter().enumerate() {
        for word in words(block) {
            let (count, place) = counts.entry(word).or_default();
            *count += 1;
            *place = at;
        }
    }
    let mut candidates: BTreeMap<Sort, Vec<(&str, usize)>> = BTreeMap::new();
    for (word, (count, place)) in counts {
        if let (1, Some(sort)) = (count, sort(word)) {
            candidates.entry(sort).or_default().push((word, place));
        }
    }
    let mut rng = Rng::with_seed(11);
    let mut taken = Vec::new();
    for all in candidates.values_mut() {
        all.sort_unstable();
        rng.shuffle(all);
    }
    // In turn, so that a sort that there is little of leaves its share to others.
    while taken.len() < most {
        let before = taken.len();
        for (sort, all) in &mut candidates {
            let hidden = |word: &str| {
                memmem::find_iter(whole.as_bytes(), word).count() == 1
                    && memmem::find(shown.as_bytes(), word.as_bytes()).is_none()
            };
            while let Some((word, place)) = all.pop() {
                if taken.len() < most && hidden(word) {
                    taken.push(Fact {
                        sort: *sort,
                        text: word.to_owned(),
                        block: blocks[place].clone(),
                    });
                    break;
                }
            }
        }
        if taken.len() == before {
            break;
        }
    }
    taken
}

/// The rarest ordinary words beside a fact.
fn beside(fact: &Fact, counts: &HashMap<String, usize>) -> Option<String> {
    let at = fact.block.find(&fact.text)?;
    let from = fact.block.floor_char_boundary(at.saturating_sub(NEAR));
    let behind = (at + fact.text.len() + NEAR).min(fact.block.len());
    let to = fact.block.floor_char_boundary(behind);
    let near = &fact.block[from..to];
    let mut found: Vec<(usize, &str)> = Vec::new();
    // The outermost may have been cut.
    let all: Vec<&str> = near.split(|letter: char| !is_of_word(letter)).collect();
    let inner = all.get(1..all.len().saturating_sub(1)).unwrap_or(&[]);
    for word in inner.iter().map(|word| word.trim_matches(['.', '-'])) {
        let ordinary = word.len() > 4 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let other = !fact.text.to_lowercase().contains(word);
        let known = found.iter().any(|(_, held)| *held == word);
        if ordinary && other && !known && !is_stop(word) {
            found.push((counts.get(word).copied().unwrap_or(0), word));
        }
    }
    found.sort_unstable();
    let words: Vec<&str> = found.iter().take(WORDS).map(|(_, word)| *word).collect();
    (words.len() > 1).then(|| words.join(" "))
}

/// What a tool of the proxy's answers.
pub fn call(address: std::net::SocketAddr, tool: &str, arguments: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
    .to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = Client::connect(address)
        .send([head.as_bytes(), body.as_bytes()].concat())
        .answer();
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    let told = answer["result"]["content"][0]["text"].as_str();
    told.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The results of a list: of each its reference, what it is, and what is shown.
fn results(list: &str) -> Vec<(Reference, String, String)> {
    let mut found: Vec<(Reference, String, String)> = Vec::new();
    for line in list.lines() {
        let numbered = line.split_once(". lh-");
        let is_new = numbered.is_some_and(|(number, _)| number.parse::<usize>().is_ok());
        match found.last_mut() {
            _ if is_new => {
                let reference = references(line)[0];
                let what = line.split(' ').nth(2).unwrap_or_default().to_owned();
                found.push((reference, what, String::new()));
            }
            Some((_, _, shown)) => {
                shown.push_str(line);
                shown.push('\n');
            }
            None => {}
        }
    }
    found
}

/// Which result leads to a fact, from zero. A summary of everything does not.
fn place(player: &Player, from: Reference, query: &str, fact: &str) -> Option<usize> {
    let reference = format!("lh-{from}");
    let arguments = json!({"ref": reference, "query": query, "limit": RESULTS});
    let list = call(player.proxy.address, "recall", &arguments);
    let recall = player.recall();
    let leads = |(reference, what, shown): &(Reference, String, String)| {
        let ours = what.starts_with("summary") || what.starts_with("snapshot");
        if ours || shown.contains(fact) {
            return !ours;
        }
        let told = player.runtime.block_on(pages(&recall, *reference));
        told.is_ok_and(|(whole, _)| whole.replace('\n', "").contains(fact))
    };
    results(&list).iter().take(RESULTS).position(leads)
}

/// Asks for each fact from a reference that the view shows: by its name, and by
/// what stands beside it. What was not found by its name is told.
pub fn ask(
    player: &Player,
    from: Reference,
    facts: &[Fact],
    history: &[Value],
) -> ([Score; 2], Vec<String>) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for block in blocks(history) {
        for word in words(&block) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    let mut scores = [Score::default(); 2];
    let mut missed = Vec::new();
    for fact in facts {
        let named = Some(format!("where did {} come up", fact.text));
        for (at, query) in [named, beside(fact, &counts)].into_iter().enumerate() {
            let Some(query) = query else { continue };
            let found = place(player, from, &query, &fact.text);
            scores[at].add(Score {
                asked: 1,
                first: usize::from(found == Some(0)),
                found: usize::from(found.is_some()),
            });
            if at == 0 && found.is_none() {
                missed.push(format!("{:?} {}", fact.sort, fact.text));
            }
        }
    }
    (scores, missed)
}
