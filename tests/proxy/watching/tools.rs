//! Prometheus and its tool, as Debian packs them.
//!
//! Where they are not installed they are taken from their package and kept in
//! the target folder: nothing is installed and no service is started. Where that
//! cannot be done, what needs them is left out and says so, except in CI.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A program, or none and a line that says so.
pub fn tool(name: &str) -> Option<PathBuf> {
    static UNPACKED: OnceLock<PathBuf> = OnceLock::new();
    if runs(Path::new(name)) {
        return Some(name.into());
    }
    let own = UNPACKED.get_or_init(unpacked).join(name);
    if runs(&own) {
        return Some(own);
    }
    assert!(
        std::env::var_os("CI").is_none_or(|value| value != "true"),
        "{name} is needed here and cannot be had: install Debian's package prometheus"
    );
    println!("skipped: {name} is missing (Debian's package prometheus has it)");
    None
}

fn runs(program: &Path) -> bool {
    let mut command = Command::new(program);
    succeeds(command.arg("--version"))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The folder of the programs, after an attempt to have them there.
fn unpacked() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("prometheus");
    std::fs::create_dir_all(&folder).unwrap();
    // Another run of the tests may be at it.
    let lock = std::fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let programs = folder.join("usr/bin");
    let download = || {
        succeeds(
            Command::new("apt-get")
                .args(["download", "-q", "prometheus"])
                .current_dir(&folder),
        )
    };
    if !programs.join("promtool").exists()
        && (download() || (succeeds(Command::new("apt-get").args(["update", "-q"])) && download()))
    {
        let packages = std::fs::read_dir(&folder).unwrap();
        for package in packages.map(|entry| entry.unwrap().path()) {
            if package.extension().is_some_and(|kind| kind == "deb") {
                succeeds(Command::new("dpkg").arg("-x").arg(&package).arg(&folder));
            }
        }
    }
    programs
}

/// Runs a command to its end, with this on its standard input.
pub fn run(command: &mut Command, input: &str) -> Output {
    use std::io::Write;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}
