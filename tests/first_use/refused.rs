//! What cannot work is refused at the start, by every command alike, in one
//! line that says what to do.

use std::net::TcpListener;

use crate::world::{World, errors, out};

#[test]
fn every_command_refuses_a_store_that_no_proxy_could_use() {
    let world = World::new();
    for (url, expected) in [
        ("postgres://u:s3cret@h/d?sslmode=zzz", "sslmode must be one"),
        ("postgres://u:s3/cret@h/d", "the user or the password holds"),
    ] {
        for command in [
            &["check", "--store", url][..],
            &["serve", "--store", url],
            &["run", "--store", url, "--", "true"],
            &["sessions", "--store", url],
            &["journal", "--store", url, "search", "3f2a", "words"],
            &["store", "copy", "sqlite", url],
        ] {
            let output = world.longhaul(command).output().unwrap();
            let told = errors(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?}: {told}");
            assert!(told.contains(expected), "{command:?}: {told}");
            assert!(!told.contains("cret"), "{command:?}: {told}");
            assert_eq!(told.lines().count(), 1, "{command:?}: {told}");
        }
    }
}

#[test]
fn a_summarizer_without_its_key_is_refused_by_whoever_would_ask_it() {
    let world = World::new();
    let config = "[summarizer]\nupstream = 'https://host'\napi_key_env = 'THE_KEY'\n";
    std::fs::write(world.path().join("longhaul.toml"), config).unwrap();
    for command in [
        &["check", "--config", "longhaul.toml"][..],
        &["serve", "--config", "longhaul.toml"],
        &["run", "--config", "longhaul.toml", "--", "true"],
    ] {
        let output = world.longhaul(command).output().unwrap();
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {told}");
        assert!(told.contains("longhaul.toml:3: "), "{told}");
        assert!(told.contains("THE_KEY, which is not set"), "{told}");
    }
    let mut command = world.longhaul(&["check", "--config", "longhaul.toml"]);
    let output = command.env("THE_KEY", "key").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert!(out(&output).contains("THE_KEY"));
}

#[test]
fn an_address_in_use_is_told_once() {
    let (world, taken) = (World::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let output = world
        .longhaul(&["serve", "--store", "memory", "--listen", &address])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = errors(&output);
    let expected = format!("cannot listen on {address}: is another process using it?: Address");
    assert!(told.contains(&expected), "{told}");
    assert_eq!(told.matches("in use").count(), 1, "{told}");
}
