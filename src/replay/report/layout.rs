//! How numbers and tables of a report are written.

use crate::replay::figures::Outcome;

/// A share, or a dash where there is none.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || "-".to_owned(),
        // Never minus nothing.
        |share| format!("{:.0}%", (share * 100.0).round() + 0.0),
    )
}

/// The worst request to end with, and what had been paid by then.
pub(super) fn worst_cut(outcome: &Outcome) -> String {
    let cut = outcome.worst_cut.as_ref();
    cut.map_or_else(
        || "-".to_owned(),
        |cut| format!("{:.1}% @{}", cut.share * 100.0, cut.request),
    )
}

/// Rows with their columns below each other, the first to the left.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Six digits behind the point are enough for anybody.
pub(super) fn rounded(number: f64) -> f64 {
    let rounded = (number * 1e6).round() / 1e6;
    // Never minus nothing.
    if rounded == 0.0 { 0.0 } else { rounded }
}
