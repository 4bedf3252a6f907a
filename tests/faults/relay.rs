//! A network between two parties, with weather.
//!
//! It carries connections to whoever is the target at the moment, so that nobody
//! has to know that a proxy has died and another one has come. Bad weather is
//! slow, hands on in small pieces, or breaks the connection after some bytes;
//! which of these is drawn from the seed and the connection's number. Every break
//! is noted, by the request it broke: that one may fail, no other may.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::heard::{Heard, Line, Whose};
use crate::moments::Moments;
use crate::support::http::Message;

/// A running relay; ends with its runtime.
pub struct Relay {
    runtime: Handle,
    shared: Arc<Shared>,
}

/// Where it is entered.
pub struct Door {
    pub address: SocketAddr,
    is_shut: watch::Sender<bool>,
}

impl Door {
    /// Nothing more gets through, not even what is on its way.
    pub fn shut(&self) {
        self.is_shut.send_replace(true);
    }
}

struct Shared {
    /// Taken in turn; none: nobody can be reached.
    targets: Mutex<Vec<SocketAddr>>,
    /// Changes whenever all connections are to break.
    cuts: watch::Sender<u64>,
    /// Connections so far.
    connections: AtomicUsize,
    seed: u64,
    /// How many of a hundred connections have bad weather.
    bad: u8,
    moments: Arc<Moments>,
    heard: Heard,
}

/// What a connection has to go through.
#[derive(Debug, Clone, Copy)]
struct Weather {
    delay: Duration,
    /// The most bytes that are handed on at once.
    piece: usize,
    /// It breaks after so many bytes, counted in both directions.
    breaks_after: usize,
}

impl Weather {
    fn of(seed: u64, number: usize, bad: u8) -> Self {
        let mut rng = Rng::with_seed(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let fine = Self {
            delay: Duration::ZERO,
            piece: usize::MAX,
            breaks_after: usize::MAX,
        };
        if rng.u8(0..100) >= bad {
            return fine;
        }
        match rng.u8(0..4) {
            0 => Self {
                delay: Duration::from_millis(rng.u64(1..12)),
                ..fine
            },
            1 => Self {
                piece: rng.usize(1..2_000),
                ..fine
            },
            2 => Self {
                delay: Duration::from_millis(rng.u64(0..4)),
                piece: rng.usize(200..4_000),
                ..fine
            },
            _ => Self {
                breaks_after: rng.usize(1..120_000),
                ..fine
            },
        }
    }
}

impl Relay {
    pub fn start(runtime: &Handle, seed: u64, bad: u8, moments: Arc<Moments>) -> Self {
        let shared = Arc::new(Shared {
            targets: Mutex::default(),
            cuts: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
            seed,
            bad,
            moments,
            heard: Heard::default(),
        });
        Self {
            runtime: runtime.clone(),
            shared,
        }
    }

    /// Another door.
    pub fn open(&self) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = self.runtime.block_on(listener).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_shut, door) = watch::channel(false);
        let shared = self.shared.clone();
        self.runtime.spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(carry(stream, shared.clone(), door.clone()));
                }
            }
        });
        Door { address, is_shut }
    }

    /// From now on connections lead there, in turn.
    pub fn lead_to(&self, targets: Vec<SocketAddr>) {
        *self.shared.targets.lock().unwrap() = targets;
    }

    /// What the other side answered, by the tag of the request.
    pub fn answers(&self) -> HashMap<String, Vec<Message>> {
        self.shared.heard.answers()
    }

    /// Breaks every connection.
    pub fn cut(&self) {
        self.shared.moments.broke();
        self.shared.cuts.send_modify(|number| *number += 1);
    }
}

async fn carry(client: TcpStream, shared: Arc<Shared>, mut door: watch::Receiver<bool>) {
    let mut cuts = shared.cuts.subscribe();
    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
    let target = {
        let targets = shared.targets.lock().unwrap();
        let at = number.checked_rem(targets.len());
        at.and_then(|at| targets.get(at).copied())
    };
    let server = match target {
        Some(target) => TcpStream::connect(target).await.ok(),
        None => None,
    };
    let Some(server) = server else {
        shared.moments.broke();
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let weather = Weather::of(shared.seed, number, shared.bad);
    let carried = AtomicUsize::new(0);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let line = Mutex::new(Line::default());
    let asked = |bytes: &[u8]| shared.heard.asked(&line, bytes);
    let answered = |bytes: &[u8]| shared.heard.answered(&line, bytes);
    let is_shut = door.clone();
    let is_shut = || *is_shut.borrow();
    let way = Way {
        weather,
        carried: &carried,
        is_shut: &is_shut,
    };
    let broken = tokio::select! {
        broken = pass(&mut from_client, &mut to_server, &way, asked) => broken,
        broken = pass(&mut from_server, &mut to_client, &way, answered) => broken,
        _ = cuts.changed() => true,
        _ = door.wait_for(|is_shut| *is_shut) => true,
    };
    if broken {
        match line.lock().unwrap().whose() {
            Whose::Tag(tag) => shared.moments.broke_off(tag),
            Whose::Unknown => shared.moments.broke(),
            Whose::Nobody => {}
        }
        for half in [&to_client, &to_server] {
            let _ = half.as_ref().set_zero_linger();
        }
    }
}

/// What both directions of a connection share.
struct Way<'a> {
    weather: Weather,
    /// Bytes so far.
    carried: &'a AtomicUsize,
    is_shut: &'a (dyn Fn() -> bool + Send + Sync),
}

/// Hands on what comes, until its end; whether it was broken.
async fn pass(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    way: &Way<'_>,
    heard: impl Fn(&[u8]),
) -> bool {
    let Way {
        weather, carried, ..
    } = way;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return false;
        };
        if (way.is_shut)() {
            return true;
        }
        heard(&buffer[..count]);
        let before = carried.fetch_add(count, Ordering::SeqCst);
        let left = weather.breaks_after.saturating_sub(before).min(count);
        // Small pieces, but not so many that nothing else gets done.
        for piece in buffer[..left].chunks(weather.piece.max(count / 16).max(1)) {
            if !weather.delay.is_zero() {
                tokio::time::sleep(weather.delay).await;
            }
            if to.write_all(piece).await.is_err() {
                return false;
            }
        }
        if left < count {
            return true;
        }
    }
}
