//! Signals of runs made by hand.

use super::*;
use crate::replay::inserted::Bags;
use crate::replay::probes::Kind;
use crate::sim::models::find;

/// A request that read all of its prompt but a hundred tokens from the cache.
fn warm(prompt: u64) -> Played {
    let tokens = Tokens {
        write_5m: 100,
        read: prompt - 100,
        ..Tokens::default()
    };
    priced(tokens)
}

fn priced(tokens: Tokens) -> Played {
    let model = find("claude-opus-4-8").unwrap();
    let cost = model.prices_for(&tokens).cost(&tokens).micro_dollars();
    Played {
        tokens,
        dollars: number(cost) / 1e6,
        ..Played::default()
    }
}

/// A request that wrote so much anew.
fn rewritten(prompt: u64, written: u64) -> Played {
    Played {
        pass: vec!["clear".to_owned()],
        ..priced(Tokens {
            write_5m: written,
            read: prompt - written,
            ..Tokens::default()
        })
    }
}

fn run(played: Vec<Played>, hard_at: u64) -> Run {
    Run {
        played,
        hard_at,
        ..Run::default()
    }
}

fn sums(alone: Vec<Played>, with: Vec<Played>, hard_at: u64) -> Sums {
    let model = find("claude-opus-4-8").unwrap();
    Sums::of(&run(alone, 0), &run(with, hard_at), model)
}

fn growing(requests: u64) -> Vec<Played> {
    (1..=requests).map(|at| warm(50_000 + at * 1_000)).collect()
}

#[test]
fn a_pass_is_right_if_it_was_needed_soon_or_if_it_paid() {
    let with = |after: usize, written: u64| {
        let mut with = growing(3);
        with.push(rewritten(30_000, written));
        with.extend((1..=after).map(|at| warm(30_000 + at as u64 * 1_000)));
        with
    };
    let rows = [
        // Far from the limit, dear, and over before it could pay.
        (1, 30_000, 1_000_000, 0),
        // The limit was near.
        (1, 30_000, 54_500, 1),
        // It paid in the long run.
        (40, 5_000, 1_000_000, 1),
    ];
    for (after, written, hard_at, right) in rows {
        let alone = growing(4 + after as u64);
        let sums = sums(alone, with(after, written), hard_at);
        assert_eq!(sums.passes, (1, right), "{after}, {written}, {hard_at}");
        assert_eq!(sums.amortized.1, after + 1);
        assert!(sums.amortized.0 > 0.0);
    }
}

#[test]
fn the_limit_counts_only_within_the_next_requests() {
    let mut with = growing(3);
    // So dear that it cannot pay.
    with[2].summaries = 50.0;
    with.push(rewritten(30_000, 30_000));
    with.extend(growing(WITHIN as u64 + 5));
    let alone = growing(WITHIN as u64 + 9);
    let at_the_end = 50_000 + (WITHIN as u64 + 4) * 1_000;
    assert_eq!(sums(alone.clone(), with.clone(), at_the_end).passes, (1, 0));
    assert_eq!(sums(alone, with, at_the_end - 2_000).passes, (1, 1));
}

#[test]
fn what_a_pass_removed_is_saved_beyond_the_next_one() {
    let mut with = growing(3);
    with.push(rewritten(30_000, 10_000));
    with.push(rewritten(30_000, 1_000));
    with.extend((1..40).map(|at| warm(30_000 + at * 1_000)));
    let sums = sums(growing(44), with, 1_000_000);
    assert_eq!(sums.passes, (2, 2));
}

#[test]
fn what_a_summary_cost_is_charged_to_the_pass_that_follows() {
    let mut with = growing(3);
    with[1].summaries = 5.0;
    with.push(rewritten(30_000, 5_000));
    with.extend(growing(40));
    let sums = sums(growing(44), with, 1_000_000);
    assert_eq!(sums.passes, (1, 0));
    assert!(sums.amortized.0 > 5.0);
}

#[test]
fn ratios_are_of_the_last_request_of_each_history_and_of_all() {
    let mut alone = growing(4);
    let mut with = growing(4);
    with[1] = warm(26_000);
    for run in [&mut alone, &mut with] {
        run[0].fresh = true;
        run[2].fresh = true;
    }
    with[3] = warm(27_000);
    let sums = sums(alone, with, 1_000_000);
    assert_eq!(sums.last, (53_000, 106_000));
    assert_eq!(sums.signals().compression_ratio, Some(0.5));
    assert_eq!(sums.all, (26_000 + 27_000 + 51_000 + 53_000, 210_000));
}

