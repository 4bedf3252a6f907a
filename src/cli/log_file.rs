//! A log that must not appear on a terminal that belongs to somebody else.
//!
//! The file is made with the first line, so that where nothing is said nothing
//! is left behind; it is the user's alone, and begun anew when it has become
//! large. Several processes may write to it, a line at a time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// From this size on the file is put aside, in place of the one put aside before.
const LARGE: u64 = 1 << 20;

/// A log file.
pub struct LogFile {
    path: PathBuf,
    opened: OnceLock<io::Result<File>>,
    lines: AtomicU64,
}

impl LogFile {
    /// A log that would stand there.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            opened: OnceLock::new(),
            lines: AtomicU64::new(0),
        }
    }

    /// What a person should know of it, if it has been written to.
    pub fn told(&self) -> Option<String> {
        let lines = match self.lines.load(Ordering::Relaxed) {
            0 => return None,
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        };
        let path = self.path.display();
        Some(match self.opened.get() {
            Some(Err(error)) => format!("{lines} could not be logged to {path}: {error}"),
            _ => format!("{lines} were logged to {path}").replace("1 line were", "1 line was"),
        })
    }
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut file) = self.opened.get_or_init(|| open(&self.path)).as_ref() {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    if std::fs::metadata(path).is_ok_and(|found| found.len() > LARGE) {
        // Another process may just have done so.
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_is_made_with_its_first_line_and_begun_anew_when_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/run.log");
        let log = LogFile::new(path.clone());
        assert_eq!(log.told(), None);
        assert!(!path.exists());
        (&log).write_all(b"one\n").unwrap();
        let told = log.told().unwrap();
        assert!(told.starts_with("1 line was logged to "), "{told}");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, vec![b'.'; 2 << 20]).unwrap();
        let next = LogFile::new(path.clone());
        (&next).write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two\n");
        assert!(path.with_extension("log.1").exists());
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nobody_and_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = LogFile::new(file.path().join("run.log"));
        (&log).write_all(b"one\n").unwrap();
        (&log).write_all(b"two\n").unwrap();
        let told = log.told().unwrap();
        assert!(
            told.starts_with("2 lines could not be logged to "),
            "{told}"
        );
    }
}
