//! `longhaul journal`: what views have left out, searched, shown and exported.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use super::desk::{StoreArgs, cell, plain, table, with_recall, write_out};
use crate::engine::recall::entry::EntryKind;
use crate::engine::recall::reference;
use crate::recall::{Recall, Trouble, Who};
use crate::store::journal::Listing;

/// Arguments of `longhaul journal`.
#[derive(Clone, clap::Args)]
pub struct JournalArgs {
    /// Which store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: JournalCommand,
}

/// What to do.
#[derive(Clone, clap::Subcommand)]
pub enum JournalCommand {
    /// Search what a session's views have left out
    Search {
        /// The session: its id, the beginning of it, or its label
        session: String,
        /// What to look for
        #[arg(required = true)]
        query: Vec<String>,
        /// How many results
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=32))]
        limit: u32,
    },
    /// List what there is of a session, the newest first, or show one thing in full
    Show {
        /// The session: its id, the beginning of it, or its label
        session: String,
        /// The reference of what to show
        reference: Option<String>,
        /// Which page of it
        #[arg(long, value_name = "N", default_value_t = 1)]
        page: u32,
        /// Only this kind of thing, such as `tool_result`, `decision` or `error`
        #[arg(long, value_name = "KIND", value_parser = kind)]
        kind: Option<EntryKind>,
        /// How many things to list
        #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Write the original messages of a session, byte for byte, as one JSON array
    Export {
        /// The session: its id, the beginning of it, or its label
        session: String,
        /// As the history was when it had so many messages
        #[arg(long, value_name = "MESSAGES")]
        as_of: Option<u32>,
    },
}

fn kind(name: &str) -> Result<EntryKind, String> {
    let kinds = || EntryKind::all().map(EntryKind::name).collect::<Vec<_>>();
    EntryKind::named(name).ok_or_else(|| format!("expected one of {}", kinds().join(", ")))
}

/// Does it.
pub fn run(args: JournalArgs) -> anyhow::Result<ExitCode> {
    let JournalArgs {
        store,
        json,
        command,
    } = args;
    with_recall(store, async move |recall: &Recall| match command {
        JournalCommand::Search {
            session,
            query,
            limit,
        } => search(recall, &session, &query.join(" "), limit, json).await,
        JournalCommand::Show {
            session,
            reference: Some(reference),
            page,
            ..
        } => expand(recall, &session, &reference, page, json).await,
        JournalCommand::Show {
            session,
            kind,
            limit,
            ..
        } => {
            let listing = Listing {
                kinds: kind.into_iter().collect(),
                before: None,
                limit,
            };
            list(recall, &session, &listing, json).await
        }
        JournalCommand::Export { session, as_of } => export(recall, &session, as_of).await,
    })
}

async fn search(
    recall: &Recall,
    session: &str,
    query: &str,
    limit: u32,
    json: bool,
) -> anyhow::Result<()> {
    let who = Who::Session(recall.named(session).await?);
    let found = recall.recall(who, query, limit).await?;
    if json {
        let hits: Vec<_> = found.hits.iter().map(|hit| hit.json(true)).collect();
        let text = json!({ "entries": hits, "more": found.more });
        return write_out(format!("{text:#}\n").as_bytes());
    }
    write_out(format!("{}\n", plain(&found.text())).as_bytes())
}

async fn expand(
    recall: &Recall,
    session: &str,
    given: &str,
    page: u32,
    json: bool,
) -> anyhow::Result<()> {
    let session = recall.named(session).await?;
    let reference = reference::read(given);
    let reference = reference.context("a reference is lh- and 20 digits or letters from a to f")?;
    if !recall.belongs(session, reference).await? {
        return Err(Trouble::UnknownReference.into());
    }
    let page = recall.expand(Who::Reference(reference), page).await?;
    if json {
        let text = json!({ "reference": page.reference, "page": page.page, "text": page.text });
        return write_out(format!("{text:#}\n").as_bytes());
    }
    write_out(format!("{}\n", plain(page.text.trim_end())).as_bytes())
}

async fn list(recall: &Recall, session: &str, listing: &Listing, json: bool) -> anyhow::Result<()> {
    let session = recall.named(session).await?;
    let shown = recall.show(session, listing, true).await?;
    if json {
        let entries: Vec<_> = shown.entries.iter().map(|hit| hit.json(true)).collect();
        let text = json!({ "entries": entries, "next": shown.next });
        return write_out(format!("{text:#}\n").as_bytes());
    }
    let heads = ["REF", "KIND", "TOOL", "ABOUT", "TURN", "BYTES", "TEXT"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(shown.entries.iter().map(|hit| {
        vec![
            reference::shown(hit.reference),
            hit.kind.name().to_owned(),
            cell(&hit.tool, 16),
            cell(&hit.path, 40),
            hit.turn.to_string(),
            hit.bytes.to_string(),
            cell(&hit.snippet, 80),
        ]
    }));
    write_out(table(&rows).as_bytes())
}

async fn export(recall: &Recall, session: &str, as_of: Option<u32>) -> anyhow::Result<()> {
    let session = recall.named(session).await?;
    let exported = recall.export(session, as_of).await?;
    if exported.messages < exported.of as usize {
        let message = format!(
            "longhaul: {} of {} messages are kept; the newest are put away when a view next leaves something out",
            exported.messages, exported.of
        );
        writeln!(std::io::stderr(), "{message}").context("cannot write to standard error")?;
    }
    write_out(&exported.json)?;
    write_out(b"\n")
}
