//! What every store promises, one rule a test.

use longhaul::store::{Commit, Committed, MarkRow, Moment, Store};

use crate::over_every_store;
use crate::support::{
    EVERYTHING, blob, body, chain, commit, hint, mark, marks, overlay, put_segment, segment,
    segments, view,
};

over_every_store! {
    nothing_is_found_in_an_empty_store
    a_commit_is_found_at_its_place
    the_first_commit_at_a_place_wins
    a_commit_that_knows_the_parent_moves_the_pointer
    a_sealed_place_takes_no_other_overlay
    the_same_commit_twice_is_done_twice
    a_lost_commit_leaves_no_overlay_behind
    a_commit_may_take_an_overlay_that_is_there
    a_commit_to_an_unknown_overlay_fails_and_changes_nothing
    a_commit_that_contradicts_itself_fails
    models_have_marks_of_their_own
    a_new_place_is_recorded
    newer_figures_replace_older_ones
    older_figures_change_nothing
    a_record_of_what_was_not_answered_moves_no_pointer
    a_view_that_was_answered_outdoes_one_that_was_only_committed
    a_view_that_was_committed_after_the_answer_stays
    a_record_to_an_unknown_overlay_is_left_out
    a_record_tells_what_it_did_not_take
    a_seal_is_never_broken
    an_old_record_still_seals
    many_places_are_found_at_once
    marks_are_found_by_view_within_their_session
    the_overlays_of_a_session_come_newest_first
    a_segment_comes_back_as_it_was
    the_first_segment_under_a_name_stays
    many_segments_are_found_at_once
    what_was_learned_is_kept_and_replaced
    what_was_learned_is_found_by_its_keys
    blobs_come_back_as_they_were
    odd_values_survive
}

async fn nothing_is_found_in_an_empty_store(store: &dyn Store) {
    assert_eq!(marks(store, &[]).await, []);
    assert_eq!(marks(store, &[1]).await, []);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), None);
    assert_eq!(store.blob(blob(1)).await.unwrap(), None);
    assert_eq!(segments(store, &[]).await, []);
    assert_eq!(segments(store, &[1]).await, []);
    assert_eq!(store.marks_by_view(hint(1), &[]).await.unwrap(), []);
    assert_eq!(store.overlays_of(hint(1), 5).await.unwrap(), []);
    assert_eq!(store.learned().await.unwrap(), []);
}

async fn a_commit_is_found_at_its_place(store: &dyn Store) {
    let commit = commit(1, 1);
    assert_eq!(store.commit(&commit).await.unwrap(), Committed::Done);
    assert_eq!(marks(store, &[1]).await, [commit.mark]);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), Some(body(1)));
}

async fn the_first_commit_at_a_place_wins(store: &dyn Store) {
    let (first, second) = (commit(1, 1), commit(1, 2));
    store.commit(&first).await.unwrap();
    let lost = store.commit(&second).await.unwrap();
    assert_eq!(lost, Committed::Lost(Box::new(first.mark.clone())));
    assert_eq!(marks(store, &[1]).await, [first.mark]);
}

async fn a_commit_that_knows_the_parent_moves_the_pointer(store: &dyn Store) {
    store.commit(&commit(1, 1)).await.unwrap();
    let next = Commit {
        parent: Some(overlay(1)),
        refused: false,
        ..commit(1, 2)
    };
    assert_eq!(store.commit(&next).await.unwrap(), Committed::Done);
    assert_eq!(marks(store, &[1]).await, [next.mark]);
}

async fn a_sealed_place_takes_no_other_overlay(store: &dyn Store) {
    let mut first = commit(1, 1);
    first.mark.sealed = true;
    store.commit(&first).await.unwrap();
    let next = Commit {
        parent: Some(overlay(1)),
        refused: false,
        ..commit(1, 2)
    };
    let lost = store.commit(&next).await.unwrap();
    assert_eq!(lost, Committed::Lost(Box::new(first.mark)));
}

async fn the_same_commit_twice_is_done_twice(store: &dyn Store) {
    let mut once = commit(1, 1);
    once.mark.sealed = true;
    assert_eq!(store.commit(&once).await.unwrap(), Committed::Done);
    assert_eq!(store.commit(&once).await.unwrap(), Committed::Done);
    assert_eq!(marks(store, &[1]).await, [once.mark]);
}

