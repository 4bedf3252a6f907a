//! Random operations on the journal over SQLite, PostgreSQL and memory, which is
//! the model: every answer must be the same, also after closing and opening again.

use std::sync::Arc;

use longhaul::engine::ids::LineageId;
use longhaul::store::journal::{
    Archive, Entry, EntryKind, EntryRow, Listing, Promise, Referred, Scope, Stretch, Text, Trace,
};
use longhaul::store::{Keep, Memory, Moment, Store};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::cluster::Cluster;
use crate::journal_support::{entry, kept, place, reference, seen_from, session, tenant};
use crate::support::{EVERYTHING, at, blob, body, lineage, sound};

#[derive(Debug, Clone)]
enum Operation {
    Archive(Trace, Archive, i64),
    Append(Trace, Vec<Entry>, i64),
    Put(u64, i64),
    /// The branch that comes so many-th in a list.
    Forget(usize),
    Collect(Keep),
    Reopen,
}

/// Few of everything, so that operations meet.
fn any_trace() -> impl Strategy<Value = Trace> {
    let names = (0..3_u64, 0..2_u64, option::of("[a-c\0]{0,3}"));
    let from = option::weighted(0.7, (0..3_u64, 0..8_u32));
    let places = || vec((0..3_u64, 0..8_u32), 0..3);
    let before = (from, places(), places());
    (before, (0..3_u64, 0..8_u32), names).prop_map(|(before, (of, here), names)| {
        let (session, owner, label) = names;
        let place = |(of, messages): (u64, u32)| place(of + owner * 10, messages);
        // A history is longer than its beginnings.
        let is_before = |(_, messages): &(u64, u32)| *messages < here;
        let shorter = |places: Vec<_>| places.into_iter().filter(is_before).map(place).collect();
        let (from, through, behind) = before;
        Trace {
            tenant: tenant(owner),
            lineage: lineage(session),
            label,
            from: from.filter(is_before).map(place),
            through: shorter(through),
            behind: shorter(behind),
            here: place((of, here)),
        }
    })
}

fn any_archive() -> impl Strategy<Value = Archive> {
    let any_message = (0..8_u32, "[ab]{1,2}", 0..6_u64);
    let any_promise = (0..4_u64, 0..8_u32, 0..3_u32, option::of(0..6_u64));
    (vec(any_message, 0..4), vec(any_promise, 0..3)).prop_map(|(messages, promises)| {
        let messages = messages.into_iter();
        let messages: Vec<_> = messages
            .map(|(message, parts, piece)| kept(message, &parts.repeat(400), piece))
            .collect();
        let pieces = messages.iter().flat_map(|kept| kept.blobs.clone());
        let content = |id| (0..6).find(|number| blob(*number) == id).map(body);
        let promises = promises.into_iter();
        Archive {
            blobs: pieces.filter_map(|id| Some((id, content(id)?))).collect(),
            promises: promises
                .map(|(number, first, more, piece)| Promise {
                    reference: reference(number),
                    messages: (first, first + more),
                    block: None,
                    blob: piece.map(blob),
                })
                .collect(),
            messages,
        }
    })
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let place = (0..8_u32, 0..2_u32, 0..2_u32, 0..2_usize);
    (place, "[a-c]( [a-c]){0,2}", option::of(0..6_u64), 0..4_u64).prop_map(
        |((message, block, part, kind), words, piece, number)| Entry {
            block,
            part,
            kind: [EntryKind::ToolResult, EntryKind::ToolCall][kind],
            text: match piece {
                Some(piece) => Text::Content {
                    blob: blob(piece),
                    from: part,
                    to: 9,
                },
                None => Text::Inline(words.repeat(200)),
            },
            reference: reference(number),
            ..entry(message, &words)
        },
    )
}

fn any_keep() -> impl Strategy<Value = Keep> {
    let room = prop_oneof![2 => Just(u64::MAX), 3 => 0..20_000_u64];
    (0..40_i64, room, prop_oneof![Just(i64::MAX), 0..40_i64]).prop_map(
        |(since, blob_bytes, idle_since)| Keep {
            blobs_since: Moment(since),
            blob_bytes,
            idle_since: Moment(idle_since),
            ..EVERYTHING
        },
    )
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (any_trace(), any_archive(), 0..50_i64).prop_map(|(trace, archive, at)| Operation::Archive(trace, archive, at)),
        8 => (any_trace(), vec(any_entry(), 0..5), 0..50_i64).prop_map(|(trace, entries, at)| Operation::Append(trace, entries, at)),
        2 => (0..6_u64, 0..50_i64).prop_map(|(piece, at)| Operation::Put(piece, at)),
        2 => (0..4_usize).prop_map(Operation::Forget),
        1 => any_keep().prop_map(Operation::Collect),
        1 => Just(Operation::Reopen),
    ]
}

/// All branches that can be found, those that are only there for others too.
async fn branches(store: &dyn Store) -> Vec<LineageId> {
    let listed = store.journal().branches(None, 99).await.unwrap();
    let mut found: Vec<_> = listed.iter().map(|held| held.id).collect();
    for held in listed {
        let mut parent = held.parent;
        while let Some((id, _)) = parent {
            found.push(id);
            parent = store.journal().branch(id).await.unwrap().unwrap().parent;
        }
    }
    found.sort();
    found.dedup();
    found
}

