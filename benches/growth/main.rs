//! What the proxy costs while sessions grow, beside nginx and a bare relay.
//!
//! `make bench`, or `cargo bench --bench growth -- --help`. An agent never sends
//! the same request twice: each is the last one plus two messages. That is what is
//! measured here, and histories that Longhaul has never seen. All proxies of a case
//! take their turn in every round, in an order that rotates, so that a disturbance
//! hits all of them, and ratios are taken within a round. Absolute times depend on
//! the machine. Nothing here judges a time.
//!
//! Two builds of Longhaul are compared in one run by `--binary old=PATH --binary
//! new=PATH`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs
)]

mod load;
mod measure;
mod nginx;
mod process;
mod proxies;
mod relay;
mod report;
mod session;
mod table;
mod upstream;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;

use measure::{CASES, Case, Start};
use proxies::{Kind, Setting};

/// Measures growing sessions, and histories that were never seen.
#[derive(Parser)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
struct Arguments {
    /// Take at most 90 seconds: fewer cases, fewer requests.
    #[arg(long)]
    quick: bool,
    /// Only cases whose name has this part, such as grow-1mb or x16; may be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only these settings of Longhaul.
    #[arg(long, value_name = "SETTING", value_delimiter = ',')]
    settings: Vec<Setting>,
    /// A build of Longhaul, NAME=PATH; may be repeated. Others are compared with
    /// the first.
    #[arg(long, value_name = "NAME=PATH")]
    binary: Vec<String>,
    /// Seconds that the whole run may take; each case gets its share.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// The most rounds of a case.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Where the result is written, and read by --table. By default
    /// bench/growth.json in cargo's target folder.
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Print the README's table from the last result, and measure nothing.
    #[arg(long)]
    table: bool,
    /// List the cases, and measure nothing.
    #[arg(long)]
    list: bool,
    /// Be the bare relay.
    #[arg(long, hide = true, value_name = "ADDRESS")]
    relay_to: Option<SocketAddr>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    if let Some(upstream) = arguments.relay_to {
        return relay::run(upstream);
    }
    let file = arguments.json.clone().unwrap_or_else(usual_file);
    if arguments.table {
        return table::print(&file);
    }
    let cases: Vec<&Case> = CASES.iter().filter(|case| arguments.wants(case)).collect();
    if arguments.list {
        for case in cases {
            println!("{}", case.name());
        }
        return;
    }
    let upstream = upstream::start();
    let end = Instant::now() + arguments.duration();
    let mut results = Vec::new();
    println!("{}", report::explanation());
    for (index, case) in cases.iter().enumerate() {
        // What a case leaves of its share goes to those after it.
        let left = end.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(cases.len() - index).unwrap();
        let until = Instant::now() + share;
        let kinds = arguments.kinds(case);
        let rounds = arguments.rounds;
        let rows = measure::run(case, &kinds, upstream, until, rounds, arguments.quick);
        report::print(case, &rows);
        results.push((*case, rows));
        // After every case, so that a run that is cut short leaves something.
        report::write(&file, &results);
    }
    println!("\nWritten to {}.", file.display());
}

impl Arguments {
    fn wants(&self, case: &Case) -> bool {
        let whole = format!("-{}-", case.name());
        let is_part = |name: &String| whole.contains(&format!("-{name}-"));
        let named = self.only.iter().any(is_part);
        // A case that is named is wanted, however long it takes.
        named || self.only.is_empty() && (case.quick || !self.quick)
    }

    fn duration(&self) -> Duration {
        let usual = if self.quick { 65 } else { 540 };
        Duration::from_secs(self.seconds.unwrap_or(usual))
    }

    fn builds(&self) -> Vec<(String, PathBuf)> {
        if self.binary.is_empty() {
            let own = PathBuf::from(env!("CARGO_BIN_EXE_longhaul"));
            return vec![("longhaul".to_owned(), own)];
        }
        let builds = self.binary.iter().map(|text| {
            let (name, path) = text.split_once('=').expect("--binary is NAME=PATH");
            (name.to_owned(), PathBuf::from(path))
        });
        builds.collect()
    }

    fn kinds(&self, case: &Case) -> Vec<Kind> {
        let mut kinds = vec![Kind::Direct, Kind::Nginx, Kind::Relay];
        for setting in Setting::ALL {
            let wanted = self.settings.is_empty() || self.settings.contains(&setting);
            let applies = setting != Setting::Passes || matches!(case.start, Start::Known { .. });
            if !wanted || !applies {
                continue;
            }
            // Builds stand side by side, so that they run one after the other.
            kinds.extend(
                self.builds()
                    .into_iter()
                    .map(|(build, path)| Kind::Longhaul {
                        build,
                        path,
                        setting,
                    }),
            );
        }
        kinds
    }
}

/// In cargo's target folder, which this program lies three levels deep in.
fn usual_file() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("target"));
    target.join("bench/growth.json")
}
