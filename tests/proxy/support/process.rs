//! The proxy as a process of its own, with its environment, signals and logs.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Who has no rights.
pub const NOBODY: u32 = 65_534;

/// Whether nothing can be forbidden to this process.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// A running proxy; ends when dropped.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
    /// Where its files are, unless the environment says otherwise.
    _folder: tempfile::TempDir,
}

impl Process {
    pub fn start(upstream: &str, variables: &[(&str, &str)]) -> Self {
        Self::with_listener("127.0.0.1:0", upstream, variables)
    }

    pub fn with_listener(listen: &str, upstream: &str, variables: &[(&str, &str)]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        Self::by(command, listen, upstream, variables)
    }

    /// One that is not killed by the signal that tells of a file that may not
    /// grow: to it that is a write that fails, as on a full disk. What it logs goes
    /// to the file that the variable `LOG` names, if there is one.
    pub fn on_a_small_disk(upstream: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_longhaul");
        let log = "${LOG:-/dev/stderr}";
        let script = format!("trap '' XFSZ; exec \"$0\" \"$@\" 2>>\"{log}\"");
        command.args(["-c", &script, program]);
        Self::by(command, "127.0.0.1:0", upstream, variables)
    }

    /// One that has no rights but those that anybody has, where this process has
    /// more.
    pub fn as_nobody(upstream: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Self::by(command, "127.0.0.1:0", upstream, variables)
    }

    /// One with a terminal of its own. A SIGHUP makes the terminal hang up.
    pub fn on_a_terminal(upstream: &str, variables: &[(&str, &str)]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/support/hangup.py");
        let mut command = Command::new("python3");
        command.args([script, env!("CARGO_BIN_EXE_longhaul")]);
        Self::by(command, "127.0.0.1:0", upstream, variables)
    }

    /// One that has no terminal, as a service. It logs into a file.
    pub fn without_a_terminal(upstream: &str, log: &str) -> Self {
        let mut command = Command::new("sh");
        let script = "exec setsid \"$0\" \"$@\" 2>\"$LOG\"";
        command.args(["-c", script, env!("CARGO_BIN_EXE_longhaul")]);
        Self::by(command, "127.0.0.1:0", upstream, &[("LOG", log)])
    }

    fn by(mut command: Command, listen: &str, upstream: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = command
            .args(["--listen", listen, "--upstream", upstream])
            .env("LONGHAUL_DATA_DIR", folder.path())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.strip_prefix("longhaul listening on ").unwrap();
        let (_scheme, address) = address.split_once("://").unwrap();
        let (address, shown) = address.trim_end().split_once(" -> ").unwrap();
        assert_eq!(shown, upstream);
        Self {
            address: address.parse().unwrap(),
            child,
            _folder: folder,
        }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(mut self) -> (Option<i32>, String) {
        let mut logs = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut logs).unwrap();
        (self.child.wait().unwrap().code(), logs)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
