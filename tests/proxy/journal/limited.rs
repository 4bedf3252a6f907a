//! `journal.max_bytes` holds while things are written, in every home.

use std::path::Path;
use std::sync::Arc;

use longhaul::sim::{Options, Reply};
use longhaul::store::{Memory, Store};
use serde_json::json;
use sqlx::Row;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::cluster::{Cluster, number, raw};
use crate::support::simulated::Simulated;
use crate::support::{Answer, Proxy};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, compaction};

const MIB: u64 = 1 << 20;
const FILE: &str = "[window]\nbudget = 20000\n[journal]\nmax_bytes = \"1MiB\"\n";
/// Sessions, each of which has a sixth of the limit to put away.
const SESSIONS: usize = 9;

/// An agent with results of tools that hardly get smaller by packing.
fn agent(number: usize) -> Agent {
    let mut agent = Agent::seasoned(FREE, 0, 0);
    let last = agent.history.pop().unwrap();
    for part in 0..5 {
        let id = format!("toolu_{number}_{part}");
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        let word = |at: usize| {
            let hash = blake3::hash(format!("{number} {part} {at}").as_bytes());
            format!("{} ", &hash.to_hex()[..63])
        };
        let text: String = (0..1_000).map(word).collect();
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        agent
            .history
            .push(json!({"role": "assistant", "content": [call]}));
        agent
            .history
            .push(json!({"role": "user", "content": [result]}));
    }
    let done = json!([{"type": "text", "text": "Done."}]);
    agent
        .history
        .push(json!({"role": "assistant", "content": done}));
    agent.history.push(last);
    agent
}

/// Many sessions outgrow their budget at once; what the journal held meanwhile,
/// and the answers.
fn overflow(proxy: &Proxy, upstream: &Simulated, held: impl Fn() -> u64) -> Vec<Answer> {
    let mut most = 0;
    let mut answers = Vec::new();
    for number in 0..SESSIONS {
        upstream.sim.push_reply(Reply::text("Yes."));
        answers.push(agent(number).ask(proxy, ""));
        proxy.settle();
        most = most.max(held());
    }
    assert!(most > MIB / 4, "only {most} bytes were ever kept");
    assert!(most <= MIB + MIB / 8, "{most} bytes with a limit of {MIB}");
    answers
}

/// Whatever finds no room is said not to be recorded, and everything else is.
fn said(proxy: &Proxy, answers: &[Answer]) {
    for answer in answers {
        assert_ne!(compaction(answer), "none", "it would not fit");
    }
    let notice = |answer: &&Answer| answer.header("x-longhaul-notice") == Some("unrecorded");
    let unrecorded = answers.iter().filter(notice).count();
    // What was used a moment ago makes no room.
    assert!((1..SESSIONS).contains(&unrecorded), "{unrecorded}");
    let counted = proxy.metric("longhaul_unrecorded_total").unwrap();
    assert!((counted - f64::from(u32::try_from(unrecorded).unwrap())).abs() < 0.5);
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

#[test]
fn the_limit_holds_in_memory_as_things_are_written() {
    let upstream = Simulated::start(Options::default());
    let store = Arc::new(Memory::new());
    let proxy = Proxy::on(store.clone(), &upstream.sim.url(), FILE, None);
    let held = || wait(store.journal().extent()).unwrap().bytes;
    said(&proxy, &overflow(&proxy, &upstream, held));
}

/// Bytes that the journal counts in its file.
fn in_file(folder: &Path) -> u64 {
    wait(async {
        let file = folder.join(".local/share/longhaul/journal.db");
        let options = SqliteConnectOptions::new().filename(file).read_only(true);
        let mut connection = options.connect().await.unwrap();
        let sql = "SELECT (SELECT blobs FROM totals) + coalesce(sum(size), 0) FROM branches";
        let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
        let bytes: i64 = row.get(0);
        connection.close().await.unwrap();
        bytes.unsigned_abs()
    })
}

#[test]
fn the_limit_holds_in_files_as_things_are_written() {
    let upstream = Simulated::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::keeping(&upstream.sim.url(), FILE, folder.path());
    let held = || in_file(folder.path());
    said(&proxy, &overflow(&proxy, &upstream, held));
}

#[test]
fn the_limit_holds_in_a_database_as_things_are_written() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = wait(cluster.database());
    let upstream = Simulated::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let file = format!("store.url = {url:?}\n{FILE}");
    let proxy = Proxy::keeping(&upstream.sim.url(), &file, folder.path());
    let sql = "SELECT ((SELECT coalesce(sum(blobs), 0) FROM longhaul.totals) \
        + coalesce(sum(size), 0))::bigint FROM longhaul.extents";
    let held = || wait(async { number(&mut raw(&url).await, sql).await }).unsigned_abs();
    said(&proxy, &overflow(&proxy, &upstream, held));
}
