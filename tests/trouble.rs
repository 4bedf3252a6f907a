//! Views whose store, or whose upstream, is in trouble at the worst moment.
//!
//! The store here does what it is told to do wrong: it is down, it commits and
//! says it was too slow, it cannot read an overlay back, it has not seen what
//! another process has written. Whatever it does, nothing uncommitted is sent
//! and the same history goes as it went before.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests say what they expect, as tests do"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use longhaul::clock::Clock;
use longhaul::config::{Config, Flags, Sources, load};
use longhaul::engine::ids::{BlobId, ChainHash, Hint, OverlayId, SegmentId};
use longhaul::metrics::Metrics;
use longhaul::store::journal::Journal;
use longhaul::store::writer::Writer;
use longhaul::store::{
    Answer, Collected, Commit, Committed, Keep, MarkRow, Memory, Moment, Sessions, Store,
    StoreError,
};
use longhaul::views::Views;
use longhaul::views::credentials::Credential;
use longhaul::views::observe::Sent;
use longhaul::views::prepare::{Asked, Prepared, Verdict, Wish};
use longhaul::wire::refusal::Refusal;
use longhaul::wire::reply::{Reply, Usage};
use serde_json::{Value, json};

const FINE: u8 = 0;
/// Nothing works.
const DOWN: u8 = 1;
/// A commit happens, and is said to have been too slow.
const SLOW: u8 = 2;
/// No overlay can be read.
const UNREADABLE: u8 = 3;

#[derive(Default)]
struct Troubled {
    inner: Memory,
    trouble: AtomicU8,
}

impl Troubled {
    fn set(&self, trouble: u8) {
        self.trouble.store(trouble, Ordering::SeqCst);
    }

    fn has(&self, trouble: u8) -> bool {
        self.trouble.load(Ordering::SeqCst) == trouble
    }

    fn unless_down<'a, T: Send + 'a>(&self, answer: Answer<'a, T>) -> Answer<'a, T> {
        if self.has(DOWN) {
            return Box::pin(async { Err(StoreError::Failed("down".to_owned())) });
        }
        answer
    }
}

fn slow<'a, T: Send + 'a>() -> Answer<'a, T> {
    Box::pin(async { Err(StoreError::Slow(Duration::from_millis(250))) })
}

impl Store for Troubled {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.unless_down(self.inner.marks(places))
    }
    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.unless_down(self.inner.marks_by_view(hint, views))
    }
    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        self.unless_down(self.inner.overlays_of(hint, limit))
    }
    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        if self.has(UNREADABLE) {
            return slow();
        }
        self.unless_down(self.inner.overlay(id))
    }
    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        let done = self.inner.commit(commit);
        if self.has(SLOW) {
            return Box::pin(async move {
                done.await?;
                slow().await
            });
        }
        self.unless_down(done)
    }
    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        self.unless_down(self.inner.record(marks))
    }
    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        self.unless_down(self.inner.segments(ids))
    }
    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        self.unless_down(self.inner.put_segment(id, body, now))
    }
    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        self.inner.learned()
    }
    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        self.unless_down(self.inner.learn(key, value))
    }
    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        self.unless_down(self.inner.put_blobs(blobs, now))
    }
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        self.inner.blob(id)
    }
    fn journal(&self) -> &dyn Journal {
        self.inner.journal()
    }
    fn sessions(&self) -> &dyn Sessions {
        self.inner.sessions()
    }
    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        self.inner.collect(keep)
    }
    fn close(&self) -> Answer<'_, ()> {
        self.inner.close()
    }
}

/// It has not seen what others have written when it is asked.
struct Blind(Arc<Troubled>);
impl Store for Blind {
    fn marks<'a>(&'a self, _: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn marks_by_view<'a>(&'a self, _: Hint, _: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        self.0.overlays_of(hint, limit)
    }
    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        self.0.overlay(id)
    }
    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        self.0.commit(commit)
    }
    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        self.0.record(marks)
    }
    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        self.0.segments(ids)
    }
    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        self.0.put_segment(id, body, now)
    }
    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        self.0.learned()
    }
    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        self.0.learn(key, value)
    }
    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        self.0.put_blobs(blobs, now)
    }
    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        self.0.blob(id)
    }
    fn journal(&self) -> &dyn Journal {
        self.0.journal()
    }
    fn sessions(&self) -> &dyn Sessions {
        self.0.sessions()
    }
    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        self.0.collect(keep)
    }
    fn close(&self) -> Answer<'_, ()> {
        self.0.close()
    }
}

