//! How long it takes to append to a large journal and to find something in it;
//! run with `--release -- --ignored journal_speed --nocapture`.
//!
//! A thousand conversations, some of them forks of others and one very long,
//! twenty at work at a time. Words come as often as words do in any language,
//! the commonest in nearly every entry, and each conversation has some that are
//! only its own.

use std::time::{Duration, Instant};

use longhaul::store::journal::{Entry, Scope, Text, scope_of_session};
use longhaul::store::{Moment, Store};

use crate::journal_support::{entry, fork, trace, whole};
use crate::support::{files, in_database, in_files, lineage, open};

const BRANCHES: u64 = 1_000;
const WORDS: usize = 60_000;

/// Words by how common they are.
struct Language {
    sums: Vec<f64>,
}

impl Language {
    fn new() -> Self {
        let mut sum = 0.0;
        let sums = (0..u32::try_from(WORDS).unwrap()).map(|rank| {
            sum += 1.0 / (f64::from(rank) + 2.0);
            sum
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// A word that comes as often as it does.
    fn any(&self) -> String {
        let all = self.sums.last().copied().unwrap();
        let at = fastrand::f64() * all;
        word(self.sums.partition_point(|sum| *sum < at))
    }
}

/// The word of a rank, the commoner the shorter.
fn word(rank: usize) -> String {
    let syllables = ["ka", "lo", "mi", "ne", "ru", "so", "ta", "vi", "xe", "zu"];
    let digits = rank.to_string();
    let digits = digits.bytes().map(|digit| usize::from(digit - b'0'));
    digits.map(|digit| syllables[digit]).collect()
}

/// A name that only one conversation knows.
fn own(story: u64) -> String {
    format!("name_{story}_{}", fastrand::u32(0..2_000))
}

/// An entry of 100 to 2,000 characters.
fn generated(language: &Language, story: u64, message: u32) -> Entry {
    let count = fastrand::usize(14..280);
    let mut words: Vec<_> = (0..count).map(|_| language.any()).collect();
    words.extend((0..count / 12).map(|_| own(story)));
    let text = words.join(" ");
    words.sort();
    words.dedup();
    Entry {
        bytes: text.len() as u64,
        text: Text::Inline(text),
        terms: words,
        ..entry(message, "")
    }
}

fn at(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * share / 100).min(times.len() - 1)]
}

fn row(what: &str, mut times: Vec<Duration>) {
    let [median, late, last] = [50, 99, 100].map(|share| at(&mut times, share));
    println!("| {what} | {median:.2?} | {late:.2?} | {last:.2?} |");
}

/// Fills the journal; how long appending twenty took, and one.
async fn fill(store: &dyn Store, language: &Language, count: u64) -> [Vec<Duration>; 2] {
    let mut reached = vec![0_u32; usize::try_from(BRANCHES).unwrap()];
    let mut times = [Vec::new(), Vec::new()];
    let mut written = 0;
    while written < count {
        let turn = fastrand::u64(0..20);
        // The first conversation goes on for ever and grows very long.
        let which = match turn {
            0 => 0,
            _ => (written * BRANCHES / count + turn) % BRANCHES,
        };
        let before = reached[usize::try_from(which).unwrap()];
        let after = before + 20;
        let here = match before {
            0 if which % 5 == 4 && reached[usize::try_from(which - 1).unwrap()] > 40 => {
                let parent = reached[usize::try_from(which - 1).unwrap()];
                fork(which, which - 1, parent - 20, after)
            }
            0 => trace(which, None, after),
            _ => trace(which, Some(before), after),
        };
        reached[usize::try_from(which).unwrap()] = after;
        let size = if fastrand::u32(0..10) == 0 { 1 } else { 20 };
        let entries: Vec<_> = (before..before + size)
            .map(|message| generated(language, which, message))
            .collect();
        let began = Instant::now();
        let append = store.journal().append(&here, &entries, Moment(1)).await;
        times[usize::from(size == 1)].push(began.elapsed());
        written += append.unwrap();
    }
    times
}

/// What somebody might ask: common, ordinary and rare words together.
fn query(language: &Language, story: u64, count: usize) -> Vec<String> {
    let mut words = vec![
        word(fastrand::usize(0..5)),
        word(fastrand::usize(20..200)),
        word(fastrand::usize(500..5_000)),
        word(fastrand::usize(5_000..WORDS)),
        own(story),
    ];
    words.extend((words.len()..count).map(|_| language.any()));
    words.truncate(count);
    words
}

/// Looks for something and reads the newest fifty of what is found.
async fn recall(store: &dyn Store, scope: &Scope, words: &[String]) -> (Duration, usize) {
    let began = Instant::now();
    let found = store.journal().matching(scope, words).await.unwrap();
    let newest: Vec<_> = found.iter().take(50).map(|found| found.number).collect();
    let rows = store.journal().entries(&newest).await.unwrap();
    assert_eq!(rows.len(), newest.len());
    (began.elapsed(), found.len())
}

/// Fills a journal and looks for things in it; a line each.
async fn measured(store: &dyn Store, count: u64) {
    fastrand::seed(7);
    let language = Language::new();
    let [twenty, one] = fill(store, &language, count).await;
    println!("### Journal: {count} entries in {BRANCHES} conversations");
    println!();
    println!("| | median | p99 | longest |");
    println!("|---|---|---|---|");
    row("append 20 entries", twenty);
    row("append 1 entry", one);
    for (what, words) in [("5 words", 5), ("24 words", 24), ("1 common word", 1)] {
        let mut times = Vec::new();
        for _ in 0..1_000 {
            let number = fastrand::u64(1..BRANCHES);
            let scope = scope_of_session(store.journal(), lineage(number)).await;
            let words = query(&language, number, words);
            times.push(recall(store, &scope.unwrap(), &words).await.0);
        }
        row(&format!("recall, {what}"), times);
    }
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..300 {
        let scope = scope_of_session(store.journal(), lineage(0)).await;
        let (time, many) = recall(store, &scope.unwrap(), &query(&language, 0, 5)).await;
        times.push(time);
        found = found.max(many);
    }
    row(
        &format!("recall, 5 words, the longest conversation ({found} found)"),
        times,
    );
    let mut times = Vec::new();
    for _ in 0..300 {
        let first = fastrand::u64(1..BRANCHES - 64);
        let mut scope = Scope::default();
        for story in first..first + 64 {
            scope.join(whole(lineage(story)));
        }
        times.push(recall(store, &scope, &query(&language, first, 5)).await.0);
    }
    row("recall, 5 words, 64 branches", times);
}

fn count() -> u64 {
    std::env::var("LONGHAUL_ENTRIES").map_or(1_000_000, |many| many.parse().unwrap())
}

#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn appending_and_finding_in_a_large_journal_in_a_database() {
    let Some((store, _)) = in_database().await else {
        return;
    };
    measured(&*store, count()).await;
    let forgetting = Instant::now();
    let gone = store.journal().forget(lineage(500)).await.unwrap();
    println!(
        "| forgetting {} entries | {:.2?} | | |",
        gone.entries,
        forgetting.elapsed()
    );
    assert!(store.journal().extent().await.unwrap().entries + gone.entries >= count());
}

#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn appending_and_finding_in_a_large_journal() {
    let count = count();
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    let began = Instant::now();
    measured(&*home.store, count).await;
    let store = &*home.store;
    let extent = store.journal().extent().await.unwrap();
    store.close().await.unwrap();
    let sizes = files(folder, "journal.db").into_iter();
    let size: u64 = sizes
        .map(|file| std::fs::metadata(file).unwrap().len())
        .sum();
    let opening = Instant::now();
    let again = open(folder).await;
    println!("| opening the files | {:.2?} | | |", opening.elapsed());
    let forgetting = Instant::now();
    let gone = again.store.journal().forget(lineage(500)).await.unwrap();
    println!(
        "| forgetting {} entries | {:.2?} | | |",
        gone.entries,
        forgetting.elapsed()
    );
    println!();
    println!(
        "{} MB on disk, {} MB by rule, {} s in all",
        size / 1_000_000,
        extent.bytes / 1_000_000,
        began.elapsed().as_secs()
    );
    assert!(extent.entries >= count);
}
