//! What the proxy adds: direct, nginx and Longhaul in one run on one machine.
//!
//! `make bench`, or `cargo bench --bench proxy`. Rounds of all contestants
//! alternate, so that a disturbance hits all of them; absolute times depend on
//! the machine, the ratios much less. Times are to the first byte of the answer,
//! because that is what a person waits for; rates are whole exchanges.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::format_push_string,
    missing_docs
)]

mod load;
mod nginx;
mod upstream;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nginx::Nginx;

/// Bytes of a body, requests in one round over one connection, and over sixteen.
const SIZES: [(&str, usize, usize, usize); 3] = [
    ("14 KB", 14_000, 2000, 8000),
    ("1 MB", 1_000_000, 200, 800),
    ("8 MB", 8_000_000, 30, 64),
];

fn main() {
    // Cargo passes arguments meant for its own harness; only a number is ours.
    let rounds = std::env::args()
        .find_map(|text| text.parse().ok())
        .unwrap_or(7);
    let folder = tempfile::tempdir().unwrap();
    let streaming_folder = tempfile::tempdir().unwrap();
    let upstream = upstream::start();
    let longhaul = Longhaul::start(upstream);
    let nginx = Nginx::start(folder.path(), upstream, false);
    let streaming = Nginx::start(streaming_folder.path(), upstream, true);
    let mut contestants = vec![("direct", upstream)];
    if let (Some(nginx), Some(streaming)) = (&nginx, &streaming) {
        contestants.push(("nginx", nginx.address));
        contestants.push(("nginx, streaming the request", streaming.address));
    } else {
        println!("nginx is not installed: no ratios (Debian: apt-get install nginx-light)");
    }
    contestants.push(("longhaul, known conversation", longhaul.address));
    contestants.push(("longhaul, with an overlay", longhaul.address));
    contestants.push(("longhaul, not understood", longhaul.address));

    for (name, size, one, sixteen) in SIZES {
        println!("\n### {name} bodies, {rounds} rounds\n");
        println!("| | first byte p50 | p99 | to nginx | req/s at 16 | to nginx |");
        println!("|---|---|---|---|---|---|");
        let request = load::request(size);
        // A conversation whose view is smaller, from its second request on.
        load::run(longhaul.address, &load::viewed(size, true), 1, 1);
        let (viewed, garbage) = (load::viewed(size, false), load::not_understood(size));
        let request_for = |name: &str| match name {
            "longhaul, with an overlay" => &viewed,
            "longhaul, not understood" => &garbage,
            _ => &request,
        };
        let mut times = vec![Vec::new(); contestants.len()];
        let mut rates = vec![Vec::new(); contestants.len()];
        for _ in 0..rounds {
            for (index, (name, address)) in contestants.iter().enumerate() {
                let request = request_for(name);
                times[index].extend(load::run(*address, request, 1, one).first_byte);
                rates[index].push(load::run(*address, request, 16, sixteen).rate);
            }
        }
        let rows: Vec<_> = times
            .iter_mut()
            .zip(&mut rates)
            .map(|(times, rates)| {
                times.sort_unstable();
                rates.sort_unstable_by(f64::total_cmp);
                let p = |percent: usize| times[(times.len() - 1) * percent / 100];
                (p(50), p(99), rates[rates.len() / 2])
            })
            .collect();
        let floor = rows.get(1).filter(|_| nginx.is_some());
        for ((name, _), (p50, p99, rate)) in contestants.iter().zip(&rows) {
            let ratio = floor.map_or(String::new(), |floor| {
                format!("{:.2}", p50.as_secs_f64() / floor.0.as_secs_f64())
            });
            let faster = floor.map_or(String::new(), |floor| format!("{:.2}", rate / floor.2));
            println!(
                "| {name} | {} | {} | {ratio} | {rate:.0} | {faster} |",
                ms(*p50),
                ms(*p99)
            );
        }
        let cpu = |request: &[u8]| {
            let before = longhaul.cpu();
            load::run(longhaul.address, request, 1, one * 2);
            (longhaul.cpu() - before) / (one * 2 + 1) as f64 * 1000.0
        };
        let (known, overlay, plain) = (cpu(&request), cpu(&viewed), cpu(&garbage));
        let more = (known - plain) * 1e6 / size as f64;
        println!(
            "\nCPU of a request: {known:.3} ms known, {overlay:.3} ms with an overlay, {plain:.3} ms passed on; {more:.3} ms more per MB."
        );
    }
}

fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

struct Longhaul {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Longhaul {
    fn start(upstream: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["serve", "--listen", "127.0.0.1:0", "--upstream"])
            .arg(format!("http://{upstream}"))
            .arg("--data-dir")
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split(' ').next())
            .unwrap()
            .parse()
            .unwrap();
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// Seconds of processor time used so far; the kernel counts in hundredths.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
        (ticks(12) + ticks(13)) / 100.0
    }
}

impl Drop for Longhaul {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
