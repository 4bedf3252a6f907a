//! How long the common operations take; run with `--release -- --ignored speed`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::store::writer::Writer;
use longhaul::store::{Commit, MarkRow, Store};

use crate::support::{body, chain, commit, in_database, in_files, mark, overlay};

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[times.len() * share / 100];
    println!(
        "{what}: p50 {:?}, p90 {:?}, p99 {:?}",
        at(50),
        at(90),
        at(99)
    );
}

async fn timed<T>(work: impl Future<Output = T>, times: &mut Vec<Duration>) -> T {
    let began = Instant::now();
    let done = work.await;
    times.push(began.elapsed());
    done
}

#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn the_common_operations_in_files() {
    let home = in_files().await;
    measure(home.store.clone()).await;
}

#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn the_common_operations_in_a_database() {
    if let Some((store, _)) = in_database().await {
        measure(store).await;
    }
}

async fn measure(home: Arc<dyn Store>) {
    let store = &*home;
    let figures = |place| MarkRow {
        figures: vec![7; 300],
        ..mark(place)
    };
    let mut times = Vec::new();
    for batch in 0..400 {
        let rows: Vec<_> = (batch * 256..(batch + 1) * 256).map(figures).collect();
        timed(store.record(&rows), &mut times).await.unwrap();
    }
    tell("record of 256", times);
    let places = || fastrand::u64(0..102_400);
    for count in [1, 4, 2_000] {
        let mut times = Vec::new();
        for _ in 0..if count > 4 { 100 } else { 20_000 } {
            let places: Vec<_> = (0..count).map(|_| chain(places())).collect();
            timed(store.marks(&places), &mut times).await.unwrap();
        }
        tell(&format!("look-up of {count} among 102400"), times);
    }
    let mut times = Vec::new();
    for _ in 0..20_000 {
        let newest = 102_400 - fastrand::u64(1..1_000);
        let places = [newest, newest - 1, 900_000, 900_001].map(chain);
        timed(store.marks(&places), &mut times).await.unwrap();
    }
    tell("look-up of 4, 2 of them known and recent", times);
    let mut times = Vec::new();
    for number in 0..2_000 {
        let mut commit: Commit = commit(1_000_000 + number, number);
        commit.overlay = Some((overlay(number), body(number)[..2_048].to_vec()));
        timed(store.commit(&commit), &mut times).await.unwrap();
    }
    tell("commit of 2 KB", times);
    let mut times = Vec::new();
    for number in 0..2_000 {
        timed(store.overlay(overlay(number)), &mut times)
            .await
            .unwrap();
    }
    tell("overlay of 2 KB", times);
    let writer = Writer::start(home.clone()).unwrap();
    let mut times = Vec::new();
    for number in 0..10_000 {
        let mark = figures(2_000_000 + number);
        let began = Instant::now();
        writer.record(mark);
        times.push(began.elapsed());
    }
    tell("handing figures over", times);
    writer.flush().await.unwrap();
}
