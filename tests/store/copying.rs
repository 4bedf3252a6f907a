//! A whole store from one home to another: nothing is lost, nothing is mixed up.

use std::sync::Arc;

use longhaul::store::copy::{CopyError, TABLES, copy};
use longhaul::store::journal::{Archive, Listing, Text};
use longhaul::store::{MarkRow, Moment, Store};

use crate::journal_support::{
    append, archive, entry, fork, promise, reference, search, seen_from, session, trace, whole,
};
use crate::support::{
    at, blob, body, commit, folder, in_database, in_memory, lineage, mark, marks, overlay,
    put_segment, segments, sound,
};

/// Some of everything.
async fn fill(store: &dyn Store) {
    for place in 0..40 {
        store.commit(&commit(place, place)).await.unwrap();
    }
    let odd = MarkRow {
        model: "a\0b".to_owned(),
        seen_at: Moment(-7),
        ..mark(99)
    };
    store.record(&[odd]).await.unwrap();
    store.learn("factor", "1.25\0").await.unwrap();
    put_segment(store, 1, &body(1), 5).await;
    let alone = [(blob(70), body(70))];
    store.put_blobs(&alone, Moment(9)).await.unwrap();
    let journal = store.journal();
    let first = Archive {
        promises: vec![promise(1, 1, 2)],
        ..archive(&[(0, "zero", 1), (1, &"one ".repeat(400), 2)])
    };
    let mut here = trace(1, None, 5);
    here.label = Some("the label".to_owned());
    journal.archive(&here, &first, Moment(10)).await.unwrap();
    let grown = trace(1, Some(5), 9);
    let again = archive(&[(0, "changed", 1), (6, "six", 3)]);
    journal.archive(&grown, &again, Moment(11)).await.unwrap();
    let mut entries: Vec<_> = (0..3_000)
        .map(|message| entry(message, &format!("word w{message} \u{e9}t\u{e9}")))
        .collect();
    // Words that no longer stand in the text can only come from the index.
    entries[7].text = Text::Content {
        blob: blob(2),
        from: 0,
        to: 4,
    };
    append(store, &grown, &entries, 12).await;
    let left = fork(2, 1, 5, 8);
    append(store, &left, &[entry(6, "word left")], 13).await;
    append(store, &grown, &[entry(4_000, "word last")], 14).await;
    append(store, &trace(3, None, 2), &[entry(1, "word other")], 15).await;
    append(store, &fork(4, 3, 2, 4), &[entry(3, "word on")], 16).await;
    journal.forget(lineage(3)).await.unwrap();
}

/// All that can be asked, with the numbers of entries.
async fn everything(store: &dyn Store) -> Vec<String> {
    let journal = store.journal();
    let mut told = vec![
        format!("{:?}", journal.extent().await.unwrap()),
        format!("{:?}", journal.branches(None, 99).await.unwrap()),
        format!("{:?}", store.sessions().list(None, 99).await.unwrap()),
        format!("{:?}", segments(store, &[1, 2]).await),
        format!("{:?}", marks(store, &[1, 39, 99]).await),
        format!("{:?}", store.overlay(overlay(7)).await.unwrap()),
    ];
    for number in [1, 2, 3, 70] {
        told.push(format!("{:?}", store.blob(blob(number)).await.unwrap()));
    }
    for id in [1, 2, 3, 4].map(lineage) {
        told.push(format!("{:?}", journal.branch(id).await.unwrap()));
        for scope in [
            whole(id),
            session(store, id).await,
            seen_from(store, id, 1).await,
        ] {
            for words in ["word \u{e9}t\u{e9} last left", "w7", "w2999 w3", "other on"] {
                told.push(format!("{:?}", search(store, &scope, words).await));
                let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
                let found = journal.matching(&scope, &words).await.unwrap();
                told.push(format!("{found:?}"));
            }
            let listing = Listing {
                limit: 5_000,
                ..Listing::default()
            };
            told.push(format!("{:?}", journal.list(&scope, &listing).await));
            for as_of in [None, Some(5)] {
                told.push(format!("{:?}", journal.kept(&scope, (0, 99), as_of).await));
            }
        }
    }
    for number in 0..8 {
        told.push(format!("{:?}", journal.referred(reference(number)).await));
    }
    let learned = store.learned().await.unwrap().into_iter();
    let learned: Vec<_> = learned.filter(|(key, _)| key != "store copy").collect();
    told.push(format!("{learned:?}"));
    told
}

fn same(told: &[String], expected: &[String]) {
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(expected) {
        assert_eq!(told, expected);
    }
}

async fn carry(from: &dyn Store, name: &str, to: &dyn Store) {
    let copied = copy(from, name, to, |_| {}).await.unwrap();
    assert_eq!(copied.len(), TABLES.len());
    assert!(
        copied.iter().all(|of| of.complete && of.rows > 0),
        "{copied:?}"
    );
    same(&everything(to).await, &everything(from).await);
}