/// What an operation answers, as text.
async fn carry_out(store: &dyn Store, operation: &Operation) -> String {
    let journal = store.journal();
    match operation {
        Operation::Archive(trace, archive, at) => {
            format!("{:?}", journal.archive(trace, archive, Moment(*at)).await)
        }
        Operation::Append(trace, entries, at) => {
            format!("{:?}", journal.append(trace, entries, Moment(*at)).await)
        }
        Operation::Put(piece, at) => {
            let blobs = [(blob(*piece), body(*piece))];
            format!("{:?}", store.put_blobs(&blobs, Moment(*at)).await)
        }
        Operation::Forget(at) => match branches(store).await.get(*at) {
            Some(id) => format!("{:?}", journal.forget(*id).await),
            None => String::new(),
        },
        Operation::Collect(keep) => format!("{:?}", store.collect(*keep).await),
        Operation::Reopen => String::new(),
    }
}

/// Everything that can be asked. Numbers only have an order.
async fn everything(store: &dyn Store) -> Vec<String> {
    let journal = store.journal();
    let mut told = vec![format!("{:?}", journal.extent().await)];
    told.push(format!("{:?}", journal.branches(Some(Moment(25)), 3).await));
    let ids = branches(store).await;
    let all = Scope(ids.iter().map(|id| everywhere(*id)).collect());
    let listing = Listing {
        limit: 9_999,
        ..Listing::default()
    };
    let rows = journal.list(&all, &listing).await.unwrap();
    let order = |number: i64| rows.iter().position(|row| row.number == number).unwrap();
    told.push(format!("{:?}", shown(&rows)));
    for id in ids {
        told.push(format!("{:?}", journal.branch(id).await));
        told.push(format!("{:?}", journal.children(id, 2, 5).await));
        for scope in [
            session(store, id).await,
            seen_from(store, id, 3).await,
            Scope(vec![Stretch {
                branch: id,
                before: 4,
            }]),
        ] {
            let words = ["a", "b", "c"].map(str::to_owned);
            let found = journal.matching(&scope, &words).await.unwrap();
            let found = found.iter();
            let found: Vec<_> = found
                .map(|found| (order(found.number), found.terms))
                .collect();
            told.push(format!("{id} {found:?}"));
            for as_of in [None, Some(3), Some(5)] {
                let kept = journal.kept(&scope, (1, 7), as_of).await;
                told.push(format!("{id} {as_of:?} {kept:?}"));
            }
            let few = Listing {
                kinds: vec![EntryKind::ToolCall],
                before: None,
                limit: 2,
            };
            told.push(format!(
                "{:?}",
                shown(&journal.list(&scope, &few).await.unwrap())
            ));
        }
    }
    for number in 0..8 {
        let found = journal.referred(reference(number)).await.unwrap();
        let found: Vec<_> = found
            .into_iter()
            .map(|found| Referred {
                entry: found
                    .entry
                    .map(|number| i64::try_from(order(number)).unwrap()),
                ..found
            })
            .collect();
        told.push(format!("{number} {found:?}"));
        let content = store.blob(blob(number)).await.unwrap();
        told.push(format!("{number} {}", content.is_some()));
        told.push(format!("{:?}", journal.branch(lineage(number)).await));
    }
    told
}

fn everywhere(branch: LineageId) -> Stretch {
    let before = u32::MAX;
    Stretch { branch, before }
}

fn shown(rows: &[EntryRow]) -> Vec<String> {
    let rows = rows.iter();
    rows.map(|row| format!("{:?} {:?} {:?}", row.branch, row.at, row.entry))
        .collect()
}

/// Where the journal under test is.
enum Place {
    Files(tempfile::TempDir),
    Database(String),
}

impl Place {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Files(folder) => sound(folder.path()).await,
            Self::Database(url) => at(url).await,
        }
    }
}

async fn compare(place: Place, operations: Vec<Operation>) {
    let model: Arc<dyn Store> = Arc::new(Memory::new());
    let mut store = place.open().await;
    for operation in operations {
        if matches!(operation, Operation::Reopen) {
            store.close().await.unwrap();
            store = place.open().await;
        }
        let expected = carry_out(&*model, &operation).await;
        let answer = carry_out(&*store, &operation).await;
        assert_eq!(answer, expected, "{operation:?}");
        let (told, expected) = (everything(&*store).await, everything(&*model).await);
        assert_eq!(told.len(), expected.len(), "{operation:?}");
        for (told, expected) in told.iter().zip(&expected) {
            assert_eq!(told, expected, "{operation:?}");
        }
    }
    store.close().await.unwrap();
}

fn run(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_journal_in_sqlite_answers_as_in_memory(operations in vec(any_operation(), 1..40)) {
        run(compare(Place::Files(crate::support::folder()), operations));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_journal_in_postgres_answers_as_in_memory(operations in vec(any_operation(), 1..40)) {
        if let Some(cluster) = Cluster::shared() {
            run(async {
                let url = cluster.database().await;
                compare(Place::Database(url), operations).await;
            });
        }
    }
}
