//! `longhaul sessions` and `longhaul journal`, on the store of a proxy: its files,
//! or a database.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use longhaul::store::{postgres, sqlite};
use serde_json::Value;

use super::stock::{Stocked, put, wait, work};
use crate::cluster::Cluster;
use crate::support::{Client, Proxy, Tap, plain, text};

fn longhaul(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments)
        .env("LONGHAUL_DATA_DIR", folder)
        .output()
        .unwrap()
}

fn told(folder: &Path, arguments: &[&str]) -> String {
    let output = longhaul(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn wrong(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = longhaul(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert!(output.stdout.is_empty());
    errors
}

/// The commands answer alike about a database.
#[test]
fn a_database_is_looked_into_like_files() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = wait(cluster.database());
    let own = wait(async {
        let opened = postgres::open(&url, 4, Duration::from_secs(20)).await;
        let store = opened.unwrap().store;
        let own = put(&*store, "a", &work("alpha"), 1_000).await;
        put(&*store, "b", &work("omega"), 2_000).await;
        store.close().await.unwrap();
        own
    });
    let (folder, same, _) = stocked();
    assert_eq!(same.id, own.id);
    let id = own.id.to_string();
    let block = own.block(2, 0);
    for arguments in [
        &["sessions"][..],
        &["sessions", "--json", "--limit", "1"],
        &["sessions", "show", &id[..10]],
        &["sessions", "handoff", &id],
        &["journal", "search", "label-1000", "QUUX_RETRY_BUDGET"],
        &["journal", "show", &id, "--kind", "decision"],
        &["journal", "show", &id, &block, "--page", "2"],
        &["journal", "export", &id],
        &["sessions", "delete", &id],
    ] {
        let on_files = told(folder.path(), arguments);
        let there = [arguments, &["--store", &url]].concat();
        assert_eq!(told(folder.path(), &there), on_files, "{arguments:?}");
    }
    let gone = wrong(
        folder.path(),
        &["sessions", "show", &id, "--store", &url],
        1,
    );
    assert!(gone.contains("no session"), "{gone}");
}

/// A folder with sessions of two tenants, as a proxy leaves it behind, or still
/// has it open.
fn stocked() -> (tempfile::TempDir, Stocked, Stocked) {
    let folder = tempfile::tempdir().unwrap();
    let sessions = wait(async {
        let opened = sqlite::open(folder.path(), Duration::from_secs(20)).await;
        let own = put(&*opened.store, "a", &work("alpha"), 1_000).await;
        let other = put(&*opened.store, "b", &work("omega"), 2_000).await;
        opened.store.close().await.unwrap();
        (own, other)
    });
    (folder, sessions.0, sessions.1)
}

#[test]
fn sessions_are_listed_and_shown() {
    let (folder, own, other) = stocked();
    let folder = folder.path();
    let (own, other) = (own.id.to_string(), other.id.to_string());
    let table = told(folder, &["sessions"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("ID"), "{table}");
    assert!(
        lines[1].starts_with(&other) && lines[2].starts_with(&own),
        "{table}"
    );
    let json: Value =
        serde_json::from_str(&told(folder, &["sessions", "--json", "--limit", "1"])).unwrap();
    assert_eq!(json["sessions"].as_array().map(Vec::len), Some(1));
    for given in [own.as_str(), &own[..10], &own.to_uppercase()] {
        let shown = told(folder, &["sessions", "show", given]);
        assert!(
            shown.contains(&own) && shown.contains("claude-opus-5-5"),
            "{shown}"
        );
    }
    let json: Value =
        serde_json::from_str(&told(folder, &["sessions", "show", &own, "--json"])).unwrap();
    assert_eq!(json["timeline"][0]["messages"], 9);
}

/// Nobody has to stop a proxy to look into its store.
#[test]
fn a_store_is_looked_into_while_a_proxy_has_it_open() {
    let (folder, own, _) = stocked();
    let upstream = Tap::start(|_| plain(b"upstream"));
    let file = format!("data_dir = {:?}", folder.path());
    let mut proxy = Proxy::keeping(&upstream.url(), &file, folder.path());
    let id = own.id.to_string();
    let found = told(
        folder.path(),
        &["journal", "search", &id, "QUUX_RETRY_BUDGET"],
    );
    assert!(found.contains("u32 = 17"), "{found}");
    let address = proxy.address;
    let listed = Client::connect(address)
        .send("GET /longhaul/sessions HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .answer();
    assert!(text(&listed.body).contains(&id), "the same store");
    proxy.join();
}

#[test]
fn the_journal_is_searched_shown_and_exported() {
    let (folder, own, _) = stocked();
    let folder = folder.path();
    let id = own.id.to_string();
    for session in [id.as_str(), "label-1000"] {
        let found = told(folder, &["journal", "search", session, "QUUX_RETRY_BUDGET"]);
        assert!(
            found.contains("u32 = 17") && !found.contains("omega"),
            "{found}"
        );
    }
    let listed = told(folder, &["journal", "show", &id, "--kind", "decision"]);
    assert!(listed.contains("token bucket"), "{listed}");
    let page = told(
        folder,
        &["journal", "show", &id, &own.block(2, 0), "--page", "2"],
    );
    assert!(page.contains("page 2 of"), "{page}");
    let export = longhaul(folder, &["journal", "export", &id]);
    assert!(export.stdout.trim_ascii_end() == own.messages);
    let written = told(folder, &["sessions", "handoff", &id]);
    assert!(written.contains("Port the scheduler of alpha"), "{written}");
}

#[test]
fn a_session_is_deleted_and_another_is_not() {
    let (folder, own, other) = stocked();
    let folder = folder.path();
    let (own, other) = (own.id.to_string(), other.id.to_string());
    let gone = told(folder, &["sessions", "delete", &own]);
    assert!(gone.contains("is forgotten: 1 marks"), "{gone}");
    assert!(wrong(folder, &["sessions", "show", &own], 1).contains("no session"));
    assert!(wrong(folder, &["journal", "export", &own], 1).contains("no session"));
    told(folder, &["sessions", "show", &other]);
}

#[test]
fn what_is_not_there_is_said_and_nothing_is_begun() {
    let (folder, own, _) = stocked();
    let empty = tempfile::tempdir().unwrap();
    let none = wrong(empty.path(), &["sessions"], 1);
    assert!(none.contains("there is no store in"), "{none}");
    assert!(std::fs::read_dir(empty.path()).unwrap().next().is_none());
    let folder = folder.path();
    let unknown = wrong(folder, &["sessions", "show", "nobody"], 1);
    assert!(
        unknown.contains("no session \"nobody\" is known"),
        "{unknown}"
    );
    let id = own.id.to_string();
    let reference = format!("lh-{}", "0".repeat(20));
    let unknown = wrong(folder, &["journal", "show", &id, &reference], 1);
    assert!(
        unknown.contains("nothing is known under this reference"),
        "{unknown}"
    );
    let memory = wrong(folder, &["sessions", "--store", "memory"], 2);
    assert!(memory.contains("store.url is \"memory\""), "{memory}");
    wrong(folder, &["sessions", "--store", "nonsense"], 2);
    wrong(folder, &["sessions", "--limit", "0"], 2);
    wrong(folder, &["journal"], 2);
    wrong(folder, &["journal", "show", &id, "--kind", "nonsense"], 2);
}
