//! The store fails: requests go on, and somebody can see it.

use longhaul::sim::Options;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::cast::{
    BOUND, FREE, NOW, all_answered, compacted, compaction, continues, last_body, shown, stubs,
    worked,
};
use crate::support::{Proxy, simulated::Simulated};

/// The files of a store.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.display().to_string().contains(".db") {
                found.push(path);
            }
        }
    }
    found
}

/// Overwrites every file of a store while it is in use.
fn spoil(folder: &std::path::Path) {
    let found = files(folder);
    assert!(!found.is_empty());
    for path in found {
        let length = std::fs::metadata(&path).unwrap().len();
        let length = usize::try_from(length).unwrap();
        std::fs::write(&path, vec![0xa5; length.max(64 << 10)]).unwrap();
    }
}

#[test]
fn a_session_goes_on_when_its_store_is_spoilt_under_it() {
    for model in [FREE, BOUND] {
        let upstream = Simulated::start(Options::default());
        let folder = tempfile::tempdir().unwrap();
        let proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
        let mut agent = compacted(&upstream, &proxy, model);
        let view = shown(&upstream);
        spoil(folder.path());
        for _ in 0..2 {
            agent.turn(&upstream, &proxy, 3);
            assert!(continues(&shown(&upstream), &view), "{model}");
        }
        // A pass cannot be made to last, so there is none.
        let answer = agent.chat(&upstream, &proxy, NOW);
        assert_eq!(compaction(&answer), "none", "{model}");
        assert_eq!(stubs(&shown(&upstream)), stubs(&view));
        let failed = ["marks", "archive", "commit"].map(|what| {
            let series = format!("longhaul_store_errors_total{{op=\"{what}\"}}");
            proxy.metric(&series).unwrap_or(0.0)
        });
        assert!(failed.iter().sum::<f64>() > 0.0);
        assert!(all_answered(&upstream));
    }
}

/// A new process finds a store that does not answer: the session goes on without
/// its overlay, and upstream is asked to drop the thinking that was bound to it.
#[test]
fn a_session_goes_on_in_a_process_that_cannot_read_its_store() {
    let upstream = Simulated::start(Options::default());
    let url = upstream.sim.url();
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::keeping(&url, "", folder.path());
    let mut agent = compacted(&upstream, &proxy, BOUND);
    agent.turn(&upstream, &proxy, 2);
    proxy.join();
    let proxy = Proxy::keeping(&url, "", folder.path());
    spoil(folder.path());
    agent.turn(&upstream, &proxy, 2);
    agent.turn(&upstream, &proxy, 2);
    let series = "longhaul_fail_open_total{stage=\"store\"}";
    assert!(proxy.metric(series).unwrap_or(0.0) > 0.0);
}

/// Changes the database behind the proxy's back.
fn change(folder: &std::path::Path, statement: &'static str) {
    let found = files(folder);
    let state = found
        .iter()
        .find(|path| path.ends_with("state.db"))
        .unwrap();
    let options = SqliteConnectOptions::new()
        .filename(state)
        .foreign_keys(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut connection = options.connect().await.unwrap();
        let done = sqlx::query(statement).execute(&mut connection).await;
        assert!(done.unwrap().rows_affected() > 0);
        connection.close().await.unwrap();
    });
}

#[test]
fn a_session_goes_on_without_an_overlay_that_is_lost_or_damaged() {
    for (statement, retries) in [
        ("DELETE FROM overlays", 1.0),
        ("UPDATE overlays SET body = x'7b7d'", 100.0),
    ] {
        let upstream = Simulated::start(Options::default());
        let url = upstream.sim.url();
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&url, "", folder.path());
        let mut agent = compacted(&upstream, &proxy, BOUND);
        agent.turn(&upstream, &proxy, 2);
        proxy.join();
        change(folder.path(), statement);
        let proxy = Proxy::keeping(&url, "", folder.path());
        agent.turn(&upstream, &proxy, 2);
        agent.turn(&upstream, &proxy, 2);
        let series = "longhaul_reactive_retries_total{outcome=\"retried\"}";
        assert!(proxy.metric(series).unwrap() <= retries, "{statement}");
    }
}

#[test]
fn a_data_folder_that_cannot_be_used_is_no_reason_not_to_serve() {
    let upstream = Simulated::start(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for name in ["state.db", "journal.db"] {
        std::fs::create_dir_all(data.join(name).join("in the way")).unwrap();
    }
    let file = format!("data_dir = {:?}", data.display().to_string());
    let proxy = Proxy::keeping(&upstream.sim.url(), &file, folder.path());
    let mut agent = compacted(&upstream, &proxy, BOUND);
    let view = shown(&upstream);
    agent.turn(&upstream, &proxy, 2);
    assert!(continues(&shown(&upstream), &view));
    assert!(all_answered(&upstream));
}

#[test]
fn a_store_with_no_time_to_answer_costs_nothing_but_memory() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "store.timeout = \"1ms\"");
    let mut agent = worked(&upstream, &proxy, FREE);
    agent.user("More.");
    agent.ask(&proxy, NOW);
    agent.turn(&upstream, &proxy, 3);
    assert!(all_answered(&upstream));
    assert!(!last_body(&upstream).is_empty());
}
