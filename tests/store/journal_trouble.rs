//! The journal under trouble: races, processes that die, full disks, locks and
//! damage.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::store::journal::{Listing, Trace, scope_of_session};
use longhaul::store::{Moment, Report, Store, StoreError, sqlite};

use crate::journal_support::{
    append, archive, arrive, branch, entry, fork, messages, place, search, texts, trace, whole,
};
use crate::killed::kill_after;
use crate::support::{blob, body, files, in_files, in_memory, lineage, number, open, raw, sound};

/// Every store appends the same and grows and forks from the same place.
async fn race(stores: Vec<Arc<dyn Store>>) {
    arrive(&*stores[0], &trace(1, None, 3), 1).await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..24_u64 {
        let store = Arc::clone(&stores[usize::try_from(task).unwrap() % stores.len()]);
        tasks.spawn(async move {
            let entries: Vec<_> = (0..20).map(|message| entry(message, "common")).collect();
            let own = fork(10 + task % 12, 1, 3, 9);
            let first = append(&*store, &trace(1, None, 3), &entries, 2).await;
            let second = append(&*store, &own, &entries, 2).await;
            let id = store.journal();
            let id = id
                .archive(&own, &archive(&[(0, "a", task)]), Moment(2))
                .await;
            (first, second, task % 12, id.unwrap())
        });
    }
    let done = tasks.join_all().await;
    assert_eq!(done.iter().map(|(first, ..)| first).sum::<u64>(), 20);
    for story in 0..12 {
        let both: Vec<_> = done.iter().filter(|(_, _, of, _)| *of == story).collect();
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].3, both[1].3, "one branch for one place");
    }
    let store = &*stores[0];
    let branches = store.journal().branches(None, 99).await.unwrap();
    // All of them left it.
    assert_eq!(branches.len(), 13);
    let left = branches
        .iter()
        .filter(|held| held.parent == Some((lineage(1), 3)));
    assert_eq!(left.count(), 12);
    for held in &branches {
        let all = scope_of_session(store.journal(), held.id).await.unwrap();
        assert_eq!(search(store, &all, "common").await.len(), 20);
    }
    // What they have in common is told once.
    let extent = store.journal().extent().await.unwrap();
    assert_eq!((extent.branches, extent.entries), (13, 20 + 12 * 17));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_grow_one_tree() {
    race(vec![in_memory().store]).await;
    let home = in_files().await;
    let other = sound(home.folder.as_ref().unwrap().path()).await;
    race(vec![home.store, other]).await;
}

#[tokio::test]
async fn a_branch_that_is_written_to_while_it_is_forgotten_stays_whole() {
    let home = in_files().await;
    let other = sound(home.folder.as_ref().unwrap().path()).await;
    let writes = async {
        for round in 0..60_u32 {
            let entries: Vec<_> = (0..20).map(|message| entry(message, "word")).collect();
            append(&*home.store, &trace(1, Some(round), round + 1), &entries, 1).await;
        }
    };
    let forgets = async {
        for _ in 0..30 {
            other.journal().forget(lineage(1)).await.unwrap();
        }
    };
    tokio::join!(writes, forgets);
    let listed = other.journal().branches(None, 99).await.unwrap();
    for held in listed {
        other.journal().forget(held.id).await.unwrap();
    }
    consistent(home.folder.as_ref().unwrap().path()).await;
    let extent = other.journal().extent().await.unwrap();
    assert_eq!((extent.branches, extent.entries, extent.bytes), (0, 0, 0));
}

