//! Random operations over each home and over memory, which is the model: every
//! answer must be the same, also after closing and opening again.

use std::sync::Arc;

use longhaul::store::{Commit, Keep, MarkRow, Memory, Moment, Store};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::cluster::Cluster;
use crate::support::{
    at, blob, body, chain, hint, lineage, marks, ordered, overlay, put_segment, segments, sound,
    view,
};

#[derive(Debug, Clone)]
enum Operation {
    Commit(Box<Commit>),
    Record(Vec<MarkRow>),
    Learn(u8, u8),
    Put(Vec<u64>, i64),
    /// A name, one of several contents for it, and when.
    Segment(u64, u64, i64),
    Collect(Keep),
    Reopen,
}

/// Few of everything, so that operations meet.
fn any_mark() -> impl Strategy<Value = MarkRow> {
    let names = (0..8_u64, 0..2_u8, 0..3_u64, option::of(0..4_u64));
    let rest = (option::of(0..2_u64), any::<bool>(), 0..20_usize, 0..50_i64);
    (names, rest).prop_map(
        |((place, model, of, over), (session, sealed, figures, at))| MarkRow {
            chain: chain(place),
            model: format!("model-{model}"),
            lineage: lineage(of),
            messages: u32::try_from(place).unwrap(),
            overlay: over.map(overlay),
            view: view(place % 3),
            hint: session.map(hint),
            sealed: sealed && at % 3 == 0,
            figures: vec![7; figures],
            seen_at: Moment(at),
        },
    )
}

fn any_commit() -> impl Strategy<Value = Commit> {
    (any_mark(), 0..4_u64, any::<u8>(), option::of(0..4_u64)).prop_map(
        |(mut mark, number, choice, parent)| {
            let brings = choice % 4 != 0;
            if brings && choice % 32 != 1 {
                mark.overlay = Some(overlay(number));
            }
            Commit {
                overlay: brings.then(|| (overlay(number), body(number)[..400].to_vec())),
                mark,
                parent: parent.map(overlay),
                refused: choice % 5 == 0,
            }
        },
    )
}

fn any_keep() -> impl Strategy<Value = Keep> {
    (0..40_i64, 0..9_000_u64, 0..40_i64, 0..900_u64).prop_map(
        |(since, state_bytes, blobs_since, blob_bytes)| Keep {
            since: Moment(since),
            state_bytes,
            blobs_since: Moment(blobs_since),
            blob_bytes,
            idle_since: Moment(i64::MAX),
        },
    )
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => any_commit().prop_map(|commit| Operation::Commit(Box::new(commit))),
        8 => vec(any_mark(), 0..6).prop_map(Operation::Record),
        1 => (0..3_u8, any::<u8>()).prop_map(|(key, value)| Operation::Learn(key, value)),
        3 => (vec(0..6_u64, 0..4), 0..50_i64).prop_map(|(ids, at)| Operation::Put(ids, at)),
        4 => (0..6_u64, 0..3_u64, 0..50_i64).prop_map(|(id, of, at)| Operation::Segment(id, of, at)),
        1 => any_keep().prop_map(Operation::Collect),
        1 => Just(Operation::Reopen),
    ]
}

/// What an operation answers, as text: errors must be the same errors.
async fn carry_out(store: &dyn Store, operation: &Operation) -> String {
    match operation {
        Operation::Commit(commit) => format!("{:?}", store.commit(commit).await),
        Operation::Record(marks) => format!("{:?}", store.record(marks).await),
        Operation::Learn(key, value) => {
            let (key, value) = (key.to_string(), value.to_string());
            format!("{:?}", store.learn(&key, &value).await)
        }
        Operation::Put(ids, at) => {
            let blobs: Vec<_> = ids.iter().map(|id| (blob(*id), body(*id))).collect();
            format!("{:?}", store.put_blobs(&blobs, Moment(*at)).await)
        }
        Operation::Segment(id, content, at) => {
            let body = body(*content);
            let body = &body[..400 + usize::try_from(*content).unwrap()];
            format!("{:?}", put_segment(store, *id, body, *at).await)
        }
        Operation::Collect(keep) => format!("{:?}", store.collect(*keep).await),
        Operation::Reopen => String::new(),
    }
}

/// Everything that can be asked.
async fn everything(store: &dyn Store) -> String {
    let mut told = vec![format!(
        "{:?}",
        marks(store, &[0, 1, 2, 3, 4, 5, 6, 7]).await
    )];
    told.push(format!("{:?}", marks(store, &[3]).await));
    for session in 0..2 {
        let views = [view(0), view(2)];
        let found = store.marks_by_view(hint(session), &views).await.unwrap();
        told.push(format!("{:?}", ordered(found)));
        for limit in [1, 9] {
            told.push(format!(
                "{:?}",
                store.overlays_of(hint(session), limit).await
            ));
        }
    }
    for number in 0..6 {
        told.push(format!("{:?}", store.overlay(overlay(number)).await));
        let content = store.blob(blob(number)).await.unwrap();
        told.push(format!("{:?}", content.map(|content| content.len())));
    }
    told.push(format!("{:?}", segments(store, &[0, 1, 2, 3, 4, 5]).await));
    told.push(format!("{:?}", store.learned().await));
    told.join("\n")
}

/// Opens a home, as often as it is asked to.
enum Home {
    Folder(tempfile::TempDir),
    Database(String),
}

impl Home {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Folder(folder) => sound(folder.path()).await,
            Self::Database(url) => at(url).await,
        }
    }
}

async fn compare(home: Home, operations: Vec<Operation>) {
    let model: Arc<dyn Store> = Arc::new(Memory::new());
    let mut store = home.open().await;
    for operation in operations {
        if matches!(operation, Operation::Reopen) {
            store.close().await.unwrap();
            store = home.open().await;
        }
        let expected = carry_out(&*model, &operation).await;
        assert_eq!(
            carry_out(&*store, &operation).await,
            expected,
            "{operation:?}"
        );
        assert_eq!(
            everything(&*store).await,
            everything(&*model).await,
            "{operation:?}"
        );
    }
    store.close().await.unwrap();
}

fn block_on(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_answers_as_memory_does(operations in vec(any_operation(), 1..40)) {
        block_on(compare(Home::Folder(crate::support::folder()), operations));
    }

    #[test]
    fn postgres_answers_as_memory_does(operations in vec(any_operation(), 1..40)) {
        let Some(cluster) = Cluster::shared() else { return Ok(()) };
        block_on(async {
            compare(Home::Database(cluster.database().await), operations).await;
        });
    }
}
