//! The cheapest plan against every plan, and what must hold of it.

#![allow(
    clippy::cast_precision_loss,
    reason = "sums of money are far below 2^52"
)]

use std::time::Instant;

use super::*;

const HEAD: u64 = 12_000;

fn means(keep: u64, summarizers: &[Summarizer]) -> Means {
    Means {
        model: find("claude-opus-4-8").unwrap(),
        keep,
        summarizers: summarizers.to_vec(),
    }
}

/// A session that grows by these results, with these requests cold.
fn session(results: &[u64], cold: &[usize]) -> Vec<Sent> {
    let mut size = HEAD;
    let each = results.iter().enumerate().map(|(at, result)| {
        let before = size;
        size += result + 100;
        let is_cold = at == 0 || cold.contains(&at);
        let read = if is_cold { 0 } else { before };
        Sent {
            fresh: at == 0,
            tokens: Tokens {
                read,
                write_5m: size - read,
                output: 100,
                ..Tokens::default()
            },
            asked: *result,
            clearable: if *result >= WORTH_CLEARING {
                result - STUB
            } else {
                0
            },
        }
    });
    each.collect()
}

fn without(sent: &[Sent], means: &Means) -> u64 {
    let cost = |sent: &Sent| {
        let prices = means.model.prices_for(&sent.tokens);
        prices.cost(&sent.tokens).micro_dollars()
    };
    sent.iter().map(cost).sum()
}

/// Every plan, one after the other.
fn exhaustive(stretch: &Stretch<'_>, request: usize, view: View) -> u64 {
    if request == stretch.sent.len() {
        return 0;
    }
    let mut best =
        stretch.cost(request, stretch.gone(view)) + exhaustive(stretch, request + 1, view);
    let to = stretch.working_set(request);
    if let Some(cost) = stretch.cost_of_clearing(request, view, to) {
        let after = View {
            cleared: to,
            ..view
        };
        best = best.min(cost + exhaustive(stretch, request + 1, after));
    }
    if let Some(cost) = stretch.cost_of_closing(request, view, to) {
        let after = View {
            closed: to,
            cleared: to,
        };
        best = best.min(cost + exhaustive(stretch, request + 1, after));
    }
    best
}

#[test]
fn it_is_the_cheapest_of_all_plans() {
    let haiku = Summarizer::Other(find("claude-haiku-5-5").unwrap());
    for (results, cold, keep) in [
        (
            &[9_000, 300, 8_000, 200, 7_000, 9_000, 100, 50][..],
            &[][..],
            2_000,
        ),
        (&[30_000, 30_000, 100, 100, 100, 100, 100, 100], &[3], 5_000),
        (
            &[100, 60_000, 100, 50_000, 100, 100, 40_000, 100],
            &[4, 6],
            0,
        ),
        (&[300; 9], &[2, 5], 300),
    ] {
        let sent = session(results, cold);
        for summarizers in [&[][..], &[Summarizer::Fork], &[Summarizer::Fork, haiku]] {
            let means = means(keep, summarizers);
            let stretch = Stretch::new(&sent, &means);
            let expected = exhaustive(&stretch, 0, View::default());
            assert_eq!(stretch.cheapest(), expected, "{results:?} {summarizers:?}");
            assert!(expected <= without(&sent, &means), "{results:?}");
        }
    }
}

#[test]
fn what_is_too_short_for_a_pass_costs_what_it_cost() {
    let sent = session(&[500, 300, 200], &[]);
    let means = means(8_000, &[Summarizer::Fork]);
    let expected = without(&sent, &means) as f64 / 1e6;
    assert!((hindsight(&sent, &means) - expected).abs() < 1e-9);
    assert!(hindsight(&[], &means).abs() < 1e-9);
}

#[test]
fn a_long_session_costs_far_less_and_a_wider_working_set_more() {
    let sent = session(&[2_000; 150], &[40, 90]);
    let narrow = hindsight(&sent, &means(8_000, &[Summarizer::Fork]));
    let wide = hindsight(&sent, &means(30_000, &[Summarizer::Fork]));
    let cleared = hindsight(&sent, &means(8_000, &[]));
    let without = without(&sent, &means(0, &[])) as f64 / 1e6;
    assert!(narrow < 0.5 * without, "{narrow} {without}");
    assert!(narrow < wide && wide < without, "{narrow} {wide}");
    assert!(narrow < cleared && cleared < without, "{cleared}");
}

#[test]
fn each_stretch_is_planned_by_itself() {
    let one = session(&[5_000; 20], &[]);
    let two = [one.clone(), one.clone()].concat();
    let means = means(8_000, &[Summarizer::Fork]);
    let (one, two) = (hindsight(&one, &means), hindsight(&two, &means));
    assert!((2.0 * one - two).abs() < 1e-9, "{one} {two}");
}

#[test]
fn staying_below_a_price_step_is_part_of_the_gain() {
    let step = find("claude-haiku-5-5").unwrap();
    let sent = session(&[30_000, 30_000, 20_000, 100, 100, 100, 100], &[]);
    let flat = Means {
        model: find("claude-haiku-4-5").unwrap(),
        ..means(1_000, &[])
    };
    let sloped = Means {
        model: step,
        ..flat.clone()
    };
    let share = |means: &Means| hindsight(&sent, means) * 1e6 / without(&sent, means) as f64;
    assert!(
        share(&sloped) <= share(&flat),
        "{} {}",
        share(&sloped),
        share(&flat)
    );
}

#[test]
fn the_work_is_bounded() {
    let begun = Instant::now();
    for count in [437, 5_000] {
        let sent = session(&vec![900; count], &[50, 200, 300]);
        let means = means(16_000, &[Summarizer::Fork]);
        let stretch = Stretch::new(&sent, &means);
        assert!(stretch.places().len() <= PLACES);
        assert!(stretch.cheapest() < without(&sent, &means));
    }
    println!("{:?}", begun.elapsed());
    assert!(begun.elapsed().as_secs() < 20);
}
