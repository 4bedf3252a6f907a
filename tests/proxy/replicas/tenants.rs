//! Tenants with the same history have nothing in common, down to the rows.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use longhaul::sim::Options;

use super::{replicas, wait};
use crate::cluster::{Cluster, number, raw};
use crate::support::{simulated::Simulated, text};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction};

/// Every table that holds something of a conversation.
const TABLES: [&str; 11] = [
    "marks", "overlays", "blobs", "branches", "places", "messages", "promises", "links", "entries",
    "words", "segments",
];

fn rows(url: &str) -> Vec<(&'static str, i64)> {
    wait(async {
        let mut stranger = raw(url).await;
        let mut rows = Vec::new();
        for table in TABLES {
            let sql = format!("SELECT count(*) FROM longhaul.{table}");
            rows.push((table, number(&mut stranger, &sql).await));
        }
        rows
    })
}

/// What is there once nothing more comes.
fn settled(url: &str) -> Vec<(&'static str, i64)> {
    let begun = Instant::now();
    let mut before = rows(url);
    loop {
        std::thread::sleep(Duration::from_millis(400));
        let now = rows(url);
        if now == before {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        before = now;
    }
}

/// What references a request shows.
fn references(body: &[u8]) -> HashSet<String> {
    let text = text(body);
    let found = text.split("lh-").skip(1);
    found.map(|rest| rest.chars().take(20).collect()).collect()
}

#[test]
fn tenants_with_the_same_history_share_neither_rows_nor_references() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = wait(cluster.database());
    let folder = tempfile::tempdir().unwrap();
    let file = format!("store.url = {url:?}\n[tenant]\nby = \"header:x-tenant\"\n");
    let upstream = Simulated::start(Options::default());
    let proxies = replicas(2, &upstream, &folder, &file);
    let mut seen = Vec::new();
    for (tenant, proxy) in [("a", &proxies[0]), ("b", &proxies[1])] {
        let agent = Agent::seasoned(FREE, 10, 2_000);
        let agent = agent.saying(&format!("x-tenant: {tenant}\r\n"));
        assert_eq!(compaction(&agent.send(proxy, NOW)), "clear");
        let shown = references(&upstream.last().body.unwrap());
        seen.push((settled(&url), shown));
    }
    let [(one, first), (both, second)] = seen.as_slice() else {
        panic!("two tenants");
    };
    for ((table, one), (_, both)) in one.iter().zip(both) {
        assert!(*one > 0 || *table == "segments", "{table} is used");
        assert_eq!(*both, 2 * one, "{table}: each has rows of its own");
    }
    assert!(!first.is_empty() && first.is_disjoint(second));
}
