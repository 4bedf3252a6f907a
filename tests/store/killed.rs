//! A process that is killed while it writes: what it was told is written is
//! there, whole, and nothing is there in part.
//!
//! The writer is this test program itself, started again as a helper. It says a
//! number on its standard output after the store has said that the commit with
//! that number is done.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use longhaul::store::{Commit, MarkRow, Moment, Store};

use crate::support::{
    blob, body, commit, lineage, mark, marks, number, open, overlay, put_segment, raw, segment,
    segments,
};

const FOLDER: &str = "LONGHAUL_TEST_FOLDER";
const FIRST: &str = "LONGHAUL_TEST_FIRST";

/// What the helper writes under a number: large enough for the log to be
/// written back now and then.
fn piece(number: u64) -> Commit {
    let mut commit = commit(number, number);
    commit.mark.lineage = lineage(number / 10);
    commit.overlay = Some((overlay(number), body(number).repeat(3)));
    commit
}

#[tokio::test]
#[ignore = "run by the tests that kill it"]
async fn helper_that_writes_until_it_is_killed() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let mut number: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let store = open(Path::new(&folder)).await.store;
    loop {
        let content = [(blob(number), body(number))];
        store.put_blobs(&content, Moment(1)).await.unwrap();
        put_segment(&*store, number, &body(number), 1).await;
        let piece = piece(number);
        store.commit(&piece).await.unwrap();
        println!("written {number}");
        // Figures are not promised, but must not get in the way.
        let figures = MarkRow {
            overlay: piece.mark.overlay,
            ..mark(1_000_000 + number)
        };
        store.record(&[figures]).await.unwrap();
        number += 1;
    }
}

/// The helper, about to write.
pub fn start(folder: &Path, first: u64, environment: &[(&str, &Path)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["killed::helper_that_writes_until_it_is_killed", "--exact"])
        .args(["--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(FIRST, first.to_string())
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the helper a moment after it has said so many numbers; all that it
/// has said.
pub fn kill_after(mut child: Child, count: usize, moment: Duration) -> Vec<u64> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    let mut line = String::new();
    while said.matches("written ").count() < count {
        line.clear();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "it ended by itself: {said}"
        );
        said.push_str(&line);
    }
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
    output.read_to_string(&mut said).unwrap();
    let whole = said
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .filter_map(|line| line.split_once("written "))
        .map(|(_, number)| number.trim().parse().unwrap())
        .collect()
}

/// Whether everything that was promised is there, and nothing in part.
pub async fn examine(folder: &Path, promised: &[u64]) -> Result<(), String> {
    let opened = open(folder).await;
    if !opened.reports.is_empty() {
        return Err(format!("{:?}", opened.reports));
    }
    let store = opened.store;
    for number in promised {
        present(&*store, *number).await?;
    }
    store.close().await.unwrap();
    let mut connection = raw(&folder.join("state.db")).await;
    for half in [
        "SELECT count(*) FROM marks WHERE overlay NOT IN (SELECT id FROM overlays)",
        "SELECT count(*) FROM overlays WHERE id NOT IN (SELECT overlay FROM marks WHERE overlay IS NOT NULL)",
        "SELECT count(*) FROM overlays WHERE length(body) <> 28800",
    ] {
        if number(&mut connection, half).await != 0 {
            return Err(half.to_owned());
        }
    }
    Ok(())
}

async fn present(store: &dyn Store, number: u64) -> Result<(), String> {
    let piece = piece(number);
    let content = store.blob(blob(number)).await.unwrap();
    let bytes = store.overlay(overlay(number)).await.unwrap();
    let whole = marks(store, &[number]).await == [piece.mark]
        && bytes == piece.overlay.map(|(_, bytes)| bytes)
        && content == Some(body(number))
        && segments(store, &[number]).await == [(segment(number), body(number))];
    whole
        .then_some(())
        .ok_or_else(|| format!("{number} is missing"))
}

#[tokio::test]
async fn killed_two_hundred_times_it_keeps_every_promise() {
    let folder = crate::support::folder();
    let mut promised = Vec::new();
    for round in 0..200_u64 {
        let child = start(folder.path(), round * 1_000, &[]);
        let count = fastrand::usize(0..12);
        let said = kill_after(child, count, Duration::from_micros(fastrand::u64(0..3_000)));
        examine(folder.path(), &said).await.unwrap();
        promised.extend(said);
    }
    println!("{} commits were promised", promised.len());
    examine(folder.path(), &promised).await.unwrap();
}

#[tokio::test]
async fn two_processes_on_the_same_files_both_keep_their_promises() {
    let folder = crate::support::folder();
    let mut promised = Vec::new();
    for round in 0..10_u64 {
        let first = start(folder.path(), round * 1_000, &[]);
        let second = start(folder.path(), 500_000 + round * 1_000, &[]);
        promised.extend(kill_after(first, 15, Duration::ZERO));
        promised.extend(kill_after(second, 15, Duration::ZERO));
        examine(folder.path(), &promised).await.unwrap();
    }
}
