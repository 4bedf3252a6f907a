//! Looking into the store from the command line, while a proxy may be running on
//! it.
//!
//! A store is opened as the proxy would open it, but never begun: whoever looks
//! into one that is not there has named another folder. What goes wrong is told
//! on standard error; standard output belongs to what was asked for.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};

use super::{BAD_CONFIGURATION, OverrideArgs};
use crate::config::{Config, StoreUrl, load};
use crate::metrics::Metrics;
use crate::recall::Recall;
use crate::store::{Guarded, Report, Store, postgres, sqlite};

/// How long the store may take for an answer: nobody's request waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which store. Not printable: its URL may hold a password.
#[derive(Clone, Default, clap::Args)]
pub struct StoreArgs {
    /// Configuration file
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<std::path::PathBuf>,
    /// Folder of the proxy's own files
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<String>,
    /// Where state is kept: sqlite or a postgres:// URL
    #[arg(long, value_name = "URL", global = true)]
    pub store: Option<String>,
}

/// Opens the store and does something with it; the exit code.
pub fn with_recall(
    args: StoreArgs,
    work: impl AsyncFnOnce(&Recall) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let overrides = OverrideArgs {
        config: args.config,
        data_dir: args.data_dir,
        store: args.store,
        ..OverrideArgs::default()
    };
    let mut config = match load(&overrides.into_sources()) {
        Ok(loaded) => loaded.config,
        Err(problems) => {
            writeln!(io::stderr(), "{problems}").context("cannot write to standard error")?;
            return Ok(ExitCode::from(BAD_CONFIGURATION));
        }
    };
    if config.store.url == StoreUrl::Memory {
        let message = "longhaul: store.url is \"memory\": only the proxy itself can look into it, \
                       GET /longhaul/sessions asks it";
        writeln!(io::stderr(), "{message}").context("cannot write to standard error")?;
        return Ok(ExitCode::from(BAD_CONFIGURATION));
    }
    config.store.timeout = PATIENCE;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let store = open(&config).await?;
        let metrics = Arc::new(Metrics::new()?);
        let done = work(&Recall::new(store.clone(), metrics)).await;
        store.close().await.context("cannot close the store")?;
        done
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn open(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    if let StoreUrl::Postgres(url) = &config.store.url {
        let opened = postgres::look(url.reveal(), config.store.pool, config.store.timeout).await?;
        let trouble = opened.reports.first().map(ToString::to_string);
        return Ok(Arc::new(Guarded::before(opened.store, trouble.as_deref())));
    }
    let file = config.data_dir.join("state.db");
    if !file.is_file() {
        bail!(
            "there is no store in {}: name the proxy's folder with --data-dir, or its --config",
            config.data_dir.display()
        );
    }
    let opened = sqlite::open(&config.data_dir, config.store.timeout).await;
    // How a folder is shared is the business of whoever runs the proxy in it.
    let listed = |report: &&Report| matches!(report, Report::Listed { .. });
    for report in opened.reports.iter().filter(|report| !listed(report)) {
        writeln!(io::stderr(), "longhaul: {report}").context("cannot write to standard error")?;
    }
    Ok(opened.store)
}

/// Writes to standard output. Whoever reads may stop before the end.
pub fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// A text for a terminal, which must not take any of it for a command.
pub fn plain(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter,
        _ if letter.is_control() => '\u{fffd}',
        _ => letter,
    };
    text.chars().map(shown).collect()
}

/// Rows in columns, the first row above them.
pub fn table(rows: &[Vec<String>]) -> String {
    let width = |text: &String| text.chars().count();
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            match widths.get_mut(at) {
                Some(widest) => *widest = width(cell).max(*widest),
                None => widths.push(width(cell)),
            }
        }
    }
    let mut lines = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        lines.push_str(cells.join("  ").trim_end());
        lines.push('\n');
    }
    lines
}

/// A cell of a table: one line, not too long.
pub fn cell(text: &str, letters: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = plain(&words.join(" "));
    if line.chars().count() <= letters {
        return line;
    }
    let kept = line.chars().take(letters.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns_and_no_text_can_command_a_terminal() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows = [
            row(&["ID", "LABEL"]),
            row(&["abcdef", "é"]),
            row(&["x", ""]),
        ];
        assert_eq!(table(&rows), "ID      LABEL\nabcdef  é\nx\n");
        assert_eq!(cell("a\x1b[31m\n b", 20), "a\u{fffd}[31m b");
        assert_eq!(cell("abcdefgh", 4), "abc…");
        assert_eq!(plain("a\tb\nc\x07"), "a\tb\nc\u{fffd}");
    }
}
