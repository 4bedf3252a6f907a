//! The day on a terminal, a picture at a time.
//!
//! A frame is drawn over the one before it by going up as many lines as that had.
//! Nothing of the terminal is switched over for that, neither its screen nor its
//! cursor, so that it is in order whenever somebody interrupts.

use std::fmt::Write as _;

use super::scene::{Course, Scene};
use crate::engine::numerals::grouped;
use crate::replay::report::thousands;

/// The smallest terminal that a frame fits on, columns and rows: not larger than
/// the one that terminals open with.
pub const SMALLEST: (usize, usize) = (76, 24);
/// The widest that a frame becomes.
const WIDEST: usize = 100;
/// Rows of the chart.
const ROWS: u64 = 10;
/// Columns for its scale.
const SCALE: usize = 7;
/// Passes that are listed, the newest.
const LISTED: usize = 5;

/// The colours, or none.
struct Paint {
    with: &'static str,
    without: &'static str,
    limit: &'static str,
    off: &'static str,
}

const COLOURS: Paint = Paint {
    with: "\x1b[34m",
    without: "\x1b[90m",
    limit: "\x1b[31m",
    off: "\x1b[0m",
};
const PLAIN: Paint = Paint {
    with: "",
    without: "",
    limit: "",
    off: "",
};

/// What stands in a cell of the chart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Nothing,
    Limit,
    Without,
    With,
}

/// The lines of a frame.
pub fn frame(scene: &Scene, columns: usize, colours: bool) -> Vec<String> {
    let paint = if colours { COLOURS } else { PLAIN };
    let width = columns.min(WIDEST).saturating_sub(SCALE + 2).max(1);
    let mut lines = chart(scene, width, &paint);
    lines.push(String::new());
    lines.push(format!(
        "{:>9}{:>10}{:>16}{:>15}{:>12}{:>11}",
        "", "turn", "prompt, tokens", "of the window", "from cache", "dollars"
    ));
    for (name, colour, course) in [
        ("without", paint.without, &scene.without),
        ("with", paint.with, &scene.with),
    ] {
        lines.push(format!("{colour}{}{}", row(scene, name, course), paint.off));
    }
    lines.push(String::new());
    let ended = scene.without.over.map_or_else(String::new, |request| {
        format!(
            "{}without Longhaul the window ends it at turn {}{}",
            paint.limit,
            scene.turn(request),
            paint.off
        )
    });
    lines.push(ended);
    let passes = &scene.with.passes;
    lines.push(format!("passes: {}", passes.len()));
    let listed = passes.iter().rev().take(LISTED).rev();
    let listed: Vec<String> = listed
        .map(|pass| {
            format!(
                "  turn {:>4}  {:<18} {:>5} -> {}",
                scene.turn(pass.request),
                pass.kinds,
                thousands(pass.before),
                thousands(pass.after)
            )
        })
        .collect();
    let missing = LISTED - listed.len();
    lines.extend(listed);
    lines.extend(std::iter::repeat_n(String::new(), missing));
    lines
}

fn row(scene: &Scene, name: &str, course: &Course) -> String {
    let turn = format!("{}/{}", scene.reached(course), scene.all_turns());
    let share = course.prompt() * 100 / scene.window.max(1);
    format!(
        "{name:>9}{turn:>10}{:>16}{:>15}{:>12}{:>11}",
        grouped(course.prompt()),
        format!("{share}%"),
        format!("{:.1}%", course.cached()),
        format!("${:.2}", course.spent())
    )
}

