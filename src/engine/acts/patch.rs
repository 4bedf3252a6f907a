//! The files that a patch changes, as its own lines name them.

use super::Writing;
use super::paths::{Base, File};

/// The lines of a patch that name a file, and whether the patch holds all of it.
const LINES: [(&str, bool); 4] = [
    ("*** Add File: ", true),
    ("*** Update File: ", false),
    ("*** Delete File: ", false),
    ("*** Move to: ", false),
];

/// The files of a patch between `*** Begin Patch` and `*** End Patch`; `None` if
/// it is not such a patch.
pub(super) fn files(patch: &str, world: &str) -> Option<Vec<Writing>> {
    if !patch.trim_start().starts_with("*** Begin Patch") {
        return None;
    }
    let writing = |(path, is_full): (&str, bool)| {
        let file = File::new(world, Base::Session, path)?;
        Some(Writing { file, is_full })
    };
    let writings: Option<Vec<Writing>> = patch.lines().filter_map(named).map(writing).collect();
    writings.filter(|writings| !writings.is_empty())
}

/// The file that a line of a patch names, and whether all of it follows.
fn named(line: &str) -> Option<(&str, bool)> {
    let path = |(start, is_full): &(&str, bool)| Some((line.strip_prefix(start)?, *is_full));
    LINES.iter().find_map(path)
}
