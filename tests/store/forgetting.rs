//! What is forgotten on request, what is collected, and what stays for others.

use longhaul::store::journal::{Archive, Extent, Text, Trace};
use longhaul::store::{Collected, Keep, Moment, Store};

use crate::journal_support::{
    append, archive, arrive, branch, entry, fork, messages, promise, reference, seen_from, session,
    texts, trace, whole,
};
use crate::over_every_store;
use crate::support::{EVERYTHING, blob, body, in_files, lineage, number, raw};

over_every_store! {
    a_forgotten_branch_is_gone_with_all_that_belongs_to_it
    shared_pieces_stay
    what_others_have_in_common_stays
    the_common_part_goes_with_the_last_who_needs_it
    a_forgotten_conversation_begins_anew
    forgetting_twice_is_forgetting_once
    old_branches_go_and_young_ones_stay
    pieces_of_a_branch_do_not_age
    pieces_that_no_branch_needs_age
    without_room_the_least_recently_seen_go
    without_room_nothing_goes_that_is_in_use
    a_large_branch_goes_whole
}

/// A conversation with five messages of a piece each, entries and a promise.
async fn fill(store: &dyn Store, of: u64, pieces: u64, at: i64) {
    let parts: Vec<_> = (0..5).map(|message| format!("{of} {message}")).collect();
    let kept: Vec<_> = (0..5_u32)
        .map(|message| {
            (
                message,
                parts[message as usize].as_str(),
                pieces + u64::from(message),
            )
        })
        .collect();
    let archive = Archive {
        promises: vec![promise(of, 4, pieces + 4)],
        ..archive(&kept)
    };
    let trace = trace(of, None, 5);
    let put = store.journal().archive(&trace, &archive, Moment(at));
    put.await.unwrap();
    let entries: Vec<_> = (0..5)
        .map(|message| entry(message, &format!("word {of}_{message}")))
        .collect();
    append(store, &trace, &entries, at).await;
}

async fn pieces(store: &dyn Store, from: u64) -> usize {
    let mut found = 0;
    for number in from..from + 5 {
        found += usize::from(store.blob(blob(number)).await.unwrap().is_some());
    }
    found
}

fn keep(branches_since: i64) -> Keep {
    Keep {
        blobs_since: Moment(branches_since),
        ..EVERYTHING
    }
}

async fn a_forgotten_branch_is_gone_with_all_that_belongs_to_it(store: &dyn Store) {
    fill(store, 1, 10, 1).await;
    fill(store, 2, 20, 1).await;
    let scope = whole(lineage(1));
    let gone = store.journal().forget(lineage(1)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (1, 5, 5));
    assert_eq!(branch(store, lineage(1)).await, None);
    assert_eq!(texts(store, &scope, "word").await, [""; 0]);
    assert_eq!(messages(store, &scope, (0, 9), None).await, []);
    assert_eq!(pieces(store, 10).await, 0);
    assert_eq!(
        store.journal().referred(reference(1)).await.unwrap().len(),
        1
    );
    assert_eq!(pieces(store, 20).await, 5);
    store.journal().forget(lineage(2)).await.unwrap();
    let nothing = Extent::default();
    assert_eq!(store.journal().extent().await.unwrap(), nothing);
    for number in 0..9 {
        let found = store.journal().referred(reference(number)).await.unwrap();
        assert_eq!(found, []);
    }
}

async fn shared_pieces_stay(store: &dyn Store) {
    fill(store, 1, 10, 1).await;
    fill(store, 2, 12, 1).await;
    let gone = store.journal().forget(lineage(1)).await.unwrap();
    assert_eq!(gone.blobs, 2);
    assert_eq!(pieces(store, 12).await, 5);
    // Only an entry or a promise needs this one.
    let mut refers = entry(9, "refers");
    refers.text = Text::Content {
        blob: blob(13),
        from: 0,
        to: 1,
    };
    append(store, &trace(3, None, 10), &[refers], 1).await;
    let archive = Archive {
        promises: vec![promise(3, 1, 14)],
        ..Archive::default()
    };
    let trace = trace(4, None, 10);
    let put = store.journal().archive(&trace, &archive, Moment(1));
    put.await.unwrap();
    let gone = store.journal().forget(lineage(2)).await.unwrap();
    assert_eq!(gone.blobs, 3);
    assert_eq!(store.blob(blob(13)).await.unwrap(), Some(body(13)));
    assert_eq!(store.blob(blob(14)).await.unwrap(), Some(body(14)));
}

