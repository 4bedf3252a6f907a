//! What an operator is told of sessions, one rule a test.

use longhaul::engine::ids::LineageId;
use longhaul::store::sessions::SessionRow;
use longhaul::store::{MarkRow, Moment, Store};

use crate::over_every_store;
use crate::support::{commit, lineage, mark, marks, overlay};

over_every_store! {
    an_empty_store_has_no_sessions
    a_session_is_shown_by_its_newest_mark
    sessions_come_newest_first_and_page_by_page
    sessions_of_one_moment_are_each_shown_once
    the_marks_of_a_session_come_newest_first
    a_session_is_found_by_how_its_name_begins
    a_forgotten_session_leaves_nothing_and_takes_nobodys
}

fn seen(place: u64, session: u64, at: i64) -> MarkRow {
    MarkRow {
        lineage: lineage(session),
        seen_at: Moment(at),
        ..mark(place)
    }
}

fn names(rows: &[SessionRow]) -> Vec<LineageId> {
    rows.iter().map(|row| row.newest.lineage).collect()
}

async fn an_empty_store_has_no_sessions(store: &dyn Store) {
    let sessions = store.sessions();
    assert_eq!(sessions.list(None, 10).await.unwrap(), []);
    assert_eq!(sessions.marks_of(lineage(1), 10).await.unwrap(), []);
    assert_eq!(sessions.named("", 10).await.unwrap(), []);
    assert_eq!(sessions.forget(lineage(1)).await.unwrap(), 0);
}

async fn a_session_is_shown_by_its_newest_mark(store: &dyn Store) {
    let longest = MarkRow {
        messages: 9,
        ..seen(3, 1, 20)
    };
    let rows = [seen(1, 1, 10), seen(2, 1, 20), longest.clone()];
    store.record(&rows).await.unwrap();
    let shown = SessionRow {
        newest: longest,
        marks: 3,
    };
    assert_eq!(store.sessions().list(None, 10).await.unwrap(), [shown]);
}

async fn sessions_come_newest_first_and_page_by_page(store: &dyn Store) {
    let rows: Vec<_> = (0..200)
        .map(|number| seen(number, number, i64::try_from(number * 10).unwrap()))
        .collect();
    store.record(&rows).await.unwrap();
    let (mut shown, mut behind) = (Vec::new(), None);
    loop {
        let page = store.sessions().list(behind, 70).await.unwrap();
        let Some(last) = page.last() else { break };
        behind = Some((last.newest.seen_at, last.newest.lineage));
        shown.extend(names(&page));
    }
    let expected: Vec<_> = (0..200).rev().map(lineage).collect();
    assert_eq!(shown, expected);
}

async fn sessions_of_one_moment_are_each_shown_once(store: &dyn Store) {
    let rows: Vec<_> = (0..5).map(|number| seen(number, number, 10)).collect();
    store.record(&rows).await.unwrap();
    let (mut shown, mut behind) = (Vec::new(), None);
    while let [row] = store.sessions().list(behind, 1).await.unwrap().as_slice() {
        behind = Some((row.newest.seen_at, row.newest.lineage));
        shown.push(row.newest.lineage);
    }
    let mut expected: Vec<_> = (0..5).map(lineage).collect();
    expected.sort_by(|a, b| b.cmp(a));
    assert_eq!(shown, expected);
}

async fn the_marks_of_a_session_come_newest_first(store: &dyn Store) {
    let rows = [
        seen(1, 1, 10),
        seen(2, 1, 30),
        seen(3, 2, 40),
        seen(4, 1, 20),
    ];
    store.record(&rows).await.unwrap();
    let all = store.sessions().marks_of(lineage(1), 10).await.unwrap();
    assert_eq!(all, [1, 3, 0].map(|at| rows[at].clone()));
    let few = store.sessions().marks_of(lineage(1), 2).await.unwrap();
    assert_eq!(few, all[..2]);
}

async fn a_session_is_found_by_how_its_name_begins(store: &dyn Store) {
    let rows: Vec<_> = (0..40).map(|number| seen(number, number, 10)).collect();
    store.record(&rows).await.unwrap();
    let name = lineage(7).to_string();
    for beginning in [name.as_str(), &name[..12], &name[..11]] {
        let found = store.sessions().named(beginning, 10).await.unwrap();
        assert_eq!(found, [lineage(7)], "{beginning}");
    }
    assert_eq!(store.sessions().named("", 100).await.unwrap().len(), 40);
    assert_eq!(store.sessions().named("", 2).await.unwrap().len(), 2);
    for none in ["zz", "%", "' OR 1=1 --", "\0", &format!("{name}0")] {
        assert_eq!(store.sessions().named(none, 9).await.unwrap(), []);
    }
}

async fn a_forgotten_session_leaves_nothing_and_takes_nobodys(store: &dyn Store) {
    let mut own = commit(1, 1);
    own.mark.lineage = lineage(1);
    let mut other = commit(2, 2);
    other.mark.lineage = lineage(2);
    store.commit(&own).await.unwrap();
    store.commit(&other).await.unwrap();
    let shared = MarkRow {
        overlay: Some(overlay(2)),
        ..seen(3, 1, 5)
    };
    let many: Vec<_> = (10..260).map(|place| seen(place, 1, 5)).collect();
    store.record(&[shared]).await.unwrap();
    store.record(&many).await.unwrap();
    assert_eq!(store.sessions().forget(lineage(1)).await.unwrap(), 252);
    assert_eq!(marks(store, &[1, 2, 3, 10]).await, [other.mark]);
    assert_eq!(store.overlay(overlay(1)).await.unwrap(), None);
    assert!(store.overlay(overlay(2)).await.unwrap().is_some());
    let left = store.sessions().list(None, 10).await.unwrap();
    assert_eq!(names(&left), [lineage(2)]);
    assert_eq!(store.sessions().forget(lineage(1)).await.unwrap(), 0);
}