async fn a_lost_commit_leaves_no_overlay_behind(store: &dyn Store) {
    store.commit(&commit(1, 1)).await.unwrap();
    store.commit(&commit(1, 2)).await.unwrap();
    assert_eq!(store.overlay(overlay(2)).await.unwrap(), None);
}

async fn a_commit_may_take_an_overlay_that_is_there(store: &dyn Store) {
    store.commit(&commit(1, 1)).await.unwrap();
    let adopts = Commit {
        overlay: None,
        ..commit(2, 1)
    };
    assert_eq!(store.commit(&adopts).await.unwrap(), Committed::Done);
    let bare = Commit {
        overlay: None,
        mark: mark(3),
        parent: None,
        refused: false,
    };
    assert_eq!(store.commit(&bare).await.unwrap(), Committed::Done);
    assert_eq!(marks(store, &[1, 2, 3]).await.len(), 3);
}

async fn a_commit_to_an_unknown_overlay_fails_and_changes_nothing(store: &dyn Store) {
    let dangling = Commit {
        overlay: None,
        ..commit(1, 1)
    };
    store.commit(&dangling).await.unwrap_err();
    assert_eq!(marks(store, &[1]).await, []);
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
}

async fn a_commit_that_contradicts_itself_fails(store: &dyn Store) {
    let contradiction = Commit {
        overlay: Some((overlay(2), body(2))),
        ..commit(1, 1)
    };
    store.commit(&contradiction).await.unwrap_err();
    assert_eq!(marks(store, &[1]).await, []);
    assert_eq!(store.overlay(overlay(2)).await.unwrap(), None);
}

async fn models_have_marks_of_their_own(store: &dyn Store) {
    let mut other = commit(1, 2);
    other.mark.model.replace_range(.., "model-b");
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
    assert_eq!(store.commit(&other).await.unwrap(), Committed::Done);
    let found = marks(store, &[1]).await;
    assert_eq!(found, [commit(1, 1).mark, other.mark]);
}

async fn a_new_place_is_recorded(store: &dyn Store) {
    store.record(&[mark(1), mark(2)]).await.unwrap();
    assert_eq!(marks(store, &[1]).await, [mark(1)]);
    assert_eq!(marks(store, &[2]).await, [mark(2)]);
}

fn with_figures(of: &MarkRow, figures: &str, seen_at: i64) -> MarkRow {
    MarkRow {
        figures: figures.into(),
        seen_at: Moment(seen_at),
        ..of.clone()
    }
}

async fn newer_figures_replace_older_ones(store: &dyn Store) {
    let first = commit(1, 1).mark;
    store.commit(&commit(1, 1)).await.unwrap();
    let newer = with_figures(&first, "newer", 1_001);
    let as_new = with_figures(&first, "as new", 1_001);
    store.record(&[newer]).await.unwrap();
    store.record(std::slice::from_ref(&as_new)).await.unwrap();
    assert_eq!(marks(store, &[1]).await, [as_new]);
}

async fn older_figures_change_nothing(store: &dyn Store) {
    store.record(&[mark(1)]).await.unwrap();
    let older = with_figures(&mark(1), "older", 999);
    store.record(&[older]).await.unwrap();
    assert_eq!(marks(store, &[1]).await, [mark(1)]);
}

async fn a_record_of_what_was_not_answered_moves_no_pointer(store: &dyn Store) {
    store.commit(&commit(1, 1)).await.unwrap();
    store.commit(&commit(2, 2)).await.unwrap();
    let other = with_figures(&commit(1, 2).mark, "other", 2_000);
    store.record(&[other, mark(1)]).await.unwrap();
    assert_eq!(marks(store, &[1]).await, [commit(1, 1).mark]);
}

