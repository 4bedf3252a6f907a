//! The headings of the plan block: a later pass finds its parts by them.

/// What begins the block.
pub(super) const TITLE: &str = "\n## Plan as it stood at message ";
/// The headings of its parts, the most important first.
pub(super) const HEADINGS: [&str; 10] = [
    "Goal",
    "Asked for last",
    "Rules the user set",
    FORMER,
    "From the summary that the client made of what came before",
    "To do",
    "Said to be done and next",
    "Tried and failed, not seen to work since",
    "Files in hand",
    "Values that were looked up",
];
pub(super) const FORMER: &str = "From the plan before the client summed its history up";
