//! The cases, and how one is measured.
//!
//! A round of a proxy: connect, send the first request of every session, wait
//! until the proxy is idle, then send the rest on the clock, and wait until it is
//! idle again, so that what it does after an answer is counted. Where first
//! requests are what is measured there is nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::load::{Load, Part, Sessions};
use crate::process::Processes;
use crate::proxies::{Kind, Proxy};
use crate::session::Template;

/// A first request of more bytes than this is large.
const LARGE: usize = 4_000_000;

/// What requests are like.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// Each request is the last one plus two messages.
    Known {
        /// Bytes of these two messages.
        growth: usize,
        /// Requests of a session after its first.
        requests: usize,
    },
    /// Each is the first of its session.
    Unknown,
}

/// One case.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// What requests are like.
    pub start: Start,
    /// Bytes of a first request.
    pub size: usize,
    /// Connections at once.
    pub connections: usize,
    /// Sessions of each connection in a round.
    sessions: usize,
    /// It is measured in a quick run too.
    pub quick: bool,
}

const fn grow(size: usize, growth: usize, connections: usize, sessions: usize) -> Case {
    // Long histories take long to begin with, and hardly change by a few messages;
    // several rounds tell more than long sessions.
    let requests = match (size > LARGE, connections) {
        (false, _) => 40,
        (true, 1) => 20,
        (true, _) => 10,
    };
    Case {
        start: Start::Known { growth, requests },
        size,
        connections,
        sessions,
        quick: false,
    }
}

const fn unknown(size: usize, connections: usize, sessions: usize) -> Case {
    Case {
        start: Start::Unknown,
        size,
        connections,
        sessions,
        quick: false,
    }
}

const fn quick(mut case: Case) -> Case {
    case.quick = true;
    case
}

/// All cases.
pub const CASES: [Case; 16] = [
    quick(grow(14_000, 4_000, 1, 16)),
    quick(grow(14_000, 4_000, 16, 2)),
    grow(14_000, 40_000, 1, 8),
    grow(14_000, 40_000, 16, 1),
    quick(grow(1_000_000, 4_000, 1, 4)),
    quick(grow(1_000_000, 4_000, 16, 1)),
    grow(1_000_000, 40_000, 1, 3),
    grow(1_000_000, 40_000, 16, 1),
    quick(grow(8_000_000, 4_000, 1, 2)),
    grow(8_000_000, 4_000, 16, 1),
    grow(8_000_000, 40_000, 1, 2),
    grow(8_000_000, 40_000, 16, 1),
    quick(unknown(1_000_000, 1, 40)),
    unknown(1_000_000, 16, 6),
    quick(unknown(8_000_000, 1, 8)),
    unknown(8_000_000, 16, 2),
];

impl Case {
    /// Its name, by which it can be chosen.
    pub fn name(&self) -> String {
        let (size, connections) = (bytes(self.size), self.connections);
        match self.start {
            Start::Known { growth, .. } => {
                format!("grow-{size}-{}-x{connections}", bytes(growth))
            }
            Start::Unknown => format!("unknown-{size}-x{connections}"),
        }
    }

    /// In words.
    pub fn title(&self) -> String {
        let connections = match self.connections {
            1 => "one connection".to_owned(),
            count => format!("{count} connections"),
        };
        let size = readable(self.size);
        match self.start {
            Start::Known { growth, requests } => format!(
                "sessions from {size}, {} more a request, {requests} requests each, {connections}",
                readable(growth)
            ),
            Start::Unknown => format!("unknown histories of {size}, {connections}"),
        }
    }

    fn is_large(&self) -> bool {
        self.size > LARGE
    }

    fn part(&self) -> Part {
        match self.start {
            Start::Known { .. } => Part::Grown,
            Start::Unknown => Part::First,
        }
    }

    fn template(&self) -> Template {
        match self.start {
            Start::Known { growth, requests } => Template::new(self.size, growth, requests),
            Start::Unknown => Template::new(self.size, 0, 0),
        }
    }
}

fn bytes(size: usize) -> String {
    readable(size).replace(' ', "").to_lowercase()
}

/// A size in words.
pub fn readable(size: usize) -> String {
    if size >= 1_000_000 {
        format!("{} MB", size / 1_000_000)
    } else {
        format!("{} KB", size / 1_000)
    }
}

/// What one round of one proxy came to.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Time to the first byte, median.
    pub first_byte: Duration,
    /// Whole exchanges a second.
    pub rate: f64,
    /// Processor time of a request, in seconds.
    pub cpu: f64,
}

