//! The names models go by.
//!
//! One model has many: with a date, with a cloud's prefix and version, with an
//! alias for the newest. All lead to the one entry of the table. Patterns know
//! `*` for any text, nothing else.

/// The name without what clouds and releases add to it:
/// `us.anthropic.claude-opus-4-8-20260101-v1:0` is `claude-opus-4-8`.
pub(super) fn base(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.rsplit("anthropic.").next().unwrap_or(name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let name = without_version(name);
    without_date(name)
}

fn without_version(name: &str) -> &str {
    let unnumbered = match name.rsplit_once(':') {
        Some((front, number)) if digits(number) => front,
        _ => name,
    };
    match unnumbered.rsplit_once("-v") {
        Some((front, number)) if digits(number) => front,
        _ => name,
    }
}

fn without_date(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((front, end)) if end == "latest" || (end.len() == 8 && digits(end)) => front,
        _ => name,
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a pattern, in which `*` stands for any text, matches a name.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|start| name.strip_prefix(start)) else {
        return false;
    };
    let Some(end) = parts.next_back() else {
        // Without any `*` the pattern is the name.
        return rest.is_empty();
    };
    let Some(mut rest) = rest.strip_suffix(end) else {
        return false;
    };
    // Taking the first place each part fits leaves the most for the others.
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

/// How much a pattern says: a name before any pattern, then by its letters.
pub(super) fn specificity(pattern: &str) -> (bool, usize) {
    let stars = pattern.matches('*').count();
    (stars == 0, pattern.len().saturating_sub(stars))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_leads_to_the_base_name() {
        for (name, expected) in [
            ("claude-opus-4-8", "claude-opus-4-8"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-haiku-4-5-latest", "claude-haiku-4-5"),
            ("anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8"),
            ("anthropic.claude-opus-4-8-v1", "claude-opus-4-8"),
            (
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                "claude-sonnet-4-5",
            ),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-5-v2:0",
                "claude-opus-5",
            ),
            ("claude-opus-4-8@20260101", "claude-opus-4-8"),
            ("claude-opus-4-8@default", "claude-opus-4-8"),
            ("anthropic/claude-opus-5", "claude-opus-5"),
            ("gpt-5.6-20260101", "gpt-5.6"),
            ("llama:8b", "llama:8b"),
            ("", ""),
        ] {
            assert_eq!(base(name), expected, "{name}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("claude-*", "claude-opus-5", true),
            ("*", "", true),
            ("*opus*", "claude-opus-5", true),
            ("claude-*-5", "claude-opus-5", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*bc*c", "abc", false),
            ("claude", "claude-opus-5", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_name_is_more_specific_than_any_pattern() {
        assert!(specificity("a") > specificity("aaaa*"));
        assert!(specificity("claude-opus-*") > specificity("claude-*"));
    }

    proptest! {
        #[test]
        fn names_of_any_form_are_taken(name in any::<String>(), pattern in "[a*é]{0,8}") {
            prop_assert!(name.contains(base(&name)));
            let _ = matches(&pattern, &name);
            prop_assert!(matches("*", &name));
        }
    }
}
