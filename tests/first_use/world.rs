//! A folder of somebody who has nothing but Longhaul, and its commands run there.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The program.
pub const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");

/// A home, with nothing of whoever runs the tests in it.
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The files in it, with those in folders, by name.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders: Vec<PathBuf> = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.path()).unwrap();
                    found.push(name.display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    /// Settles a command in it.
    pub fn settle(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            let upper = name.to_string_lossy().to_uppercase();
            let theirs = ["ANTHROPIC_", "LONGHAUL_", "XDG_"];
            if theirs.iter().any(|start| upper.starts_with(start)) || upper.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.path()).current_dir(self.path());
    }

    /// A command of Longhaul's.
    pub fn longhaul(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LONGHAUL);
        command.args(arguments);
        self.settle(&mut command);
        command
    }

    /// A shell that finds Longhaul, and before everything else what is in `bin`.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.settle(&mut command);
        let own = Path::new(LONGHAUL).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let bin = self.path().join("bin");
        command.env(
            "PATH",
            format!("{}:{}:{path}", bin.display(), own.display()),
        );
        command
    }

    /// A program that writes down how it was called, in the place of a real one.
    pub fn stand_in(&self, name: &str) {
        use std::os::unix::fs::PermissionsExt;
        let bin = self.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let script =
            "#!/bin/sh\necho \"$(basename \"$0\") $*\"\necho \"base $ANTHROPIC_BASE_URL\"\n";
        let file = bin.join(name);
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// What a command wrote to standard output.
pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What it wrote to standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A process that is told to stop when it is dropped.
pub struct Running {
    pub child: Child,
    /// Its first line.
    pub said: String,
}

impl Running {
    /// Starts it and waits for its first line.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut said).unwrap();
        Self { child, said }
    }

    /// The first address that it named.
    pub fn url(&self) -> String {
        let words = self.said.split_whitespace();
        let mut urls = words.filter(|word| word.starts_with("http://"));
        urls.next()
            .expect("an address in the first line")
            .to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
