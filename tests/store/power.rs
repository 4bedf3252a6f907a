//! Power cuts: what was not synced may be gone, and what was promised must be
//! there all the same.
//!
//! The helper runs with a library (`power.c`) that keeps what is synced apart.
//! When it is killed, the folder is put together again as a power cut could
//! have left it: either exactly what was synced, the worst case, or that and a
//! random part, sector by sector, of what was written since. That the test can
//! fail is a test too: a disk that lies about syncing the log loses promises.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::killed::{examine, kill_after, start};

const SECTOR: usize = 512;

/// The library, unless it cannot be built here.
fn library(folder: &Path) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/store/power.c");
    let library = folder.join("power.so");
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-pthread"])
        .args(["-o".as_ref(), library.as_os_str(), source.as_ref()])
        .output();
    match built {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{told}");
            Some(library)
        }
        Err(error) => {
            println!("not tested: gcc cannot be run: {error}");
            None
        }
    }
}

/// What is left after a power cut.
struct Cut {
    folder: TempDir,
    promised: Vec<u64>,
}

/// Lets the helper write for a while and cuts the power.
fn cut(library: &Path, count: usize, some_survives: bool, lies: Option<&str>) -> Cut {
    let place = crate::support::folder();
    // The library compares names as the system has them.
    let root = place.path().canonicalize().unwrap();
    let [live, data, names] = ["live", "data", "names"].map(|name| root.join(name));
    for folder in [&live, &data, &names] {
        fs::create_dir(folder).unwrap();
    }
    fs::set_permissions(&live, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let lies = lies.unwrap_or_default();
    let environment = [
        ("LD_PRELOAD", library),
        ("POWER_FOLDER", &live),
        ("POWER_DATA", &data),
        ("POWER_NAMES", &names),
        ("POWER_LIES", Path::new(lies)),
    ];
    let child = start(&live, 0, &environment);
    let moment = Duration::from_micros(fastrand::u64(0..3_000));
    let promised = kill_after(child, count, moment);
    let folder = crate::support::folder();
    let noted = fs::read_dir(&names).unwrap();
    let entries = fs::read_dir(&live).unwrap().chain(noted);
    let all: BTreeSet<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    for name in all {
        // The index of the log is rebuilt by whoever comes first.
        let lasts = names.join(&name).exists() || (some_survives && fastrand::bool());
        if !lasts || name.to_string_lossy().ends_with("-shm") {
            continue;
        }
        let synced = fs::read(data.join(&name)).unwrap_or_default();
        let content = if some_survives {
            mixed(&synced, &fs::read(live.join(&name)).unwrap_or_default())
        } else {
            synced
        };
        let file = folder.path().join(&name);
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    Cut { folder, promised }
}

/// Some of the sectors that were written since the last sync, and not others.
fn mixed(synced: &[u8], written: &[u8]) -> Vec<u8> {
    let longer = if fastrand::bool() {
        written.len()
    } else {
        synced.len()
    };
    let share = fastrand::u32(0..=4);
    let mut content = vec![0; longer];
    for (at, sector) in content.chunks_mut(SECTOR).enumerate() {
        let from = if fastrand::u32(0..4) < share {
            written
        } else {
            synced
        };
        let from = from.get(at * SECTOR..).unwrap_or_default();
        sector
            .iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = *from);
    }
    content
}

#[tokio::test]
async fn a_power_cut_breaks_no_promise() {
    let place = crate::support::folder();
    let Some(library) = library(place.path()) else {
        return;
    };
    for round in 0..40 {
        // Now and then long enough for the log to be written back.
        let count = if round % 8 == 7 {
            150
        } else {
            fastrand::usize(0..25)
        };
        let cut = cut(&library, count, round % 2 == 1, None);
        let found = examine(cut.folder.path(), &cut.promised).await;
        assert_eq!(
            found,
            Ok(()),
            "round {round}, {} promises",
            cut.promised.len()
        );
    }
}

#[tokio::test]
async fn a_log_that_is_not_synced_is_noticed() {
    let place = crate::support::folder();
    let Some(library) = library(place.path()) else {
        return;
    };
    for _ in 0..3 {
        let cut = cut(&library, 20, false, Some("-wal"));
        examine(cut.folder.path(), &cut.promised).await.unwrap_err();
    }
}
