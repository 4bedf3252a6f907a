//! The files are for their user alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use longhaul::store::{Committed, Report};

use crate::support::{commit, files, in_files, marks, open, sound};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn new_files_are_for_their_user_alone() {
    let parent = crate::support::folder();
    let folder = parent.path().join("a/b");
    let store = sound(&folder).await;
    store.commit(&commit(1, 1)).await.unwrap();
    assert_eq!(mode(&folder), 0o700);
    let made = files(&folder, "");
    assert!(made.len() > 3, "{made:?}");
    for file in made {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn looser_permissions_of_files_are_tightened_and_reported() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    home.store.commit(&commit(1, 1)).await.unwrap();
    let loose = files(folder, "");
    for file in &loose {
        fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
    }
    let opened = open(folder).await;
    assert_eq!(opened.reports.len(), loose.len(), "{:?}", opened.reports);
    for path in loose {
        assert_eq!(mode(&path), 0o600);
        let from = 0o644;
        assert!(opened.reports.contains(&Report::Tightened { path, from }));
    }
    assert_eq!(marks(&*opened.store, &[1]).await.len(), 1);
}

/// It may be a project's, with other things in it for other people.
#[tokio::test]
async fn a_folder_that_was_there_keeps_its_permissions_and_is_reported() {
    for (permissions, expected) in [
        (0o700, ""),
        (0o2750, "(mode 2750): they may see the names"),
        (0o755, "(mode 755): they may see the names"),
        (0o2775, "its mode 2775 lets them replace the files"),
        (0o777, "its mode 777 lets them replace the files"),
    ] {
        let parent = crate::support::folder();
        let folder = parent.path().join("project");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(permissions)).unwrap();
        let opened = open(&folder).await;
        opened.store.commit(&commit(1, 1)).await.unwrap();
        assert_eq!(mode(&folder), permissions);
        for file in files(&folder, "") {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        let told: Vec<String> = opened.reports.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), usize::from(!expected.is_empty()), "{told:?}");
        assert!(told.concat().contains(expected), "{told:?}");
    }
}

#[tokio::test]
async fn a_folder_that_everybody_shares_is_not_taken_over() {
    let home = in_files().await;
    let folder = home.folder.as_ref().unwrap().path();
    fs::set_permissions(folder, Permissions::from_mode(0o1777)).unwrap();
    let opened = open(folder).await;
    assert!(matches!(opened.reports[..], [Report::Loose { .. }]));
    assert_eq!(mode(folder), 0o1777);
}

const FOLDER: &str = "LONGHAUL_TEST_READ_ONLY_FOLDER";

/// Nothing can be forbidden to root, so the test may have to run as another.
#[test]
fn in_a_read_only_folder_memory_serves() {
    let folder = crate::support::folder();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([
        "permissions::helper_in_a_read_only_folder",
        "--exact",
        "--ignored",
    ]);
    child.env(FOLDER, folder.path());
    if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        let nobody = 65_534;
        std::os::unix::fs::chown(folder.path(), Some(nobody), None).unwrap();
        std::os::unix::process::CommandExt::uid(&mut child, nobody);
        child.current_dir("/");
    }
    match child.output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => println!("not tested: the test cannot be run as another user: {error}"),
    }
}

#[tokio::test]
#[ignore = "run by in_a_read_only_folder_memory_serves"]
async fn helper_in_a_read_only_folder() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let opened = open(Path::new(&folder)).await;
    let in_memory = |report: &Report| matches!(report, Report::InMemory { .. });
    assert!(opened.reports.iter().all(in_memory), "{:?}", opened.reports);
    assert_eq!(opened.reports.len(), 2);
    assert_eq!(
        opened.store.commit(&commit(1, 1)).await.unwrap(),
        Committed::Done
    );
    assert_eq!(marks(&*opened.store, &[1]).await.len(), 1);
}