#[test]
fn views_larger_than_the_history_are_counted_where_the_ratio_stops_at_one() {
    let (alone, mut with) = (growing(4), growing(4));
    with[3] = warm(60_000);
    let sums = sums(alone, with, 1_000_000);
    assert_eq!(sums.signals().compression_ratio, Some(1.0));
    assert_eq!(sums.larger, 1);
    assert_eq!(sums.clone().plus(&sums).larger, 2);
}

const fn probe(passes: usize, in_view: bool, reachable: bool) -> Probe {
    Probe {
        kind: Kind::Path,
        passes,
        shape: None,
        in_view,
        in_line: false,
        reachable,
        bags: Bags {
            rarest: true,
            random: false,
        },
    }
}

fn of_probes(probes: &[Probe]) -> Sums {
    let with = Run {
        probes: probes.to_vec(),
        rereads: (8, 2),
        ..Run::default()
    };
    let model = find("claude-opus-4-8").unwrap();
    Sums::of(&Run::default(), &with, model)
}

const FALLS: [Probe; 6] = [
    probe(1, true, true),
    probe(1, true, true),
    probe(2, true, true),
    probe(2, false, true),
    probe(3, false, false),
    probe(3, false, true),
];

#[test]
fn recovery_that_falls_with_each_pass_is_degradation() {
    let signals = of_probes(&FALLS).signals();
    assert_eq!(signals.probe_recovery, Some(0.5));
    assert_eq!(signals.recall_recovery, Some(5.0 / 6.0));
    assert_eq!(signals.degradation, Some(0.5));
    assert_eq!(signals.reread_rate, Some(0.25));
}

/// A session that is good and passes often beside one that is bad and passes once
/// must not look as if passing made views better.
#[test]
fn degradation_is_told_within_sessions_and_not_between_them() {
    let bad: Vec<Probe> = [1, 2].map(|passes| probe(passes, false, true)).into();
    let good: Vec<Probe> = [8, 9].map(|passes| probe(passes, true, true)).into();
    let both = of_probes(&bad).plus(&of_probes(&good));
    assert_eq!(both.signals().degradation, Some(0.0));
    let weighed = of_probes(&bad).plus(&of_probes(&FALLS));
    assert_eq!(weighed.signals().degradation, Some(0.375));
}

#[test]
fn rules_and_planted_facts_are_no_part_of_degradation() {
    let of = |kind: Kind| FALLS.map(|probe| Probe { kind, ..probe });
    let rules = of_probes(&of(Kind::Constraint)).signals();
    assert_eq!((rules.degradation, rules.probe_recovery), (None, Some(0.5)));
    let planted = of_probes(&of(Kind::Planted)).signals();
    assert_eq!((planted.degradation, planted.probe_recovery), (None, None));
    assert_eq!(planted.planted_recovery, Some(0.5));
    assert_eq!(planted.planted_recall, Some(5.0 / 6.0));
}

#[test]
fn where_there_is_nothing_to_judge_by_there_is_no_signal() {
    assert_eq!(Sums::default().signals(), Signals::default());
    let once = of_probes(&[probe(1, true, true); 3]);
    assert_eq!(once.signals().degradation, None);
}

/// Numbers count in their lines only, and a bag of names scores by names alone.
#[test]
fn a_probe_counts_by_name_or_in_its_line() {
    let number = Probe {
        kind: Kind::Number,
        in_line: true,
        ..probe(4, true, true)
    };
    let planted = Probe {
        kind: Kind::Planted,
        ..number
    };
    let probes = [probe(1, true, true), probe(1, false, true), number, planted];
    let sums = of_probes(&probes);
    assert_eq!(sums.signals().probe_recovery, Some(0.5));
    assert_eq!(sums.signals().line_recovery, Some(1.0 / 3.0));
    let lines = sums.lines();
    assert_eq!((lines.in_line.total().asked, lines.named), (3, 2));
    assert_eq!((lines.rarest, lines.random), (3, 0));
    let last = lines.in_line.each().last().unwrap().1;
    assert_eq!((last.asked, last.found), (1, 1));
}
