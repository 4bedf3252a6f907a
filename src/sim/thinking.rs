//! Thinking settings: what each model accepts and what a request then gets.

use serde_json::Value;

use super::betas::{Betas, beta};
use super::error::{ApiError, Checked};
use super::models::{Disabling, Model};
use super::request::Block;
use super::shape;

/// How the model thinks in this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    Off,
    /// As it sees fit.
    Adaptive,
    /// Only between tool calls.
    BetweenTools,
    /// Up to a budget.
    Manual {
        /// `budget_tokens`.
        budget: u64,
    },
}

/// What the request says about thinking that does not fit its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MismatchBehavior {
    /// `error`.
    Error,
    /// `drop_block`.
    DropBlock,
}

/// The thinking settings of a request, defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The mode.
    pub mode: Mode,
    /// Whether thinking text is left out of the answer.
    pub omitted: bool,
    /// `block_binding.prefix_mismatch_behavior`, if the request has one.
    pub mismatch: Option<MismatchBehavior>,
}

impl Settings {
    /// Whether thinking has a budget.
    pub fn is_manual(&self) -> bool {
        matches!(self.mode, Mode::Manual { .. })
    }

    /// Whether the model thinks at all.
    pub fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// A text that differs when the prompt renders differently.
    pub fn rendering(&self) -> String {
        format!("{:?}", self.mode)
    }
}

/// Smallest thinking budget.
const SMALLEST_BUDGET: u64 = 1_024;

/// Reads and checks `thinking`.
pub fn settings(
    value: Option<&Value>,
    body: &Block,
    model: &Model,
    max_tokens: u64,
    betas: &Betas,
) -> Checked<Settings> {
    let support = model.thinking;
    let default = if support.on_by_default {
        Mode::Adaptive
    } else {
        Mode::Off
    };
    let mut settings = Settings {
        mode: default,
        omitted: support.omitted_by_default,
        mismatch: None,
    };
    let thinking = match value {
        None | Some(Value::Null) => return Ok(settings),
        Some(Value::Object(thinking)) => thinking,
        Some(_) => {
            return Err(ApiError::invalid(
                "thinking: Input should be a valid dictionary",
            ));
        }
    };
    let kind = thinking.get("type").and_then(Value::as_str).unwrap_or("");
    settings.mode = match kind {
        "adaptive" if support.adaptive => Mode::Adaptive,
        "adaptive" => {
            return Err(ApiError::invalid(
                "adaptive thinking is not supported on this model",
            ));
        }
        "between_tools" if support.between_tools => Mode::BetweenTools,
        "enabled" if support.enabled => Mode::Manual {
            budget: budget(thinking, max_tokens)?,
        },
        "disabled" if may_disable(support.disabled, body) => Mode::Off,
        "enabled" | "disabled" | "between_tools" => return Err(unsupported(kind)),
        _ => {
            return Err(ApiError::invalid(format!(
                "thinking: Input tag '{kind}' found using 'type' does not match any of the expected \
                 tags: 'adaptive', 'disabled', 'enabled'"
            )));
        }
    };
    let mut optional = vec!["display"];
    if kind == "enabled" {
        optional.push("budget_tokens");
    }
    if betas.has(beta::BINDING) {
        optional.push("block_binding");
    }
    shape::fields(&format!("thinking.{kind}"), thinking, &[], &optional)?;
    match thinking.get("display").and_then(Value::as_str) {
        None => {}
        Some("summarized") => settings.omitted = false,
        Some("omitted") => settings.omitted = true,
        Some("updates") if betas.has("thinking-display-updates-2026-08-18") => {
            settings.omitted = false;
        }
        Some(_) => {
            return Err(ApiError::invalid(format!(
                "thinking.{kind}.display: Input should be 'summarized' or 'omitted'"
            )));
        }
    }
    settings.mismatch = mismatch(kind, thinking)?;
    Ok(settings)
}

fn budget(thinking: &Block, max_tokens: u64) -> Checked<u64> {
    let Some(budget) = thinking.get("budget_tokens").and_then(Value::as_u64) else {
        return Err(ApiError::required("thinking.enabled.budget_tokens"));
    };
    if budget < SMALLEST_BUDGET {
        return Err(ApiError::invalid(format!(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to {SMALLEST_BUDGET}"
        )));
    }
    // On count_tokens there is no max_tokens to compare with.
    if max_tokens > 0 && budget >= max_tokens {
        return Err(ApiError::invalid(
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        ));
    }
    Ok(budget)
}

fn may_disable(disabling: Disabling, body: &Block) -> bool {
    let effort = body
        .get("output_config")
        .and_then(|c| c.get("effort"))
        .and_then(Value::as_str);
    match disabling {
        Disabling::Accepted => true,
        Disabling::Refused => false,
        Disabling::RefusedAtHighEffort => !matches!(effort, Some("xhigh" | "max")),
    }
}

fn unsupported(kind: &str) -> ApiError {
    ApiError::invalid(format!(
        "\"thinking.type.{kind}\" is not supported for this model. Use \"thinking.type.adaptive\" and \
         \"output_config.effort\" to control thinking behavior."
    ))
}

