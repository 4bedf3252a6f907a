//! `longhaul serve`: runs the proxy until it is told to stop.
//!
//! The first line on standard output says where it listens; scripts wait for it.
//! Logs go to standard error. SIGTERM and SIGINT drain; a second one ends the
//! process at once. SIGHUP drains where there is a terminal that can hang up; a
//! service without one has nothing to reload, so it logs the signal and goes on.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{OverrideArgs, exposure, logs};
use crate::app::{App, Surroundings};
use crate::clock::Clock;
use crate::config::{Config, load_to_serve};

/// The arguments of `serve`.
#[derive(Clone, Default, clap::Args)]
pub struct ServeArgs {
    /// What overrides the configuration.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Runs the proxy.
pub fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let loaded = match load_to_serve(&args.overrides.into_sources()) {
        Ok(loaded) => loaded,
        Err(problems) => {
            writeln!(std::io::stderr(), "{problems}").context("cannot write to standard error")?;
            return Ok(ExitCode::from(super::BAD_CONFIGURATION));
        }
    };
    let config = loaded.config;
    logs::start(&config.log);
    for warning in loaded.warnings {
        tracing::warn!("{warning}");
    }
    // Each stream takes two sockets; the usual soft limit is far too low.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(&config))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: &Config) -> anyhow::Result<()> {
    let surroundings = surroundings(config);
    let has_token = surroundings.admin_token.as_ref();
    let has_token = has_token.is_some_and(|token| !token.is_empty());
    // Before the announcement: whoever waits for it may send a signal at once.
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let mut hangup = listen_for_hangup().context("cannot listen for SIGHUP")?;
    let app = App::start(config, surroundings).await?;
    let scheme = if config.tls.cert.is_some() {
        "https"
    } else {
        "http"
    };
    announce(&format!(
        "longhaul listening on {scheme}://{} -> {}",
        app.address(),
        config.upstream
    ))?;
    if let Some(address) = app.admin_address() {
        tracing::info!(%address, "admin surface has its own address");
    }
    for warning in exposure::warnings(config, app.address(), app.admin_address(), has_token) {
        tracing::warn!("{warning}");
    }
    if let Some(note) = exposure::behind_reverse_proxy(config, app.admin_address(), has_token) {
        tracing::info!("{note}");
    }
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = terminal_gone(&mut hangup) => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::warn!("told to stop a second time: leaving at once");
            std::process::exit(1);
        });
    };
    app.run(stop).await;
    Ok(())
}

/// SIGHUP, and whether it means that a terminal is gone.
struct Hangup {
    signal: Signal,
    has_terminal: bool,
}

/// Listens for SIGHUP, unless it is ignored from the start, as under `nohup`:
/// listening would undo that.
fn listen_for_hangup() -> std::io::Result<Option<Hangup>> {
    if super::signals::is_ignored(SignalKind::hangup().as_raw_value()) {
        return Ok(None);
    }
    Ok(Some(Hangup {
        signal: signal(SignalKind::hangup())?,
        // Asked now: once it has hung up, it cannot be opened.
        has_terminal: std::fs::File::open("/dev/tty").is_ok(),
    }))
}

/// Waits until the controlling terminal hangs up, which without one is never.
async fn terminal_gone(hangup: &mut Option<Hangup>) {
    let Some(Hangup {
        signal,
        has_terminal,
    }) = hangup
    else {
        return std::future::pending().await;
    };
    while signal.recv().await.is_some() {
        if *has_terminal {
            tracing::info!("SIGHUP: the terminal is gone, draining");
            return;
        }
        tracing::info!(
            "SIGHUP: going on, there is nothing to reload: a changed configuration takes effect \
             at a restart"
        );
    }
    std::future::pending::<()>().await;
}

/// What the environment of this process says.
pub(super) fn surroundings(config: &Config) -> Surroundings {
    let token = config.admin.token_env.as_ref();
    let key = config.summarizer.api_key_env.as_ref();
    Surroundings {
        admin_token: token.and_then(|name| std::env::var(name.as_str()).ok()),
        summarizer_key: key.and_then(|name| std::env::var(name.as_str()).ok()),
        proxies: Matcher::from_env(),
        clock: Clock::default(),
    }
}

/// Writes a line that others wait for.
pub fn announce(line: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .context("cannot write to standard output")
}
