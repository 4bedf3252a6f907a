//! `longhaul demo`: the same story each time, drawn or told.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::world::{LONGHAUL, World, errors, out};

const SMALL: [&str; 5] = ["demo", "--turns", "14", "--window", "32000"];

#[test]
fn it_tells_the_same_each_time_reaches_nobody_and_leaves_only_its_picture() {
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", trap.local_addr().unwrap());
    let told: Vec<String> = (0..2)
        .map(|_| {
            let world = World::new();
            let mut command = world.longhaul(&SMALL);
            for name in [
                "LONGHAUL_UPSTREAM",
                "ANTHROPIC_BASE_URL",
                "HTTP_PROXY",
                "ALL_PROXY",
            ] {
                command.env(name, &url);
            }
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
            assert_eq!(errors(&output), "");
            assert_eq!(world.files(), ["longhaul-demo.svg"]);
            let picture = std::fs::read_to_string(world.path().join("longhaul-demo.svg")).unwrap();
            assert!(picture.starts_with("<svg") && picture.contains("<polyline"));
            out(&output)
        })
        .collect();
    assert_eq!(told[0], told[1]);
    trap.set_nonblocking(true).unwrap();
    assert!(trap.accept().is_err(), "somebody was called");
    let told = &told[0];
    for part in [
        "14 turns of a coding agent",
        "No key, no network.",
        "without Longhaul the window ends it here",
        ": from ",
        "largest prompt, tokens",
        "dollars",
        "Drawn in longhaul-demo.svg.",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains('\x1b'), "no terminal, no colours");
}

/// Runs it on a terminal of that size, and types something once it is being drawn.
fn on_a_terminal(size: &str, keys: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let world = World::new();
    let terminal = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/first_use/terminal.py");
    let mut command = Command::new("python3");
    // The terminal gets its size when it is there already.
    command.args([terminal, "passes: ", keys, "sh", "-c"]);
    command.arg(format!(
        "while [ \"$(stty size)\" != '{size}' ]; do :; done; exec \"$0\" \"$@\""
    ));
    command.arg(LONGHAUL).args(SMALL);
    world.settle(&mut command);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
    command.env("TERMINAL_SIZE", size);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    (output.status.code(), out(&output))
}

#[test]
fn it_is_drawn_on_a_terminal_without_switching_anything_over() {
    let (code, drawn) = on_a_terminal("24 80", "", &[]);
    assert_eq!(code, Some(0), "{drawn}");
    assert!(drawn.contains('█') && drawn.contains("\x1b[34m"), "{drawn}");
    assert!(drawn.contains("largest prompt, tokens"), "{drawn}");
    assert!(
        !drawn.contains("\x1b[?"),
        "a mode would outlive an interrupt"
    );
    let (code, cut) = on_a_terminal("40 100", "\\x03", &[]);
    assert_ne!(code, Some(0));
    assert!(!cut.contains("\x1b[?"), "{cut}");
    assert!(!cut.contains("largest prompt, tokens"), "{cut}");
}

#[test]
fn it_is_drawn_without_colours_where_somebody_wishes_so() {
    let (code, drawn) = on_a_terminal("40 100", "", &[("NO_COLOR", "1")]);
    assert_eq!(code, Some(0), "{drawn}");
    assert!(drawn.contains('█') && drawn.contains("\x1b[2K"), "{drawn}");
    let colours = ["\x1b[0m", "\x1b[3", "\x1b[9"];
    assert!(!colours.iter().any(|code| drawn.contains(code)), "{drawn}");
}

#[test]
fn it_is_told_in_lines_where_it_cannot_be_drawn() {
    for (size, variables) in [("40 100", &[("TERM", "dumb")][..]), ("23 80", &[])] {
        let (code, told) = on_a_terminal(size, "", variables);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains(": from ") && !told.contains('\x1b'), "{told}");
    }
}

/// With `LONGHAUL_DEMO=all` the whole day is played, and what the README shows of
/// it is what it tells.
#[test]
fn the_readme_shows_what_the_whole_day_tells() {
    if std::env::var("LONGHAUL_DEMO").is_ok_and(|which| which == "all") {
        let (world, begun) = (World::new(), Instant::now());
        let output = world.longhaul(&["demo"]).output().unwrap();
        let seconds = begun.elapsed().as_secs_f64();
        println!("demo: 300 turns with and without in {seconds:.1} s");
        let told = out(&output);
        assert!(is_excerpt(&shown(), &told), "{told}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/demo.svg");
        let drawn = std::fs::read_to_string(world.path().join("longhaul-demo.svg")).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), drawn);
    } else {
        println!("the whole demo is played with LONGHAUL_DEMO=all");
        assert!(shown().contains("largest prompt, tokens"));
    }
}

/// Whether one text is the other with stretches left out, a line `...` for each.
fn is_excerpt(shown: &str, told: &str) -> bool {
    let mut rest: Vec<&str> = told.lines().collect();
    let shown: Vec<&str> = shown.lines().collect();
    for (number, stretch) in shown.split(|line| *line == "...").enumerate() {
        let at = rest.windows(stretch.len()).position(|it| it == stretch);
        match at {
            Some(0) if number == 0 => {}
            Some(left_out) if number > 0 && left_out > 0 => {}
            _ => return false,
        }
        rest.drain(..at.unwrap_or(0) + stretch.len());
    }
    rest.is_empty()
}

/// A line that is left out without a word would make a story that never was.
#[test]
fn an_excerpt_says_where_something_is_left_out() {
    for (shown, expected) in [
        ("a\nb\nc\nd", true),
        ("a\n...\nd", true),
        ("a\n...\nc\nd", true),
        ("a\nb\nd", false),
        ("b\n...\nd", false),
        ("a\nb", false),
        ("a\n...\nb\nc\nd", false),
        ("a\nx\n...\nd", false),
    ] {
        assert_eq!(is_excerpt(shown, "a\nb\nc\nd"), expected, "{shown}");
    }
}

/// What the README shows of it.
fn shown() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = text
        .split("```text\n")
        .map(|block| block.split("```").next().unwrap());
    let found = blocks.find(|block| block.starts_with("300 turns of a coding agent"));
    found.expect("the README shows the demo").to_owned()
}

#[test]
fn a_picture_that_cannot_be_written_is_told() {
    let world = World::new();
    let output = world
        .longhaul(&["demo", "--turns", "1", "--svg", "no/such/folder.svg"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).starts_with("1 turn of a coding agent on "));
    assert!(
        errors(&output).contains("cannot write no/such/folder.svg"),
        "{}",
        errors(&output)
    );
}
