//! The policy as a table: each row a situation, and what comes of it.

use super::*;

/// A conversation of so many tokens, in equal messages, of which most can go.
/// The window is of 100,000: clear at 60,000, hard at 95,000, floor 35,000.
pub(super) fn offer(size: u64) -> Offer {
    let messages = usize::try_from(size / 1_000).unwrap();
    let item = |message: usize| Item {
        message,
        frees: 700,
        useless: false,
        in_hand: false,
        images: 0,
        need: Need::default(),
    };
    Offer {
        items: (1..messages.saturating_sub(3)).map(item).collect(),
        behind: (0..=messages)
            .map(|at| (messages - at) as u64 * 1_000)
            .collect(),
        thinking: Vec::new(),
        images: 0,
        closing: None,
        closable: None,
        segments: 0,
        old_turns: None,
        more: None,
        living: (0..messages).collect(),
    }
}

/// What a read costs, in thousandths of input.
pub(super) fn rates(read: u64) -> Rates {
    Rates {
        input: 1_000_000,
        write: 1_250_000,
        read: read * 1_000,
    }
}

/// A lineage that has spent this many dollars.
pub(super) fn spent(dollars: i128) -> Course {
    let mut course = Course::default();
    course.billed(dollars * 1_000_000_000_000, 0);
    course
}

pub(super) fn situation(course: &Course) -> Situation {
    Situation {
        size: 62_000,
        expected: 0,
        too_many_bytes: false,
        watermarks: Watermarks {
            clear_at: Some(60_000),
            summarize_at: Some(70_000),
            hard_at: 95_000,
            floor: 35_000,
        },
        cache: Cache::Warm,
        rates: rates(100),
        bill: Bill::default(),
        course: course.clone(),
        requests: 100,
        horizon: None,
        at_least: 5_000,
        thrash_limit: 3,
        asked: None,
        switched: false,
        waits: false,
        ready: None,
        native: false,
        still: false,
        in_loop: false,
        binds_in_loop: false,
        spares: false,
        journal: false,
        beyond: false,
    }
}

fn verdict(situation: &Situation) -> String {
    match decide(situation, &offer(situation.size)) {
        Decision::Rest(rest) => {
            let name = format!("{rest:?}");
            name.split([' ', '{']).next().unwrap().to_owned()
        }
        Decision::Pass(pass) => format!("{:?}", pass.trigger),
    }
}

