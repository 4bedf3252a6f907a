//! All of it in a real browser, over a session in which everything happened.
//!
//! The pictures stay in the target folder, to be looked at.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longhaul::sim::Options;
use serde_json::Value;

use crate::journal::stock::{TOKEN, house};
use crate::summaries::stage::Stage;
use crate::support::sdk::Sdk;
use crate::support::{Client, Proxy};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction, session};
use crate::watching::played::{SETTINGS, play};

/// Debian's browser, or none and a line that says so.
fn chromium() -> Option<PathBuf> {
    let runs = |name: &&str| {
        let mut command = Command::new(name);
        let quiet = command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find(|name| runs(name));
    if let Some(name) = found {
        let which = Command::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .output();
        let path = String::from_utf8(which.unwrap().stdout).unwrap();
        return Some(path.trim().into());
    }
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "a browser is needed here: install Debian's package chromium"
    );
    println!("skipped: chromium is missing (Debian's package chromium has it)");
    None
}

/// Where the pictures go.
fn pictures() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("page");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn json(proxy: &Proxy, path: &str) -> Value {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let answer = Client::connect(proxy.address).send(request).answer();
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn a_browser_shows_all_of_it_and_complains_of_nothing() {
    let Some(chromium) = chromium() else {
        return;
    };
    let mut stage = Stage::small(Options::default(), SETTINGS);
    stage.agent.headers = "x-longhaul-session: Build the scheduler\r\n".to_owned();
    play(&mut stage);
    let mut other = Agent::new(FREE).saying("x-longhaul-session: Review of the parser\r\n");
    other.turn(&stage.upstream, &stage.proxy, 4);
    other.turn(&stage.upstream, &stage.proxy, 3);
    let cleared = other.chat(&stage.upstream, &stage.proxy, NOW);
    assert_eq!(compaction(&cleared), "clear");
    let sessions = json(&stage.proxy, "/longhaul/sessions");
    let sessions = sessions["sessions"].as_array().unwrap();
    let built = sessions
        .iter()
        .find(|session| session["label"] == "Build the scheduler");
    let built = built.unwrap()["id"].as_str().unwrap();
    let guarded = house();
    let pictures = pictures();
    let base = format!("http://{}/longhaul/", stage.proxy.address);
    let signs_in = format!(
        "http://proxy.example:{}/longhaul/",
        guarded.proxy.address.port()
    );
    let told = Sdk::browser().run(
        &[
            ("BASE", &base),
            ("SESSION", built),
            ("REVIEW", &session(&cleared)),
            ("GUARDED", &signs_in),
            ("TOKEN", TOKEN),
            ("SHOTS", &pictures.display().to_string()),
            ("CHROMIUM", &chromium.display().to_string()),
        ],
        &[],
    );
    for line in told {
        println!("{line}");
    }
    println!("pictures of the page: {}", pictures.display());
    // What was asked for on the page is done with the next request.
    let answer = stage.talk("Go on.", 90);
    assert_ne!(compaction(&answer), "none");
}
