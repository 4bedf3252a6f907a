//! Several writers at one place, from one process and from several.

use std::sync::Arc;

use longhaul::store::{Committed, MarkRow, Moment, Store};

use crate::over_every_store;
use crate::support::{
    at, chain, commit, in_database, in_files, in_memory, mark, marks, overlay, put_segment,
    segment, segments, sound,
};

over_every_store! {
    a_place_that_figures_took_first_can_still_be_committed
}

async fn a_place_that_figures_took_first_can_still_be_committed(store: &dyn Store) {
    store.record(&[mark(1)]).await.unwrap();
    assert_eq!(store.commit(&commit(1, 1)).await.unwrap(), Committed::Done);
}

/// Does something a hundred times at once, from runtimes of their own.
fn a_hundred<T, W>(stores: &[Arc<dyn Store>], work: fn(Arc<dyn Store>, u64) -> W) -> Vec<T>
where
    T: Send + 'static,
    W: Future<Output = T> + Send + 'static,
{
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let store = Arc::clone(&stores[thread % stores.len()]);
            std::thread::spawn(move || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().build().unwrap();
                runtime.block_on(async move {
                    let mut tasks = tokio::task::JoinSet::new();
                    for number in 0..25 {
                        let number = (thread * 25 + number) as u64;
                        tasks.spawn(work(Arc::clone(&store), number));
                    }
                    tasks.join_all().await
                })
            })
        })
        .collect();
    let outcomes = threads.into_iter().map(|thread| thread.join().unwrap());
    outcomes.flatten().collect()
}

async fn one_wins(stores: &[Arc<dyn Store>]) {
    let outcomes = {
        let stores = stores.to_vec();
        let work = |store: Arc<dyn Store>, number| async move {
            let commit = commit(1, number);
            let outcome = store.commit(&commit).await.unwrap();
            (commit, outcome)
        };
        let race = tokio::task::spawn_blocking(move || a_hundred(&stores, work));
        race.await.unwrap()
    };
    let (won, lost): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .partition(|(_, outcome)| *outcome == Committed::Done);
    assert_eq!((won.len(), lost.len()), (1, 99));
    let winner = &won[0].0.mark;
    for store in stores {
        assert_eq!(marks(&**store, &[1]).await, std::slice::from_ref(winner));
        assert!(
            store
                .overlay(winner.overlay.unwrap())
                .await
                .unwrap()
                .is_some()
        );
    }
    for (commit, outcome) in lost {
        assert_eq!(outcome, Committed::Lost(Box::new(winner.clone())));
        let loser = commit.mark.overlay.unwrap();
        assert_eq!(stores[0].overlay(loser).await.unwrap(), None);
    }
}

#[tokio::test]
async fn of_a_hundred_commits_one_wins_in_memory() {
    one_wins(&[in_memory().store]).await;
}

#[tokio::test]
async fn of_a_hundred_commits_one_wins_in_files() {
    one_wins(&[in_files().await.store]).await;
}

#[tokio::test]
async fn of_a_hundred_commits_by_two_stores_on_the_same_files_one_wins() {
    let home = in_files().await;
    let other = sound(home.folder.as_ref().unwrap().path()).await;
    one_wins(&[home.store, other]).await;
}

#[tokio::test]
async fn of_a_hundred_commits_by_replicas_one_wins() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    one_wins(&[store, at(&url).await]).await;
}

#[tokio::test]
async fn of_a_hundred_segments_by_replicas_everybody_gets_the_same() {
    let Some((store, url)) = in_database().await else {
        return;
    };
    one_segment_is_everybodys(vec![store, at(&url).await]).await;
}

/// A summary that was paid for twice is used once.
async fn one_segment_is_everybodys(stores: Vec<Arc<dyn Store>>) {
    let answers = {
        let stores = stores.clone();
        let work = |store: Arc<dyn Store>, number: u64| async move {
            let body = number.to_string().into_bytes();
            put_segment(&*store, 1, &body, 1).await
        };
        let race = tokio::task::spawn_blocking(move || a_hundred(&stores, work));
        race.await.unwrap()
    };
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    for store in stores {
        let found = segments(&*store, &[1]).await;
        assert_eq!(found, [(segment(1), answers[0].clone())]);
    }
}

#[tokio::test]
async fn of_a_hundred_segments_under_one_name_everybody_gets_the_same() {
    one_segment_is_everybodys(vec![in_memory().store]).await;
    let home = in_files().await;
    let other = sound(home.folder.as_ref().unwrap().path()).await;
    one_segment_is_everybodys(vec![home.store, other]).await;
}

#[tokio::test]
async fn stores_that_share_files_see_each_other() {
    let home = in_files().await;
    let (one, other) = (
        home.store,
        sound(home.folder.as_ref().unwrap().path()).await,
    );
    for place in 0..50 {
        let (writes, reads) = if place % 2 == 0 {
            (&one, &other)
        } else {
            (&other, &one)
        };
        writes.commit(&commit(place, place)).await.unwrap();
        let next = MarkRow {
            chain: chain(1_000 + place),
            seen_at: Moment(2_000),
            ..commit(place, place).mark
        };
        reads.record(std::slice::from_ref(&next)).await.unwrap();
        assert_eq!(marks(&**writes, &[1_000 + place]).await, [next]);
        assert!(reads.overlay(overlay(place)).await.unwrap().is_some());
    }
    one.close().await.unwrap();
    assert_eq!(marks(&*other, &[0]).await.len(), 1);
    one.marks(&[chain(0)]).await.unwrap_err();
    one.commit(&commit(99, 99)).await.unwrap_err();
}

#[tokio::test]
async fn stores_that_start_at_once_on_a_new_folder_all_work() {
    let folder = crate::support::folder();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let path = folder.path().join("data");
        opening.spawn(async move { sound(&path).await });
    }
    let stores = opening.join_all().await;
    stores[0].commit(&commit(1, 1)).await.unwrap();
    for store in stores {
        assert_eq!(marks(&*store, &[1]).await.len(), 1);
    }
}
