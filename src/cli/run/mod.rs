//! `longhaul run -- CMD`: a proxy for one command, for as long as it lives.
//!
//! The proxy takes a free port of the loopback interface, the command is told of
//! it by its environment, and everything else is the command's own: its terminal,
//! its signals, its exit code. On a terminal a line at the start says where the web
//! page is, with a link that needs no typing of a token; else the proxy says nothing
//! meanwhile. What it logs goes to a file beside its store, and in the end a line on
//! standard error tells what came of it. The store is the usual one, shared with every other proxy of the
//! same folder, so a session goes on whichever of them it comes through.

mod answers;
mod child;
mod counted;
mod place;
mod summary;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::oneshot;

use super::log_file::LogFile;
use super::serve::surroundings;
use super::{BAD_CONFIGURATION, OverrideArgs, logs};
use crate::app::App;
use crate::config::{Config, Loaded, LogLevel, Sources, load_to_serve};
use crate::engine::money::Money;
use crate::views::tally::Sums;
use answers::Answers;

/// How long requests that outlive the command may take to finish.
const DRAIN: Duration = Duration::from_secs(5);
/// The log's name, in the folder of the store.
const LOG: &str = "run.log";

/// The arguments of `run`.
#[derive(Clone, clap::Args)]
pub struct RunArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// API to forward to; else the configured one, else the one that `ANTHROPIC_BASE_URL` names
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Folder for Longhaul's own files
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Where state is kept: sqlite, memory or a postgres:// URL
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Say nothing at the start and at the end
    #[arg(long, short)]
    pub quiet: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Runs the command behind a proxy of its own; its exit code.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let (command, quiet) = (args.command.clone(), args.quiet);
    let sources = sources(args);
    let loaded = match configured(&sources) {
        Ok(loaded) => loaded,
        Err(problem) => {
            tell(&problem);
            return Ok(ExitCode::from(BAD_CONFIGURATION));
        }
    };
    let config = confined(loaded.config);
    let mut log = config.log.clone();
    if !loaded.origins.gives("log.level") {
        log.level = LogLevel::Warn;
    }
    let file = Arc::new(LogFile::new(config.data_dir.join(LOG)));
    logs::start_in(&log, file.clone());
    for warning in loaded.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(behind(&config, &command, &sources.environment, quiet))?;
    let code = match done.ended {
        Ok(code) => {
            if !quiet {
                tell(&summary::line(&done.sums, done.paid, &done.answers));
            }
            code
        }
        Err(not_run) => {
            tell(&not_run.to_string());
            not_run.code()
        }
    };
    if let (false, Some(told)) = (quiet, file.told()) {
        tell(&told);
    }
    Ok(ExitCode::from(code))
}

/// A line for the person, who may have closed the terminal.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "longhaul: {line}");
}

fn sources(args: RunArgs) -> Sources {
    let overrides = OverrideArgs {
        config: args.config,
        // Whatever is configured: several may run, beside a proxy that serves.
        listen: Some("127.0.0.1:0".to_owned()),
        upstream: args.upstream,
        data_dir: args.data_dir,
        store: args.store,
    };
    overrides.into_sources()
}

/// The configuration, with the upstream that the environment names where nobody
/// says another.
fn configured(sources: &Sources) -> Result<Loaded, String> {
    let load = |sources: &Sources| load_to_serve(sources).map_err(|problems| problems.to_string());
    let loaded = load(sources)?;
    if loaded.origins.gives("upstream") {
        return Ok(loaded);
    }
    let named = place::named(&sources.environment).map_err(|problem| problem.to_string())?;
    if named.is_none() {
        return Ok(loaded);
    }
    let mut sources = sources.clone();
    sources.flags.upstream = named;
    load(&sources)
}

/// What holds for a proxy that serves one command on this machine.
fn confined(mut config: Config) -> Config {
    config.admin.listen = None;
    config.tls.cert = None;
    config.tls.key = None;
    config.workers = config.workers.or(Some(1));
    config.limits.drain = config.limits.drain.min(DRAIN);
    config
}

/// How a command ended, and what went through the proxy meanwhile.
struct Done {
    ended: Result<u8, child::NotRun>,
    sums: Sums,
    paid: Option<Money>,
    answers: Answers,
}

/// Runs the command.
async fn behind(
    config: &Config,
    command: &[OsString],
    environment: &[(String, String)],
    quiet: bool,
) -> anyhow::Result<Done> {
    // First of all, so that none is missed and none ends the proxy.
    let mut signals = child::Signals::listen().context("cannot listen for signals")?;
    let app = App::start(config, surroundings(config)).await?;
    let (tally, metrics) = (app.tally(), app.metrics());
    let variables = place::variables(environment, app.address());
    // Only for a person: what reads a pipe cannot open a page.
    if !quiet && std::io::stderr().is_terminal() {
        let (address, path) = (app.address(), app.page_link());
        tell(&format!("sessions at http://{address}{path}"));
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = app.run(async { drop(stopped.await) });
    let working = async {
        let ended = child::run(command, &variables, &mut signals).await;
        drop(stop);
        ended
    };
    let ((), ended) = tokio::join!(serving, working);
    Ok(Done {
        ended,
        sums: tally.sums(),
        paid: metrics.paid_so_far(),
        answers: Answers::read(&metrics.render()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;

    fn given(variables: &[(&str, &str)], upstream: Option<&str>) -> Result<Loaded, String> {
        let variables = variables.iter();
        let environment = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        configured(&Sources {
            file: None,
            environment: environment.collect(),
            flags: Flags {
                upstream: upstream.map(str::to_owned),
                ..Flags::default()
            },
        })
    }

    #[test]
    fn a_flag_beats_the_configuration_beats_what_the_client_would_use() {
        let base = ("ANTHROPIC_BASE_URL", "https://gateway.example/v1/");
        let own = ("LONGHAUL_UPSTREAM", "https://own.example");
        for (variables, flag, expected) in [
            (&[][..], None, "https://api.anthropic.com"),
            (&[base], None, "https://gateway.example"),
            (&[base, own], None, "https://own.example"),
            (
                &[base, own],
                Some("https://flag.example"),
                "https://flag.example",
            ),
            (
                &[("ANTHROPIC_BASE_URL", "")],
                None,
                "https://api.anthropic.com",
            ),
        ] {
            let loaded = given(variables, flag).unwrap();
            assert_eq!(loaded.config.upstream.to_string(), expected);
        }
        let told = given(&[("ANTHROPIC_BASE_URL", "nowhere")], None).unwrap_err();
        assert!(told.contains("ANTHROPIC_BASE_URL"), "{told}");
    }

    #[test]
    fn nothing_but_the_loopback_interface_is_listened_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "listen = '0.0.0.0:80'\n[admin]\nlisten = '0.0.0.0:81'\n";
        std::fs::write(file.path(), text).unwrap();
        let sources = sources(RunArgs {
            config: Some(file.path().to_owned()),
            upstream: None,
            data_dir: None,
            store: None,
            quiet: false,
            command: Vec::new(),
        });
        let config = confined(load_to_serve(&sources).unwrap().config);
        assert!(config.listen.is_loopback());
        assert_eq!((config.listen.port(), config.admin.listen), (0, None));
    }
}
