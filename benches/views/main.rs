//! What understanding a body costs, against the least that could be done to it.
//!
//! `cargo bench --bench views`. The floor is one copy of the body and one fast
//! hash over it, since every byte has to be moved and looked at. The rows of a
//! round alternate, so that a disturbance hits all of them, and the best round
//! of each counts: the ratios hold on any machine, the times only on this one.
//! Two bodies differ only in how many messages they have: what a byte costs must
//! not depend on how long a history is. To measure one more thing, add a [`Row`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::format_push_string,
    missing_docs
)]

mod history;
mod pass;

use std::alloc::System;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highway::{HighwayHash, HighwayHasher};
use longhaul::engine::cache_marks::Basis;
use longhaul::engine::conversation::Conversation;
use longhaul::engine::measure::{BUDGET, Counter, Size, raw_base};
use longhaul::engine::overlay::Overlay;
use longhaul::engine::recall::telling::Telling;
use longhaul::engine::split::Split;
use longhaul::engine::tiers::{Clears, Settings, Survey};
use longhaul::engine::view::{Recipe, View};
use longhaul::engine::{chain, swift};
use longhaul::wire::body::Body;
use pass::Task;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What is measured, bytes, messages.
const BODIES: [(&str, usize, usize); 6] = [
    ("14 KB", 14_000, 8),
    ("1 MB", 1_000_000, 270),
    ("8 MB", 8_000_000, 2169),
    ("10 messages", 37_000, 10),
    ("1,000 messages", 3_700_000, 1000),
    ("small messages", 300_000, 1500),
];

/// One line of the table: its name, and what it does to a body.
type Row<'a> = (&'a str, Box<dyn FnMut() + 'a>);

fn row<'a, T>(name: &'a str, mut work: impl FnMut() -> T + 'a) -> Row<'a> {
    (name, Box::new(move || drop(black_box(work()))))
}

/// An overlay as a pass would make it: stubs, and the older half hidden.
fn overlay(bytes: &[u8], body: &Body) -> Option<Overlay> {
    let settings = Settings {
        clears: Some(Clears {
            keep_tool_uses: 3,
            supersede: true,
            ..Clears::default()
        }),
        split: Split {
            tail_messages: 10,
            ..Split::default()
        },
        archives: Some(Telling::default()),
        ..Settings::default()
    };
    let (conversation, none) = (Conversation::new(bytes, body), Overlay::default());
    let tenant = chain::start("tenant");
    let survey = Survey::in_bytes(&conversation, &none, tenant, &settings);
    let draft = survey.everything(bytes.len() as u64 / 4)?;
    Some(draft.overlay)
}

/// The view of a history, as a list of pieces.
fn view(bytes: &Bytes, body: &Body, overlay: Option<&Overlay>) -> View {
    let conversation = Conversation::new(bytes, body);
    let recipe = Recipe {
        overlay,
        marks: Some(Basis::default()),
        drop_block: false,
        without_client_clear: false,
    };
    View::make(bytes, &conversation, recipe).unwrap()
}

/// The size of a history whose last two messages are new.
fn grown(bytes: &[u8], body: &Body, before: Size) -> Size {
    let known = body.messages().len().saturating_sub(2);
    before.grown(bytes, body, known, BUDGET)
}

fn rows<'a>(bytes: &'a Bytes, body: &'a Body, copy: &'a mut Vec<u8>) -> Vec<Row<'a>> {
    let made = overlay(bytes, body);
    let drawn = made.clone();
    let before = Size {
        base: raw_base(bytes, body, &mut Counter::exact()),
        ..Size::default()
    };
    let last = chain::start("tenant");
    let known = body.messages().len().saturating_sub(2);
    let key = swift::Key::new([7; 32]);
    let (other, third) = (key.clone(), key.clone());
    let task = |summary| Task::new(bytes, body, summary);
    let drafted = task(false).drafted(bytes, body);
    let (again, whole, summed_up, task) = (task(false), task(false), task(true), task(false));
    let hash = || HighwayHasher::new(highway::Key([7; 4])).hash128(black_box(bytes));
    vec![
        row("floor: copy and hash once", move || {
            copy.clear();
            copy.extend_from_slice(black_box(bytes));
            hash()
        }),
        row("hash once", hash),
        row("check UTF-8", || {
            simdutf8::basic::from_utf8(black_box(bytes)).is_ok()
        }),
        row("split, UTF-8 check included", || {
            Body::split(black_box(bytes))
        }),
        row("swift chain", move || {
            swift::swift(&key, "tenant", black_box(bytes), body)
        }),
        row("split and swift chain", move || {
            let body = Body::split(black_box(bytes)).unwrap();
            swift::swift(&other, "tenant", bytes, &body)
        }),
        row("BLAKE3 chain", || {
            chain::chain("tenant", black_box(bytes), body)
        }),
        row("measure: two new messages", move || {
            grown(black_box(bytes), body, before)
        }),
        row("render: as it is", || view(black_box(bytes), body, None)),
        row("render: stubs and segments", move || {
            view(black_box(bytes), body, made.as_ref())
        }),
        row("all of it, two new messages", move || {
            let body = Body::split(black_box(bytes)).unwrap();
            let swifts = swift::swift(&third, "tenant", bytes, &body);
            let hashes = chain::chain_from(last, bytes, &body, known);
            let size = grown(bytes, &body, before);
            (swifts, hashes, size, view(bytes, &body, drawn.as_ref()))
        }),
        row("a pass: draft", || overlay(black_box(bytes), body)),
        row("a pass: survey and decide", move || {
            task.decided(black_box(bytes), body)
        }),
        row("a pass: and draft", move || {
            again.drafted(black_box(bytes), body)
        }),
        row("a pass: check alone", move || {
            pass::checked(black_box(bytes), body, &drafted);
        }),
        row("a pass: all of it", move || {
            whole.made(black_box(bytes), body);
        }),
        row("a pass: all of it, a summary", move || {
            summed_up.made(black_box(bytes), body);
        }),
    ]
}

fn main() {
    // Cargo passes arguments meant for its own harness; only a number is ours.
    let rounds: u32 = std::env::args()
        .find_map(|text| text.parse().ok())
        .unwrap_or(200);
    for (name, size, messages) in BODIES {
        let bytes = Bytes::from(history::history(size, messages));
        let body = Body::split(&bytes).unwrap();
        let (length, count) = (bytes.len(), body.messages().len());
        println!("\n### {name}: {length} bytes, {count} messages\n");
        println!("| | best | ms per MB | to the floor | allocations |");
        println!("|---|---|---|---|---|");
        let mut copy = Vec::with_capacity(length);
        let mut rows = rows(&bytes, &body, &mut copy);
        // About as many bytes for every size, and no fewer than ten rounds.
        let rounds = (rounds * 1_000_000 / u32::try_from(length).unwrap()).clamp(10, 5000);
        let mut best = vec![Duration::MAX; rows.len()];
        for _ in 0..rounds {
            for ((_, work), best) in rows.iter_mut().zip(&mut best) {
                let begin = Instant::now();
                work();
                *best = begin.elapsed().min(*best);
            }
        }
        for ((name, work), time) in rows.iter_mut().zip(&best) {
            let region = Region::new(ALLOCATOR);
            work();
            let change = region.change();
            let allocations = change.allocations + change.reallocations;
            let milliseconds = time.as_secs_f64() * 1000.0;
            let each = milliseconds * 1e6 / length as f64;
            let ratio = time.as_secs_f64() / best[0].as_secs_f64();
            println!("| {name} | {milliseconds:.4} ms | {each:.3} | {ratio:.2} | {allocations} |");
        }
    }
}