fn mismatch(kind: &str, thinking: &Block) -> Checked<Option<MismatchBehavior>> {
    let Some(binding) = thinking
        .get("block_binding")
        .filter(|value| !value.is_null())
    else {
        return Ok(None);
    };
    let place = format!("thinking.{kind}.block_binding");
    let Value::Object(binding) = binding else {
        return Err(ApiError::invalid(format!(
            "{place}: Input should be a valid dictionary"
        )));
    };
    let field = "prefix_mismatch_behavior";
    shape::fields(&place, binding, &[], &[field])?;
    match binding.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_str() {
            Some("error") => Ok(Some(MismatchBehavior::Error)),
            Some("drop_block") => Ok(Some(MismatchBehavior::DropBlock)),
            _ => Err(ApiError::invalid(format!(
                "{place}.{field}: Input should be 'error' or 'drop_block'"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::models;
    use serde_json::json;

    fn run(model: &str, thinking: &Value, body: &Value, betas: &[&str]) -> Checked<Settings> {
        let model = models::find(model).unwrap();
        settings(
            Some(thinking),
            body.as_object().unwrap(),
            model,
            8_000,
            &Betas::new(betas),
        )
    }

    fn accepted(model: &str, kind: &str) -> bool {
        let mut thinking = json!({"type": kind});
        if kind == "enabled" {
            thinking["budget_tokens"] = json!(1024);
        }
        run(model, &thinking, &json!({}), &[]).is_ok()
    }

    /// Fact: which kinds of thinking each model accepts.
    #[test]
    fn accepted_kinds_per_model() {
        let table = [
            ("claude-fable-5-2", [true, false, false, false]),
            ("claude-opus-5-5", [true, false, false, false]),
            ("claude-opus-5", [true, false, true, false]),
            ("claude-sonnet-5-5", [true, false, false, true]),
            ("claude-haiku-5-5", [true, false, false, true]),
            ("claude-sonnet-5", [true, false, true, false]),
            ("claude-opus-4-8", [true, false, true, false]),
            ("claude-opus-4-6", [true, true, true, false]),
            ("claude-sonnet-4-6", [true, true, true, false]),
            ("claude-haiku-4-5", [false, true, true, false]),
        ];
        for (model, expected) in table {
            let kinds = ["adaptive", "enabled", "disabled", "between_tools"];
            assert_eq!(kinds.map(|kind| accepted(model, kind)), expected, "{model}");
        }
    }

    /// Fact: Opus 5 refuses disabled thinking at effort xhigh and max.
    #[test]
    fn high_effort_keeps_thinking_on() {
        let body = json!({"output_config": {"effort": "xhigh"}});
        assert!(run("claude-opus-5", &json!({"type": "disabled"}), &body, &[]).is_err());
    }

    /// Fact: the texts of the refusals.
    #[test]
    fn refusals_in_the_words_of_the_api() {
        let enabled = json!({"type": "enabled", "budget_tokens": 2000});
        assert_eq!(
            run("claude-opus-5-5", &enabled, &json!({}), &[])
                .unwrap_err()
                .message,
            "\"thinking.type.enabled\" is not supported for this model. Use \
             \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."
        );
        assert_eq!(
            run(
                "claude-haiku-4-5",
                &json!({"type": "adaptive"}),
                &json!({}),
                &[]
            )
            .unwrap_err()
            .message,
            "adaptive thinking is not supported on this model"
        );
    }

    /// Fact: a budget is at least 1024 and below `max_tokens`.
    #[test]
    fn a_budget_has_bounds() {
        for (budget, good) in [(1_023, false), (1_024, true), (7_999, true), (8_000, false)] {
            let thinking = json!({"type": "enabled", "budget_tokens": budget});
            assert_eq!(
                run("claude-haiku-4-5", &thinking, &json!({}), &[]).is_ok(),
                good,
                "{budget}"
            );
        }
    }

    /// Fact: `block_binding` needs its beta header.
    #[test]
    fn block_binding_needs_its_beta() {
        let thinking = json!({"type": "adaptive",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
        assert_eq!(
            run("claude-opus-5-5", &thinking, &json!({}), &[])
                .unwrap_err()
                .message,
            "thinking.adaptive.block_binding: Extra inputs are not permitted"
        );
        let settings = run("claude-opus-5-5", &thinking, &json!({}), &[beta::BINDING]).unwrap();
        assert_eq!(settings.mismatch, Some(MismatchBehavior::DropBlock));
        for binding in [
            json!("drop_block"),
            json!({"prefix_mismatch_behavior": "drop"}),
            json!({"prefix_mismatch_behavior": 1}),
            json!({"prefix_mismatch": "drop_block"}),
        ] {
            let thinking = json!({"type": "adaptive", "block_binding": binding});
            let refused = run("claude-opus-5-5", &thinking, &json!({}), &[beta::BINDING]);
            assert!(refused.is_err(), "{thinking}");
        }
    }

    /// Fact: thinking is left out by default on newer models; `updates` needs a beta.
    #[test]
    fn display_defaults_and_updates() {
        let display = |kind: &str, betas: &[&str]| {
            run(
                "claude-opus-5-5",
                &json!({"type": "adaptive", "display": kind}),
                &json!({}),
                betas,
            )
        };
        assert!(display("omitted", &[]).unwrap().omitted);
        assert!(!display("summarized", &[]).unwrap().omitted);
        assert!(display("updates", &[]).is_err());
        assert!(display("updates", &["thinking-display-updates-2026-08-18"]).is_ok());
        assert!(
            run(
                "claude-opus-5-5",
                &json!({"type": "adaptive"}),
                &json!({}),
                &[]
            )
            .unwrap()
            .omitted
        );
        assert!(
            !run(
                "claude-opus-4-6",
                &json!({"type": "adaptive"}),
                &json!({}),
                &[]
            )
            .unwrap()
            .omitted
        );
    }
}
