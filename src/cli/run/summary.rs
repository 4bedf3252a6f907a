//! What is told at the end, in a line.

use std::fmt::Write as _;

use super::answers::Answers;
use super::counted::counted;
use crate::engine::money::{Money, dollars, in_dollars, sentence};
use crate::engine::numerals::grouped;
use crate::views::tally::{Size, Sums};

/// What went through the proxy.
pub fn line(sums: &Sums, paid: Option<Money>, answers: &Answers) -> String {
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
    if let Some(money) = paid {
        let (spent, without) = (in_dollars(money.spent), in_dollars(money.without));
        let saved = dollars(in_dollars(money.saved()));
        let _ = write!(line, "; {} (saved {saved})", sentence(spent, without));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_in_a_line() {
        let sums = |requests, sessions, passes| Sums {
            requests,
            sessions,
            passes,
            largest: Size {
                turns: 1,
                original: 182_345,
                sent: 64_211,
            },
        };
        let cents = |spent: i128, without: i128| Money {
            spent: 10_000_000_000 * spent,
            without: 10_000_000_000 * without,
        };
        let rows = [
            (
                Sums::default(),
                None,
                "no conversation came through: does the command read ANTHROPIC_BASE_URL?",
            ),
            (
                sums(1, 1, 0),
                None,
                "1 request, 1 turn, context 182,345 tokens, sent as 64,211; 0 passes",
            ),
            (
                sums(1_057, 3, 1),
                Some(cents(120, 313)),
                "1,057 requests in 3 sessions; the largest: 1 turn, context 182,345 tokens, \
                 sent as 64,211; 1 pass; spent $1.20; without Longhaul it would have been $3.13 \
                 (saved $1.93)",
            ),
            (
                sums(2, 1, 2),
                Some(cents(63, 60)),
                "2 requests, 1 turn, context 182,345 tokens, sent as 64,211; 2 passes; spent $0.63; \
                 without Longhaul it would have been $0.60 (saved -$0.0300)",
            ),
        ];
        for (sums, paid, expected) in rows {
            assert_eq!(line(&sums, paid, &Answers::default()), expected);
        }
    }
}