/// A trunk of ten messages, which another conversation left at five.
async fn forked(store: &dyn Store) {
    fill(store, 1, 10, 1).await;
    let grown = trace(1, Some(5), 10);
    let archive = Archive {
        promises: vec![promise(8, 7, 15)],
        ..archive(&[(0, "1 0", 10), (7, "seven", 15)])
    };
    let put = store.journal().archive(&grown, &archive, Moment(2));
    put.await.unwrap();
    append(store, &grown, &[entry(7, "word 1_7")], 2).await;
    let left = fork(2, 1, 5, 8);
    append(store, &left, &[entry(6, "word 2_6")], 3).await;
}

async fn what_others_have_in_common_stays(store: &dyn Store) {
    forked(store).await;
    let gone = store.journal().forget(lineage(1)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (1, 1, 1));
    assert_eq!(pieces(store, 10).await, 5);
    assert_eq!(store.blob(blob(15)).await.unwrap(), None);
    let scope = session(store, lineage(2)).await;
    let common = ["1_0", "1_1", "1_2", "1_3", "1_4", "2_6"].map(|word| format!("word {word}"));
    assert_eq!(texts(store, &scope, "word").await, common);
    assert_eq!(messages(store, &scope, (0, 99), None).await.len(), 5);
    let known = seen_from(store, lineage(1), 2).await;
    assert_eq!(texts(store, &known, "word").await, common);
    assert_eq!(store.journal().referred(reference(8)).await.unwrap(), []);
    let promised = store.journal().referred(reference(1)).await.unwrap();
    assert_eq!(promised[0].messages, (4, 5));
    let listed = store.journal().branches(None, 9).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|held| held.id).collect();
    assert_eq!(listed, [lineage(2)]);
}

async fn the_common_part_goes_with_the_last_who_needs_it(store: &dyn Store) {
    forked(store).await;
    let nearer = fork(3, 1, 5, 7);
    append(store, &nearer, &[entry(6, "word 3_6")], 3).await;
    store.journal().forget(lineage(1)).await.unwrap();
    let gone = store.journal().forget(lineage(2)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (1, 1, 0));
    assert_eq!(pieces(store, 10).await, 5);
    let gone = store.journal().forget(lineage(3)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (1, 6, 5));
    assert_eq!(store.journal().extent().await.unwrap(), Extent::default());
}

async fn a_forgotten_conversation_begins_anew(store: &dyn Store) {
    forked(store).await;
    store.journal().forget(lineage(1)).await.unwrap();
    let anew = arrive(store, &trace(1, Some(10), 12), 9).await;
    assert_ne!(anew.id, lineage(1));
    assert_eq!((anew.parent, anew.lineage), (None, lineage(1)));
    // By its name the one is still found that others need, and by its session
    // the one that lives.
    assert_eq!(branch(store, lineage(1)).await.unwrap().id, lineage(1));
    let alive = store.journal().alive(lineage(1)).await.unwrap();
    assert_eq!(alive.unwrap().id, anew.id);
    // From the place that is left it goes on where the others left.
    let again = Trace {
        lineage: lineage(1),
        ..fork(7, 1, 5, 6)
    };
    let again = arrive(store, &again, 9).await;
    assert_eq!((again.id, again.messages), (lineage(1), 6));
    assert_eq!(again.began_at, Moment(9), "what was kept before is gone");
    assert_eq!(store.journal().branches(None, 9).await.unwrap().len(), 3);
    store.journal().forget(lineage(2)).await.unwrap();
    let scope = session(store, lineage(1)).await;
    assert_eq!(texts(store, &scope, "word").await.len(), 5);
}

async fn forgetting_twice_is_forgetting_once(store: &dyn Store) {
    forked(store).await;
    store.journal().forget(lineage(1)).await.unwrap();
    let extent = store.journal().extent().await.unwrap();
    let gone = store.journal().forget(lineage(1)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (0, 0, 0));
    assert_eq!(store.journal().extent().await.unwrap(), extent);
}

async fn old_branches_go_and_young_ones_stay(store: &dyn Store) {
    for (story, at) in [(1, 10), (2, 20), (3, 30)] {
        fill(store, story, story * 10, at).await;
    }
    arrive(store, &trace(1, Some(5), 6), 40).await;
    assert_eq!(
        store.collect(EVERYTHING).await.unwrap(),
        Collected::default()
    );
    let done = store.collect(keep(30)).await.unwrap();
    assert_eq!((done.branches, done.entries, done.blobs), (1, 5, 5));
    for (story, there) in [(1, true), (2, false), (3, true)] {
        assert_eq!(branch(store, lineage(story)).await.is_some(), there);
        assert_eq!(pieces(store, story * 10).await, if there { 5 } else { 0 });
    }
    let done = store.collect(keep(i64::MAX)).await.unwrap();
    assert_eq!((done.branches, done.entries, done.blobs), (2, 10, 10));
    assert_eq!(store.journal().extent().await.unwrap(), Extent::default());
}

