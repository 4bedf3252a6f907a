//! Replicas as processes, at places where clients find them.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::told::Told;
use crate::support::{Client, text};

/// The usable window in tokens: small, so that sessions are compacted often.
pub const BUDGET: u64 = 3_000;

/// How long replicas may take to find their database again, and to do there what
/// was done without it: the machine may be busy.
const FOUND: Duration = Duration::from_mins(1);

/// The replicas.
pub struct Fleet {
    places: Vec<Mutex<Replica>>,
    upstream: String,
    store: String,
    folder: tempfile::TempDir,
}

/// A replica, the how manieth at its place, and whether it serves.
struct Replica {
    child: Child,
    address: SocketAddr,
    number: usize,
    serves: bool,
}

/// A replica as a client knows it.
#[derive(Clone, Copy)]
pub struct Known {
    pub address: SocketAddr,
    place: usize,
    number: usize,
}

impl Known {
    /// Its place, and the how manieth it is there.
    pub fn name(self) -> (usize, usize) {
        (self.place, self.number)
    }
}

impl Fleet {
    pub fn start(count: usize, upstream: &str, store: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let begin = |place| Mutex::new(Replica::start(upstream, store, folder.path(), place, 0));
        Self {
            places: (0..count).map(begin).collect(),
            upstream: upstream.to_owned(),
            store: store.to_owned(),
            folder,
        }
    }

    /// What each of them told, those that were killed too.
    pub fn told(&self) -> Vec<Told> {
        let told = self.each_log().map(|(path, said)| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let (place, number) = name.split_once('-').unwrap();
            let alive = self.at(place.parse().unwrap()).number;
            Told {
                killed: number.parse::<usize>().unwrap() < alive,
                ..Told::read(&said)
            }
        });
        told.collect()
    }

    /// What all of them logged.
    pub fn logs(&self) -> String {
        let logs = self.each_log();
        let logs = logs.map(|(path, said)| format!("{}\n{said}", path.display()));
        logs.collect::<Vec<String>>().join("\n")
    }

    fn each_log(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|end| end == "log"));
        logs.map(|path| {
            let said = std::fs::read_to_string(&path).unwrap();
            (path, said)
        })
    }

    fn at(&self, place: usize) -> MutexGuard<'_, Replica> {
        self.places[place].lock().unwrap()
    }

    /// Any replica that serves.
    pub fn any(&self, random: &mut fastrand::Rng) -> Known {
        loop {
            let place = random.usize(..self.places.len());
            let replica = self.at(place);
            if replica.serves {
                return Known {
                    address: replica.address,
                    place,
                    number: replica.number,
                };
            }
        }
    }

    /// Whether a replica has been killed since.
    pub fn is_dead(&self, known: Known) -> bool {
        let replica = self.at(known.place);
        !replica.serves || replica.number != known.number
    }

    /// Kills a replica, and starts another one in its place.
    pub fn kill(&self, place: usize, is_dead: impl FnOnce()) {
        let number = {
            let mut replica = self.at(place);
            replica.serves = false;
            replica.child.kill().unwrap();
            replica.child.wait().unwrap();
            is_dead();
            replica.number + 1
        };
        let folder = self.folder.path();
        let next = Replica::start(&self.upstream, &self.store, folder, place, number);
        *self.at(place) = next;
    }

    /// Waits until every replica has found its database again.
    pub fn await_store(&self) {
        let begun = Instant::now();
        for place in 0..self.places.len() {
            let address = self.at(place).address;
            let ask = "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            let back = || {
                let answer = Client::try_connect(address)?.send(ask).try_answer()?;
                Some(text(&answer.body).contains("\"store\":\"ready\""))
            };
            while back() != Some(true) {
                assert!(begun.elapsed() < FOUND, "not found again: {}", self.logs());
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

impl Replica {
    fn start(upstream: &str, store: &str, folder: &Path, place: usize, number: usize) -> Self {
        let name = format!("{place}-{number}");
        let log = std::fs::File::create(folder.join(format!("{name}.log"))).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["--listen", "127.0.0.1:0", "--upstream", upstream])
            .args(["--store", store, "--data-dir"])
            .arg(folder.join(&name))
            .env("HOME", folder)
            .env("LONGHAUL_LOG__LEVEL", "info")
            .env("LONGHAUL_LOG__FORMAT", "json")
            // However busy the machine is, only a database that is gone is away.
            .env("LONGHAUL_STORE__TIMEOUT", "30s")
            .env("LONGHAUL_WINDOW__BUDGET", BUDGET.to_string())
            .env("LONGHAUL_SUMMARIZER__MODE", "model")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let (_, address) = line.split_once("http://").unwrap();
        let (address, _) = address.split_once(" -> ").unwrap();
        Self {
            address: address.parse().unwrap(),
            child,
            number,
            serves: true,
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
