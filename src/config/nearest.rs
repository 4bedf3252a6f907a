//! Which known key somebody meant.
//!
//! Two mistakes are common: a letter wrong, and the right key in the wrong
//! section. A suggestion that has nothing to do with what was written is worse
//! than none.

use super::keys::KEYS;
use strsim::damerau_levenshtein;

/// The known key or section most like this one, if any is like it.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let keys = KEYS.iter().map(|known| known.path);
    let sections = KEYS.iter().filter_map(|known| known.path.split_once('.'));
    nearest_of(key, keys.chain(sections.map(|(section, _)| section)))
}

/// The same among some of them.
pub(super) fn nearest_of(
    key: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let in_another_section = known.clone().filter(|path| last(path) == last(key));
    in_another_section
        .min_by_key(|path| damerau_levenshtein(path, key))
        .or_else(|| misspelt(key, known))
}

fn misspelt(key: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let (distance, path) = known
        .map(|path| (damerau_levenshtein(path, key), path))
        .min()?;
    (distance * 3 <= path.len().max(3)).then_some(path)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
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