/// A name, what is different from a full view where a pass pays, and what comes
/// of it.
type Row = (&'static str, fn(&mut Situation), &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("below the first watermark", |s| { s.size = 59_000; }, "Calm"),
    ("above it, where it pays", |_| {}, "Budget"),
    ("about to be above it", |s| { (s.size, s.expected) = (58_000, 2_000); }, "Budget"),
    ("a tenth for reading, a short horizon", |s| { (s.horizon, s.requests) = (Some(3), 9); }, "DoesNotPay"),
    ("a twentieth, a long one", |s| { s.rates = rates(50); }, "Budget"),
    ("a twentieth, a short one, slow growth", |s| { (s.rates, s.horizon, s.requests) = (rates(50), Some(4), 4_000); }, "DoesNotPay"),
    ("a fortieth, a long one", |s| { s.rates = rates(25); }, "Budget"),
    ("a fortieth, a short one, slow growth", |s| { (s.rates, s.horizon, s.requests) = (rates(25), Some(8), 4_000); }, "DoesNotPay"),
    ("it would not pay, but will be unavoidable", |s| { (s.rates, s.horizon, s.requests) = (rates(25), Some(8), 9); }, "Budget"),
    ("who has spent nothing has nothing to lose", |s| { s.course = Course::default(); }, "TooMuchAtStake"),
    ("nothing cached, so nothing at stake", |s| { (s.course, s.cache) = (Course::default(), Cache::Unused); }, "Budget"),
    ("past the hard watermark it must be", |s| { (s.size, s.course, s.rates) = (96_000, Course::default(), rates(25)); }, "Budget"),
    ("about to be past it", |s| { (s.size, s.expected, s.course) = (90_000, 5_000, Course::default()); }, "Budget"),
    ("about to be past it, but there is nothing to come down from", |s| { (s.size, s.expected) = (34_000, 70_000); }, "TooLittle"),
    ("refilled three times, and something large is about to come", |s| { thrash(&mut s.course); (s.size, s.expected) = (80_000, 70_000); }, "Thrash"),
    ("past it with another model", |s| { (s.size, s.switched) = (96_000, true); }, "Structural"),
    ("too many bytes", |s| { (s.size, s.too_many_bytes) = (20_000, true); }, "Budget"),
    ("cold, above the floor", |s| { (s.cache, s.size) = (Cache::Cold, 45_000); }, "Temporal"),
    ("cold, full, nothing spent", |s| { (s.cache, s.size, s.course) = (Cache::Cold, 70_000, Course::default()); }, "Temporal"),
    ("cold, below the floor, nothing useless", |s| { (s.cache, s.size) = (Cache::Cold, 30_000); }, "TooLittle"),
    ("cold, just above the floor", |s| { (s.cache, s.size) = (Cache::Cold, 37_000); }, "TooLittle"),
    ("the store is away, where it would pay", |s| { s.waits = true; }, "Waits"),
    ("the store is away, and the cache is cold", |s| { (s.waits, s.cache) = (true, Cache::Cold); }, "Waits"),
    ("the store is away, past the hard watermark", |s| { (s.waits, s.size) = (true, 96_000); }, "Budget"),
    ("bound thinking in a loop: there is room to wait", |s| { s.binds_in_loop = true; }, "Waits"),
    ("the same when cold", |s| { (s.binds_in_loop, s.cache, s.size) = (true, Cache::Cold, 70_000); }, "Waits"),
    ("but not past the hard watermark", |s| { (s.binds_in_loop, s.size) = (true, 96_000); }, "Budget"),
    ("latched, it need not be full again", |s| { (s.course.latched, s.size) = (true, 55_000); }, "Budget"),
    ("latched, but under the floor", |s| { (s.course.latched, s.size) = (true, 34_000); }, "Calm"),
    ("looked at a moment ago", |s| { s.course.looked_at = 60_000; }, "Looked"),
    ("looked at, and grown since", |s| { (s.course.looked_at, s.size) = (60_000, 66_000); }, "Budget"),
    ("refilled three times", |s| { thrash(&mut s.course); }, "Thrash"),
    ("refilled three times, and past the hard watermark", |s| { thrash(&mut s.course); s.size = 96_000; }, "Budget"),
    ("asked for", |s| { (s.asked, s.size) = (Some(Ask::Manual), 20_000); }, "Manual"),
    ("refused by upstream", |s| { (s.asked, s.size) = (Some(Ask::Reactive), 50_000); }, "Reactive"),
];

pub(super) fn thrash(course: &mut Course) {
    for _ in 0..3 {
        course.passed(true);
        course.goes_on();
    }
}

#[test]
fn each_situation_has_its_decision() {
    for (name, change, expected) in ROWS {
        let mut situation = situation(&spent(100));
        change(&mut situation);
        assert_eq!(verdict(&situation), *expected, "{name}");
    }
}

fn pass(situation: &Situation, offer: &Offer) -> Pass {
    match decide(situation, offer) {
        Decision::Pass(pass) => pass,
        Decision::Rest(rest) => panic!("{rest:?}"),
    }
}

#[test]
fn a_pass_stops_at_the_floor_and_takes_the_oldest_first() {
    let course = spent(100);
    let situation = situation(&course);
    let pass = pass(&situation, &offer(62_000));
    assert_eq!(pass.take, (0..39).collect::<Vec<_>>());
    assert!(62_000 - pass.numbers.frees <= 35_000);
    assert!(62_000 - pass.numbers.frees > 35_000 - 700);
}

#[test]
fn what_is_of_no_more_use_goes_first_and_all_of_it() {
    let course = spent(100);
    let mut offer = offer(62_000);
    for item in offer.items.iter_mut().skip(10) {
        item.useless = true;
    }
    let pass = pass(&situation(&course), &offer);
    assert_eq!(pass.take, (10..offer.items.len()).collect::<Vec<_>>());
    let cold = Situation {
        cache: Cache::Cold,
        size: 30_000,
        ..situation(&course)
    };
    assert!(
        matches!(decide(&cold, &offer), Decision::Pass(_)),
        "below the floor too"
    );
}

#[test]
fn with_little_to_lose_a_pass_begins_later() {
    let (rich, mut poor) = (spent(100), Course::default());
    poor.billed(600_000_000_000, 0);
    let offer = offer(62_000);
    let all = pass(&situation(&rich), &offer);
    let late = pass(&situation(&poor), &offer);
    assert!(late.take[0] > all.take[0]);
    assert!(late.numbers.rewrites < all.numbers.rewrites);
    let loss =
        Pico::from(late.numbers.rewrites) * 1_150_000 - Pico::from(late.numbers.frees) * 100_000;
    let most = situation(&poor).allowance();
    assert!(loss <= most, "whatever comes, no more is lost");
}

