//! Many idle conversations at once: what each one costs in memory, and what it
//! costs to go on with one.
//!
//! A few by default; `LONGHAUL_LINEAGES` says how many, and `make prove`
//! takes ten thousand. Each grows turn by turn to five hundred messages, as a
//! client would send it, against the store as it is in use.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "tests say what they expect"
)]

use std::sync::Arc;

use bytes::Bytes;
use longhaul::clock::Clock;
use longhaul::config::Config;
use longhaul::metrics::Metrics;
use longhaul::store::sqlite;
use longhaul::store::writer::Writer;
use longhaul::views::Views;
use longhaul::views::credentials::Credential;
use longhaul::views::observe::Sent;
use longhaul::views::prepare::{Asked, Verdict, Wish};
use longhaul::wire::reply::{Reply, Usage};

const MESSAGES: usize = 500;
/// What the issue allows for one idle conversation.
const ALLOWED: usize = 32 * 1024;

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// The messages of one conversation, as the inside of an array.
fn grow(text: &mut String, lineage: usize, from: usize) {
    for message in from..from + 2 {
        let role = if message % 2 == 0 {
            "user"
        } else {
            "assistant"
        };
        let comma = if message == 0 { "" } else { "," };
        let next = format!(r#"{comma}{{"role":"{role}","content":"m{lineage} {message}"}}"#);
        text.push_str(&next);
    }
}

fn asked(text: &str, lineage: usize, next: usize) -> Asked {
    let body = format!(
        r#"{{"model":"claude-opus-5-5","max_tokens":9,"messages":[{text},{{"role":"user","content":"m{lineage} {next}"}}]}}"#
    );
    Asked {
        sender: None,
        instructions: None,
        bytes: Bytes::from(body.replace("[,", "[")),
        counts: false,
        wish: Wish::None,
        tenant: "".into(),
        credential: Credential::own(),
        hint: None,
        label: None,
    }
}

async fn send(views: &Views, asked: Asked) {
    let Verdict::Send(prepared) = views.prepare(asked).await else {
        unreachable!("it is a conversation");
    };
    let reply = Reply {
        usage: Usage {
            input: Some(1000),
            output: Some(5),
            ..Usage::default()
        },
        ..Reply::default()
    };
    let mut sent = Sent::from(*prepared);
    views.began(&mut sent, &reply);
    views.ended(&mut sent, &reply);
}

fn looks(metrics: &Metrics) -> (u64, u64) {
    let text = metrics.render().unwrap();
    let count = |op: &str| {
        let line = format!("longhaul_store_seconds_count{{op=\"{op}\"}} ");
        let found = text.lines().find_map(|row| row.strip_prefix(&line));
        found.map_or(0, |count| count.parse().unwrap())
    };
    (count("marks"), count("overlay") + count("overlays_of"))
}

#[test]
fn an_idle_conversation_is_small_and_goes_on_with_one_look_up() {
    let wanted = std::env::var("LONGHAUL_LINEAGES").ok();
    let lineages: usize = wanted.map_or(10, |count| count.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = Config::default();
        let opened = sqlite::open(folder.path(), config.store.timeout).await;
        let writer = Writer::start(opened.store.clone()).unwrap();
        let metrics = Arc::new(Metrics::new().unwrap());
        let views = Views::new(
            opened.store,
            writer,
            config,
            metrics.clone(),
            Clock::default(),
            [7; 32],
        )
        .await;
        let views = Arc::new(views);
        // What is loaded once is not any conversation's.
        send(&views, asked("", 0, 0)).await;
        let before = resident();
        let grow_some = |first: usize| {
            let views = views.clone();
            async move {
                for lineage in (first..lineages).step_by(2) {
                    let mut text = String::new();
                    for turn in 0..MESSAGES / 2 {
                        send(&views, asked(&text, lineage, turn * 2)).await;
                        grow(&mut text, lineage, turn * 2);
                    }
                }
            }
        };
        let halves = [tokio::spawn(grow_some(0)), tokio::spawn(grow_some(1))];
        for half in halves {
            half.await.unwrap();
        }
        let each = resident().saturating_sub(before) / lineages;
        let (marks, others) = looks(&metrics);
        for lineage in 0..lineages {
            let mut text = String::new();
            (0..MESSAGES / 2).for_each(|turn| grow(&mut text, lineage, turn * 2));
            send(&views, asked(&text, lineage, MESSAGES)).await;
        }
        let (marks_after, others_after) = looks(&metrics);
        assert_eq!(marks_after - marks, lineages as u64, "one look-up each");
        assert_eq!(others_after, others);
        println!(
            "{lineages} lineages of {MESSAGES} messages, {:.1} kB resident each",
            each as f64 / 1024.0
        );
        // Below some hundreds, what the process needs anyway is most of it.
        assert!(lineages < 500 || each <= ALLOWED, "{each} bytes each");
        views.close().await;
    });
}
