//! Numbers a request may not exceed, and settings that exclude each other.

use serde_json::Value;

use super::betas::beta;
use super::error::{ApiError, Checked};
use super::request::{Endpoint, Request};
use super::tokens::Counter;

/// Images and document pages per request, on large and on small windows.
const PAGES: u64 = 600;
const PAGES_SMALL_WINDOW: u64 = 100;
const SMALL_WINDOW: u64 = 200_000;

/// Checks everything that does not depend on the size of the prompt.
pub fn check(request: &Request) -> Checked {
    sampling(request)?;
    pages(request)?;
    if request.endpoint == Endpoint::CountTokens {
        return Ok(());
    }
    if request.max_tokens > request.model.max_output {
        return Err(ApiError::invalid(format!(
            "max_tokens: {} > {}, which is the maximum allowed number of output tokens for {}",
            request.max_tokens, request.model.max_output, request.name
        )));
    }
    if request.max_tokens == 0 {
        prewarm(request)
    } else {
        Ok(())
    }
}

/// Checks the size of the prompt against the window.
pub fn window(request: &Request, prompt: u64) -> Checked {
    let window = request.model.window;
    if prompt > window {
        return Err(ApiError::invalid(format!(
            "prompt is too long: {prompt} tokens > {window} maximum"
        )));
    }
    let strict = request.model.strict_output && !request.betas.has(beta::WINDOW_EXCEEDED);
    if strict && prompt.saturating_add(request.max_tokens) > window {
        return Err(ApiError::invalid(format!(
            "input length and `max_tokens` exceed context limit: {prompt} + {} > {window}, decrease \
             input length or `max_tokens` and try again",
            request.max_tokens
        )));
    }
    Ok(())
}

fn sampling(request: &Request) -> Checked {
    if request.model.sampling {
        return Ok(());
    }
    let given = |name: &str| request.fields.get(name).filter(|value| !value.is_null());
    let default = |value: &Value| {
        value
            .as_f64()
            .is_some_and(|number| (number - 1.0).abs() < 1e-9)
    };
    for name in ["temperature", "top_p"] {
        if given(name).is_some_and(|value| !default(value)) {
            return Err(unsupported(name));
        }
    }
    if given("top_k").is_some() {
        return Err(unsupported("top_k"));
    }
    Ok(())
}

fn unsupported(name: &str) -> ApiError {
    ApiError::invalid(format!(
        "`{name}` may only be set to its default value for this model."
    ))
}

fn pages(request: &Request) -> Checked {
    let most = if request.model.window <= SMALL_WINDOW {
        PAGES_SMALL_WINDOW
    } else {
        PAGES
    };
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let pages: u64 = blocks.map(Counter::pages).sum();
    if pages > most {
        return Err(ApiError::invalid(format!(
            "messages: at most {most} images and document pages may be provided. Found {pages}."
        )));
    }
    Ok(())
}

/// `max_tokens: 0` only warms the cache.
fn prewarm(request: &Request) -> Checked {
    let choice = request
        .fields
        .get("tool_choice")
        .and_then(|choice| choice.get("type"));
    let forced = matches!(choice.and_then(Value::as_str), Some("any" | "tool"));
    let format = request
        .fields
        .get("output_config")
        .and_then(|config| config.get("format"));
    let conflict = [
        (request.stream, "stream"),
        (request.thinking.is_manual(), "thinking.enabled"),
        (
            format.is_some_and(|format| !format.is_null()),
            "output_config.format",
        ),
        (forced, "tool_choice"),
    ];
    match conflict.iter().find(|(set, _)| *set) {
        Some((_, name)) => Err(ApiError::invalid(format!(
            "max_tokens: 0 cannot be combined with `{name}`"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::testing::{refusal, request, user};
    use serde_json::json;

    fn refuse(extra: &[(&str, Value)]) -> Option<String> {
        let mut body = json!({"messages": [user("x")]});
        for (key, value) in extra {
            body[*key] = value.clone();
        }
        refusal(&body, &[], check)
    }

    /// Fact: `max_tokens` beyond the model's output limit is refused with both numbers.
    #[test]
    fn output_has_a_limit() {
        assert_eq!(
            refuse(&[("max_tokens", json!(200_000))]).unwrap(),
            "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for \
             claude-opus-5-5"
        );
        assert_eq!(refuse(&[("max_tokens", json!(128_000))]), None);
    }

    /// Fact: the too-long text, verbatim, because clients parse its numbers.
    #[test]
    fn a_prompt_over_the_window_is_too_long() {
        let request = request(
            &json!({"model": "claude-haiku-4-5", "messages": [user("x")]}),
            &[],
        );
        assert_eq!(
            window(&request, 212_345).unwrap_err().message,
            "prompt is too long: 212345 tokens > 200000 maximum"
        );
        assert!(window(&request, 200_000).is_ok());
    }

    /// Fact: models up to 4.1 refuse input plus `max_tokens` over the window; later ones accept it.
    #[test]
    fn older_models_count_max_tokens() {
        let run = |model: &str| {
            let body = json!({"model": model, "max_tokens": 21_333, "messages": [user("x")]});
            window(&request(&body, &[]), 188_240)
                .err()
                .map(|error| error.message)
        };
        assert_eq!(
            run("claude-opus-4-1").unwrap(),
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease \
             input length or `max_tokens` and try again"
        );
        assert_eq!(run("claude-haiku-4-5"), None);
    }

    /// Fact: models up to 4.1 opt into a cut answer instead of the refusal by a beta.
    #[test]
    fn older_models_may_opt_out_of_counting_max_tokens() {
        let body = json!({"model": "claude-opus-4-1", "max_tokens": 21_333,
            "messages": [user("x")]});
        let asked = request(&body, &[beta::WINDOW_EXCEEDED]);
        assert!(window(&asked, 188_240).is_ok());
        assert!(window(&asked, 200_001).is_err());
    }

    /// Fact: Claude 4.7 and later refuse sampling parameters other than the defaults.
    #[test]
    fn newer_models_refuse_sampling() {
        assert!(refuse(&[("temperature", json!(0.5))]).is_some());
        assert_eq!(refuse(&[("temperature", json!(1))]), None);
        assert_eq!(
            refuse(&[
                ("model", json!("claude-opus-4-6")),
                ("temperature", json!(0.5))
            ]),
            None
        );
    }

    /// Fact: pre-warming excludes streaming, manual thinking, an output format and forced tools.
    #[test]
    fn prewarming_excludes_output_settings() {
        let zero = ("max_tokens", json!(0));
        assert_eq!(refuse(std::slice::from_ref(&zero)), None);
        assert!(refuse(&[zero.clone(), ("stream", json!(true))]).is_some());
        let format = json!({"format": {"type": "json_schema", "schema": {}}});
        assert!(refuse(&[zero, ("output_config", format)]).is_some());
    }

    /// Fact: 600 images per request, 100 on models with a 200k window.
    #[test]
    fn images_have_a_limit() {
        let image = json!({"type": "image", "source": {"type": "url", "url": "u"}});
        let images = user(json!(vec![image; 101]));
        assert_eq!(refuse(&[("messages", json!([images]))]), None);
        let small = ("model", json!("claude-haiku-4-5"));
        assert!(refuse(&[small, ("messages", json!([images]))]).is_some());
    }
}
