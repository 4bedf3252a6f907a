//! `longhaul sessions`: what sessions there are, how one went, what hands it on.

use std::process::ExitCode;

use serde_json::json;

use super::desk::{StoreArgs, cell, plain, table, with_recall, write_out};
use crate::engine::money;
use crate::recall::{Recall, Session, Step, Timeline};

/// Arguments of `longhaul sessions`.
#[derive(Clone, clap::Args)]
pub struct SessionsArgs {
    /// Which store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// How many sessions to list, those used last first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// What to do; without it sessions are listed.
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
}

/// What to do with one.
#[derive(Clone, clap::Subcommand)]
pub enum SessionsCommand {
    /// Show one session and its requests
    Show {
        /// Its id, the beginning of it, or its label
        session: String,
    },
    /// Write the text that starts a fresh session where this one ended
    Handoff {
        /// Its id, the beginning of it, or its label
        session: String,
    },
    /// Forget it: what the journal has of it, and what is remembered of its requests
    Delete {
        /// Its id, the beginning of it, or its label
        session: String,
    },
}

/// Does it.
pub fn run(args: SessionsArgs) -> anyhow::Result<ExitCode> {
    let SessionsArgs {
        store,
        json,
        limit,
        command,
    } = args;
    with_recall(store, async move |recall: &Recall| {
        let text = match command {
            None => list(recall, limit, json).await?,
            Some(SessionsCommand::Show { session }) => show(recall, &session, json).await?,
            Some(SessionsCommand::Handoff { session }) => {
                let id = recall.named(&session).await?;
                recall.handoff(id).await?
            }
            Some(SessionsCommand::Delete { session }) => delete(recall, &session, json).await?,
        };
        write_out(text.as_bytes())
    })
}

async fn list(recall: &Recall, limit: u32, json: bool) -> anyhow::Result<String> {
    let (sessions, next) = recall.sessions(None, limit).await?;
    if json {
        return Ok(format!("{:#}\n", json!({ "sessions": sessions })));
    }
    if sessions.is_empty() {
        return Ok("no sessions yet\n".to_owned());
    }
    let heads = [
        "ID", "LABEL", "MODEL", "MESSAGES", "TURNS", "ORIGINAL", "SENT", "STUBS", "SEGMENTS",
        "PASSES", "SPENT", "WITHOUT", "SAVED", "SEEN",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(sessions.iter().map(row));
    let mut text = table(&rows);
    if next.is_some() {
        text.push_str("there are more: --limit shows them\n");
    }
    Ok(text)
}

fn row(session: &Session) -> Vec<String> {
    vec![
        session.id.clone(),
        cell(session.label.as_deref().unwrap_or("-"), 24),
        cell(&session.model, 32),
        session.messages.to_string(),
        number(session.turns),
        number(session.original_tokens),
        number(session.sent_tokens),
        session.stubs.to_string(),
        session.segments.to_string(),
        session.passes.to_string(),
        money(session.spent_usd),
        money(session.without_usd),
        money(session.saved_usd),
        session.seen_at.clone(),
    ]
}

/// A number, or that nobody knows it.
fn number<T: ToString>(number: Option<T>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Dollars, or that nobody knows them.
fn money(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| "-".to_owned(), money::dollars)
}

/// What was spent, and what it would have been without.
fn spending(session: &Session) -> String {
    let both = session.spent_usd.zip(session.without_usd);
    both.map_or_else(
        || "not known: a model of this session has no price".to_owned(),
        |(spent, without)| money::sentence(spent, without),
    )
}

async fn show(recall: &Recall, given: &str, json: bool) -> anyhow::Result<String> {
    let Timeline { session, timeline } = recall.timeline(recall.named(given).await?).await?;
    if json {
        let whole = Timeline { session, timeline };
        return Ok(format!("{:#}\n", json!(whole)));
    }
    let facts = [
        ("session", session.id.clone()),
        ("label", plain(session.label.as_deref().unwrap_or("-"))),
        ("model", cell(&session.model, 64)),
        ("messages", session.messages.to_string()),
        ("turns", number(session.turns)),
        ("requests", session.requests.to_string()),
        ("original tokens", number(session.original_tokens)),
        ("sent tokens", number(session.sent_tokens)),
        ("stubs", session.stubs.to_string()),
        ("segments", session.segments.to_string()),
        ("passes", session.passes.to_string()),
        ("money", spending(&session)),
        ("saved", money(session.saved_usd)),
        ("breaker", session.breaker.to_owned()),
        ("thrashing", session.thrashing.to_string()),
        ("seen", session.seen_at.clone()),
    ];
    let facts = facts.map(|(name, value)| vec![name.to_owned(), value]);
    let heads = [
        "SEEN", "MODEL", "MESSAGES", "ORIGINAL", "SENT", "CACHED", "OUTPUT", "PASSES", "VIEW",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(timeline.iter().map(request));
    Ok(format!("{}\n{}", table(&facts), table(&rows)))
}

fn request(step: &Step) -> Vec<String> {
    let view = if step.new_view { "new" } else { "" };
    vec![
        step.seen_at.clone(),
        cell(&step.model, 32),
        step.messages.to_string(),
        number(step.original_tokens),
        number(step.sent_tokens),
        number(step.cache_read_tokens),
        number(step.output_tokens),
        step.passes.to_string(),
        view.to_owned(),
    ]
}

async fn delete(recall: &Recall, given: &str, json: bool) -> anyhow::Result<String> {
    let id = recall.named(given).await?;
    let gone = recall.forget(id).await?;
    let (marks, journal) = (gone.marks, gone.journal);
    if json {
        return Ok(format!(
            "{:#}
",
            gone.json(id)
        ));
    }
    Ok(format!(
        "session {id} is forgotten: {marks} marks, {} entries, {} pieces of content\n",
        journal.entries, journal.blobs
    ))
}
