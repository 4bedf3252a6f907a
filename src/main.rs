//! Arguments to configuration to command to exit code.

use clap::Parser;
use longhaul::cli::sim::{self, SimArgs};

#[derive(Parser)]
enum Command {
    /// The simulated upstream on its own, for trying an agent offline
    Sim(SimArgs),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Sim(args) => sim::run(args).await,
    }
}