fn config(text: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("longhaul.toml");
    std::fs::write(&path, text).unwrap();
    let home = folder.path().display().to_string();
    let sources = Sources {
        file: Some(path),
        environment: vec![
            ("HOME".to_owned(), home),
            ("LONGHAUL_POLICY__CLEAR_AT".to_owned(), "0.6".to_owned()),
            ("LONGHAUL_POLICY__SUMMARIZE_AT".to_owned(), "0.7".to_owned()),
        ],
        flags: Flags::default(),
    };
    load(&sources)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .config
}

async fn views(store: Arc<dyn Store>, text: &str) -> Views {
    let writer = Writer::start(store.clone()).unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    Views::new(
        store,
        writer,
        config(text),
        metrics,
        Clock::default(),
        [7; 32],
    )
    .await
}

/// Twelve calls with thinking and long results, and a question.
fn session() -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for call in 0..12 {
        let thought = json!({"type": "thinking", "thinking": "t", "signature": format!("s{call}")});
        let used =
            json!({"type": "tool_use", "id": format!("t{call}"), "name": "Bash", "input": {}});
        let text = format!("line {call} ").repeat(140);
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("t{call}"), "content": text});
        messages.push(json!({"role": "assistant", "content": [thought, used]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    grown(messages)
}

fn grown(mut messages: Vec<Value>) -> Vec<Value> {
    messages.push(json!({"role": "assistant", "content": "done"}));
    messages.push(json!({"role": "user", "content": "next"}));
    messages
}

fn asked(model: &str, messages: &[Value], wish: Wish) -> Asked {
    let body = json!({"model": model, "max_tokens": 100, "messages": messages});
    Asked {
        sender: None,
        instructions: None,
        bytes: Bytes::from(body.to_string()),
        counts: false,
        wish,
        tenant: "".into(),
        credential: Credential::own(),
        hint: None,
        label: None,
    }
}

async fn prepared(views: &Views, asked: Asked) -> Box<Prepared> {
    match views.prepare(asked).await {
        Verdict::Send(prepared) => prepared,
        _ => panic!("it is a conversation"),
    }
}

fn answered(views: &Views, prepared: Box<Prepared>) {
    let mut sent = Sent::from(*prepared);
    let reply = Reply {
        usage: Usage {
            input: Some(3000),
            ..Usage::default()
        },
        ..Reply::default()
    };
    views.began(&mut sent, &reply);
    views.ended(&mut sent, &reply);
}

#[tokio::test]
async fn a_history_sent_again_goes_as_it_went_before_however_large_it_is() {
    let views = views(Arc::new(Memory::new()), "[window]\ndefault = 4000\n").await;
    let history = session();
    let first = prepared(&views, asked("m", &history, Wish::None)).await;
    let bytes = first.view.bytes();
    answered(&views, first);
    let again = prepared(&views, asked("m", &history, Wish::None)).await;
    assert!(again.view.bytes() == bytes);
}

#[tokio::test]
async fn a_store_that_is_down_costs_no_view_even_after_a_failed_try() {
    let store = Arc::new(Troubled::default());
    let views = views(store.clone(), "").await;
    let history = session();
    answered(
        &views,
        prepared(&views, asked("m", &history, Wish::Now)).await,
    );
    store.set(DOWN);
    let next = asked("m", &grown(history), Wish::None);
    let first = prepared(&views, next.clone()).await;
    assert!(first.view.edited);
    // Upstream was overloaded, and the client tries again.
    let again = prepared(&views, next).await;
    assert!(again.view.bytes() == first.view.bytes());
}

/// What does not fit is made to fit for once, if anything may be changed at all.
#[tokio::test]
async fn without_a_store_nothing_is_changed_for_who_wants_nothing_changed() {
    let rows = [
        ("on", Wish::None, true),
        ("on", Wish::Off, false),
        ("observe", Wish::None, false),
        ("off", Wish::None, false),
    ];
    for (mode, wish, edited) in rows {
        let store = Arc::new(Troubled::default());
        let file = format!("[window]\ndefault = 4000\n[policy]\nmode = \"{mode}\"\n");
        let views = views(store.clone(), &file).await;
        store.set(DOWN);
        let sent = prepared(&views, asked("m", &session(), wish)).await;
        assert_eq!(sent.view.edited, edited, "{mode}");
    }
}

#[tokio::test]
async fn a_commit_that_was_too_slow_and_came_about_changes_no_view_afterwards() {
    let store = Arc::new(Troubled::default());
    let views = views(store.clone(), "").await;
    let history = session();
    store.set(SLOW);
    let first = prepared(&views, asked("m", &history, Wish::Now)).await;
    let (bytes, edited) = (first.view.bytes(), first.view.edited);
    answered(&views, first);
    store.set(FINE);
    let again = prepared(&views, asked("m", &history, Wish::None)).await;
    assert!(again.view.bytes() == bytes);
    let next = prepared(&views, asked("m", &grown(history), Wish::None)).await;
    assert_eq!(next.view.edited, edited);
}

#[tokio::test]
async fn whoever_loses_a_race_and_cannot_read_the_winner_sends_nothing_uncommitted() {
    let store = Arc::new(Troubled::default());
    let history = session();
    let winner = views(store.clone(), "[clear]\nkeep_tool_uses = 5\n").await;
    let won = prepared(&winner, asked("m", &history, Wish::Now)).await;
    assert!(won.view.edited);
    let loser = views(Arc::new(Blind(store.clone())), "").await;
    store.set(UNREADABLE);
    let lost = prepared(&loser, asked("m", &history, Wish::Now)).await;
    assert!(!lost.view.edited, "the view it had");
    assert_eq!(lost.compaction(), "none");
    store.set(FINE);
    let read = prepared(&loser, asked("m", &history, Wish::Now)).await;
    assert!(read.view.bytes() == won.view.bytes(), "the winner's view");
}

#[tokio::test]
async fn a_refusal_replaces_a_plan_that_was_answered_before() {
    let views = views(Arc::new(Memory::new()), "").await;
    let history = session();
    answered(
        &views,
        prepared(&views, asked("m", &history, Wish::Now)).await,
    );
    // Figures are on their way; a plan is sealed either way.
    let mut again = prepared(&views, asked("m", &history, Wish::None)).await;
    let mut bodies = vec![again.view.bytes()];
    while views.refused(&mut again, &Refusal::Other).await {
        assert!(!bodies.contains(&again.view.bytes()), "tried before");
        bodies.push(again.view.bytes());
    }
    assert!(!again.view.edited, "the client's own request is the last");
}

/// Invariant 9, in the small: what one account enforces says nothing of another.
/// A summary may have used up all the waiting there is; a view that is refused
/// afterwards is still ours to put right.
#[tokio::test]
async fn a_view_that_is_refused_late_is_put_right_all_the_same() {
    let late = "[summarizer]\nmode = \"off\"\ndeadline = \"1ms\"";
    let views = views(Arc::new(Troubled::default()), late).await;
    let mut edited = prepared(&views, asked("m", &session(), Wish::Now)).await;
    assert!(edited.view.edited);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(views.refused(&mut edited, &Refusal::Other).await);
}

#[tokio::test]
async fn what_one_account_enforces_is_not_asked_of_another() {
    let views = views(Arc::new(Memory::new()), "").await;
    let mut history = session();
    history.truncate(history.len() - 2);
    let of = |tenant: &str, wish| Asked {
        tenant: tenant.into(),
        ..asked("claude-opus-5-5", &history, wish)
    };
    let mut one = prepared(&views, of("one", Wish::None)).await;
    assert!(views.refused(&mut one, &Refusal::BoundThinking(None)).await);
    assert!(one.view.added_drop);
    let other = prepared(&views, of("other", Wish::Now)).await;
    assert!(other.view.edited && !other.view.added_drop);
    let same = prepared(&views, of("one", Wish::Now)).await;
    assert!(same.view.edited && same.view.added_drop);
}

#[tokio::test]
async fn a_bad_signature_where_nothing_is_bound_is_the_client_s_own_matter() {
    let views = views(Arc::new(Memory::new()), "").await;
    let mut plain = prepared(&views, asked("claude-opus-4-8", &session(), Wish::None)).await;
    let refusal = Refusal::InvalidThinking(None);
    assert!(!views.refused(&mut plain, &refusal).await);
    let mut bound = prepared(&views, asked("claude-opus-5-5", &session(), Wish::None)).await;
    assert!(views.refused(&mut bound, &refusal).await);
}
