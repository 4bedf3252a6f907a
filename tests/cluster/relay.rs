//! A socket before a server of the tests, on which a client can vanish: what it
//! says next never arrives, and the server is not told that it has gone.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Cluster;

/// A socket that leads to a server.
pub struct Relay {
    folder: tempfile::TempDir,
    vanished: Arc<AtomicBool>,
}

impl Relay {
    /// A client of it vanishes when it is about to say these words.
    pub fn before(cluster: &Cluster, last_words: &'static str) -> Self {
        // Short enough for the path of a socket.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let name = format!(".s.PGSQL.{}", cluster.port);
        let listener = UnixListener::bind(folder.path().join(&name)).unwrap();
        let server = cluster.folder.join(&name);
        let vanished = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&vanished);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let told = Arc::clone(&told);
                std::thread::spawn(move || carry(from, to, |_| true));
                std::thread::spawn(move || {
                    carry(client, server, |words| {
                        let mut heard = words.windows(last_words.len());
                        let vanishes = heard.any(|heard| heard == last_words.as_bytes());
                        told.fetch_or(vanishes, Ordering::SeqCst);
                        !vanishes
                    });
                });
            }
        });
        Self { folder, vanished }
    }

    /// Whether a client has vanished.
    pub fn has_lost_one(&self) -> bool {
        self.vanished.load(Ordering::SeqCst)
    }

    /// The URL of a database through it.
    pub fn url(&self, cluster: &Cluster, database: &str) -> String {
        let folder = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://tests@{folder}:{}/{database}", cluster.port)
    }
}

/// Hands on what comes. Whoever vanishes keeps both ends open for ever.
fn carry(mut from: UnixStream, mut to: UnixStream, goes_on: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !goes_on(&buffer[..count]) {
            loop {
                std::thread::park();
            }
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}
