//! What is told at the end, in a line.

use std::fmt::Write as _;

use super::answers::Answers;
use crate::engine::numerals::grouped;
use crate::views::tally::{Size, Sums};

/// Pico-dollars of a cent.
const CENT: i128 = 10_000_000_000;

/// What went through the proxy.
pub fn line(sums: &Sums, answers: &Answers) -> String {
    if sums.requests == 0 {
        return answers.told().unwrap_or_else(|| {
            "no conversation came through: does the command read ANTHROPIC_BASE_URL?".to_owned()
        });
    }
    let Size {
        turns,
        original,
        sent,
    } = sums.largest;
    let mut line = counted(sums.requests, "request");
    if sums.sessions > 1 {
        let _ = write!(line, " in {} sessions; the largest:", sums.sessions);
    } else {
        line.push(',');
    }
    let _ = write!(
        line,
        " {}, context {} tokens, sent as {}; {}",
        counted(turns, "turn"),
        grouped(original),
        grouped(sent),
        counted(sums.passes, "pass")
    );
    if let Some(pico) = sums.saved {
        let cents = (pico.abs() + CENT / 2) / CENT;
        let sign = if pico < 0 && cents > 0 { "-" } else { "" };
        let _ = write!(line, "; saved {sign}${}.{:02}", cents / 100, cents % 100);
    }
    line
}

/// So many of something.
pub fn counted(count: u64, word: &str) -> String {
    let plural = match (count, word.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {word}{plural}", grouped(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_in_a_line() {
        let sums = |requests, sessions, passes, saved| Sums {
            requests,
            sessions,
            passes,
            saved,
            largest: Size {
                turns: 1,
                original: 182_345,
                sent: 64_211,
            },
        };
        let rows = [
            (
                Sums::default(),
                "no conversation came through: does the command read ANTHROPIC_BASE_URL?",
            ),
            (
                sums(1, 1, 0, None),
                "1 request, 1 turn, context 182,345 tokens, sent as 64,211; 0 passes",
            ),
            (
                sums(1_057, 3, 1, Some(1_925_000_000_000)),
                "1,057 requests in 3 sessions; the largest: 1 turn, context 182,345 tokens, \
                 sent as 64,211; 1 pass; saved $1.93",
            ),
            (
                sums(2, 1, 2, Some(-31_000_000_000)),
                "2 requests, 1 turn, context 182,345 tokens, sent as 64,211; 2 passes; saved -$0.03",
            ),
            (
                sums(2, 1, 2, Some(-1)),
                "2 requests, 1 turn, context 182,345 tokens, sent as 64,211; 2 passes; saved $0.00",
            ),
        ];
        for (sums, expected) in rows {
            assert_eq!(line(&sums, &Answers::default()), expected);
        }
    }
}
