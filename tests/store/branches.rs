//! The tree of branches: where a conversation belongs, and what may be seen from
//! where.

use longhaul::engine::ids::LineageId;
use longhaul::store::journal::{Scope, Stretch, Trace};
use longhaul::store::{Moment, Store};

use crate::journal_support::{
    append, arrive, branch, entry, fork, place, seen_from, session, tenant, texts, trace, whole,
};
use crate::over_every_store;
use crate::support::{chain, lineage};

over_every_store! {
    an_empty_journal_knows_nothing
    a_conversation_begins_a_branch_named_after_its_session
    it_grows_from_its_tip
    a_place_it_has_been_at_belongs_to_it
    it_forks_where_it_leaves_an_older_place
    two_that_leave_one_place_are_two
    a_lost_feed_is_made_up_for_by_older_places
    the_name_of_a_session_is_no_place_in_it
    a_place_that_nobody_knew_is_known_afterwards
    a_rewound_session_without_a_place_begins_anew
    a_name_that_is_taken_gives_way_to_others
    tenants_have_branches_of_their_own
    a_label_is_kept_and_replaced_and_made_harmless
    the_newest_branch_of_a_session_is_found_by_its_name
    branches_are_listed_newest_first
    children_are_those_that_left_behind_a_message
    each_scope_shows_what_it_should
    only_the_newest_places_of_a_branch_are_known
}

async fn an_empty_journal_knows_nothing(store: &dyn Store) {
    let journal = store.journal();
    assert_eq!(branch(store, lineage(1)).await, None);
    assert_eq!(journal.branches(None, 9).await.unwrap(), []);
    assert_eq!(journal.children(lineage(1), 0, 9).await.unwrap(), []);
    assert_eq!(journal.extent().await.unwrap().branches, 0);
    assert_eq!(texts(store, &whole(lineage(1)), "word").await, [""; 0]);
    assert_eq!(texts(store, &Scope::default(), "word").await, [""; 0]);
    let gone = journal.forget(lineage(1)).await.unwrap();
    assert_eq!((gone.branches, gone.entries, gone.blobs), (0, 0, 0));
}

async fn a_conversation_begins_a_branch_named_after_its_session(store: &dyn Store) {
    let begun = arrive(store, &trace(1, None, 3), 10).await;
    assert_eq!((begun.id, begun.lineage), (lineage(1), lineage(1)));
    assert_eq!((begun.tenant, begun.parent), (tenant(1), None));
    assert_eq!((begun.messages, begun.label.clone()), (3, None));
    assert_eq!((begun.began_at, begun.seen_at), (Moment(10), Moment(10)));
}

async fn it_grows_from_its_tip(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    let grown = arrive(store, &trace(1, Some(3), 5), 20).await;
    assert_eq!((grown.id, grown.messages), (lineage(1), 5));
    assert_eq!((grown.began_at, grown.seen_at), (Moment(10), Moment(20)));
    // Whoever goes on from there under another name has left it.
    let left = arrive(store, &fork(7, 1, 5, 8), 30).await;
    assert_eq!((left.id, left.parent), (lineage(7), Some((lineage(1), 5))));
}

async fn a_place_it_has_been_at_belongs_to_it(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    arrive(store, &trace(1, Some(3), 5), 20).await;
    let back = arrive(store, &trace(1, None, 3), 15).await;
    assert_eq!((back.id, back.messages), (lineage(1), 5));
    assert_eq!(back.seen_at, Moment(20), "the clock may run backwards");
}

async fn it_forks_where_it_leaves_an_older_place(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    arrive(store, &trace(1, Some(3), 5), 20).await;
    let left = arrive(store, &fork(2, 1, 3, 6), 30).await;
    assert_eq!((left.id, left.parent), (lineage(2), Some((lineage(1), 3))));
    assert_eq!(left.messages, 6);
    let further = arrive(store, &trace(2, Some(6), 8), 40).await;
    assert_eq!(
        (further.id, further.messages, further.parent),
        (lineage(2), 8, Some((lineage(1), 3)))
    );
}

