//! The policy as a table: each row a situation, and what comes of it.

use super::*;

/// A conversation of so many tokens, in equal messages, of which most can go.
/// The window is of 100,000: clear at 60,000, hard at 95,000, floor 35,000.
fn offer(size: u64) -> Offer {
    let messages = usize::try_from(size / 1_000).unwrap();
    let item = |message: usize| Item {
        message,
        frees: 700,
        useless: false,
        images: 0,
    };
    Offer {
        items: (1..messages.saturating_sub(3)).map(item).collect(),
        behind: (0..=messages)
            .map(|at| (messages - at) as u64 * 1_000)
            .collect(),
        thinking: Vec::new(),
        images: 0,
    }
}

/// What a read costs, in thousandths of input.
fn rates(read: u64) -> Rates {
    Rates {
        input: 1_000_000,
        write: 1_250_000,
        read: read * 1_000,
    }
}

/// A lineage that has spent this many dollars.
fn spent(dollars: i128) -> Course {
    let mut course = Course::default();
    course.billed(dollars * 1_000_000_000_000, 0);
    course
}

fn situation(course: &Course) -> Situation {
    Situation {
        size: 62_000,
        expected: 0,
        too_many_bytes: false,
        watermarks: Watermarks {
            clear_at: 60_000,
            hard_at: 95_000,
            floor: 35_000,
        },
        cache: Cache::Warm,
        rates: rates(100),
        course: course.clone(),
        requests: 100,
        horizon: None,
        at_least: 5_000,
        thrash_limit: 3,
        asked: None,
        switched: false,
        binds_in_loop: false,
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

#[test]
fn each_situation_has_its_decision() {
    let rich = spent(100);
    let poor = Course::default();
    let base = situation(&rich);
    let thrashing = {
        let mut course = spent(100);
        for _ in 0..3 {
            course.passed(true);
            course.goes_on();
        }
        course
    };
    let mut latched = spent(100);
    latched.latched = true;
    let mut looked = spent(100);
    looked.looked_at = 60_000;
    let cold = |size| Situation {
        cache: Cache::Cold,
        size,
        ..base.clone()
    };
    let rows: Vec<(&str, Situation, &str)> = vec![
        (
            "below the first watermark",
            Situation {
                size: 59_000,
                ..base.clone()
            },
            "Calm",
        ),
        ("above it, where it pays", base.clone(), "Budget"),
        (
            "about to be above it",
            Situation {
                size: 58_000,
                expected: 2_000,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "dearer reads, short horizon",
            Situation {
                horizon: Some(3),
                requests: 9,
                size: 61_000,
                ..base.clone()
            },
            "DoesNotPay",
        ),
        (
            "reads at a twentieth, long horizon",
            Situation {
                rates: rates(50),
                ..base.clone()
            },
            "Budget",
        ),
        (
            "reads at a fortieth, long horizon",
            Situation {
                rates: rates(25),
                ..base.clone()
            },
            "Budget",
        ),
        (
            "reads at a fortieth, short horizon, slow growth",
            Situation {
                rates: rates(25),
                horizon: Some(8),
                requests: 4_000,
                ..base.clone()
            },
            "DoesNotPay",
        ),
        (
            "reads at a twentieth, very short horizon, slow growth",
            Situation {
                rates: rates(50),
                horizon: Some(4),
                requests: 4_000,
                ..base.clone()
            },
            "DoesNotPay",
        ),
        (
            "it would not pay, but will be unavoidable",
            Situation {
                rates: rates(25),
                horizon: Some(8),
                requests: 9,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "a lineage that has spent nothing has nothing to lose",
            Situation {
                course: poor.clone(),
                ..base.clone()
            },
            "TooMuchAtStake",
        ),
        (
            "nothing cached, so nothing at stake",
            Situation {
                course: poor.clone(),
                cache: Cache::Unused,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "past the hard watermark it must be",
            Situation {
                size: 96_000,
                course: poor.clone(),
                rates: rates(25),
                ..base.clone()
            },
            "Budget",
        ),
        (
            "about to be past it",
            Situation {
                size: 90_000,
                expected: 5_000,
                course: poor.clone(),
                ..base.clone()
            },
            "Budget",
        ),
        (
            "past it with another model",
            Situation {
                size: 96_000,
                switched: true,
                ..base.clone()
            },
            "Structural",
        ),
        (
            "too many bytes",
            Situation {
                size: 20_000,
                too_many_bytes: true,
                ..base.clone()
            },
            "Budget",
        ),
        ("cold, above the floor", cold(45_000), "Temporal"),
        (
            "cold, above the first watermark, nothing spent",
            Situation {
                course: poor.clone(),
                ..cold(70_000)
            },
            "Temporal",
        ),
        (
            "cold, below the floor, nothing useless",
            cold(30_000),
            "TooLittle",
        ),
        ("cold, just above the floor", cold(37_000), "TooLittle"),
        (
            "in a loop with bound thinking there is room to wait",
            Situation {
                binds_in_loop: true,
                ..base.clone()
            },
            "Waits",
        ),
        (
            "the same when cold",
            Situation {
                binds_in_loop: true,
                ..cold(70_000)
            },
            "Waits",
        ),
        (
            "but not past the hard watermark",
            Situation {
                binds_in_loop: true,
                size: 96_000,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "latched, it need not be above the watermark again",
            Situation {
                course: latched.clone(),
                size: 55_000,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "latched, but under the floor",
            Situation {
                course: latched.clone(),
                size: 34_000,
                ..base.clone()
            },
            "Calm",
        ),
        (
            "looked at a moment ago",
            Situation {
                course: looked.clone(),
                ..base.clone()
            },
            "Looked",
        ),
        (
            "looked at, and grown since",
            Situation {
                course: looked.clone(),
                size: 66_000,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "refilled three times",
            Situation {
                course: thrashing.clone(),
                ..base.clone()
            },
            "Thrash",
        ),
        (
            "refilled three times, and past the hard watermark",
            Situation {
                course: thrashing.clone(),
                size: 96_000,
                ..base.clone()
            },
            "Budget",
        ),
        (
            "asked for",
            Situation {
                asked: Some(Ask::Manual),
                size: 20_000,
                ..base.clone()
            },
            "Manual",
        ),
        (
            "refused by upstream",
            Situation {
                asked: Some(Ask::Reactive),
                size: 50_000,
                ..base.clone()
            },
            "Reactive",
        ),
    ];
    for (name, situation, expected) in rows {
        assert_eq!(verdict(&situation), expected, "{name}");
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
    let (rich, poor) = (spent(100), spent(2));
    let offer = offer(62_000);
    let all = pass(&situation(&rich), &offer);
    let late = pass(&situation(&poor), &offer);
    assert!(late.take[0] > all.take[0]);
    assert!(late.numbers.rewrites < all.numbers.rewrites);
    let loss =
        Pico::from(late.numbers.rewrites) * 1_150_000 - Pico::from(late.numbers.frees) * 100_000;
    assert!(loss <= poor.stake(), "whatever comes, no more is lost");
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
                        loss <= earned + dollars * 20_000_000_000,
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
    for _ in 0..3 {
        course.passed(true);
        course.goes_on();
    }
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
    let course = spent(100);
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
    drop(course);
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
