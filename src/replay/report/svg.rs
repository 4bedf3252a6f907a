//! The report as a picture: for each session the size of its prompts and what
//! they cost so far, over its requests.
//!
//! Written by hand and without a script, so that it can be shown anywhere; its
//! colours follow the reader's light or dark surroundings.

use std::fmt::Write as _;

use super::{Report, thousands};
use crate::replay::all::Told;
use crate::replay::play::{Played, Run};

const WIDTH: f64 = 960.0;
/// Of one session.
const HEIGHT: f64 = 300.0;
/// Of one plot, and where it begins within its half.
const PLOT: (f64, f64) = (370.0, 180.0);
const ORIGIN: (f64, f64) = (72.0, 64.0);
/// The most points of a line; more cannot be seen.
const POINTS: usize = 400;

/// Colours for both surroundings; lines of further variations go round.
const STYLE: &str = "\
svg{color:#1f2328;background:#ffffff;font:12px system-ui,sans-serif}\
text{fill:currentColor}.title{font-size:15px;font-weight:600}.dim{opacity:.65}\
.frame{stroke:currentColor;opacity:.25;fill:none}.limit{stroke:#cf222e;stroke-dasharray:5 4;fill:none}\
.line{fill:none;stroke-width:2;stroke-linejoin:round}\
.a{stroke:#8c959f}.b{stroke:#0969da}.c{stroke:#1a7f37}.d{stroke:#9a6700}.e{stroke:#8250df}\
.pass{stroke:#0969da;opacity:.45}\
@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}\
.a{stroke:#7d8590}.b,.pass{stroke:#58a6ff}.c{stroke:#3fb950}.d{stroke:#d29922}.e{stroke:#bc8cff}.limit{stroke:#ff7b72}}";