async fn two_that_leave_one_place_are_two(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    // Also if the one whose branch it is comes last.
    for story in [2, 3, 4] {
        let left = arrive(store, &fork(story, 1, 3, 5), 20).await;
        assert_eq!(
            (left.id, left.parent),
            (lineage(story), Some((lineage(1), 3)))
        );
    }
    let grown = arrive(store, &trace(1, Some(3), 5), 20).await;
    assert_eq!((grown.id, grown.messages), (lineage(1), 5));
    // Under one name the first goes on, the other leaves.
    for (story, expected) in [
        (5, lineage(1)),
        (6, LineageId::beginning(place(6, 7).0.as_bytes())),
    ] {
        let same = Trace {
            lineage: lineage(1),
            ..fork(story, 1, 5, 7)
        };
        assert_eq!(arrive(store, &same, 20).await.id, expected);
    }
}

async fn a_lost_feed_is_made_up_for_by_older_places(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    let behind = |places: &[u32]| Trace {
        behind: places.iter().map(|at| place(1, *at)).collect(),
        ..trace(1, Some(7), 9)
    };
    let grown = arrive(store, &behind(&[8, 6, 3, 1]), 20).await;
    assert_eq!((grown.id, grown.messages), (lineage(1), 9));
    let mut left = fork(1, 1, 6, 12);
    left.here = place(2, 12);
    left.behind = vec![place(2, 11), place(1, 7), place(1, 3)];
    let left = arrive(store, &left, 30).await;
    assert_eq!(left.parent, Some((lineage(1), 7)));
}

/// Who has the same name and nothing else in common may have gone another way.
async fn the_name_of_a_session_is_no_place_in_it(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    let other = arrive(store, &trace(1, Some(7), 9), 20).await;
    assert_eq!((other.lineage, other.parent), (lineage(1), None));
    assert_ne!(other.id, lineage(1));
}

async fn a_place_that_nobody_knew_is_known_afterwards(store: &dyn Store) {
    arrive(store, &trace(1, Some(7), 9), 10).await;
    let left = arrive(store, &fork(2, 1, 7, 8), 20).await;
    assert_eq!(left.parent, Some((lineage(1), 7)));
}

async fn a_rewound_session_without_a_place_begins_anew(store: &dyn Store) {
    arrive(store, &trace(1, None, 9), 10).await;
    let anew = arrive(store, &trace(1, None, 4), 20).await;
    assert_eq!((anew.lineage, anew.parent), (lineage(1), None));
    assert_eq!(anew.id, LineageId::beginning(place(1, 4).0.as_bytes()));
}

