//! A whole pass: what a request costs that makes its view smaller.
//!
//! The same steps as in a proxy, one after the other: survey, decide, draft, and
//! the check that the API will take the view, for which it is rendered, split,
//! hashed and measured. The conversation is as large as its window.

use bytes::Bytes;
use longhaul::engine::cache_marks::Basis;
use longhaul::engine::chain;
use longhaul::engine::conversation::Conversation;
use longhaul::engine::digest::Size;
use longhaul::engine::legal::{faults, keeps_newest};
use longhaul::engine::measure::{BUDGET, raw_prompt};
use longhaul::engine::overlay::{Origin, Overlay, Segment};
use longhaul::engine::policy::{Bill, Cache, Course, Decision, Pass, Rates, Situation, Watermarks};
use longhaul::engine::policy::{Offer, decide};
use longhaul::engine::recall::telling::Telling;
use longhaul::engine::reduce::Draft;
use longhaul::engine::split::Split;
use longhaul::engine::tiers::{Batches, Clears, Settings, Survey, Trims};
use longhaul::engine::view::{Recipe, View};
use longhaul::wire::body::Body;

/// Bytes of a token, about.
const TOKEN: u64 = 4;

/// A pass to be made.
pub struct Task {
    settings: Settings,
    situation: Situation,
}

impl Task {
    /// With clearing, trimming and hiding; or with a summary of half of it.
    pub fn new(bytes: &[u8], body: &Body, summary: bool) -> Self {
        let size = bytes.len() as u64 / TOKEN;
        let half = u32::try_from(body.messages().len() / 4 * 2 + 1).unwrap();
        let closing = Segment {
            block: r#"{"type":"text","text":"They agreed on everything."}"#.to_owned(),
            from: 1,
            to: half,
            origin: Origin::Summary,
            pinned: 100,
        };
        Self {
            settings: Settings {
                clears: Some(Clears {
                    keep_tool_uses: 3,
                    supersede: true,
                    ..Clears::default()
                }),
                trim: Some(Trims {
                    max_chars: 40_000,
                    ..Trims::default()
                }),
                split: Split {
                    tail_messages: 10,
                    ..Split::default()
                },
                archives: Some(Telling::default()),
                closing: summary.then_some(closing),
                digest: Size::USUAL,
                ..Settings::default()
            },
            situation: Situation {
                size,
                expected: size / 100,
                too_many_bytes: false,
                watermarks: Watermarks {
                    clear_at: Some(size / 10 * 6),
                    summarize_at: Some(size / 10 * 7),
                    hard_at: size / 100 * 95,
                    floor: size / 100 * 35,
                },
                cache: Cache::Warm,
                rates: Rates::usual(None),
                bill: Bill::default(),
                course: Course::default(),
                requests: 500,
                horizon: None,
                at_least: 1_000,
                thrash_limit: 3,
                asked: None,
                switched: false,
                ready: summary.then_some(false),
                native: false,
                waits: false,
                still: false,
                spares: false,
                in_loop: true,
                binds_in_loop: false,
                journal: false,
                beyond: false,
            },
        }
    }

    fn survey<'a>(
        &'a self,
        conversation: &'a Conversation<'a>,
        current: &'a Overlay,
    ) -> Survey<'a> {
        let tenant = chain::start("tenant");
        let size = self.situation.size;
        Survey::new(conversation, current, tenant, &self.settings, size)
    }

    fn decide(&self, survey: &Survey<'_>) -> Pass {
        let offer: Offer = survey.offer(&[]);
        match decide(&self.situation, &offer) {
            Decision::Pass(pass) => pass,
            Decision::Rest(rest) => panic!("a pass is due: {rest:?}"),
        }
    }

    /// Looks over what could go, and decides.
    pub fn decided(&self, bytes: &[u8], body: &Body) -> Pass {
        let (conversation, none) = (Conversation::new(bytes, body), Overlay::default());
        self.decide(&self.survey(&conversation, &none))
    }

    /// The same, and drafts.
    pub fn drafted(&self, bytes: &[u8], body: &Body) -> Draft {
        let (conversation, none) = (Conversation::new(bytes, body), Overlay::default());
        let survey = self.survey(&conversation, &none);
        let pass = self.decide(&survey);
        let arrivals = survey.arrivals(body.messages().len().saturating_sub(2));
        let size = self.situation.size;
        let batches = Batches::default();
        let close = batches.close(pass.closes);
        let draft = survey.draft(&pass.take, close, arrivals, pass.must_reach, size);
        draft.unwrap()
    }

    /// All of it.
    pub fn made(&self, bytes: &Bytes, body: &Body) {
        let draft = self.drafted(bytes, body);
        checked(bytes, body, &draft);
    }
}

/// Renders what was drafted, and makes sure of it.
pub fn checked(bytes: &Bytes, body: &Body, draft: &Draft) {
    let conversation = Conversation::new(bytes, body);
    let recipe = Recipe {
        overlay: Some(&draft.overlay),
        marks: Some(Basis {
            swap: true,
            ..Basis::default()
        }),
        drop_block: false,
        without_client_clear: false,
    };
    let view = View::make(bytes, &conversation, recipe).unwrap();
    let shown = view.bytes();
    let split = Body::split(&shown).unwrap();
    let theirs = faults(bytes, body);
    assert!(faults(&shown, &split).is_subset(&theirs));
    assert!(keeps_newest(
        &conversation,
        &Conversation::new(&shown, &split)
    ));
    std::hint::black_box(chain::chain("tenant", &shown, &split));
    std::hint::black_box(raw_prompt(&shown, &split, BUDGET));
}
