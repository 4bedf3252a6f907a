//! Whether a request for a summary may say how it is to be sampled.
//!
//! A summary is best written without chance. But `temperature` exists only under
//! one version of the API, and newer models refuse any but the default. A
//! request that is refused costs more than a little chance in an answer, so what
//! is not known takes none.

/// The only version of the API under which it exists.
const VERSION: &str = "2023-06-01";
/// The first model that refuses it.
const REFUSES: (u32, u32) = (4, 7);

/// Whether this model takes a temperature under this version of the API.
pub fn takes_temperature(model: &str, version: &str) -> bool {
    version == VERSION && generation(model).is_some_and(|generation| generation < REFUSES)
}

/// The generation that a model's name tells: `claude-opus-4-1-20250805` is 4.1.
fn generation(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.rsplit_once("claude-")?;
    // More digits are a date.
    let number = |part: &str| part.parse::<u32>().ok().filter(|_| part.len() <= 2);
    let mut parts = name.split(['-', '.', '@', ':']);
    let major = parts.find_map(number)?;
    Some((major, parts.next().and_then(number).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_older_models_under_the_older_version_take_one() {
        for (model, expected) in [
            ("claude-sonnet-4-5-20250929", true),
            ("claude-opus-4-20250514", true),
            ("claude-opus-4-1", true),
            ("claude-3-5-haiku-20241022", true),
            ("claude-3-7-sonnet-latest", true),
            ("claude-2.1", true),
            ("us.anthropic.claude-opus-4-6-v1:0", true),
            ("claude-sonnet-4@20250514", true),
            ("claude-opus-4-7", false),
            ("claude-haiku-5-5", false),
            ("claude-opus-5", false),
            ("anthropic/claude-opus-5", false),
            ("claude-mythos-preview", false),
            ("gpt-4-1", false),
            ("", false),
        ] {
            assert_eq!(takes_temperature(model, VERSION), expected, "{model}");
            assert!(!takes_temperature(model, "2026-10-21"), "{model}");
            assert!(!takes_temperature(model, "2023-01-01"), "{model}");
        }
    }
}
