//! However much there is, a page stays a page.

use std::sync::Arc;

use longhaul::engine::figures::Figures;
use longhaul::engine::ids::{ChainHash, LineageId};
use longhaul::engine::passed::Passed;
use longhaul::store::{MarkRow, Memory, Moment, Store};
use serde_json::json;

use super::visitor::{Visitor, links};
use crate::journal::stock::{put, wait};
use crate::support::{Proxy, Tap, plain};

fn mark(lineage: LineageId, number: u32, at: i64) -> MarkRow {
    let hash = blake3::hash(&[lineage.as_bytes(), number.to_le_bytes().as_slice()].concat());
    let chain = ChainHash::from_bytes(*hash.as_bytes());
    let pass = |tokens| Passed::new("budget", [("clear", tokens)], (30_000, 30_000 - tokens));
    let stored = json!({
        "version": 1,
        "prompt": u64::from(number % 300) * 100 + 1_000,
        "cache_read": 900,
        "requests": number,
    });
    let mut figures = Figures::read(stored.to_string().as_bytes());
    figures.passed = number.is_multiple_of(300).then(|| pass(20_000));
    MarkRow {
        chain,
        model: "claude-opus-4-8".to_owned(),
        lineage,
        messages: number * 2 + 1,
        overlay: None,
        view: chain,
        hint: None,
        sealed: true,
        figures: figures.store(),
        seen_at: Moment(at),
    }
}

fn proxy(store: &Arc<dyn Store>) -> (Tap, Proxy) {
    let upstream = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::on(store.clone(), &upstream.url(), "", None);
    (upstream, proxy)
}

#[test]
fn many_sessions_are_listed_a_page_at_a_time_and_each_once() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let of = |number: u32| LineageId::beginning(blake3::hash(&number.to_le_bytes()).as_bytes());
    let marks: Vec<MarkRow> = (0..130)
        .map(|number| mark(of(number), 1, i64::from(number)))
        .collect();
    wait(store.record(&marks)).unwrap();
    let (_upstream, proxy) = proxy(&store);
    let visitor = Visitor::of(&proxy);
    let mut path = Some("/longhaul/".to_owned());
    let mut seen = Vec::new();
    let mut pages = 0;
    while let Some(here) = path {
        let page = visitor.open(&here);
        seen.extend(
            links(&page)
                .into_iter()
                .filter(|link| link.contains("/page/")),
        );
        path = links(&page)
            .into_iter()
            .find(|link| link.contains("before="));
        pages += 1;
    }
    assert_eq!((pages, seen.len()), (3, 130));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 130);
}

#[test]
fn a_long_session_is_drawn_and_listed_within_bounds() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let id = LineageId::from_bytes([7; 16]);
    let marks: Vec<MarkRow> = (0..5_000)
        .map(|number| mark(id, number, i64::from(number) * 1_000))
        .collect();
    wait(store.record(&marks)).unwrap();
    let (_upstream, proxy) = proxy(&store);
    let visitor = Visitor::of(&proxy);
    let first = visitor.open(&format!("/longhaul/page/{id}"));
    assert!(first.len() < 200_000, "{}", first.len());
    assert!(first.contains("Page 1 of 80"));
    assert_eq!(first.matches("<circle").count(), 7, "every pass is marked");
    for (page, expected) in [(80, "Page 80 of 80"), (999, "Page 80 of 80")] {
        let page = visitor.open(&format!("/longhaul/page/{id}?page={page}"));
        assert!(page.contains(expected));
    }
}

#[test]
fn a_long_history_stands_beside_its_view_a_page_at_a_time() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let message = |number: usize| {
        let role = if number.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({"role": role, "content": format!("word {number} {}", "x ".repeat(20_000))})
    };
    let messages: Vec<_> = (0..95).map(message).collect();
    let stocked = wait(put(&*store, "a", &messages, 1_000));
    let (_upstream, proxy) = proxy(&store);
    let visitor = Visitor::of(&proxy);
    let base = format!("/longhaul/page/{}", stocked.id);
    let mut rows = 0;
    for number in 1..=3 {
        let page = visitor.open(&format!("{base}/view?page={number}"));
        assert!(page.len() < 500_000, "{}", page.len());
        rows += page.matches("<article").count();
        assert!(page.contains(&format!("Page {number} of 3")));
    }
    assert_eq!(rows, 95);
    // What is too long for a row has pages of its own.
    let whole = visitor.open(&format!("{base}/message/95"));
    assert!(whole.contains("word 94") && whole.contains("page 1 of 4"));
    let last = visitor.open(&format!("{base}/message/95?page=4"));
    assert!(last.contains("?page=3") && !last.contains("?page=5"));
}
