//! `longhaul sim`: the simulated upstream on its own, to try an agent offline.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;

use crate::sim::{Enforcement, Options, Rule, Sim};

/// Arguments of `longhaul sim`.
#[derive(Debug, Clone, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct SimArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4181")]
    pub listen: String,
    /// Window of every model in tokens, instead of its own
    #[arg(long, value_name = "TOKENS")]
    pub window: Option<u64>,
    /// Factor between a public tokenizer's counts and the simulator's
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub drift: f64,
    /// Refuse thinking that does not fit its conversation, instead of only reporting it
    #[arg(long)]
    pub enforce_binding: bool,
    /// Refuse server-held threads
    #[arg(long)]
    pub refuse_threads: bool,
    /// Refuse on-demand compaction
    #[arg(long)]
    pub refuse_compaction: bool,
    /// Refuse `context_management`
    #[arg(long)]
    pub refuse_context_management: bool,
    /// Accept several system messages in a row inside a conversation
    #[arg(long)]
    pub accept_system_runs: bool,
    /// Refuse a history with tool calls when the request has no tools
    #[arg(long)]
    pub require_tools: bool,
    /// Wait before the first byte of an answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub first_byte_delay: u64,
    /// Wait between two stream events, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub event_delay: u64,
    /// Call this tool after each user turn, as often as --calls says
    #[arg(long, value_name = "NAME")]
    pub call_tool: Option<String>,
    /// How often to call it
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub calls: u64,
    /// Keep request bodies in the ledger
    #[arg(long)]
    pub keep_bodies: bool,
}

/// Runs the simulator until it is interrupted.
pub async fn run(args: SimArgs) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(&args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let sim = Sim::new(options(&args));
    if let Some(name) = &args.call_tool {
        sim.set_rule(Rule::call_tool(name, args.calls));
    }
    let mut out = std::io::stdout();
    writeln!(out, "longhaul sim listening on http://{address}")?;
    out.flush()?;
    tokio::select! {
        () = sim.serve(listener) => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}

fn options(args: &SimArgs) -> Options {
    Options {
        window: args.window,
        drift: args.drift,
        enforcement: if args.enforce_binding {
            Enforcement::Enforced
        } else {
            Enforcement::Recorded
        },
        threads: !args.refuse_threads,
        compaction: !args.refuse_compaction,
        context_management: !args.refuse_context_management,
        system_message_runs: args.accept_system_runs,
        calls_without_tools: !args.require_tools,
        split_results: true,
        first_byte_delay: Duration::from_millis(args.first_byte_delay),
        event_delay: Duration::from_millis(args.event_delay),
        keep_bodies: args.keep_bodies,
        ..Options::default()
    }
}
