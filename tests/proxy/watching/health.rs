//! The binary asks itself whether it is well, as a container's health check does.

use std::process::Command;

use crate::support::{Process, Tap, plain, text};

fn health(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let asked = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .arg("health")
        .args(arguments)
        .env_remove("LONGHAUL_LISTEN")
        .envs(variables.iter().copied())
        // Nobody is asked by way of somebody else.
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .output()
        .unwrap();
    (
        asked.status.code(),
        text(&[asked.stdout, asked.stderr].concat()),
    )
}

#[test]
fn a_proxy_that_runs_is_well_and_one_that_is_gone_is_not() {
    let tap = Tap::start(|_| plain(b"{}"));
    let process = Process::start(&tap.url(), &[]);
    let url = format!("http://{}", process.address);
    let (code, said) = health(&["--url", &url], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ready"), "{said}");
    let (code, said) = health(&["--url", &format!("{url}/healthz")], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("alive"), "{said}");
    // Without an address it looks where the configuration says.
    let listen = format!("0.0.0.0:{}", process.address.port());
    let (code, said) = health(&[], &[("LONGHAUL_LISTEN", &listen)]);
    assert_eq!(code, Some(0), "{said}");
    assert!(tap.saw_nothing());
    process.signal("-TERM");
    process.wait();
    let (code, said) = health(&["--url", &url], &[]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn wrong_usage_is_told_apart_from_ill_health() {
    let (code, said) = health(&[], &[("LONGHAUL_LISTEN", "nowhere")]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("LONGHAUL_LISTEN"), "{said}");
}
