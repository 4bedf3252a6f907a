//! Messages, pieces and promises: what a pass puts away, and how it comes back.

use longhaul::store::journal::{Archive, Kept, Promise, Referred, Scope, Stretch};
use longhaul::store::{Moment, Store};

use crate::journal_support::{
    append, archive, arrive, entry, fork, kept, messages, promise, reference, session, trace, whole,
};
use crate::over_every_store;
use crate::support::{blob, body, lineage};

over_every_store! {
    messages_come_back_as_they_were
    a_message_that_is_kept_is_not_kept_again
    a_message_that_changed_is_kept_beside_the_other
    a_state_of_the_same_length_replaces_the_one_before
    a_fork_keeps_only_what_is_its_own
    what_one_changes_the_other_does_not_see
    only_messages_of_the_range_and_the_scope_are_found
    pieces_are_kept_once_and_are_used_again
    a_reference_stands_for_what_was_promised
    a_promise_made_again_is_the_newer_one
    a_reference_stands_for_an_entry_too
    odd_bytes_survive
}

async fn put(store: &dyn Store, of: u64, here: u32, messages: &[(u32, &str, u64)]) {
    let trace = trace(of, None, here);
    let archive = archive(messages);
    let put = store.journal().archive(&trace, &archive, Moment(10));
    put.await.unwrap();
}

fn told(messages: &[(u32, &str)]) -> Vec<(u32, String)> {
    let told = messages.iter();
    told.map(|(message, parts)| (*message, (*parts).to_owned()))
        .collect()
}

async fn messages_come_back_as_they_were(store: &dyn Store) {
    let long = "long ".repeat(2_000);
    put(store, 1, 3, &[(0, "zero", 1), (1, &long, 2), (2, "", 1)]).await;
    let found = store.journal().kept(&whole(lineage(1)), (0, 9), None).await;
    let expected = [kept(0, "zero", 1), kept(1, &long, 2), kept(2, "", 1)];
    assert_eq!(found.unwrap(), expected);
    assert_eq!(store.blob(blob(2)).await.unwrap(), Some(body(2)));
}

async fn a_message_that_is_kept_is_not_kept_again(store: &dyn Store) {
    put(store, 1, 3, &[(0, "zero", 1), (1, "one", 2)]).await;
    let before = store.journal().extent().await.unwrap();
    put(store, 1, 3, &[(0, "zero", 1), (1, "one", 2)]).await;
    assert_eq!(store.journal().extent().await.unwrap(), before);
}

async fn a_message_that_changed_is_kept_beside_the_other(store: &dyn Store) {
    put(store, 1, 3, &[(0, "a", 1), (1, "b", 2)]).await;
    arrive(store, &trace(1, Some(3), 5), 10).await;
    put(store, 1, 5, &[(0, "A", 3), (1, "b", 2), (4, "e", 4)]).await;
    arrive(store, &trace(1, Some(5), 9), 10).await;
    put(store, 1, 9, &[(0, "a", 1), (1, "b", 2), (4, "e", 4)]).await;
    let all = whole(lineage(1));
    let rows = [
        (None, vec![(0, "a"), (1, "b"), (4, "e")]),
        (Some(9), vec![(0, "a"), (1, "b"), (4, "e")]),
        (Some(8), vec![(0, "A"), (1, "b"), (4, "e")]),
        (Some(5), vec![(0, "A"), (1, "b"), (4, "e")]),
        (Some(4), vec![(0, "a"), (1, "b")]),
        (Some(1), vec![(0, "a")]),
    ];
    for (as_of, expected) in rows {
        let found = messages(store, &all, (0, 99), as_of).await;
        assert_eq!(found, told(&expected), "{as_of:?}");
    }
}

async fn a_state_of_the_same_length_replaces_the_one_before(store: &dyn Store) {
    put(store, 1, 3, &[(0, "a", 1)]).await;
    put(store, 1, 3, &[(0, "b", 2)]).await;
    put(store, 1, 3, &[(0, "c", 3)]).await;
    let found = messages(store, &whole(lineage(1)), (0, 9), None).await;
    assert_eq!(found, told(&[(0, "c")]));
    let first = messages(store, &whole(lineage(1)), (0, 9), Some(2)).await;
    assert_eq!(first, told(&[(0, "a")]));
}

async fn a_fork_keeps_only_what_is_its_own(store: &dyn Store) {
    put(store, 1, 3, &[(0, "a", 1), (1, "b", 2), (2, "c", 3)]).await;
    arrive(store, &trace(1, Some(3), 5), 10).await;
    let left = fork(2, 1, 3, 6);
    let same = archive(&[(0, "a", 1), (1, "B", 4), (2, "c", 3), (3, "d", 5)]);
    let put = store.journal().archive(&left, &same, Moment(10));
    assert_eq!(put.await.unwrap(), lineage(2));
    let own = messages(store, &whole(lineage(2)), (0, 9), None).await;
    assert_eq!(own, told(&[(1, "B"), (3, "d")]));
    let all = session(store, lineage(2)).await;
    let found = messages(store, &all, (0, 9), None).await;
    assert_eq!(found, told(&[(0, "a"), (1, "B"), (2, "c"), (3, "d")]));
}