/// Whether every row belongs to something, and every count is right.
async fn consistent(folder: &Path) {
    let mut connection = raw(&folder.join("journal.db")).await;
    for wrong in [
        "SELECT count(*) FROM entries WHERE branch NOT IN (SELECT number FROM branches)",
        "SELECT count(*) FROM messages WHERE branch NOT IN (SELECT number FROM branches)",
        "SELECT count(*) FROM places WHERE branch NOT IN (SELECT number FROM branches)",
        "SELECT count(*) FROM links WHERE branch NOT IN (SELECT number FROM branches)",
        "SELECT (SELECT count(*) FROM entries) - (SELECT count(*) FROM words_docsize)",
        "SELECT (SELECT count(*) FROM entries) - (SELECT coalesce(sum(entries), 0) FROM branches)",
        "SELECT (SELECT count(*) FROM places) - (SELECT coalesce(sum(places), 0) FROM branches)",
        "SELECT (SELECT blobs FROM totals) - (SELECT coalesce(sum(size), 0) FROM blobs)",
        "SELECT count(*) FROM blobs WHERE linked <> EXISTS (SELECT 1 FROM links WHERE blob = id)",
        "SELECT coalesce(sum(size - 200 - places * 80 \
            - (SELECT coalesce(sum(size), 0) FROM entries WHERE branch = b.number) \
            - (SELECT coalesce(sum(size), 0) FROM messages WHERE branch = b.number) \
            - (SELECT count(*) * 120 FROM promises WHERE branch = b.number) \
            - (SELECT count(*) * 100 FROM links WHERE branch = b.number)), 0) FROM branches b",
    ] {
        assert_eq!(number(&mut connection, wrong).await, 0, "{wrong}");
    }
}

const FOLDER: &str = "LONGHAUL_TEST_JOURNAL_FOLDER";
const ROUND: &str = "LONGHAUL_TEST_JOURNAL_ROUND";

fn helper(name: &str, folder: &Path) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([name, "--exact", "--ignored", "--nocapture"]);
    child.env(FOLDER, folder);
    child.stdout(Stdio::piped()).stderr(Stdio::null());
    child
}

/// A pass: first the archive, then the entries.
fn pass(number: u64) -> (Trace, [longhaul::store::journal::Entry; 1]) {
    let word = format!("word{number}");
    (trace(number, None, 3), [entry(1, &word)])
}