#[test]
fn without_a_further_request_no_more_is_lost_than_what_was_earned_and_a_little() {
    for read in [100, 50, 25] {
        for dollars in [0, 1, 2, 5, 10, 50] {
            for earned in [0, 500_000_000_000] {
                let mut course = spent(dollars);
                course.billed(0, earned);
                let situation = Situation {
                    rates: rates(read),
                    ..situation(&course)
                };
                if let Decision::Pass(pass) = decide(&situation, &offer(62_000)) {
                    let read = Pico::from(read) * 1_000;
                    let loss = Pico::from(pass.numbers.rewrites) * (1_250_000 - read)
                        - Pico::from(pass.numbers.frees) * read;
                    assert!(
                        loss <= earned + (earned + dollars * 1_000_000_000_000) / 18,
                        "{read} {dollars} {earned}"
                    );
                }
            }
        }
    }
}

#[test]
fn past_the_hard_watermark_everything_goes_if_the_floor_needs_it() {
    let course = Course::default();
    let mut offer = offer(96_000);
    for item in &mut offer.items {
        item.frees = 300;
    }
    let situation = Situation {
        size: 96_000,
        ..situation(&course)
    };
    let pass = pass(&situation, &offer);
    assert_eq!(pass.take.len(), offer.items.len());
    assert_eq!(pass.must_reach, Some(35_000), "the rest by other means");
}

/// With cheap reads every change costs more than it saves, and the least of them
/// would be the cheapest. But what is not cleared would be cut off instead.
#[test]
fn past_the_hard_watermark_everything_goes_also_where_nothing_pays() {
    let mut offer = offer(96_000);
    for item in &mut offer.items {
        item.frees = 300;
    }
    let situation = Situation {
        size: 96_000,
        rates: rates(25),
        requests: 8,
        ..situation(&Course::default())
    };
    let pass = pass(&situation, &offer);
    assert_eq!(pass.take.len(), offer.items.len());
}

#[test]
fn what_upstream_refuses_becomes_smaller_in_thrash_too() {
    let mut course = spent(100);
    thrash(&mut course);
    let situation = Situation {
        size: 50_000,
        asked: Some(Ask::Reactive),
        ..situation(&course)
    };
    let pass = pass(&situation, &offer(50_000));
    assert_eq!(pass.must_reach, Some(35_000));
    assert!(!pass.take.is_empty());
}

#[test]
fn with_nothing_on_offer_a_must_is_left_to_other_means() {
    let course = Course::default();
    let situation = Situation {
        size: 96_000,
        ..situation(&course)
    };
    let pass = pass(&situation, &Offer::default());
    assert!(pass.take.is_empty());
    assert_eq!(pass.must_reach, Some(35_000));
}

#[test]
fn in_thrash_only_what_is_needed_to_fit_goes() {
    let mut course = spent(100);
    thrash(&mut course);
    let situation = Situation {
        size: 97_000,
        course: course.clone(),
        ..situation(&course)
    };
    let pass = pass(&situation, &offer(97_000));
    assert!(pass.thrash);
    assert_eq!(pass.must_reach, Some(95_000));
    assert!(pass.numbers.frees < 5_000, "{:?}", pass.numbers);
}

#[test]
fn to_remove_the_last_picture_writes_everything_again() {
    let mut offer = offer(62_000);
    offer.images = 1;
    offer.items.last_mut().unwrap().images = 1;
    let worth = Worth {
        rates: rates(100),
        cache: Cache::Warm,
        horizon: 10,
    };
    let with = offer.all(&worth).rewrites;
    offer.images = 2;
    assert!(with > offer.all(&worth).rewrites);
}

#[test]
fn thinking_that_would_be_lost_is_charged() {
    let mut offer = offer(62_000);
    let worth = Worth {
        rates: rates(25),
        cache: Cache::Cold,
        horizon: 8,
    };
    let without = offer.all(&worth);
    offer.thinking = vec![10_000; 63];
    let with = offer.all(&worth);
    assert_eq!(with.frees, without.frees + 10_000);
    let saved = Pico::from(10_000) * (1_250_000 + 7 * 25_000);
    assert_eq!(with.gain, without.gain + saved - 10_000 * 1_000_000);
}