/// Prompts over the day: what goes with Longhaul before what would go without.
fn chart(scene: &Scene, across: usize, paint: &Paint) -> Vec<String> {
    let without = columns(&scene.without, scene.turns.len(), across);
    let with = columns(&scene.with, scene.turns.len(), across);
    let largest = without.iter().chain(&with).flatten().copied().max();
    let top = largest.unwrap_or(0).max(scene.window + scene.window / 4);
    let limit = scene.window * ROWS / top.max(1);
    let mut lines = Vec::new();
    for level in (0..ROWS).rev() {
        let scale = match level {
            level if level == limit => thousands(scene.window),
            level if level + 1 == ROWS => thousands(top),
            0 => "0".to_owned(),
            _ => String::new(),
        };
        let mut line = format!("{scale:>SCALE$} ");
        let filled = |value: &Option<u64>| {
            // Something that is there shows in the lowest row.
            value.is_some_and(|value| value * ROWS / top.max(1) > level || level == 0)
        };
        let mut before = Cell::Nothing;
        for (without, with) in without.iter().zip(&with) {
            let cell = match () {
                () if filled(with) => Cell::With,
                () if filled(without) => Cell::Without,
                () if level == limit => Cell::Limit,
                () => Cell::Nothing,
            };
            if cell != before {
                let (from, to) = (colour(paint, before), colour(paint, cell));
                if !from.is_empty() {
                    line.push_str(paint.off);
                }
                line.push_str(to);
            }
            before = cell;
            line.push(match cell {
                Cell::Nothing => ' ',
                Cell::Limit => '─',
                Cell::Without => '░',
                Cell::With => '█',
            });
        }
        if !colour(paint, before).is_empty() {
            line.push_str(paint.off);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

fn colour(paint: &Paint, cell: Cell) -> &'static str {
    match cell {
        Cell::Nothing => "",
        Cell::Limit => paint.limit,
        Cell::Without => paint.without,
        Cell::With => paint.with,
    }
}

/// The largest prompt in each column; none where nothing has happened yet.
fn columns(course: &Course, requests: usize, width: usize) -> Vec<Option<u64>> {
    let at = |column: usize| column * requests / width;
    let each = (0..width).map(|column| {
        let to = at(column + 1).max(at(column) + 1);
        let shown = course.prompts.get(at(column)..to.min(course.prompts.len()));
        shown.and_then(|prompts| prompts.iter().copied().max())
    });
    each.collect()
}

/// What draws a frame in place of the one before, of so many lines.
pub fn draw(lines: &[String], before: usize) -> String {
    let mut text = String::new();
    if before > 0 {
        let _ = write!(text, "\x1b[{before}A\r");
    }
    for line in lines {
        let _ = writeln!(text, "\x1b[2K{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::seen;
    use super::*;

    fn scene() -> Scene {
        let mut scene = Scene::new((0..200).map(|at| at / 2 + 1).collect(), 100_000);
        for at in 0..200 {
            scene.note(0, &seen(at, 0, at as u64 * 2_000, &[]));
        }
        for at in 0..100 {
            let pass: &[&str] = if at % 9 == 8 { &["clear"] } else { &[] };
            scene.note(1, &seen(at, 0, 30_000, pass));
        }
        scene
    }

    #[test]
    fn a_frame_has_the_same_number_of_lines_whatever_has_happened() {
        let nothing = Scene::new(vec![1; 200], 100_000);
        let (early, late) = (frame(&nothing, 80, false), frame(&scene(), 80, false));
        assert_eq!(early.len(), late.len());
        // The cursor stands below the last line.
        assert!(late.len() < SMALLEST.1 && SMALLEST.1 <= 24);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_none_leaves_a_colour_on() {
        for columns in [SMALLEST.0, 80, 100, 300] {
            for line in frame(&scene(), columns, false) {
                let width = line.chars().count();
                assert!(width < columns, "{width} of {columns}: {line}");
            }
            for line in frame(&scene(), columns, true) {
                let last = line.rfind("\x1b[").map(|at| &line[at..]);
                assert!(
                    last.is_none_or(|code| code.starts_with("\x1b[0m")),
                    "{line:?}"
                );
            }
        }
    }

    #[test]
    fn the_chart_shows_both_and_where_the_window_ends() {
        let lines = frame(&scene(), 80, false);
        let chart = lines.iter().take_while(|line| !line.is_empty());
        let chart: String = chart.cloned().collect::<Vec<_>>().join("\n");
        for mark in ['█', '░', '─'] {
            assert!(chart.contains(mark), "{chart}");
        }
        assert!(
            lines.iter().any(|line| line.contains("ends it at turn 26")),
            "{lines:?}"
        );
        assert!(
            lines.iter().any(|line| line.contains("50/100")),
            "{lines:?}"
        );
    }

    #[test]
    fn a_frame_is_drawn_over_the_one_before() {
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(draw(&lines, 0), "\x1b[2Ka\n\x1b[2Kb\n");
        assert!(draw(&lines, 2).starts_with("\x1b[2A\r"));
    }
}