#[tokio::test]
#[ignore = "run by the test that kills it"]
async fn helper_that_archives_until_it_is_killed() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let round: u64 = std::env::var(ROUND).unwrap().parse().unwrap();
    let store = open(Path::new(&folder)).await.store;
    for number in round * 1_000.. {
        let (trace, entries) = pass(number);
        let archive = archive(&[(0, "a", number), (1, "b", number + 1)]);
        let put = store.journal().archive(&trace, &archive, Moment(1));
        put.await.unwrap();
        println!("written {number}");
        append(&*store, &trace, &entries, 1).await;
        if number % 3 == 0 {
            store.journal().forget(lineage(number)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn killed_between_archive_and_entries_it_keeps_the_archive() {
    let folder = crate::support::folder();
    for round in 1..=40_u64 {
        let mut child = helper(
            "journal_trouble::helper_that_archives_until_it_is_killed",
            folder.path(),
        );
        let child = child.env(ROUND, round.to_string()).spawn().unwrap();
        let moment = Duration::from_micros(fastrand::u64(0..4_000));
        let said = kill_after(child, fastrand::usize(0..9), moment);
        let store = sound(folder.path()).await;
        let last = said.last().copied();
        for number in said {
            // The last may have been on its way out.
            if number % 3 == 0 {
                continue;
            }
            let id = lineage(number);
            assert!(branch(&*store, id).await.is_some(), "{number}");
            assert_eq!(messages(&*store, &whole(id), (0, 9), None).await.len(), 2);
            assert_eq!(store.blob(blob(number)).await.unwrap(), Some(body(number)));
            let (trace, entries) = pass(number);
            let new = append(&*store, &trace, &entries, 1).await;
            assert!(
                new == 0 || Some(number) >= last,
                "{number} lost its entries"
            );
            let word = format!("word{number}");
            assert_eq!(search(&*store, &whole(id), &word).await.len(), 1);
        }
        store.collect(crate::support::EVERYTHING).await.unwrap();
        store.close().await.unwrap();
        consistent(folder.path()).await;
    }
}

#[tokio::test]
async fn what_was_begun_to_be_forgotten_is_forgotten_by_the_next() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    append(
        &*home.store,
        &trace(1, None, 5),
        &[entry(1, "word"), entry(3, "word")],
        1,
    )
    .await;
    arrive(&*home.store, &trace(1, Some(5), 7), 1).await;
    append(&*home.store, &trace(2, None, 5), &[entry(1, "word")], 1).await;
    append(&*home.store, &fork(3, 1, 5, 8), &[entry(6, "word")], 1).await;
    append(&*home.store, &trace(1, None, 7), &[entry(6, "word")], 1).await;
    // As after the first step of each.
    let mut connection = raw(&folder.join("journal.db")).await;
    let steps = "DELETE FROM places WHERE branch = 2 OR (branch = 1 AND messages > 5); \
        UPDATE branches SET size = size - 80, places = places - 1 WHERE number <= 2; \
        UPDATE branches SET id = NULL, forgotten = 1 WHERE number = 2; \
        UPDATE branches SET forgotten = 1, messages = 5 WHERE number = 1";
    sqlx::raw_sql(steps).execute(&mut connection).await.unwrap();
    let done = home
        .store
        .collect(crate::support::EVERYTHING)
        .await
        .unwrap();
    assert_eq!((done.branches, done.entries), (0, 2));
    consistent(folder).await;
    assert_eq!(
        texts(&*home.store, &whole(lineage(1)), "word").await.len(),
        2
    );
    assert_eq!(
        number(&mut connection, "SELECT count(*) FROM branches").await,
        2
    );
}

#[tokio::test]
async fn a_lock_held_by_a_stranger_is_waited_for_no_longer_than_allowed() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    append(&*home.store, &trace(1, None, 3), &[entry(1, "word")], 1).await;
    let hasty = sqlite::open(folder, Duration::from_millis(100)).await.store;
    let mut stranger = raw(&folder.join("journal.db")).await;
    let lock = sqlx::raw_sql("BEGIN IMMEDIATE");
    lock.execute(&mut stranger).await.unwrap();
    let began = Instant::now();
    let (here, content) = (trace(1, Some(3), 5), archive(&[(0, "a", 1)]));
    let slow = hasty.journal().archive(&here, &content, Moment(1)).await;
    assert!(matches!(slow, Err(StoreError::Slow(_))), "{slow:?}");
    let slow = hasty
        .journal()
        .append(&here, &[entry(2, "b")], Moment(1))
        .await;
    assert!(matches!(slow, Err(StoreError::Slow(_))), "{slow:?}");
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(
        search(&*hasty, &whole(lineage(1)), "word").await.len(),
        1,
        "reading goes on"
    );
    let unlock = sqlx::raw_sql("ROLLBACK");
    unlock.execute(&mut stranger).await.unwrap();
    while let Err(error) = hasty.journal().archive(&here, &content, Moment(1)).await {
        assert!(began.elapsed().as_secs() < 10, "{error}");
    }
}

/// A limit on the size of files stands in for a disk that is full.
#[test]
fn without_room_on_the_disk_it_fails_and_goes_on_reading() {
    let folder = crate::support::folder();
    let helper = helper("journal_trouble::helper_that_fills_the_disk", folder.path());
    let program = helper.get_program().to_owned();
    let arguments: Vec<_> = helper.get_args().map(ToOwned::to_owned).collect();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2000; exec \"$0\" \"$@\""])
        .arg(program)
        .args(arguments)
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("the disk is full"), "{told}");
}