/// Nothing but a summary can make this one smaller.
fn summed_up(size: u64) -> Offer {
    Offer {
        items: Vec::new(),
        closing: Some(Closing {
            from: 2,
            to: 40,
            frees: 35_000,
            alone: false,
            raw: 0,
        }),
        ..offer(size)
    }
}

#[test]
fn a_summary_that_lies_ready_is_taken_when_it_is_needed_or_free() {
    type Change = fn(&mut Situation);
    #[rustfmt::skip]
    let rows: [(&str, Change, Option<Trigger>); 10] = [
        ("below the watermark", |s| s.size = 65_000, None),
        ("past it", |s| s.size = 72_000, Some(Trigger::Budget)),
        ("about to be past it", |s| (s.size, s.expected) = (65_000, 6_000), Some(Trigger::Budget)),
        ("past the hard one", |s| s.size = 96_000, Some(Trigger::Budget)),
        ("cold", |s| s.cache = Cache::Cold, Some(Trigger::Temporal)),
        ("in a loop that binds", |s| (s.size, s.binds_in_loop) = (72_000, true), None),
        ("in a loop that binds, without room", |s| (s.size, s.binds_in_loop) = (96_000, true), Some(Trigger::Budget)),
        ("of what was truncated", |s| s.ready = Some(true), Some(Trigger::Heal)),
        ("of what was truncated, in a loop", |s| (s.ready, s.in_loop) = (Some(true), true), None),
        ("asked for", |s| s.asked = Some(Ask::Manual), Some(Trigger::Manual)),
    ];
    for (name, change, expected) in rows {
        let mut situation = situation(&spent(10));
        situation.ready = Some(false);
        change(&mut situation);
        let decision = decide(&situation, &summed_up(situation.size));
        let taken = match decision {
            Decision::Pass(pass) if pass.closes == Closes::Summary => Some(pass.trigger),
            _ => None,
        };
        assert_eq!(taken, expected, "{name}");
    }
}

#[test]
fn lighter_means_go_first_where_they_are_enough() {
    let mut situation = situation(&spent(10));
    situation.ready = Some(false);
    situation.size = 96_000;
    let both = Offer {
        closing: summed_up(96_000).closing,
        ..offer(96_000)
    };
    let Decision::Pass(pass) = decide(&situation, &both) else {
        panic!("nothing was done");
    };
    assert!(pass.closes == Closes::Nothing && pass.numbers.frees >= 61_000);
    let few = Offer {
        items: both.items[..50].to_vec(),
        ..both
    };
    let Decision::Pass(pass) = decide(&situation, &few) else {
        panic!("nothing was done");
    };
    assert_eq!(pass.closes, Closes::Summary);
    assert!(pass.take.iter().all(|at| few.items[*at].message >= 40));
}

#[test]
fn messages_are_not_left_out_where_there_is_room_without() {
    type Change = fn(&mut Situation);
    let table: [(&str, Change, u64); 6] = [
        ("nothing ready", |s| s.ready = None, 35_000),
        ("a summary", |_| (), 90_000),
        ("asked for", |s| s.asked = Some(Ask::Manual), 90_000),
        ("refused", |s| s.asked = Some(Ask::Reactive), 35_000),
        ("too many bytes", |s| s.too_many_bytes = true, 35_000),
        (
            "too little for one",
            |s| (s.ready, s.spares) = (None, true),
            90_000,
        ),
    ];
    for (name, change, expected) in table {
        let mut situation = situation(&spent(10));
        (situation.size, situation.expected) = (96_000, 5_000);
        situation.ready = Some(false);
        change(&mut situation);
        let mut offer = summed_up(96_000);
        offer.closing = offer.closing.filter(|_| situation.ready.is_some());
        let Decision::Pass(pass) = decide(&situation, &offer) else {
            panic!("nothing was done");
        };
        assert_eq!(pass.must_reach, Some(expected), "{name}");
    }
}

#[test]
fn a_summary_is_prepared_when_nothing_lighter_will_do() {
    let mut situation = situation(&spent(10));
    assert!(!situation.prepares(0), "below the watermark");
    situation.size = 71_000;
    assert!(situation.prepares(0));
    assert!(situation.prepares(35_000));
    assert!(!situation.prepares(36_000), "clearing will do");
    situation.requests = 10_000;
    situation.horizon = Some(1);
    assert!(!situation.prepares(0), "it will never be full");
}
