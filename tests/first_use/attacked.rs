//! Attacks that once worked, each a script in `tests/attacks`.

use std::path::Path;
use std::process::Command;

use super::world::LONGHAUL;

#[test]
fn no_attack_that_once_worked_works_again() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/run.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(LONGHAUL)
        .output()
        .expect("python3 is needed for the attack scripts");
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}");
    assert!(output.status.success(), "{printed}");
}