async fn what_one_changes_the_other_does_not_see(store: &dyn Store) {
    put(store, 1, 3, &[(0, "a", 1)]).await;
    arrive(store, &trace(1, Some(3), 5), 10).await;
    arrive(store, &fork(2, 1, 3, 6), 10).await;
    put(store, 1, 5, &[(0, "changed", 2)]).await;
    for (story, expected) in [(1, "changed"), (2, "a")] {
        let scope = session(store, lineage(story)).await;
        let found = messages(store, &scope, (0, 9), None).await;
        assert_eq!(found, told(&[(0, expected)]));
    }
}

async fn only_messages_of_the_range_and_the_scope_are_found(store: &dyn Store) {
    put(store, 1, 9, &[(0, "a", 1), (3, "b", 2), (5, "c", 3)]).await;
    let find = async |range, before| {
        let branch = lineage(1);
        let scope = Scope(vec![Stretch { branch, before }]);
        let found = messages(store, &scope, range, None).await;
        found
            .into_iter()
            .map(|(message, _)| message)
            .collect::<Vec<_>>()
    };
    assert_eq!(find((0, 9), 9).await, [0, 3, 5]);
    assert_eq!(find((1, 5), 9).await, [3]);
    assert_eq!(find((0, 9), 5).await, [0, 3]);
    assert_eq!(find((5, 1), 9).await, [0; 0]);
    assert_eq!(messages(store, &Scope::default(), (0, 9), None).await, []);
}

async fn pieces_are_kept_once_and_are_used_again(store: &dyn Store) {
    put(store, 1, 3, &[(0, "a", 1), (1, "b", 1)]).await;
    let before = store.journal().extent().await.unwrap().bytes;
    put(store, 2, 3, &[(0, "a", 1)]).await;
    let more = store.journal().extent().await.unwrap().bytes - before;
    assert!(more < 600, "{more}");
    assert_eq!(store.blob(blob(1)).await.unwrap(), Some(body(1)));
}

async fn a_reference_stands_for_what_was_promised(store: &dyn Store) {
    let journal = store.journal();
    assert_eq!(journal.referred(reference(1)).await.unwrap(), []);
    let span = Promise {
        reference: reference(2),
        messages: (3, 8),
        block: None,
        blob: None,
    };
    let archive = Archive {
        promises: vec![promise(1, 4, 7), span],
        ..archive(&[(4, "e", 7)])
    };
    for story in [1, 2] {
        let trace = trace(story, None, 9);
        journal.archive(&trace, &archive, Moment(10)).await.unwrap();
    }
    let one = |story| Referred {
        branch: lineage(story),
        messages: (4, 5),
        block: Some(2),
        blob: Some(blob(7)),
        entry: None,
    };
    let found = journal.referred(reference(1)).await.unwrap();
    assert_eq!(found, [one(1), one(2)]);
    let found = journal.referred(reference(2)).await.unwrap();
    assert_eq!((found[0].messages, found[0].block), ((3, 8), None));
}

async fn a_promise_made_again_is_the_newer_one(store: &dyn Store) {
    let journal = store.journal();
    for message in [4, 5] {
        let archive = Archive {
            promises: vec![promise(1, message, 7)],
            ..Archive::default()
        };
        let trace = trace(1, None, 9);
        journal.archive(&trace, &archive, Moment(10)).await.unwrap();
    }
    let found = journal.referred(reference(1)).await.unwrap();
    assert_eq!((found.len(), found[0].messages), (1, (5, 6)));
}

async fn a_reference_stands_for_an_entry_too(store: &dyn Store) {
    let mut entries = vec![entry(4, "first"), entry(5, "other"), entry(4, "again")];
    entries[2].part = 1;
    append(store, &trace(1, None, 9), &entries, 10).await;
    let archive = Archive {
        promises: vec![promise(4, 6, 7)],
        ..Archive::default()
    };
    let trace = trace(1, None, 9);
    let put = store.journal().archive(&trace, &archive, Moment(10));
    put.await.unwrap();
    let found = store.journal().referred(reference(4)).await.unwrap();
    let [promised, written] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((promised.messages, promised.entry), ((6, 7), None));
    assert_eq!((written.messages, written.block), ((4, 5), Some(0)));
    let number = written.entry.unwrap();
    let rows = store.journal().entries(&[number]).await.unwrap();
    assert_eq!(rows[0].entry.text, entry(4, "first").text);
}

async fn odd_bytes_survive(store: &dyn Store) {
    let odd: Vec<u8> = (0..=255).collect();
    let message = Kept {
        message: u32::MAX - 1,
        parts: odd.clone(),
        blobs: vec![blob(1), blob(2), blob(1)],
    };
    let archive = Archive {
        blobs: vec![
            (blob(1), odd.clone()),
            (blob(2), Vec::new()),
            (blob(1), odd),
        ],
        messages: vec![message.clone()],
        promises: Vec::new(),
    };
    let trace = trace(1, None, u32::MAX);
    let put = store.journal().archive(&trace, &archive, Moment(i64::MAX));
    put.await.unwrap();
    let all = (0, u32::MAX);
    let found = store.journal().kept(&whole(lineage(1)), all, None).await;
    assert_eq!(found.unwrap(), [message]);
}
