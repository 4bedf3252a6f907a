//! Requests that go away while the store works for them.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};

use longhaul::store::{Committed, Moment};

use crate::support::{blob, body, chain, commit, in_files, mark, marks, number, overlay, raw};

/// Lets a future run a few steps and drops it: what is left of it if its client
/// goes away. Spinning between the steps lets other threads get in between.
fn abandon<F: Future>(future: F, steps: u32, spins: u32) {
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..steps {
        if future.as_mut().poll(&mut context).is_ready() {
            return;
        }
        for _ in 0..spins {
            std::thread::yield_now();
        }
    }
}

#[tokio::test]
async fn abandoned_requests_leave_nothing_open_and_nothing_half_done() {
    let home = in_files().await;
    let store = Arc::clone(&home.store);
    for round in 0..400_u64 {
        let (steps, spins) = (fastrand::u32(1..6), fastrand::u32(0..40));
        let commit = commit(round, round);
        match round % 4 {
            0 => abandon(store.commit(&commit), steps, spins),
            1 => abandon(store.record(&[mark(round)]), steps, spins),
            2 => abandon(
                store.put_blobs(&[(blob(round), body(round))], Moment(1)),
                steps,
                spins,
            ),
            _ => abandon(store.marks(&[chain(round), chain(round - 3)]), steps, spins),
        }
        if round % 20 == 0 {
            let next = crate::support::commit(10_000 + round, 10_000 + round);
            assert_eq!(store.commit(&next).await.unwrap(), Committed::Done);
            assert_eq!(marks(&*store, &[10_000 + round]).await, [next.mark]);
        }
    }
    // Nothing holds the lock: a stranger can write at once.
    let folder = home.folder.as_ref().unwrap().path();
    for file in ["state.db", "journal.db"] {
        let mut stranger = raw(&folder.join(file)).await;
        let begun = sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut stranger);
        begun.await.unwrap();
    }
    for round in (0..400).step_by(4) {
        let place = marks(&*store, &[round]).await;
        let written = store.overlay(overlay(round)).await.unwrap();
        assert_eq!(written, place.first().map(|_| body(round)));
    }
    let mut stranger = raw(&folder.join("state.db")).await;
    let dangling = "SELECT count(*) FROM marks WHERE overlay NOT IN (SELECT id FROM overlays)";
    assert_eq!(number(&mut stranger, dangling).await, 0);
}

#[tokio::test]
async fn a_runtime_that_ends_takes_nothing_with_it() {
    let home = in_files().await;
    for round in 0..20 {
        let store = Arc::clone(&home.store);
        let gone = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            for number in 0..20 {
                let store = Arc::clone(&store);
                runtime.spawn(async move {
                    let commit = commit(round * 100 + number, round * 100 + number);
                    store.commit(&commit).await.unwrap();
                });
            }
            runtime.block_on(tokio::task::yield_now());
        });
        gone.join().unwrap();
        let next = commit(round * 100 + 50, round * 100 + 50);
        assert_eq!(home.store.commit(&next).await.unwrap(), Committed::Done);
    }
}

/// The store has no part in it, and the clock alone must not speak against it:
/// whoever does not find its mark loses its view.
#[tokio::test]
async fn a_first_look_up_is_not_given_up_because_its_own_thread_was_held_up() {
    let home = in_files().await;
    home.store.commit(&commit(1, 1)).await.unwrap();
    let folder = home.folder.as_ref().unwrap().path();
    let limit = std::time::Duration::from_millis(500);
    let hasty = longhaul::store::sqlite::open(folder, limit).await.store;
    let held_up = async { std::thread::sleep(limit * 2) };
    let (found, ()) = tokio::join!(marks(&*hasty, &[1]), held_up);
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_lock_held_by_a_stranger_is_waited_for_no_longer_than_allowed() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    let limit = std::time::Duration::from_millis(100);
    let hasty = longhaul::store::sqlite::open(folder, limit).await.store;
    home.store.commit(&commit(1, 1)).await.unwrap();
    let mut stranger = raw(&folder.join("state.db")).await;
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut stranger)
        .await
        .unwrap();
    let began = std::time::Instant::now();
    let slow = hasty.commit(&commit(2, 2)).await.unwrap_err();
    assert!(
        matches!(slow, longhaul::store::StoreError::Slow(_)),
        "{slow}"
    );
    assert!(began.elapsed() < std::time::Duration::from_secs(3));
    assert_eq!(marks(&*hasty, &[1]).await.len(), 1, "reading goes on");
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut stranger)
        .await
        .unwrap();
    loop {
        // The one that was given up may still be at its end.
        match hasty.commit(&commit(3, 3)).await {
            Ok(outcome) => break assert_eq!(outcome, Committed::Done),
            Err(error) => assert!(began.elapsed().as_secs() < 10, "{error}"),
        }
    }
}