async fn pieces_of_a_branch_do_not_age(store: &dyn Store) {
    fill(store, 1, 10, 10).await;
    arrive(store, &trace(1, Some(5), 6), 100).await;
    assert_eq!(
        store.collect(keep(100)).await.unwrap(),
        Collected::default()
    );
    assert_eq!(pieces(store, 10).await, 5);
}

async fn pieces_that_no_branch_needs_age(store: &dyn Store) {
    fill(store, 1, 10, 10).await;
    let alone = [(blob(50), body(50)), (blob(10), body(10))];
    store.put_blobs(&alone, Moment(20)).await.unwrap();
    // In use a moment ago, so it outlives its branch, and then ages.
    let busy = Keep {
        idle_since: Moment(15),
        ..keep(11)
    };
    let done = store.collect(busy).await.unwrap();
    assert_eq!((done.branches, done.blobs), (1, 4));
    assert_eq!(store.blob(blob(10)).await.unwrap(), Some(body(10)));
    assert_eq!(store.collect(keep(20)).await.unwrap().blobs, 0);
    assert_eq!(store.collect(keep(21)).await.unwrap().blobs, 2);
    assert_eq!(store.journal().extent().await.unwrap(), Extent::default());
    // A piece that came after the branch that needs it is needed too.
    let early = Archive {
        promises: vec![promise(1, 1, 60)],
        ..Archive::default()
    };
    let trace = trace(3, None, 5);
    store
        .journal()
        .archive(&trace, &early, Moment(90))
        .await
        .unwrap();
    store
        .put_blobs(&[(blob(60), body(60))], Moment(20))
        .await
        .unwrap();
    assert_eq!(store.collect(keep(50)).await.unwrap().blobs, 0);
}

async fn without_room_the_least_recently_seen_go(store: &dyn Store) {
    for (story, at) in [(1, 30), (2, 10), (3, 20)] {
        fill(store, story, story * 10, at).await;
    }
    store
        .put_blobs(&[(blob(90), body(90))], Moment(99))
        .await
        .unwrap();
    let full = store.journal().extent().await.unwrap().bytes;
    let room = |blob_bytes| Keep {
        blob_bytes,
        ..EVERYTHING
    };
    assert_eq!(
        store.collect(room(full)).await.unwrap(),
        Collected::default()
    );
    let done = store.collect(room(full - 1)).await.unwrap();
    assert_eq!(
        (done.branches, done.blobs),
        (0, 1),
        "what nobody needs first"
    );
    let done = store.collect(room(full * 3 / 4)).await.unwrap();
    assert_eq!(done.branches, 1);
    assert_eq!(branch(store, lineage(2)).await, None);
    let done = store.collect(room(full * 2 / 4)).await.unwrap();
    assert_eq!(done.branches, 1);
    assert_eq!(branch(store, lineage(3)).await, None);
    assert_eq!(store.collect(room(0)).await.unwrap().branches, 1);
    assert_eq!(store.journal().extent().await.unwrap(), Extent::default());
}

async fn without_room_nothing_goes_that_is_in_use(store: &dyn Store) {
    for (story, at) in [(1, 30), (2, 10)] {
        fill(store, story, story * 10, at).await;
    }
    let none = Keep {
        blob_bytes: 0,
        idle_since: Moment(20),
        ..EVERYTHING
    };
    let done = store.collect(none).await.unwrap();
    assert_eq!((done.branches, done.blobs), (1, 5));
    assert_eq!(pieces(store, 10).await, 5);
}

async fn a_large_branch_goes_whole(store: &dyn Store) {
    let kept: Vec<_> = (0..700)
        .map(|message| (message, "part", u64::from(message)))
        .collect();
    let trace = trace(1, None, 700);
    let archive = archive(&kept);
    store
        .journal()
        .archive(&trace, &archive, Moment(1))
        .await
        .unwrap();
    let entries: Vec<_> = (0..700).map(|message| entry(message, "word")).collect();
    append(store, &trace, &entries, 1).await;
    let gone = store.journal().forget(lineage(1)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (1, 700, 700));
    assert_eq!(store.journal().extent().await.unwrap(), Extent::default());
}

/// What belongs to nobody any more is in no table.
#[tokio::test]
async fn nothing_is_left_in_the_file() {
    let home = in_files().await;
    forked(&*home.store).await;
    for story in [1, 2] {
        home.store.journal().forget(lineage(story)).await.unwrap();
    }
    let file = home.folder.as_ref().unwrap().path().join("journal.db");
    let mut connection = raw(&file).await;
    for table in [
        "branches",
        "places",
        "messages",
        "promises",
        "links",
        "entries",
        "blobs",
        "words_docsize",
    ] {
        let rows = format!("SELECT count(*) FROM {table}");
        assert_eq!(number(&mut connection, &rows).await, 0, "{table}");
    }
    assert_eq!(number(&mut connection, "SELECT blobs FROM totals").await, 0);
}
