//! Numbers with the word for what is counted.

use crate::engine::numerals::grouped;

/// A number and its word, in the plural where it must be.
pub fn counted(count: u64, word: &str) -> String {
    let plural = match (count, word.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {word}{plural}", grouped(count))
}
