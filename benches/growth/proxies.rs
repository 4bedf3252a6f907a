//! The proxies that are measured. Each is a process of its own that is started for
//! one case, with a folder of its own, and ends with it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::nginx::Nginx;
use crate::process::Processes;
use crate::session::MODEL;

/// How long Longhaul must be quiet to count as idle: it gathers what it writes
/// for up to a twentieth of a second, and is given several times that.
const QUIET: Duration = Duration::from_millis(300);
/// The same where there is so much to write that the store may not take it at once:
/// then Longhaul pauses for a second.
const QUIET_LARGE: Duration = Duration::from_millis(1_300);
/// The same of those that do nothing after an answer.
const QUIET_RELAY: Duration = Duration::from_millis(60);

/// How Longhaul is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Setting {
    /// `policy.mode = "off"`: sessions are recognised and recorded, nothing is
    /// decided.
    Off,
    /// The default settings; no pass is due.
    Default,
    /// The same, with a pass for about one request in twenty.
    Passes,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Default, Self::Passes];

    /// As it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Default => "default",
            Self::Passes => "passes",
        }
    }

    /// Everything that is not a default. The window holds eight megabytes, and
    /// reading from the cache costs so little that no pass pays by itself.
    fn configuration(self) -> String {
        let mode = if self == Self::Off { "off" } else { "on" };
        format!(
            "[policy]\nmode = \"{mode}\"\n[models.\"{MODEL}\"]\nwindow = 10000000\nmin_cacheable = 1024\nprices = {{ input = 5.0, write_5m = 6.25, write_1h = 10.0, read = 0.001, output = 25.0 }}\n"
        )
    }
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// No proxy: what the load and the upstream take themselves.
    Direct,
    /// nginx as a plain reverse proxy.
    Nginx,
    /// The bare relay.
    Relay,
    /// A build of Longhaul.
    Longhaul {
        /// What the build is called.
        build: String,
        /// Where it is.
        path: PathBuf,
        /// How it is set.
        setting: Setting,
    },
}

impl Kind {
    /// As it is called in tables.
    pub fn name(&self) -> String {
        match self {
            Self::Direct => "direct".to_owned(),
            Self::Nginx => "nginx".to_owned(),
            Self::Relay => "relay".to_owned(),
            Self::Longhaul { build, setting, .. } => format!("{build}, {}", setting.name()),
        }
    }

    /// Whether requests ask for passes.
    pub fn asks_for_passes(&self) -> bool {
        matches!(self, Self::Longhaul { setting, .. } if *setting == Setting::Passes)
    }

    fn quiet(&self, is_large: bool) -> Duration {
        match self {
            Self::Longhaul { .. } if is_large => QUIET_LARGE,
            Self::Longhaul { .. } => QUIET,
            _ => QUIET_RELAY,
        }
    }
}

/// A proxy that runs.
pub struct Proxy {
    /// What it is.
    pub kind: Kind,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its processes; none: it has none.
    pub processes: Option<Processes>,
    // Dropped in this order: the process before its folder.
    _child: Option<Killed>,
    _nginx: Option<Nginx>,
    _folder: tempfile::TempDir,
}

impl Proxy {
    /// Starts one; none if it is not installed.
    pub fn start(kind: &Kind, upstream: SocketAddr) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut nginx = None;
        let mut started = None;
        match kind {
            Kind::Direct => {}
            Kind::Nginx => nginx = Some(Nginx::start(folder.path(), upstream)?),
            Kind::Relay => started = Some(start_relay(upstream)),
            Kind::Longhaul { path, setting, .. } => {
                started = Some(start_longhaul(path, *setting, folder.path(), upstream));
            }
        }
        let address = match (&started, &nginx) {
            (Some((_, address)), _) => *address,
            (None, Some(nginx)) => nginx.address,
            (None, None) => upstream,
        };
        let child = started.map(|(child, _)| child);
        let id = child.as_ref().map(|child| child.0.id());
        let id = id.or(nginx.as_ref().map(Nginx::id));
        Some(Self {
            kind: kind.clone(),
            address,
            processes: id.map(Processes::of),
            _child: child,
            _nginx: nginx,
            _folder: folder,
        })
    }

    /// Waits until it has nothing more to do; gives how long that took. `is_large`:
    /// the bodies were.
    pub fn wait_until_idle(&self, is_large: bool) -> Duration {
        let processes = self.processes.as_ref();
        processes.map_or(Duration::ZERO, |processes| {
            processes.wait_until_idle(self.kind.quiet(is_large))
        })
    }
}

/// A process that ends when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_relay(upstream: SocketAddr) -> (Killed, SocketAddr) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--relay-to").arg(upstream.to_string());
    start(&mut command, |line| line.trim().to_owned())
}

fn start_longhaul(
    path: &Path,
    setting: Setting,
    folder: &Path,
    upstream: SocketAddr,
) -> (Killed, SocketAddr) {
    let file = folder.join("longhaul.toml");
    std::fs::write(&file, setting.configuration()).unwrap();
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LONGHAUL_") {
            command.env_remove(name);
        }
    }
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--upstream"])
        .arg(format!("http://{upstream}"))
        .arg("--data-dir")
        .arg(folder.join("data"))
        .arg("--config")
        .arg(&file)
        .stderr(Stdio::null());
    start(&mut command, |line| {
        let rest = line.split("http://").nth(1).unwrap_or_default();
        rest.split(' ').next().unwrap_or_default().to_owned()
    })
}

/// Starts a process that prints where it listens.
fn start(command: &mut Command, address: impl Fn(&str) -> String) -> (Killed, SocketAddr) {
    let mut child = Killed(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let out = child.0.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let address = address(&line).parse().unwrap();
    (child, address)
}
