//! Where logs go and in which form.
//!
//! To standard error, because standard output belongs to the command; where both
//! belong to somebody else, to a file. Text for a person at a terminal or with a
//! file, JSON for everything else, unless configured.
//! The configured level is for our own events; of the libraries only warnings
//! are shown, since what they print is not ours to keep free of content; of the
//! one that speaks MCP none, because it repeats what callers send.

use std::io::IsTerminal;
use std::sync::Arc;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;

use super::log_file::LogFile;
use crate::config::{Choice, Log, LogFormat, LogLevel};

/// Starts logging. A second call changes nothing.
pub fn start(log: &Log) {
    let terminal = std::io::stderr().is_terminal();
    let json = match log.format {
        LogFormat::Auto => !terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    begin(log, json, terminal, std::io::stderr);
}

/// The same into a file.
pub fn start_in(log: &Log, file: Arc<LogFile>) {
    begin(log, log.format == LogFormat::Json, false, file);
}

fn begin<W>(log: &Log, json: bool, colours: bool, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let level = log.level.word().parse().unwrap_or(LevelFilter::INFO);
    let others = if log.level == LogLevel::Off {
        LevelFilter::OFF
    } else {
        LevelFilter::WARN
    };
    let shown = Targets::new()
        .with_default(others)
        .with_target("rmcp", LevelFilter::OFF)
        .with_target("longhaul", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours)
        .with_target(false)
        // It would complain on standard error, which panics where that is gone,
        // as a terminal that has hung up.
        .log_internal_errors(false);
    let lines = if json {
        lines.json().flatten_event(true).boxed()
    } else {
        lines.boxed()
    };
    // It fails only if logging has been started before, which is fine.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(shown))
        .try_init();
}