#[tokio::test]
#[ignore = "run by the test that gives it little room"]
async fn helper_that_fills_the_disk() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let store = sound(Path::new(&folder)).await;
    let mut failed = 0;
    let mut last = 0;
    for number in 0..5_000_u32 {
        let words = format!("word w{number} ") + &"text ".repeat(200);
        let mut here = trace(1, (number > 0).then_some(number), number + 1);
        here.behind = (1..=number).rev().take(20).map(|at| place(1, at)).collect();
        let mut next = entry(number, words.trim());
        next.terms.dedup();
        let began = Instant::now();
        let appended = store.journal().append(&here, &[next], Moment(1)).await;
        let mut random = vec![0; 20_000];
        fastrand::fill(&mut random);
        let mut content = archive(&[]);
        content.blobs.push((blob(u64::from(number)), random));
        let archived = store.journal().archive(&here, &content, Moment(1)).await;
        assert!(began.elapsed() < Duration::from_secs(25));
        match (appended, archived) {
            (Ok(_), Ok(_)) => last = number,
            (Err(error), _) | (_, Err(error)) => {
                failed += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        if failed >= 5 {
            let found = search(&*store, &whole(lineage(1)), &format!("w{last}")).await;
            assert_eq!(found.len(), 1);
            println!("the disk is full after {last}");
            return;
        }
    }
    panic!("there was room for everything");
}

#[tokio::test]
async fn where_the_file_cannot_be_made_memory_serves() {
    let folder = crate::support::folder();
    std::fs::create_dir(folder.path().join("journal.db")).unwrap();
    let opened = open(folder.path()).await;
    assert!(matches!(&opened.reports[..], [Report::InMemory { .. }]));
    let store = &*opened.store;
    let (here, content) = (trace(1, None, 3), archive(&[(0, "a", 1)]));
    store
        .journal()
        .archive(&here, &content, Moment(1))
        .await
        .unwrap();
    append(store, &here, &[entry(1, "word")], 1).await;
    assert_eq!(search(store, &whole(lineage(1)), "word").await.len(), 1);
    assert_eq!(store.blob(blob(1)).await.unwrap(), Some(body(1)));
    store.journal().forget(lineage(1)).await.unwrap();
    assert_eq!(store.blob(blob(1)).await.unwrap(), None);
}

#[tokio::test]
async fn damaged_rows_are_errors_and_not_other_words() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    let here = trace(1, None, 3);
    let long = "the words of a tool ".repeat(100);
    append(&*home.store, &here, &[entry(0, &long), entry(1, "fine")], 1).await;
    let content = archive(&[(0, &long, 1)]);
    home.store
        .journal()
        .archive(&here, &content, Moment(1))
        .await
        .unwrap();
    let mut connection = raw(&folder.join("journal.db")).await;
    let spoil = "UPDATE entries SET text = substr(text, 1, length(text) - 1) || x'00' WHERE message = 0; \
        UPDATE messages SET parts = substr(parts, 1, length(parts) - 1) || x'00'";
    sqlx::raw_sql(spoil).execute(&mut connection).await.unwrap();
    let journal = home.store.journal();
    let scope = whole(lineage(1));
    journal.kept(&scope, (0, 9), None).await.unwrap_err();
    let listing = Listing {
        limit: 9,
        ..Listing::default()
    };
    journal.list(&scope, &listing).await.unwrap_err();
    assert_eq!(search(&*home.store, &scope, "fine").await.len(), 1);
    assert!(folder.join("journal.db.suspect").exists());
    home.store.close().await.unwrap();
    for file in files(folder, "journal.db") {
        if file.extension().is_some_and(|extension| extension == "db") {
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
    // The structure is sound, so nothing else is given up for it.
    let store = sound(folder).await;
    assert_eq!(search(&*store, &scope, "fine").await.len(), 1);
}

/// Words cannot be made again from what is kept, so a broken index of them is
/// noticed in use, and the file with it is set aside at the next start.
#[tokio::test]
async fn a_damaged_index_of_words_is_noticed_in_use_and_set_aside() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    let words: Vec<_> = (0..3_000).map(|number| format!("word{number}")).collect();
    append(
        &*home.store,
        &trace(1, None, 3),
        &[entry(0, &words.join(" "))],
        1,
    )
    .await;
    home.store.close().await.unwrap();
    let mut connection = raw(&folder.join("journal.db")).await;
    let spoil =
        "UPDATE words_data SET block = x'FFFFFFFFFFFFFFFF' || substr(block, 9) WHERE id > 10";
    sqlx::raw_sql(spoil).execute(&mut connection).await.unwrap();
    let store = sound(folder).await;
    let scope = whole(lineage(1));
    let mut failed = 0;
    for word in words.iter().step_by(100) {
        let found = store
            .journal()
            .matching(&scope, std::slice::from_ref(word))
            .await;
        failed += u32::from(found.is_err());
    }
    assert!(failed > 0);
    assert!(folder.join("journal.db.suspect").exists());
    store.close().await.unwrap();
    let opened = open(folder).await;
    assert!(
        matches!(&opened.reports[..], [Report::SetAside { .. }]),
        "{:?}",
        opened.reports
    );
    append(&*opened.store, &trace(1, None, 3), &[entry(0, "word")], 1).await;
    assert_eq!(search(&*opened.store, &scope, "word").await.len(), 1);
}
