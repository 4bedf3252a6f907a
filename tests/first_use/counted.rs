//! `tests/count` adds up what all test binaries tell, and fails when any did.

use std::path::Path;
use std::process::Command;

/// Runs a shell script under `tests/count`: what it printed, and the exit code.
fn count(script: &str) -> (Vec<String>, i32) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/count");
    let output = Command::new(path).args(["sh", "-c", script]).output();
    let output = output.expect("bash is needed to count tests");
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines = printed.lines().map(str::to_owned).collect();
    (lines, output.status.code().unwrap())
}

fn result(word: &str, passed: usize, failed: usize) -> String {
    format!("echo 'test result: {word}. {passed} passed; {failed} failed; 1 ignored; 0 measured';")
}

#[test]
fn the_last_line_counts_the_tests_of_all_binaries() {
    let (ok, bad) = (result("ok", 40, 0), result("FAILED", 2, 3));
    let table = [
        (format!("{ok} {ok}"), "80 passed, 0 failed", 0),
        (
            format!("{ok} {bad} {ok} exit 101"),
            "82 passed, 3 failed",
            101,
        ),
        // The command hides a failure.
        (format!("{bad} true"), "2 passed, 3 failed", 1),
        // A binary crashed, so it told no result.
        (format!("{ok} exit 101"), "40 passed, 0 failed", 101),
        // What a test prints is not a result.
        (
            format!("{ok} echo 'said: test result: ok. 9 passed;'"),
            "40 passed, 0 failed",
            0,
        ),
        ("true".to_owned(), "0 passed, 0 failed", 1),
    ];
    for (script, closing, code) in table {
        let (lines, ended) = count(&script);
        assert_eq!(lines.last().unwrap(), closing, "{script}: {lines:#?}");
        assert_eq!(ended, code, "{script}: {lines:#?}");
        let time = &lines[lines.len() - 2];
        assert!(time.contains("took 0 min "), "{time}");
    }
    let (lines, _) = count(&format!("{ok} exit 101"));
    let why = lines
        .iter()
        .any(|line| line.contains("did a test binary crash?"));
    assert!(why, "{lines:#?}");
}
