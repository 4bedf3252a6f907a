//! `longhaul store copy`: a session goes on in another store as in its own.

use std::path::Path;
use std::process::{Command, Output};

use longhaul::sim::{Options, Reply};
use serde_json::Value;

use super::stock::wait;
use crate::cluster::Cluster;
use crate::support::{Proxy, simulated::Simulated};
use crate::views::cast::{BOUND, FREE, NOW, all_answered, compacted, compaction, shown, stubs};

fn longhaul(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments)
        .env("LONGHAUL_DATA_DIR", folder.path())
        .output()
        .unwrap()
}

fn told(arguments: &[&str]) -> String {
    let output = longhaul(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn wrong(arguments: &[&str]) -> String {
    let output = longhaul(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    errors
}

/// What the commands tell of all sessions of a store.
fn looked(store: &[&str]) -> Vec<String> {
    let all = [&["sessions", "--json"], store].concat();
    let listed: Value = serde_json::from_str(&told(&all)).unwrap();
    let mut looked = vec![listed.to_string()];
    for session in listed["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        for question in [
            &["journal", "search", id, "step file result"][..],
            &["journal", "show", id, "--limit", "100"],
            &["journal", "export", id],
            &["sessions", "handoff", id],
        ] {
            looked.push(told(&[question, store].concat()));
        }
    }
    looked
}

#[test]
fn a_session_goes_on_in_a_copy_with_the_same_view() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = wait(cluster.database());
    let upstream = Simulated::start(Options::default());
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |folder: &Path| folder.join("longhaul").display().to_string();
    let (files, back) = (path(first.path()), path(second.path()));
    let at = |folder: &Path| format!("data_dir = {:?}\n", path(folder));
    let mut agents = Vec::new();
    {
        let proxy = Proxy::keeping(&upstream.sim.url(), &at(first.path()), first.path());
        for model in [FREE, BOUND] {
            let mut agent = compacted(&upstream, &proxy, model);
            agent.user("Go on.");
            agent.cycle(&upstream, &proxy, "");
            agents.push(agent);
        }
    }
    let table = told(&["store", "copy", &files, &url]);
    assert!(
        table.starts_with("TABLE") && table.contains("entries"),
        "{table}"
    );
    assert_eq!(told(&["store", "copy", &url, &back]), table);
    let expected = looked(&["--data-dir", &files]);
    assert!(expected.iter().any(|told| told.contains("lh-")));
    for store in [["--store", &url], ["--data-dir", &back]] {
        assert_eq!(looked(&store), expected);
    }
    let mut views: Vec<Vec<Vec<Value>>> = Vec::new();
    for (file, folder) in [
        (at(first.path()), &first),
        (format!("store.url = {url:?}\n"), &first),
        (at(second.path()), &second),
    ] {
        let proxy = Proxy::keeping(&upstream.sim.url(), &file, folder.path());
        let mut seen = Vec::new();
        for agent in &agents {
            let mut agent = agent.clone();
            upstream.sim.push_reply(Reply::text("Done."));
            agent.ask(&proxy, "");
            seen.push(shown(&upstream));
            assert!(seen.last().is_some_and(|view| stubs(view) > 0));
            // What is decided next is decided alike.
            agent.user("Tidy up.");
            upstream.sim.push_reply(Reply::text("Tidy."));
            assert_ne!(compaction(&agent.ask(&proxy, NOW)), "none");
            seen.push(shown(&upstream));
        }
        views.push(seen);
    }
    assert!(views.iter().all(|seen| *seen == views[0]));
    assert!(all_answered(&upstream));
    // By now they are three stores in use.
    let refused = wrong(&["store", "copy", &files, &url]);
    assert!(refused.contains("in use"), "{refused}");
}

#[test]
fn what_cannot_be_copied_is_said() {
    let (empty, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (empty, other) = (
        empty.path().display().to_string(),
        other.path().display().to_string(),
    );
    assert!(wrong(&["store", "copy", &empty, &other]).contains("there is no store in"));
    assert!(wrong(&["store", "copy", &empty, &empty]).contains("onto itself"));
    for nonsense in ["memory", "mysql://host/db"] {
        let said = wrong(&["store", "copy", nonsense, &other]);
        assert!(said.contains("a store to copy is"), "{said}");
    }
    wrong(&["store"]);
    wrong(&["store", "copy", &empty]);
}

/// With one slash it is no URL, and must not become a folder of that name.
#[test]
fn a_mistyped_url_shows_no_password_and_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().to_str().unwrap();
    for url in [
        "postgres:/me:s3cret@host/db",
        "postgresql:me:s3cret@host",
        "POSTGRES:/host/db?password=s3cret",
    ] {
        for arguments in [
            &["check"][..],
            &["serve", "--store", url],
            &["sessions", "--store", url],
            &["journal", "--store", url, "search", "0", "word"],
            &["store", "copy", "--data-dir", here, "sqlite", url],
            &["store", "copy", url, here],
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
            if arguments == ["check"] {
                command.env("LONGHAUL_STORE__URL", url);
            }
            command.args(arguments).current_dir(here);
            let output = command.output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(!said.contains("s3cret"), "{arguments:?}: {said}");
        }
        assert_eq!(std::fs::read_dir(here).unwrap().count(), 0, "{url}");
    }
}
