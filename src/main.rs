//! Arguments to configuration to command to exit code.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use longhaul::cli::{check, serve};

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
    /// Validate the configuration and print the effective one
    Check(check::CheckArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.command {
        None => serve::run(arguments.serve),
        Some(Command::Serve(args)) => serve::run(args),
        Some(Command::Check(args)) => Ok(check::run(args)?),
    }
}