async fn a_view_that_was_answered_outdoes_one_that_was_only_committed(store: &dyn Store) {
    for number in 1..=3 {
        store.commit(&commit(number, number)).await.unwrap();
    }
    let answered = |overlay: u64, seen_at| MarkRow {
        sealed: true,
        ..with_figures(&commit(1, overlay).mark, "answered", seen_at)
    };
    let (first, second) = (answered(2, 2_000), answered(3, 3_000));
    // The first that was answered has the place, and for good; whoever had it,
    // if only since the same moment, is told.
    let newer = with_figures(&commit(1, 1).mark, "newer", 1_500);
    let all = [newer.clone(), first.clone(), second.clone()];
    let lost = store.record(&all).await.unwrap();
    assert_eq!(lost, [newer, second]);
    assert_eq!(marks(store, &[1]).await, std::slice::from_ref(&first));
    // A committed one can no longer move it either.
    let next = Commit {
        parent: Some(overlay(2)),
        ..commit(1, 3)
    };
    let lost = store.commit(&next).await.unwrap();
    assert_eq!(lost, Committed::Lost(Box::new(first.clone())));
    // Nothing points to the overlay that had it, so it can go.
    let collected = store.collect(EVERYTHING).await.unwrap();
    assert_eq!((collected.marks, collected.overlays), (0, 1));
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), None);
    assert_eq!(marks(store, &[1]).await, [first]);
}

async fn a_view_that_was_committed_after_the_answer_stays(store: &dyn Store) {
    let refused = Commit {
        mark: with_figures(&commit(1, 1).mark, "refused", 2_000),
        ..commit(1, 1)
    };
    store.commit(&refused).await.unwrap();
    let mut before = with_figures(&mark(1), "answered before", 1_999);
    before.sealed = true;
    let lost = store.record(std::slice::from_ref(&before)).await.unwrap();
    assert_eq!(lost, [before]);
    assert_eq!(marks(store, &[1]).await, [refused.mark]);
}

async fn a_record_to_an_unknown_overlay_is_left_out(store: &dyn Store) {
    store.record(&[commit(1, 1).mark, mark(2)]).await.unwrap();
    assert_eq!(marks(store, &[1, 2]).await, [mark(2)]);
}

async fn a_seal_is_never_broken(store: &dyn Store) {
    let sealed = MarkRow {
        sealed: true,
        ..mark(1)
    };
    store
        .record(&[sealed, with_figures(&mark(1), "newer", 1_001)])
        .await
        .unwrap();
    let found = marks(store, &[1]).await;
    assert!(found[0].sealed);
    assert_eq!(found[0].figures, b"newer");
}

async fn an_old_record_still_seals(store: &dyn Store) {
    let mut older = with_figures(&mark(1), "older", 999);
    older.sealed = true;
    store.record(&[mark(1), older]).await.unwrap();
    let sealed = MarkRow {
        sealed: true,
        ..mark(1)
    };
    assert_eq!(marks(store, &[1]).await, [sealed]);
}

async fn many_places_are_found_at_once(store: &dyn Store) {
    let recorded: Vec<_> = (0..2_000).map(mark).collect();
    store.record(&recorded).await.unwrap();
    for count in [2, 3, 4, 5, 33, 1_024, 1_025, 2_000] {
        // Every other place is unknown, and some are asked for twice.
        let mut places: Vec<_> = (0..count).map(|number| chain(number * 2)).collect();
        places.push(places[0]);
        let found = store.marks(&places).await.unwrap();
        assert_eq!(found.len() as u64, count.min(1_000));
    }
}

async fn marks_are_found_by_view_within_their_session(store: &dyn Store) {
    let stranger = MarkRow {
        hint: Some(hint(2)),
        view: view(1),
        ..mark(2)
    };
    let nameless = MarkRow {
        hint: None,
        view: view(1),
        ..mark(3)
    };
    store.record(&[mark(1), stranger, nameless]).await.unwrap();
    let found = store
        .marks_by_view(hint(1), &[view(1), view(9), view(1)])
        .await;
    assert_eq!(found.unwrap(), [mark(1)]);
    assert_eq!(store.marks_by_view(hint(1), &[view(2)]).await.unwrap(), []);
    let many: Vec<_> = (1..2_000).map(view).collect();
    let found = store.marks_by_view(hint(1), &many).await.unwrap();
    assert_eq!(found, [mark(1)]);
}