/// The whole picture.
#[allow(clippy::cast_precision_loss, reason = "sessions are few")]
pub fn svg(report: &Report<'_>) -> String {
    let height = HEIGHT * report.told.len().max(1) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <style>{STYLE}</style>\n"
    );
    for (at, told) in report.told.iter().enumerate() {
        let top = HEIGHT * at as f64;
        let _ = writeln!(text, "<g transform=\"translate(0 {top})\">");
        session(&mut text, report, told);
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

/// A line of a plot: its class, its name and a value for each request.
struct Line {
    class: &'static str,
    name: String,
    values: Vec<f64>,
}

fn session(text: &mut String, report: &Report<'_>, told: &Told) {
    let title = format!("{}: {}", told.name, report.heading());
    label(text, 16.0, 26.0, "title", &title);
    let size = |played: &Played| number(played.tokens.prompt());
    let mut sizes = vec![line(0, "without", told.alone.1.played.iter().map(size))];
    let mut costs = vec![line(0, "without", so_far(&told.alone.1))];
    for (at, (_, run)) in told.with.iter().enumerate() {
        let name = if at == 0 {
            "Longhaul".to_owned()
        } else {
            report.title(at)
        };
        sizes.push(line(at + 1, &name, run.played.iter().map(size)));
        costs.push(line(at + 1, &name, so_far(run)));
    }
    let passes = told.with.first();
    let passes = passes.map_or(&[][..], |(_, run)| run.played.as_slice());
    let budget = report.conditions.configured().budget;
    let limit = number(budget.unwrap_or(report.window).min(report.window));
    let tokens = |value: f64| format!("{:.0}K", value / 1_000.0);
    plot(
        text,
        0.0,
        "tokens in the prompt",
        &sizes,
        Some(limit),
        passes,
        &tokens,
    );
    let dollars = |value: f64| format!("${value:.2}");
    plot(
        text,
        WIDTH / 2.0,
        "dollars so far",
        &costs,
        None,
        passes,
        &dollars,
    );
    let note = format!(
        "dashed: {} of {}; below: requests with a pass; {}",
        if budget.is_some() { "budget" } else { "window" },
        thousands(budget.unwrap_or(report.window)),
        report.origins().join("; "),
    );
    label(text, 16.0, HEIGHT - 12.0, "dim", &note);
}

/// What was spent up to each request.
fn so_far(run: &Run) -> impl Iterator<Item = f64> {
    run.played.iter().scan(0.0, |spent, played| {
        *spent += played.dollars + played.summaries;
        Some(*spent)
    })
}

fn line(at: usize, name: &str, values: impl Iterator<Item = f64>) -> Line {
    let classes = ["line a", "line b", "line c", "line d", "line e"];
    let further = at
        .checked_sub(1)
        .map_or(0, |at| at % (classes.len() - 1) + 1);
    Line {
        class: classes.get(further).copied().unwrap_or("line a"),
        name: name.to_owned(),
        values: values.collect(),
    }
}

fn plot(
    text: &mut String,
    left: f64,
    title: &str,
    lines: &[Line],
    limit: Option<f64>,
    played: &[Played],
    shown: &dyn Fn(f64) -> String,
) {
    let ((width, height), (x, y)) = (PLOT, ORIGIN);
    let (x, bottom) = (x + left, y + height);
    let values = || lines.iter().flat_map(|line| line.values.iter().copied());
    let largest = values().fold(0.0, f64::max);
    // A limit that is far away would only press the lines down.
    let limit = limit.filter(|limit| *limit < largest * 2.0);
    let top = limit.unwrap_or(0.0).max(largest).max(1e-6) * 1.05;
    let count = lines
        .iter()
        .map(|line| line.values.len())
        .max()
        .unwrap_or(0);
    let across = |at: usize| x + width * number(at as u64) / number(count.max(2) as u64 - 1);
    let up = |value: f64| bottom - height * value / top;
    let _ = writeln!(
        text,
        "<rect class=\"frame\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" height=\"{height}\"/>"
    );
    label(text, x, y - 22.0, "", title);
    for part in [0.0, 0.5, 1.0] {
        let value = top / 1.05 * part;
        let at = up(value) + 4.0;
        let _ = writeln!(
            text,
            "<text class=\"dim\" x=\"{:.1}\" y=\"{at:.1}\" text-anchor=\"end\">{}</text>",
            x - 6.0,
            shown(value)
        );
    }
    let _ = writeln!(
        text,
        "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{count} requests</text>",
        x + width,
        bottom + 26.0
    );
    if let Some(limit) = limit {
        let at = up(limit);
        let _ = writeln!(
            text,
            "<path class=\"limit\" d=\"M{x:.1} {at:.1}H{:.1}\"/>",
            x + width
        );
    }
    for (at, _) in played
        .iter()
        .enumerate()
        .filter(|(_, it)| !it.pass.is_empty())
    {
        let _ = writeln!(
            text,
            "<path class=\"pass\" d=\"M{:.1} {bottom:.1}v9\"/>",
            across(at)
        );
    }
    let mut from = x;
    for Line {
        class,
        name,
        values,
    } in lines
    {
        let step = values.len().div_ceil(POINTS).max(1);
        let last = values.len().saturating_sub(1);
        let points = values.iter().enumerate();
        let points = points.filter(|(at, _)| at % step == 0 || *at == last);
        let points = points.map(|(at, value)| format!("{:.1},{:.1}", across(at), up(*value)));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "<polyline class=\"{class}\" points=\"{points}\"/>");
        let (mark, at) = (from + 18.0, y - 7.0);
        let _ = writeln!(
            text,
            "<path class=\"{class}\" d=\"M{from:.1} {:.1}H{mark:.1}\"/>",
            at - 4.0
        );
        label(text, mark + 4.0, at, "dim", name);
        from = mark + 14.0 + 6.5 * number(name.chars().count() as u64);
    }
}

fn label(text: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        text,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"
    );
}

/// A text that means nothing but itself in a page.
pub(super) fn escaped(text: &str) -> String {
    // A picture with a control character in it is no XML.
    let is_broken = |c: char| c.is_control() && c != '\n';
    let text = text.replace(is_broken, "\u{fffd}");
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}