/// It goes on as if it had always been there.
async fn goes_on(store: &dyn Store) {
    let grown = trace(1, Some(9), 12);
    assert_eq!(
        append(store, &grown, &[entry(9_000, "newest")], 50).await,
        1
    );
    assert_eq!(
        append(store, &grown, &[entry(9_000, "newest")], 50).await,
        0
    );
    let content = archive(&[(11, "eleven", 11)]);
    let put = store.journal().archive(&grown, &content, Moment(51));
    assert_eq!(put.await.unwrap(), lineage(1));
    assert_eq!(search(store, &whole(lineage(1)), "newest").await.len(), 1);
    let begun = fork(9, 1, 12, 13);
    append(store, &begun, &[entry(12, "begun")], 52).await;
    for number in [1, 2, 4, 9] {
        store.journal().forget(lineage(number)).await.unwrap();
    }
    let left = store.journal().extent().await.unwrap();
    assert_eq!((left.branches, left.entries), (0, 0));
}

#[tokio::test]
async fn files_to_a_database_and_back_again() {
    let Some((database, _)) = in_database().await else {
        return;
    };
    let (first, second) = (folder(), folder());
    let files = sound(first.path()).await;
    fill(&*files).await;
    carry(&*files, "files", &*database).await;
    let back = sound(second.path()).await;
    carry(&*database, "database", &*back).await;
    same(&everything(&*back).await, &everything(&*files).await);
    goes_on(&*database).await;
    goes_on(&*back).await;
}

#[tokio::test]
async fn files_to_other_files() {
    let (first, second) = (folder(), folder());
    let files = sound(first.path()).await;
    fill(&*files).await;
    let other = sound(second.path()).await;
    carry(&*files, "files", &*other).await;
    goes_on(&*other).await;
}

/// Dies after so many pages; whoever comes next goes on.
#[tokio::test]
async fn what_is_interrupted_goes_on_where_it_was() {
    let Some((database, url)) = in_database().await else {
        return;
    };
    let first = folder();
    let files = sound(first.path()).await;
    fill(&*files).await;
    for pages in [3, 1, 8, 2] {
        let (store, files) = (at(&url).await, Arc::clone(&files));
        let (dead, mut dies) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut seen = 0;
            copy(&*files, "files", &*store, |_| {
                seen += 1;
                if seen == pages {
                    let _ = dead.send(());
                    panic!("killed");
                }
            })
            .await
            .map(|_| ())
        });
        dies.recv().await;
        assert!(task.await.unwrap_err().is_panic());
        let other = copy(&*files_again(&first).await, "another", &*database, |_| {}).await;
        assert!(matches!(other, Err(CopyError::Another(_))));
    }
    carry(&*files, "files", &*database).await;
    // Once more, while nobody has used it.
    carry(&*files, "files", &*database).await;
    database
        .record(&[MarkRow {
            seen_at: Moment(9_999_999),
            ..mark(500)
        }])
        .await
        .unwrap();
    let used = copy(&*files, "files", &*database, |_| {}).await;
    assert!(matches!(used, Err(CopyError::InUse(_))));
}

async fn files_again(folder: &tempfile::TempDir) -> Arc<dyn Store> {
    sound(folder.path()).await
}

#[tokio::test]
async fn a_store_in_use_is_left_alone() {
    let (first, second) = (folder(), folder());
    let files = sound(first.path()).await;
    fill(&*files).await;
    let other = sound(second.path()).await;
    append(&*other, &trace(1, None, 2), &[entry(0, "theirs")], 1).await;
    let before = everything(&*other).await;
    let refused = copy(&*files, "files", &*other, |_| {}).await;
    let Err(error) = refused else {
        panic!("it was filled");
    };
    assert!(error.to_string().contains("in use"), "{error}");
    same(&everything(&*other).await, &before);
    let memory = in_memory();
    let refused = copy(&*memory.store, "memory", &*other, |_| {}).await;
    assert!(matches!(refused, Err(CopyError::Memory)));
}

/// Marks would point to overlays that are not read again.
#[tokio::test]
async fn what_was_used_since_a_copy_began_is_copied_from_the_beginning() {
    let Some((database, url)) = in_database().await else {
        return;
    };
    let first = folder();
    let files = sound(first.path()).await;
    fill(&*files).await;
    let (store, source) = (at(&url).await, Arc::clone(&files));
    let interrupted = tokio::spawn(async move {
        let tell = |_| panic!("killed");
        copy(&*source, "files", &*store, tell).await.map(|_| ())
    });
    assert!(interrupted.await.unwrap_err().is_panic());
    let mut later = commit(600, 600);
    later.mark.seen_at = Moment(9_999_999);
    files.commit(&later).await.unwrap();
    let refused = copy(&*files, "files", &*database, |_| {}).await;
    let Err(error @ CopyError::Moved) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.to_string().contains("begin again"), "{error}");
    let mut stranger = crate::cluster::raw(&url).await;
    crate::cluster::execute(&mut stranger, "DROP SCHEMA longhaul CASCADE").await;
    carry(&*files, "files", &*at(&url).await).await;
}