/// What all rounds of one proxy came to.
pub struct Row {
    /// What was measured.
    pub kind: Kind,
    /// Each round.
    pub rounds: Vec<Round>,
    /// Times to the first byte, in order.
    pub first_bytes: Vec<Duration>,
    /// Highest resident memory while requests were timed, in bytes.
    pub peak: u64,
    /// Resident memory when idle after the last round, in bytes.
    pub resident: u64,
    /// Bytes written to disk for a request.
    pub written: f64,
    /// How long there was work after the last answer, the longest.
    pub busy_after: Duration,
    /// Requests that a pass was made for.
    pub passes: usize,
}

/// Measures a case: rounds of all proxies until the time is up, but at least one.
pub fn run(
    case: &Case,
    kinds: &[Kind],
    upstream: SocketAddr,
    until: Instant,
    most: usize,
    quick: bool,
) -> Vec<Row> {
    let template = case.template();
    let proxies: Vec<Proxy> = kinds
        .iter()
        .filter_map(|kind| Proxy::start(kind, upstream))
        .collect();
    let mut rows: Vec<Row> = proxies.iter().map(|proxy| Row::new(&proxy.kind)).collect();
    let sessions = if quick {
        case.sessions.div_ceil(2)
    } else {
        case.sessions
    };
    let mut number = 0;
    for round in 0..most {
        let begun = Instant::now();
        // The same bodies for all, never seen before by any.
        let bodies: Vec<Sessions> = (0..case.connections)
            .map(|_| {
                let some = (0..sessions).map(|_| {
                    number += 1;
                    template.session(number - 1)
                });
                Arc::new(some.collect())
            })
            .collect();
        for turn in 0..proxies.len() {
            let index = (turn + round) % proxies.len();
            rows[index].add(&proxies[index], case, &bodies);
        }
        // As near to the end as whole rounds come; later cases make up for it.
        if Instant::now() + begun.elapsed() / 2 > until {
            break;
        }
    }
    for row in &mut rows {
        row.first_bytes.sort_unstable();
        row.written /= row.first_bytes.len() as f64;
    }
    rows
}

impl Row {
    fn new(kind: &Kind) -> Self {
        Self {
            kind: kind.clone(),
            rounds: Vec::new(),
            first_bytes: Vec::new(),
            peak: 0,
            resident: 0,
            written: 0.0,
            busy_after: Duration::ZERO,
            passes: 0,
        }
    }

    /// One round of one proxy.
    fn add(&mut self, proxy: &Proxy, case: &Case, bodies: &[Sessions]) {
        let passes = proxy.kind.asks_for_passes();
        let mut load = Load::connect(proxy.address, case.connections);
        if case.part() == Part::Grown {
            load.send(bodies, Part::First, passes);
        }
        proxy.wait_until_idle(case.is_large());
        let processes = proxy.processes.as_ref();
        if let Some(processes) = processes {
            processes.reset_peak();
        }
        let used = || processes.map_or((0.0, 0), |it| (it.cpu(), it.written()));
        let before = used();
        let mut seen = load.send(bodies, case.part(), passes);
        self.busy_after = self.busy_after.max(proxy.wait_until_idle(case.is_large()));
        let after = used();
        let (peak, resident) = processes.map_or((0, 0), Processes::memory);
        let count = seen.first_byte.len();
        seen.first_byte.sort_unstable();
        self.rounds.push(Round {
            first_byte: seen.first_byte[count / 2],
            rate: count as f64 / seen.took.as_secs_f64(),
            cpu: (after.0 - before.0) / count as f64,
        });
        self.first_bytes.append(&mut seen.first_byte);
        self.written += (after.1 - before.1) as f64;
        self.peak = self.peak.max(peak);
        self.resident = resident;
        self.passes += seen.passes;
    }

    /// The time to the first byte that this share of the requests did not exceed.
    pub fn percentile(&self, percent: usize) -> Duration {
        self.first_bytes[(self.first_bytes.len() - 1) * percent / 100]
    }

    /// The median over the rounds.
    pub fn median(&self, value: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(value).collect())
    }

    /// How this compares to another proxy: the median of the ratios within each
    /// round, with the smallest and the largest.
    pub fn ratio(&self, other: &Self, value: impl Fn(&Round) -> f64) -> Ratio {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let mut ratios: Vec<f64> = pairs
            .map(|(own, other)| value(own) / value(other))
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        Ratio {
            low: ratios[0],
            high: ratios[ratios.len() - 1],
            median: median(ratios),
        }
    }
}

/// A ratio over several rounds.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    f64::midpoint(values[low], values[high])
}
