//! The command: started, told of signals, waited for.
//!
//! What a terminal sends, it sends to every process in its foreground, so an
//! interrupt from the keyboard has reached the command already and is only
//! survived here. What is sent to this process alone is handed on. A signal that
//! was ignored from the start, as `nohup` does, stays ignored for the command too:
//! to listen for it would undo that.
//!
//! A command may also stop itself, as editors and pagers do to give the terminal
//! back for a while. Whoever waits for this process knows nothing of the command,
//! so this process stops too, and goes on with it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, waitid};
use rustix::termios::tcgetpgrp;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use crate::cli::signals::is_ignored;

/// What shells answer with where there is no such command, and where it is none.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// What they add to the number of the signal that ended a command.
const KILLED: i32 = 128;

/// Signals that are listened for; of those from the keyboard it must be told
/// who sent them.
const LISTENED: [(Signal, bool); 8] = [
    (Signal::INT, true),
    (Signal::QUIT, true),
    (Signal::TERM, false),
    (Signal::HUP, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
    (Signal::CHILD, false),
    (Signal::CONT, false),
];

/// How long a command must have stood still before this process does so too:
/// what the keyboard stops, it stops and continues with everybody else.
const STILL: Duration = Duration::from_millis(50);

/// A command that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// There is none of that name.
    #[error("cannot run {0}: there is no such command")]
    Missing(String),
    /// It is there and cannot be started.
    #[error("cannot run {0}: {1}")]
    Refused(String, #[source] io::Error),
}

impl NotRun {
    fn new(program: &OsStr, why: io::Error) -> Self {
        let name = program.to_string_lossy().into_owned();
        match why.kind() {
            io::ErrorKind::NotFound => Self::Missing(name),
            _ => Self::Refused(name, why),
        }
    }

    /// The exit code that says so.
    pub fn code(&self) -> u8 {
        match self {
            Self::Missing(_) => NOT_FOUND,
            Self::Refused(..) => NOT_EXECUTABLE,
        }
    }
}

/// Signals that have come.
pub struct Signals(UnboundedReceiver<(Signal, bool)>);

impl Signals {
    /// Listens from now on; none of them ends this process any more.
    pub fn listen() -> io::Result<Self> {
        let (tell, come) = unbounded_channel();
        for (which, keyboard) in LISTENED {
            let number = which.as_raw();
            if is_ignored(number) {
                continue;
            }
            let mut stream = signal(SignalKind::from_raw(number))?;
            let tell = tell.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    if tell.send((which, keyboard)).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self(come))
    }
}

/// Runs a command to its end and tells its exit code.
pub async fn run(
    command: &[OsString],
    variables: &[(String, String)],
    signals: &mut Signals,
) -> Result<u8, NotRun> {
    let (program, arguments) = command.split_first().unwrap_or((&EMPTY, &[]));
    let failed = |why| NotRun::new(program, why);
    let child = Command::new(program)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .spawn();
    let mut child = child.map_err(failed)?;
    let mut look_at: Option<Instant> = None;
    loop {
        let look = async {
            match look_at {
                Some(moment) => sleep_until(moment).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = child.wait() => return ended.map(code).map_err(failed),
            Some((which, keyboard)) = signals.0.recv() => match which {
                Signal::CHILD => look_at = Some(Instant::now() + STILL),
                Signal::CONT => {
                    look_at = None;
                    if stands_still(&child) {
                        hand_on(&child, which);
                    }
                }
                _ if keyboard && in_foreground() => {}
                _ => hand_on(&child, which),
            },
            () = look => {
                look_at = None;
                if stands_still(&child) {
                    // The system leaves out those whom nobody could continue.
                    let _ = kill_process(getpid(), Signal::TSTP);
                }
            }
        }
    }
}

/// No program; the command line does not allow it.
static EMPTY: OsString = OsString::new();

fn hand_on(child: &Child, which: Signal) {
    if let Some(pid) = pid(child) {
        // It may have ended just now.
        let _ = kill_process(pid, which);
    }
}

/// Whether the command has been stopped and not continued. Its end is left to
/// whoever waits for it.
fn stands_still(child: &Child) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid(child)
        .and_then(|pid| waitid(WaitId::Pid(pid), options).ok()?)
        .is_some_and(|found| found.stopped())
}

fn pid(child: &Child) -> Option<Pid> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    id.and_then(Pid::from_raw)
}

/// Whether this process is in the foreground of a terminal.
fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

fn code(status: ExitStatus) -> u8 {
    let killed = status.signal().map(|number| KILLED + number);
    let code = status.code().or(killed);
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (9, 137), (15, 143)] {
            assert_eq!(code(ExitStatus::from_raw(raw)), expected);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_run_is_named_with_the_usual_code() {
        let mut signals = Signals::listen().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "no program").unwrap();
        for (command, expected) in [
            (OsString::from("no-such-command-anywhere"), NOT_FOUND),
            (file.into_os_string(), NOT_EXECUTABLE),
        ] {
            let told = run(std::slice::from_ref(&command), &[], &mut signals)
                .await
                .unwrap_err();
            assert_eq!(told.code(), expected);
            let name = command.to_string_lossy().into_owned();
            assert!(told.to_string().contains(&name), "{told}");
        }
    }
}
