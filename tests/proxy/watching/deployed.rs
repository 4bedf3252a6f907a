//! The settings that the files for containers give are settings that there are.

use std::process::Command;

use crate::support::text;

const DOCKERFILE: &str = include_str!("../../../Dockerfile");
const COMPOSE: &str = include_str!("../../../docker/compose.yaml");
const SIDECAR: &str = include_str!("../../../docker/kubernetes/sidecar.yaml");

/// The name of a variable of ours at the beginning of a text, and what follows.
fn variable(text: &str) -> Option<(&str, &str)> {
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.starts_with("LONGHAUL_").then_some((name, rest))
}

/// `${NAME:-default}` is its default.
fn filled(value: &str) -> String {
    let Some((before, rest)) = value.split_once("${") else {
        return value.to_owned();
    };
    let (inside, after) = rest.split_once('}').unwrap();
    let (_, default) = inside.split_once(":-").unwrap();
    format!("{before}{default}{}", filled(after))
}

fn of_dockerfile() -> Vec<(String, String)> {
    let words = DOCKERFILE.split_whitespace().filter_map(variable);
    words
        .filter_map(|(name, rest)| Some((name.to_owned(), rest.strip_prefix('=')?.to_owned())))
        .collect()
}

fn of_compose() -> Vec<(String, String)> {
    let lines = COMPOSE.lines().filter_map(|line| variable(line.trim()));
    lines
        .filter_map(|(name, rest)| Some((name.to_owned(), filled(rest.strip_prefix(": ")?))))
        .collect()
}

fn of_sidecar() -> Vec<(String, String)> {
    let entries = SIDECAR.split("- name: ").filter_map(variable);
    let value = |rest: &str| {
        Some(
            rest.trim()
                .strip_prefix("value: ")?
                .lines()
                .next()?
                .to_owned(),
        )
    };
    entries
        .filter_map(|(name, rest)| Some((name.to_owned(), value(rest)?)))
        .collect()
}

#[test]
fn every_setting_of_the_files_for_containers_is_valid() {
    let inside = of_dockerfile();
    for (file, own, count) in [
        ("Dockerfile", Vec::new(), 2),
        ("compose.yaml", of_compose(), 5),
        ("sidecar.yaml", of_sidecar(), 4),
    ] {
        let all: Vec<_> = inside.iter().cloned().chain(own).collect();
        assert_eq!(all.len(), count, "{file}: {all:?}");
        let mut check = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        // Variables that are set for the tests are no settings of a container.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LONGHAUL_") {
                check.env_remove(name);
            }
        }
        let checked = check.arg("check").envs(all).output().unwrap();
        assert!(
            checked.status.success() && checked.stderr.is_empty(),
            "{file}: {}",
            text(&checked.stderr)
        );
    }
}

/// It may hold letters that end it there.
#[test]
fn no_password_is_put_into_a_url_as_it_is() {
    let urls = COMPOSE.lines().filter(|line| line.contains("postgres://"));
    let urls: Vec<_> = urls.collect();
    assert!(!urls.is_empty() && urls.iter().all(|url| !url.contains('$')));
    assert!(COMPOSE.contains("PGPASSWORD: ${POSTGRES_PASSWORD:-longhaul}\n"));
}