async fn the_overlays_of_a_session_come_newest_first(store: &dyn Store) {
    for (place, number, seen_at) in [(1, 1, 10), (2, 2, 30), (3, 3, 20), (4, 1, 40)] {
        let mut commit = commit(place, number);
        commit.mark.seen_at = Moment(seen_at);
        store.commit(&commit).await.unwrap();
    }
    store.record(&[mark(5)]).await.unwrap();
    let newest = |limit| store.overlays_of(hint(1), limit);
    let all = [overlay(1), overlay(2), overlay(3)];
    assert_eq!(newest(9).await.unwrap(), all);
    assert_eq!(newest(2).await.unwrap(), all[..2]);
    assert_eq!(newest(0).await.unwrap(), []);
}

async fn a_segment_comes_back_as_it_was(store: &dyn Store) {
    for (number, content) in [(1, Vec::new()), (2, body(2).repeat(20))] {
        assert_eq!(put_segment(store, number, &content, 1).await, content);
        assert_eq!(
            segments(store, &[number, 9, number]).await,
            [(segment(number), content)]
        );
    }
}

async fn the_first_segment_under_a_name_stays(store: &dyn Store) {
    for (content, at) in [("first", 5), ("second", 9), ("first", 1)] {
        assert_eq!(
            put_segment(store, 1, content.as_bytes(), at).await,
            b"first"
        );
    }
    assert_eq!(
        segments(store, &[1]).await,
        [(segment(1), b"first".to_vec())]
    );
}

async fn many_segments_are_found_at_once(store: &dyn Store) {
    for number in 0..40 {
        put_segment(store, number * 100, &body(number), 1).await;
    }
    let numbers: Vec<u64> = (0..4_000).chain([0, 100]).collect();
    assert_eq!(segments(store, &numbers).await.len(), 40);
}

async fn what_was_learned_is_kept_and_replaced(store: &dyn Store) {
    store.learn("window/b", "1").await.unwrap();
    store.learn("window/a", "1").await.unwrap();
    store.learn("window/b", "2").await.unwrap();
    let expected = [("window/a", "1"), ("window/b", "2")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(store.learned().await.unwrap(), expected);
}

async fn blobs_come_back_as_they_were(store: &dyn Store) {
    let empty = (blob(1), Vec::new());
    let large = (blob(2), body(2).repeat(20));
    let blobs = [empty, large];
    store.put_blobs(&blobs, Moment(1)).await.unwrap();
    store.put_blobs(&blobs, Moment(2)).await.unwrap();
    store.put_blobs(&[], Moment(2)).await.unwrap();
    for (id, content) in blobs {
        assert_eq!(store.blob(id).await.unwrap(), Some(content));
    }
}

async fn odd_values_survive(store: &dyn Store) {
    let odd = MarkRow {
        model: "it's \u{1F600}\u{0} \"odd\"".to_owned(),
        messages: u32::MAX,
        hint: None,
        figures: Vec::new(),
        seen_at: Moment(i64::MAX),
        ..mark(1)
    };
    store.record(std::slice::from_ref(&odd)).await.unwrap();
    assert_eq!(marks(store, &[1]).await, [odd]);
}

async fn a_record_tells_what_it_did_not_take(store: &dyn Store) {
    store.commit(&commit(1, 1)).await.unwrap();
    let (rival, stranger) = (mark(1), commit(3, 9).mark);
    let all = [mark(2), rival.clone(), stranger.clone(), commit(1, 1).mark];
    let lost = store.record(&all).await.unwrap();
    assert_eq!(lost, [rival, stranger]);
    assert_eq!(store.record(&[mark(2)]).await.unwrap(), []);
    assert_eq!(store.record(&[]).await.unwrap(), []);
}

async fn what_was_learned_is_found_by_its_keys(store: &dyn Store) {
    for key in ["a", "b", "c"] {
        store.learn(key, &format!("of {key}")).await.unwrap();
    }
    let keys = ["c", "x", "a"].map(str::to_owned);
    let mut found = store.learned_of(&keys).await.unwrap();
    found.sort();
    let expected = [("a", "of a"), ("c", "of c")];
    assert_eq!(
        found,
        expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    assert_eq!(store.learned_of(&[]).await.unwrap(), []);
}
