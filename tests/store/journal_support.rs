//! Conversations, entries and archives for the tests of the journal, each from
//! small numbers.

use longhaul::engine::ids::{ChainHash, LineageId, Reference};
use longhaul::store::journal::{
    Archive, Branch, Entry, EntryKind, EntryRow, Kept, Promise, Scope, Stretch, Text, Trace, scope,
    scope_of_session,
};
use longhaul::store::{Moment, Store};

use crate::support::{blob, body, chain, lineage};

/// A place of a conversation: a story has a place for every message.
pub fn place(story: u64, messages: u32) -> (ChainHash, u32) {
    (chain(story * 100_000 + u64::from(messages)), messages)
}

pub fn tenant(number: u64) -> ChainHash {
    chain(9_000_000_000 + number)
}

pub fn reference(number: u64) -> Reference {
    Reference::beginning(blake3::hash(&number.to_le_bytes()).as_bytes())
}

/// A conversation of the first tenant, whose session has the story's number.
pub fn trace(story: u64, from: Option<u32>, here: u32) -> Trace {
    Trace {
        tenant: tenant(1),
        lineage: lineage(story),
        label: None,
        from: from.map(|messages| place(story, messages)),
        through: Vec::new(),
        behind: Vec::new(),
        here: place(story, here),
    }
}

/// One that left another story.
pub fn fork(story: u64, of: u64, at: u32, here: u32) -> Trace {
    Trace {
        from: Some(place(of, at)),
        ..trace(story, None, here)
    }
}

/// An entry of a message, with words to find it by.
pub fn entry(message: u32, words: &str) -> Entry {
    Entry {
        kind: EntryKind::ToolResult,
        message,
        block: 0,
        part: 0,
        turn: 1,
        tool: "Bash".to_owned(),
        path: "src/lib.rs".to_owned(),
        text: Text::Inline(words.to_owned()),
        bytes: words.len() as u64,
        reference: reference(u64::from(message)),
        terms: words.split(' ').map(str::to_owned).collect(),
    }
}

/// A message of one piece.
pub fn kept(message: u32, parts: &str, piece: u64) -> Kept {
    Kept {
        message,
        parts: parts.into(),
        blobs: vec![blob(piece)],
    }
}

/// An archive of such messages, with their pieces.
pub fn archive(messages: &[(u32, &str, u64)]) -> Archive {
    Archive {
        blobs: messages
            .iter()
            .map(|(_, _, piece)| (blob(*piece), body(*piece)))
            .collect(),
        messages: messages
            .iter()
            .map(|(message, parts, piece)| kept(*message, parts, *piece))
            .collect(),
        promises: Vec::new(),
    }
}

/// A promise of one block.
pub fn promise(number: u64, message: u32, piece: u64) -> Promise {
    Promise {
        reference: reference(number),
        messages: (message, message + 1),
        block: Some(2),
        blob: Some(blob(piece)),
    }
}

pub async fn append(store: &dyn Store, trace: &Trace, entries: &[Entry], at: i64) -> u64 {
    let append = store.journal().append(trace, entries, Moment(at));
    append.await.unwrap()
}

/// Tells the journal of a place, and of nothing else.
pub async fn arrive(store: &dyn Store, trace: &Trace, at: i64) -> Branch {
    let archive = Archive::default();
    let id = store.journal().archive(trace, &archive, Moment(at));
    let id = id.await.unwrap();
    branch(store, id).await.unwrap()
}

pub async fn branch(store: &dyn Store, id: LineageId) -> Option<Branch> {
    store.journal().branch(id).await.unwrap()
}

/// All of a branch.
pub fn whole(branch: LineageId) -> Scope {
    let before = u32::MAX;
    Scope(vec![Stretch { branch, before }])
}

pub async fn session(store: &dyn Store, branch: LineageId) -> Scope {
    scope_of_session(store.journal(), branch).await.unwrap()
}

pub async fn seen_from(store: &dyn Store, branch: LineageId, message: u32) -> Scope {
    scope(store.journal(), branch, message).await.unwrap()
}

/// What a search finds: the texts, newest first, with their words.
pub async fn search(store: &dyn Store, scope: &Scope, words: &str) -> Vec<(String, u32)> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let journal = store.journal();
    let found = journal.matching(scope, &words).await.unwrap();
    let numbers: Vec<_> = found.iter().map(|found| found.number).collect();
    let rows = journal.entries(&numbers).await.unwrap();
    let text = |number| {
        let row: &EntryRow = rows.iter().find(|row| row.number == number).unwrap();
        match &row.entry.text {
            Text::Inline(text) => text.clone(),
            Text::Content { blob, .. } => blob.to_string(),
        }
    };
    let found = found.iter();
    found
        .map(|found| (text(found.number), found.terms))
        .collect()
}

/// What a search finds, in an order of its own.
pub async fn texts(store: &dyn Store, scope: &Scope, words: &str) -> Vec<String> {
    let found = search(store, scope, words).await.into_iter();
    let mut texts: Vec<_> = found.map(|(text, _)| text).collect();
    texts.sort();
    texts
}

/// The messages of a scope, with their parts.
pub async fn messages(
    store: &dyn Store,
    scope: &Scope,
    range: (u32, u32),
    as_of: Option<u32>,
) -> Vec<(u32, String)> {
    let kept = store.journal().kept(scope, range, as_of).await.unwrap();
    let kept = kept.into_iter();
    kept.map(|kept| (kept.message, String::from_utf8(kept.parts).unwrap()))
        .collect()
}
