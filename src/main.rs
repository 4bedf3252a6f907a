//! Arguments to configuration to command to exit code.
//!
//! Bad usage is answered by the argument parser with exit code 2; whatever else
//! goes wrong is printed with all its causes and exits with 1.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use longhaul::cli::{check, demo, health, journal, replay, run, serve, sessions, sim, store};

/// A reverse proxy that keeps long LLM agent sessions inside their context window.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Without a subcommand the proxy is served.
    #[command(flatten)]
    serve: serve::ServeArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Run the proxy (also: no subcommand)
    Serve(serve::ServeArgs),
    /// Run a command behind a proxy of its own: longhaul run -- claude
    Run(run::RunArgs),
    /// Watch a long session with Longhaul and without; needs no key and no network
    Demo(demo::DemoArgs),
    /// Validate the configuration and print the effective one
    Check(check::CheckArgs),
    /// Play recorded conversations against the simulated upstream and tell what came of it
    Replay(replay::ReplayArgs),
    /// Ask whether the proxy is ready; for health checks of containers
    Health(health::HealthArgs),
    /// Run the simulated upstream on its own, for trying an agent offline
    Sim(sim::SimArgs),
    /// Look into the store: sessions, how they went, what hands one on
    Sessions(sessions::SessionsArgs),
    /// Look into the store: what views have left out
    Journal(journal::JournalArgs),
    /// Move a store from SQLite to PostgreSQL or back
    Store(store::StoreCommandArgs),
}

fn main() -> ExitCode {
    command(Arguments::parse()).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "longhaul: {error:#}");
        ExitCode::FAILURE
    })
}

fn command(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => serve::run(arguments.serve),
        Some(Command::Serve(args)) => serve::run(args),
        Some(Command::Run(args)) => run::run(args),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Check(args)) => Ok(check::run(args)?),
        Some(Command::Sessions(args)) => sessions::run(args),
        Some(Command::Journal(args)) => journal::run(args),
        Some(Command::Store(args)) => store::run(args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Health(args)) => tokio::runtime::Runtime::new()
            .context("cannot start the runtime")?
            .block_on(health::run(args)),
        Some(Command::Sim(args)) => tokio::runtime::Runtime::new()
            .context("cannot start the runtime")?
            .block_on(sim::run(args))
            .map(|()| ExitCode::SUCCESS),
    }
}
