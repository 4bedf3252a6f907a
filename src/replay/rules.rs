//! The sentences in which a user says how the work is to be done.
//!
//! They hold until the user takes them back, so a view must have them word for
//! word however old they are.

/// The shortest and longest sentence that counts.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=400;
/// Words that make a sentence an order wherever they stand.
const ORDERS: [&str; 10] = [
    "must",
    "never",
    "always",
    "don't",
    "only",
    "ensure",
    "avoid",
    "cannot",
    "shouldn't",
    "should",
];
/// Words that do so at its beginning.
const OPENINGS: [&str; 8] = [
    "use", "keep", "make", "do", "please", "prefer", "stop", "leave",
];
/// The most sentences of one message: more are a document, not orders.
const MOST: usize = 40;

/// The orders in what a user wrote.
pub fn orders(words: &str) -> impl Iterator<Item = &str> {
    let sentences = words.lines().flat_map(sentences).map(str::trim);
    let told = sentences.filter(|it| LENGTH.contains(&it.len()) && is_order(it));
    told.take(MOST)
}

/// The sentences of a line.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = [". ", "! ", "? "].iter().filter_map(|end| rest.find(end));
        let at = ends.min().map_or(rest.len(), |at| at + 1);
        let (sentence, behind) = rest.split_at_checked(at)?;
        rest = behind;
        Some(sentence)
    })
}

fn is_order(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let mut words = lower
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty());
    let opens = words.clone().next();
    opens.is_some_and(|word| OPENINGS.contains(&word))
        || lower.contains("do not ")
        || words.any(|word| ORDERS.contains(&word))
}

/// How old an order is, in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// At most ten.
    Ten,
    /// At most thirty.
    Thirty,
    /// At most a hundred.
    Hundred,
    /// Older.
    Older,
}

impl Age {
    /// Each of them, youngest first.
    pub const ALL: [Self; 4] = [Self::Ten, Self::Thirty, Self::Hundred, Self::Older];

    /// The age of what was said so many requests ago.
    pub fn of(requests: usize) -> Self {
        match requests {
            0..=10 => Self::Ten,
            11..=30 => Self::Thirty,
            31..=100 => Self::Hundred,
            _ => Self::Older,
        }
    }

    /// Its name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ten => "up_to_10",
            Self::Thirty => "up_to_30",
            Self::Hundred => "up_to_100",
            Self::Older => "older",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_told_from_what_is_only_said() {
        let said = "I looked at it. Never touch legacy/! The tests are red.\n\
                    Use pnpm, not npm. It is used a lot. You don’t need to ask.\nMust I?";
        let found: Vec<&str> = orders(said).collect();
        assert_eq!(
            found,
            [
                "Never touch legacy/!",
                "Use pnpm, not npm.",
                "You don’t need to ask."
            ]
        );
        assert_eq!(orders(&"You must do it.\n".repeat(99)).count(), MOST);
    }

    #[test]
    fn an_age_is_one_of_four() {
        let ages = [0, 10, 11, 30, 31, 100, 101].map(|requests| Age::of(requests).word());
        let expected = [
            "up_to_10",
            "up_to_10",
            "up_to_30",
            "up_to_30",
            "up_to_100",
            "up_to_100",
            "older",
        ];
        assert_eq!(ages, expected);
    }
}