async fn a_name_that_is_taken_gives_way_to_others(store: &dyn Store) {
    let mut ids = Vec::new();
    for number in 0..5 {
        // The same name and the same place, of tenants that share neither.
        let mut same = trace(1, None, 4);
        same.tenant = tenant(number);
        ids.push(arrive(store, &same, 10).await.id);
    }
    assert_eq!(ids[0], lineage(1));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

async fn tenants_have_branches_of_their_own(store: &dyn Store) {
    let mine = arrive(store, &trace(1, None, 3), 10).await;
    let others = Trace {
        tenant: tenant(2),
        ..trace(1, Some(3), 5)
    };
    let theirs = arrive(store, &others, 20).await;
    assert_ne!(theirs.id, mine.id);
    assert_eq!((theirs.parent, theirs.tenant), (None, tenant(2)));
    assert_eq!(branch(store, mine.id).await.unwrap(), mine);
    append(store, &others, &[entry(1, "theirs")], 20).await;
    append(store, &trace(1, Some(3), 5), &[entry(1, "mine")], 20).await;
    for (id, text) in [(mine.id, "mine"), (theirs.id, "theirs")] {
        assert_eq!(texts(store, &whole(id), "mine theirs").await, [text]);
    }
}

async fn a_label_is_kept_and_replaced_and_made_harmless(store: &dyn Store) {
    let rows = [
        (Some("first"), Some("first")),
        (None, Some("first")),
        (Some("a\0b\n\u{202e}'\"--"), Some("ab\u{202e}'\"--")),
        (Some("\0"), Some("ab\u{202e}'\"--")),
    ];
    for (label, expected) in rows {
        let labelled = Trace {
            label: label.map(str::to_owned),
            ..trace(1, None, 3)
        };
        let held = arrive(store, &labelled, 10).await;
        assert_eq!(held.label.as_deref(), expected);
    }
}

async fn the_newest_branch_of_a_session_is_found_by_its_name(store: &dyn Store) {
    // Neither has the session's own name.
    let mut other = trace(1, None, 3);
    other.lineage = lineage(5);
    arrive(store, &other, 10).await;
    for (story, at) in [(2, 30), (3, 20)] {
        let mut left = fork(story, 1, 3, 9);
        left.lineage = lineage(5);
        left.here = place(story, if story == 2 { 9 } else { 8 });
        arrive(store, &left, at).await;
    }
    let found = branch(store, lineage(5)).await.unwrap();
    assert_eq!(found.id, lineage(5), "its own name first");
    let foreign = Trace {
        lineage: lineage(8),
        ..trace(4, None, 2)
    };
    let mut second = Trace {
        lineage: lineage(8),
        tenant: tenant(2),
        ..trace(5, None, 2)
    };
    arrive(store, &foreign, 40).await;
    arrive(store, &second, 50).await;
    store.journal().forget(lineage(8)).await.unwrap();
    let left = branch(store, lineage(8)).await.unwrap();
    assert_eq!((left.lineage, left.tenant), (lineage(8), tenant(2)));
    second.from = Some(second.here);
    second.here = place(5, 4);
    assert_eq!(arrive(store, &second, 60).await.id, left.id);
}

async fn branches_are_listed_newest_first(store: &dyn Store) {
    for (story, at) in [(1, 30), (2, 10), (3, 20)] {
        arrive(store, &trace(story, None, 1), at).await;
    }
    let ids = async |before: Option<i64>, limit| {
        let before = before.map(Moment);
        let found = store.journal().branches(before, limit).await.unwrap();
        found.into_iter().map(|held| held.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, 9).await, [1, 3, 2].map(lineage));
    assert_eq!(ids(None, 2).await, [1, 3].map(lineage));
    assert_eq!(ids(Some(30), 9).await, [3, 2].map(lineage));
    assert_eq!(ids(Some(10), 9).await, []);
}

async fn children_are_those_that_left_behind_a_message(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    for messages in [5, 7, 9] {
        arrive(store, &trace(1, Some(messages - 2), messages), 10).await;
    }
    arrive(store, &fork(2, 1, 3, 4), 20).await;
    arrive(store, &fork(3, 1, 7, 8), 30).await;
    arrive(store, &fork(4, 1, 5, 6), 40).await;
    let ids = async |behind, limit| {
        let found = store.journal().children(lineage(1), behind, limit).await;
        let found = found.unwrap().into_iter();
        found.map(|held| held.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, 9).await, [4, 3, 2].map(lineage));
    assert_eq!(ids(2, 9).await, [4, 3, 2].map(lineage));
    assert_eq!(ids(3, 9).await, [4, 3].map(lineage));
    assert_eq!(ids(6, 9).await, [3].map(lineage));
    assert_eq!(ids(7, 9).await, []);
    assert_eq!(ids(0, 1).await, [4].map(lineage));
}

/// 1 is the trunk, with places at 3, 5, 7 and 9; 2 left it at 3, 3 at 7, and 4
/// left 3 at 8.
async fn each_scope_shows_what_it_should(store: &dyn Store) {
    arrive(store, &trace(1, None, 3), 10).await;
    for messages in [5, 7, 9] {
        arrive(store, &trace(1, Some(messages - 2), messages), 10).await;
    }
    arrive(store, &fork(2, 1, 3, 6), 20).await;
    arrive(store, &fork(3, 1, 7, 8), 20).await;
    arrive(store, &trace(3, Some(8), 10), 20).await;
    arrive(store, &fork(4, 3, 8, 12), 30).await;
    let stories = [
        (1, trace(1, None, 9), vec![0, 2, 4, 6, 8]),
        (2, trace(2, None, 6), vec![3, 5]),
        (3, trace(3, None, 10), vec![7, 9]),
        (4, trace(4, None, 12), vec![8, 11]),
    ];
    for (story, trace, messages) in &stories {
        for message in messages {
            let word = format!("{story}_{message}");
            append(
                store,
                trace,
                &[entry(*message, &format!("word {word}"))],
                40,
            )
            .await;
        }
    }
    let found = async |scope: Scope| {
        let texts = texts(store, &scope, "word").await;
        let texts = texts.iter().map(|text| text.replace("word ", ""));
        texts.collect::<Vec<_>>().join(" ")
    };
    let own = [
        (1, "1_0 1_2 1_4 1_6 1_8"),
        (2, "1_0 1_2 2_3 2_5"),
        (3, "1_0 1_2 1_4 1_6 3_7 3_9"),
        (4, "1_0 1_2 1_4 1_6 3_7 4_11 4_8"),
    ];
    for (story, expected) in own {
        let scope = session(store, lineage(story)).await;
        assert_eq!(found(scope).await, expected, "session {story}");
    }
    let known = [
        // Whoever knows the beginning of the trunk may be anyone.
        ((1, 1), "1_0 1_2 1_4 1_6 1_8 2_3 2_5 3_7 3_9 4_11 4_8"),
        ((1, 4), "1_0 1_2 1_4 1_6 1_8 3_7 3_9 4_11 4_8"),
        ((1, 8), "1_0 1_2 1_4 1_6 1_8"),
        ((3, 7), "1_0 1_2 1_4 1_6 3_7 3_9 4_11 4_8"),
        ((3, 9), "1_0 1_2 1_4 1_6 3_7 3_9"),
        ((4, 9), "1_0 1_2 1_4 1_6 3_7 4_11 4_8"),
        ((2, 5), "1_0 1_2 2_3 2_5"),
    ];
    for ((story, message), expected) in known {
        let scope = seen_from(store, lineage(story), message).await;
        assert_eq!(found(scope).await, expected, "{message} of {story}");
    }
    let part = Stretch {
        branch: lineage(1),
        before: 5,
    };
    assert_eq!(found(Scope(vec![part])).await, "1_0 1_2 1_4");
    let twice = Scope(vec![part, whole(lineage(1)).0[0]]);
    assert_eq!(found(twice).await, "1_0 1_2 1_4 1_6 1_8");
}

async fn only_the_newest_places_of_a_branch_are_known(store: &dyn Store) {
    arrive(store, &trace(1, None, 1), 10).await;
    for messages in 1..4_700 {
        let next = trace(1, Some(messages), messages + 1);
        store
            .journal()
            .append(&next, &[], Moment(10))
            .await
            .unwrap();
    }
    let extent = store.journal().extent().await.unwrap();
    assert!(extent.bytes < 4_700 * 80, "{extent:?}");
    let known = Trace {
        from: Some(place(1, 4_000)),
        ..trace(2, None, 4_001)
    };
    assert_eq!(arrive(store, &known, 20).await.parent.unwrap().1, 4_000);
    let unknown = Trace {
        from: Some(place(1, 5)),
        here: (chain(77), 6),
        ..trace(3, None, 6)
    };
    assert_eq!(arrive(store, &unknown, 20).await.parent, None);
}
