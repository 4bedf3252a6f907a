//! Which known key somebody meant.
//!
//! Two mistakes are common: a letter wrong, and the right key in the wrong
//! section. A suggestion that has nothing to do with what was written is worse
//! than none.

use super::keys::KEYS;
use strsim::damerau_levenshtein;

/// The known key most like this one, if any is like it.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    in_another_section(key).or_else(|| misspelt(key))
}

fn in_another_section(key: &str) -> Option<&'static str> {
    let name = last(key);
    let same = KEYS.iter().map(|known| known.path);
    same.filter(|path| last(path) == name)
        .min_by_key(|path| damerau_levenshtein(path, key))
}

fn misspelt(key: &str) -> Option<&'static str> {
    let sections = KEYS.iter().filter_map(|known| section(known.path));
    KEYS.iter()
        .map(|known| known.path)
        .chain(sections)
        .map(|path| (damerau_levenshtein(path, key), path))
        .min()
        .filter(|(distance, path)| distance * 3 <= path.len().max(3))
        .map(|(_, path)| path)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn section(path: &'static str) -> Option<&'static str> {
    path.split_once('.').map(|(section, _)| section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found_by_spelling_or_by_name() {
        for (key, expected) in [
            ("upstrem", Some("upstream")),
            ("limits.body_byte", Some("limits.body_bytes")),
            ("limit.body_bytes", Some("limits.body_bytes")),
            ("polcy", Some("policy")),
            ("clear_at", Some("policy.clear_at")),
            ("policy.keep_tool_uses", Some("clear.keep_tool_uses")),
            ("cache.tll", Some("cache.ttl")),
            ("models.*.windw", Some("models.*.window")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(key), expected, "{key}");
        }
    }
}
