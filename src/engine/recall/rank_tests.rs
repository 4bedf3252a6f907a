//! Which entries come first.

use super::*;
use crate::engine::facts::FactKind;
use crate::engine::recall::entry::EntryKind;
use crate::engine::recall::terms;
use proptest::prelude::*;

fn candidate(number: i64, text: &str) -> Candidate<'_> {
    Candidate {
        number,
        kind: EntryKind::ToolResult,
        tool: "",
        path: "",
        text,
        blob: None,
        terms: 0,
    }
}

/// Ranks candidates as if a store had found them by their texts.
fn ranked(query: &str, candidates: &[Candidate<'_>]) -> Vec<i64> {
    let sought = terms::query(query);
    let bits = |candidate: &Candidate<'_>| {
        let has = terms::terms_of(&[candidate.text, candidate.path, candidate.tool]);
        let set = sought
            .iter()
            .enumerate()
            .filter(|(_, term)| has.contains(term));
        set.fold(0, |bits, (at, _)| bits | 1 << at)
    };
    let candidates: Vec<Candidate<'_>> = candidates
        .iter()
        .map(|candidate| Candidate {
            terms: bits(candidate),
            ..*candidate
        })
        .collect();
    let matches: Vec<(i64, u32)> = candidates.iter().map(|c| (c.number, c.terms)).collect();
    let weights = weights(&matches, sought.len());
    let ranked = second(query, &sought, &weights, &candidates);
    ranked.into_iter().map(|ranked| ranked.number).collect()
}

#[test]
fn rare_words_count_more_and_of_equals_the_newer_comes_first() {
    let matches = [(1, 0b01), (2, 0b01), (3, 0b01), (4, 0b10), (5, 0b11)];
    let weights = weights(&matches, 3);
    assert!(weights[1] > weights[0] && weights[2].abs() < f64::EPSILON);
    assert_eq!(first(&matches, &weights, 9), [5, 4, 3, 2, 1]);
    assert_eq!(first(&matches, &weights, 2), [5, 4]);
    assert!(first(&[], &weights, 2).is_empty());
}

#[test]
fn what_fits_better_comes_first() {
    let long = format!("the retry budget {}", "filler words ".repeat(200));
    let far = format!("retry {} budget", "other words ".repeat(40));
    let rows = [
        (
            "as it was written",
            "max_retry_budget",
            "set max retry budget",
            "set max_retry_budget",
        ),
        ("near each other", "retry budget", &far, "the retry budget"),
        (
            "more of the words",
            "retry budget exceeded",
            "retry retry retry",
            "budget exceeded on retry",
        ),
        (
            "the shorter text",
            "retry budget",
            &long,
            "the retry budget",
        ),
        ("more often", "budget", "a budget here", "budget and budget"),
        (
            "a path as it stands",
            "src/a/b.rs",
            "b rs in a, src",
            "see src/a/b.rs now",
        ),
    ];
    for (rule, query, worse, better) in rows {
        let order = ranked(query, &[candidate(2, worse), candidate(1, better)]);
        assert_eq!(order, [1, 2], "{rule}");
    }
    let named = Candidate {
        path: "src/budget.rs",
        ..candidate(1, "budget")
    };
    assert_eq!(ranked("budget", &[candidate(2, "budget"), named])[0], 1);
    let decided = Candidate {
        kind: EntryKind::Fact(FactKind::Decision),
        ..candidate(1, "budget!")
    };
    assert_eq!(ranked("budget", &[candidate(2, "budget"), decided])[0], 1);
}

#[test]
fn the_same_text_comes_once_and_a_content_once_unless_parts_fit_alike() {
    let blob = |byte| Some(BlobId::from_bytes([byte; 32]));
    let part = |number, text, byte| Candidate {
        blob: blob(byte),
        ..candidate(number, text)
    };
    assert_eq!(
        ranked(
            "budget",
            &[candidate(1, "the budget"), candidate(2, "the budget ")]
        ),
        [2]
    );
    let candidates = [
        part(1, "retry budget exceeded", 1),
        part(2, "budget of something else entirely", 1),
        part(3, "exceeded budget, retry", 1),
        part(4, "retry the budget", 2),
    ];
    let order = ranked("retry budget exceeded", &candidates);
    assert!(
        order.contains(&1) && order.contains(&3) && order.contains(&4),
        "{order:?}"
    );
    assert!(!order.contains(&2), "{order:?}");
}

#[test]
fn a_snippet_shows_where_the_words_are_and_says_where_it_was_cut() {
    let lines: Vec<String> = (0..200).map(|n| format!("line number {n} of it")).collect();
    let text = lines.join("\n").replace("number 120", "needle_case here");
    let sought = terms::query("needle_case");
    let shown = snippet(&text, &sought, 120);
    assert!(shown.contains("line needle_case here of it\n"), "{shown}");
    assert!(
        shown.starts_with("…line") && shown.ends_with("it…"),
        "{shown}"
    );
    assert_eq!(snippet("short", &sought, 120), "short");
    assert_eq!(snippet("[longhaul: x]", &sought, 120), "(longhaul: x]");
    let start = snippet(&text, &[], 50);
    assert!(
        start.starts_with("line number 0") && start.ends_with('…'),
        "{start}"
    );
}

proptest! {
    #[test]
    fn a_snippet_is_short_and_never_ours(
        text in "(a|needle|\\[|longhaul|é|漢|\n| ){0,200}",
        limit in 4usize..80,
    ) {
        let shown = snippet(&text, &terms::query("needle 漢字"), limit);
        prop_assert!(shown.chars().count() <= limit);
        prop_assert!(!shown.to_lowercase().contains("[longhaul"));
    }

    #[test]
    fn the_order_does_not_depend_on_the_order_of_the_candidates(
        texts in prop::collection::vec("(retry|budget|max_retry|x| ){0,12}", 0..8),
        query in "(retry|budget|max_retry|what| ){0,6}",
    ) {
        let mut candidates: Vec<_> = (0..).zip(&texts).map(|(n, text)| candidate(n, text)).collect();
        let order = ranked(&query, &candidates);
        candidates.reverse();
        prop_assert_eq!(ranked(&query, &candidates), order);
    }
}
