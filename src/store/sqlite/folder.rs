//! The data folder and its files: made for this user alone, and a damaged file
//! moved out of the way.
//!
//! The files hold what people say to a model. They are created with tight
//! permissions rather than tightened afterwards; SQLite gives the files it adds
//! (`-wal`, `-shm`) the permissions of the first. A folder that was there before
//! may hold other things for other people, so it keeps its permissions, and
//! whoever runs this is told what they mean. What is created or renamed is
//! made durable by syncing the folder, because a name can be lost in a power
//! cut as well as content can.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::database::{suspicion, with_suffix};
use crate::store::Report;

const STICKY: u32 = 0o1000;
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// The files that SQLite adds to a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Makes the folder for this user alone, or tells who else may enter it.
pub(super) fn prepare(folder: &Path, reports: &mut Vec<Report>) -> io::Result<()> {
    if !folder.is_dir() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        return match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
            _ => Ok(()),
        };
    }
    let mode = fs::metadata(folder)?.permissions().mode() & 0o7777;
    let path = folder.to_owned();
    if mode & STICKY != 0 {
        // A folder that everybody shares by intention, such as /tmp.
        let why = "it is a folder shared by everybody".to_owned();
        reports.push(Report::Loose { path, why });
    } else if mode & OTHERS_WRITE != 0 {
        let why = format!("its mode {mode:o} lets them replace the files in it");
        reports.push(Report::Loose { path, why });
    } else if mode & OTHERS != 0 {
        reports.push(Report::Listed { path, mode });
    }
    Ok(())
}

/// Makes an empty database file, or makes sure that it is this user's alone.
pub(super) fn prepare_file(path: &Path, reports: &mut Vec<Report>) -> io::Result<()> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(file) => {
            // The umask can only take away; the mode must be as asked for.
            file.set_permissions(Permissions::from_mode(0o600))?;
            return path.parent().map_or(Ok(()), sync);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if !path.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let companions = COMPANIONS.iter().map(|suffix| with_suffix(path, suffix));
    for file in companions.chain([path.to_owned()]) {
        if let Ok(found) = fs::metadata(&file) {
            tighten(&file, found.permissions().mode(), reports);
        }
    }
    Ok(())
}

fn tighten(path: &Path, mode: u32, reports: &mut Vec<Report>) {
    if mode & OTHERS == 0 {
        return;
    }
    let path = path.to_owned();
    reports.push(
        match fs::set_permissions(&path, Permissions::from_mode(0o600)) {
            Ok(()) => Report::Tightened {
                path,
                from: mode & 0o7777,
            },
            Err(error) => Report::Loose {
                path,
                why: error.to_string(),
            },
        },
    );
}

/// Renames a damaged database with its companions, so that an empty one can be
/// begun and the damaged one can still be looked into.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let stamp = now.map_or(0, |now| now.as_millis());
    let to = with_suffix(path, &format!(".damaged-{stamp}"));
    // The log first: an empty database must never find an old one's log.
    for suffix in COMPANIONS {
        let companion = with_suffix(path, suffix);
        if companion.exists() {
            fs::rename(&companion, with_suffix(&to, suffix))?;
        }
    }
    fs::rename(path, &to)?;
    forget_suspicion(path);
    path.parent().map_or(Ok(()), sync)?;
    Ok(to)
}

/// The file was looked at whole and is sound.
pub(super) fn forget_suspicion(path: &Path) {
    // Nothing depends on it: a note that stays is only a check too many.
    let _ = fs::remove_file(suspicion(path));
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
