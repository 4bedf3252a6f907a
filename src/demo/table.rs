//! What came of the day, in a table and a sentence.

use std::fmt::Write as _;

use super::scene::Scene;
use crate::engine::numerals::grouped;
use crate::replay::all::Told;

/// The end of the demo; nothing, if it was not played in both ways.
pub fn table(scene: &Scene, told: &Told) -> Option<String> {
    let (alone, _) = &told.alone;
    let (outcome, _) = told.with.first()?;
    let with = &outcome.with;
    let ends = |at: Option<usize>| {
        let turn = at.map(|request| scene.turn(request - 1));
        turn.map_or_else(|| "-".to_owned(), |turn| format!("turn {turn}"))
    };
    let dollars = |amount: f64| format!("${amount:.2}");
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let none = || "-".to_owned();
    let passes = scene.with.passes.len();
    let rows = [
        ("", "without".to_owned(), "with".to_owned()),
        (
            "requests",
            grouped(alone.requests as u64),
            grouped(with.requests as u64),
        ),
        (
            "largest prompt, tokens",
            grouped(alone.peak),
            grouped(with.peak),
        ),
        (
            "the window ends it at",
            ends(alone.ends_at),
            ends(with.ends_at),
        ),
        (
            "read from the cache",
            percent(alone.cache_read_share()),
            percent(with.cache_read_share()),
        ),
        ("dollars", dollars(alone.dollars), dollars(with.dollars)),
        (
            "  of that for summaries",
            none(),
            dollars(outcome.summarizer),
        ),
        ("passes", none(), passes.to_string()),
    ];
    let mut text = String::new();
    for (name, without, with) in rows {
        let _ = writeln!(text, "{name:<24}{without:>12}{with:>12}");
    }
    let share = with.dollars * 100.0 / alone.dollars.max(f64::MIN_POSITIVE);
    let _ = writeln!(
        text,
        "\nWith Longhaul the day cost {share:.0}% of what it costs without; to be comparable, \"without\"\n\
         is billed as if the window had no end. Prices and cache are the simulator's."
    );
    Some(text)
}
