//! What a model's factor is taken to be before its first reply.
//!
//! It must not be too low: the first request of a long session would be sent
//! although it does not fit. Claude's tokenizers give more tokens than the
//! public vocabulary, those since 4.7 about thirty percent more than those
//! before. A name nobody knows may be the newest of them.

use super::factor::Factor;

/// Since 4.7: at most some forty percent more than the public vocabulary.
const NEWER: f64 = 1.4;
/// Before that: ten to twenty percent more.
const OLDER: f64 = 1.2;
/// Models whose vocabulary is the public one, or nearly.
const PUBLIC: f64 = 1.05;

/// The first version with the newer tokenizer.
const SINCE: (u32, u32) = (4, 7);

/// The factor of a model of which nothing has been learned yet.
pub fn prior(model: &str) -> Factor {
    let model = model.to_ascii_lowercase();
    let public = ["gpt-", "chatgpt", "o1", "o3", "o4"];
    let assumed = match model.split_once("claude") {
        Some((_, rest)) if version(rest).is_some_and(|version| version < SINCE) => OLDER,
        None if public.iter().any(|name| model.contains(name)) => PUBLIC,
        _ => NEWER,
    };
    Factor::assumed(assumed)
}

/// The first number in what follows `claude`, and the second if it is beside it
/// and no date: `-opus-4-8-20260101` is 4.8, `-3-5-sonnet` is 3.5.
fn version(rest: &str) -> Option<(u32, u32)> {
    let mut words = rest.split(['-', '.', '@', ':', '_', '/', '[']);
    let number = |word: &str| {
        (word.len() <= 2)
            .then(|| word.parse::<u32>().ok())
            .flatten()
    };
    let major = words.find_map(number)?;
    let minor = words.next().and_then(number).unwrap_or(0);
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_and_unknown_models_are_taken_for_the_thirstiest() {
        for (model, expected) in [
            ("claude-opus-5-5", NEWER),
            ("claude-fable-5-2", NEWER),
            ("claude-opus-4-7", NEWER),
            ("claude-opus-4-8-20260101", NEWER),
            ("us.anthropic.claude-opus-4-8-20260101-v1:0", NEWER),
            ("claude-from-the-future", NEWER),
            ("somebody/elses-model", NEWER),
            ("", NEWER),
            ("claude-opus-4-6", OLDER),
            ("claude-sonnet-4-5-20250929", OLDER),
            ("claude-sonnet-4-20250514", OLDER),
            ("claude-haiku-4-5@20251001", OLDER),
            ("claude-3-5-haiku-latest", OLDER),
            ("gpt-5.6", PUBLIC),
            ("openai/o3-mini", PUBLIC),
        ] {
            let prior = prior(model);
            assert!((prior.value() - expected).abs() < 1e-9, "{model} {prior:?}");
            assert!(!prior.is_learned());
        }
    }
}
