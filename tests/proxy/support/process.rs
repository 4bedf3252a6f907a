//! The proxy as a process of its own, with its environment, signals and logs.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

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
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_longhaul"))
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
