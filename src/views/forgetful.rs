//! What is forgotten costs work, and never makes a conversation look smaller
//! than it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};

use super::Views;
use super::build::{Built, Plan, of_view};
use super::credentials::Credential;
use super::known::Known;
use super::observe::Sent;
use super::prepare::{Asked, Prepared, Verdict, Wish};
use super::recognise::Recognised;
use crate::clock::Clock;
use crate::config::{Sources, load};
use crate::engine::figures::Figures;
use crate::engine::ids::{BlobId, ChainHash, Hint, OverlayId, SegmentId};
use crate::engine::measure::raw_prompt;
use crate::engine::overlay::{Change, Edit, Overlay};
use crate::engine::swift::Key;
use crate::metrics::Metrics;
use crate::store::journal::Journal;
use crate::store::writer::Writer;
use crate::store::{
    Answer, Collected, Commit, Committed, Keep, MarkRow, Memory, Moment, Sessions, Store,
    StoreError,
};
use crate::wire::reply::Reply;

fn recognised(turns: usize) -> Recognised {
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({"role": role, "content": [{"type": "text", "text": "many words ".repeat(100)}]})
    };
    let messages: Vec<Value> = (0..turns).map(message).collect();
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    let (key, known) = (Key::new([7; 32]), Known::default());
    Recognised::new(Bytes::from(body), "t".into(), false, &key, &known).unwrap()
}

/// Figures that a newer program wrote, or that are damaged, are as good as none.
#[test]
fn figures_that_cannot_be_read_are_counted_anew_from_the_start() {
    let recognised = recognised(5);
    let place = recognised.hashes().1.get(2).copied();
    let stub = Edit {
        message: 2,
        block: 0,
        change: Change::Payload(r#""less""#.into()),
    };
    let overlay = Overlay {
        made_at: 3,
        edits: vec![stub],
        ..Overlay::default()
    };
    let overlay = (OverlayId::from_bytes([1; 32]), Arc::new(overlay));
    for overlay in [None, Some(overlay)] {
        let plan = Plan {
            overlay,
            figures: Figures::read(br#"{"version":99}"#),
            view: None,
        };
        let built = Built::make(&recognised, plan, Some((3, place)), false, false).unwrap();
        let whole = raw_prompt(&recognised.bytes, &recognised.body, u64::MAX);
        let (_, size) = of_view(&built.view, "t").unwrap();
        assert!(whole.messages.text > 900);
        assert_eq!(built.history, whole);
        assert_eq!(built.size, size);
    }
}

/// A store that can go away.
#[derive(Default)]
struct Fickle {
    inner: Memory,
    away: AtomicBool,
}

impl Fickle {
    fn there<'a, T: Send + 'a>(&self, answer: Answer<'a, T>) -> Answer<'a, T> {
        if self.away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Failed("away".into())) });
        }
        answer
    }
}

impl Store for Fickle {
    fn marks<'a>(&'a self, places: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.there(self.inner.marks(places))
    }

    fn marks_by_view<'a>(&'a self, hint: Hint, views: &'a [ChainHash]) -> Answer<'a, Vec<MarkRow>> {
        self.there(self.inner.marks_by_view(hint, views))
    }

    fn overlays_of(&self, hint: Hint, limit: u32) -> Answer<'_, Vec<OverlayId>> {
        self.there(self.inner.overlays_of(hint, limit))
    }

    fn overlay(&self, id: OverlayId) -> Answer<'_, Option<Vec<u8>>> {
        self.there(self.inner.overlay(id))
    }

    fn commit<'a>(&'a self, commit: &'a Commit) -> Answer<'a, Committed> {
        self.there(self.inner.commit(commit))
    }

    fn record<'a>(&'a self, marks: &'a [MarkRow]) -> Answer<'a, Vec<MarkRow>> {
        self.there(self.inner.record(marks))
    }

    fn segments<'a>(&'a self, ids: &'a [SegmentId]) -> Answer<'a, Vec<(SegmentId, Vec<u8>)>> {
        self.there(self.inner.segments(ids))
    }

    fn put_segment<'a>(
        &'a self,
        id: SegmentId,
        body: &'a [u8],
        now: Moment,
    ) -> Answer<'a, Vec<u8>> {
        self.there(self.inner.put_segment(id, body, now))
    }

    fn learned(&self) -> Answer<'_, Vec<(String, String)>> {
        self.there(self.inner.learned())
    }

    fn learn<'a>(&'a self, key: &'a str, value: &'a str) -> Answer<'a, ()> {
        self.there(self.inner.learn(key, value))
    }

    fn put_blobs<'a>(&'a self, blobs: &'a [(BlobId, Vec<u8>)], now: Moment) -> Answer<'a, ()> {
        self.there(self.inner.put_blobs(blobs, now))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Vec<u8>>> {
        self.there(self.inner.blob(id))
    }

    fn journal(&self) -> &dyn Journal {
        self.inner.journal()
    }

    fn sessions(&self) -> &dyn Sessions {
        self.inner.sessions()
    }

    fn collect(&self, keep: Keep) -> Answer<'_, Collected> {
        self.there(self.inner.collect(keep))
    }

    fn close(&self) -> Answer<'_, ()> {
        self.there(self.inner.close())
    }
}

/// Views as they are by default.
pub(super) async fn views(store: Arc<dyn Store>) -> Views {
    let sources = Sources {
        environment: vec![
            ("HOME".into(), "/tmp".into()),
            ("LONGHAUL_POLICY__CLEAR_AT".into(), "0.6".into()),
        ],
        ..Sources::default()
    };
    let config = load(&sources).unwrap().config;
    let writer = Writer::start(store.clone()).unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    Views::new(store, writer, config, metrics, Clock::default(), [7; 32]).await
}

/// A history with results to clear.
pub(super) fn worked() -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for id in 0..12 {
        let call = json!({"type": "tool_use", "id": format!("t{id}"), "name": "Bash", "input": {}});
        let content = "long ".repeat(200);
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("t{id}"), "content": content});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    messages
}

pub(super) async fn prepared(views: &Views, messages: &[Value], wish: Wish) -> Box<Prepared> {
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    let asked = Asked {
        sender: None,
        instructions: None,
        bytes: Bytes::from(body),
        counts: false,
        wish,
        tenant: "t".into(),
        credential: Credential::own(),
        hint: None,
        label: None,
    };
    match views.prepare(asked).await {
        Verdict::Send(prepared) => prepared,
        Verdict::AsSent | Verdict::Decline => panic!("no view"),
    }
}

/// What a mark names is held elsewhere, and must still be there.
#[tokio::test]
async fn a_lineage_in_use_keeps_its_overlay_while_the_store_is_away() {
    let store = Arc::new(Fickle::default());
    let views = views(store.clone()).await;
    let mut messages = worked();
    let first = prepared(&views, &messages, Wish::Now).await;
    let (id, _) = first.overlay.clone().unwrap();
    let mut sent = Sent::from(*first);
    views.began(&mut sent, &Reply::default());
    views.ended(&mut sent, &Reply::default());
    store.away.store(true, Ordering::SeqCst);
    for turn in 0..3 {
        messages.push(json!({"role": "assistant", "content": format!("{turn}")}));
        messages.push(json!({"role": "user", "content": "on"}));
        let next = prepared(&views, &messages, Wish::None).await;
        let (same, _) = next.overlay.clone().unwrap();
        assert_eq!(same, id);
        let mut sent = Sent::from(*next);
        views.began(&mut sent, &Reply::default());
        views.ended(&mut sent, &Reply::default());
    }
}
