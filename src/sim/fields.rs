//! The top-level fields of a request.
//!
//! A field the API does not know is refused by name, and so is a beta field
//! without its header: the pair travels together or not at all.

use serde_json::Value;

use super::betas::{Betas, Version, beta};
use super::error::{ApiError, Checked};
use super::request::{Block, Endpoint};

/// What the rest of the checks need at once.
#[derive(Debug)]
pub struct Known {
    /// `model`.
    pub model: String,
    /// `max_tokens`.
    pub max_tokens: u64,
    /// `stream`.
    pub stream: bool,
}

/// Fields of both endpoints.
const SHARED: &[&str] = &[
    "model",
    "messages",
    "cache_control",
    "output_config",
    "speed",
    "system",
    "thinking",
    "tool_choice",
    "tools",
];

/// Fields of `/v1/messages` only.
const MESSAGES_ONLY: &[&str] = &[
    "max_tokens",
    "container",
    "diagnostics",
    "inference_geo",
    "metadata",
    "safeguards",
    "service_tier",
    "stop_sequences",
    "stream",
];

/// Sampling parameters.
const SAMPLING: &[&str] = &["temperature", "top_p", "top_k"];

/// Beta fields and the betas of which one must be sent.
const BETA_FIELDS: &[(&str, &[&str])] = &[
    ("compaction", &[beta::COMPACT_ON_DEMAND]),
    (
        "context_management",
        &[beta::CONTEXT_MANAGEMENT, beta::COMPACT_THRESHOLD],
    ),
    ("fallback_credit_token", &["fallback-credit-2026-06-01"]),
    (
        "fallbacks",
        &[
            "server-side-fallback-2026-06-01",
            "server-side-fallback-2026-07-01",
        ],
    ),
    (
        "mcp_servers",
        &["mcp-client-2025-04-04", "mcp-client-2025-11-20"],
    ),
    ("thread", &[beta::THREADS]),
];

/// Checks which fields there are, and the few plain ones.
pub fn check(endpoint: Endpoint, version: Version, betas: &Betas, body: &Block) -> Checked<Known> {
    for (field, value) in body {
        permitted(endpoint, version, betas, field, value)?;
    }
    nested(body, "metadata", &["user_id"])?;
    nested(body, "diagnostics", &["previous_message_id"])?;
    nested(body, "compaction", &["type", "instructions"])?;
    choices(body)?;
    compaction(body)?;
    output_config(body, betas)?;
    let model = match body.get("model") {
        Some(Value::String(model)) => model.clone(),
        Some(_) => return Err(ApiError::invalid("model: Input should be a valid string")),
        None => return Err(ApiError::required("model")),
    };
    if endpoint == Endpoint::CountTokens {
        return Ok(Known {
            model,
            max_tokens: 0,
            stream: false,
        });
    }
    let max_tokens = match body.get("max_tokens") {
        None => return Err(ApiError::required("max_tokens")),
        Some(value) => value
            .as_u64()
            .ok_or_else(|| ApiError::invalid("max_tokens: Input should be a valid integer"))?,
    };
    let stream = match body.get("stream") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(stream)) => *stream,
        Some(_) => return Err(ApiError::invalid("stream: Input should be a valid boolean")),
    };
    let given = |field: &str| body.get(field).is_some_and(|value| !value.is_null());
    if given("compaction") && given("context_management") {
        return Err(ApiError::invalid(
            "compaction: cannot be combined with `context_management`",
        ));
    }
    stop_sequences(body)?;
    Ok(Known {
        model,
        max_tokens,
        stream,
    })
}

fn permitted(
    endpoint: Endpoint,
    version: Version,
    betas: &Betas,
    field: &str,
    value: &Value,
) -> Checked {
    if SHARED.contains(&field) {
        return Ok(());
    }
    if let Some((_, needed)) = BETA_FIELDS.iter().find(|(name, _)| *name == field) {
        return if betas.any(needed) {
            Ok(())
        } else {
            Err(ApiError::extra(field))
        };
    }
    if endpoint == Endpoint::CountTokens {
        return Err(ApiError::extra(field));
    }
    if SAMPLING.contains(&field) && version == Version::Classic {
        return if value.is_number() || value.is_null() {
            Ok(())
        } else {
            Err(ApiError::invalid(format!(
                "{field}: Input should be a valid number"
            )))
        };
    }
    if MESSAGES_ONLY.contains(&field) {
        Ok(())
    } else {
        Err(ApiError::extra(field))
    }
}

fn nested(body: &Block, field: &str, allowed: &[&str]) -> Checked {
    match body.get(field) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(object)) => {
            match object.keys().find(|key| !allowed.contains(&key.as_str())) {
                Some(key) => Err(ApiError::extra(format!("{field}.{key}"))),
                None => Ok(()),
            }
        }
        Some(_) => Err(ApiError::invalid(format!(
            "{field}: Input should be a valid dictionary"
        ))),
    }
}

/// Fields with a closed list of values.
fn choices(body: &Block) -> Checked {
    let lists = [
        ("speed", ["standard", "fast"]),
        ("service_tier", ["auto", "standard_only"]),
    ];
    for (field, known) in lists {
        let Some(value) = body.get(field).filter(|value| !value.is_null()) else {
            continue;
        };
        if !value.as_str().is_some_and(|value| known.contains(&value)) {
            return Err(ApiError::invalid(format!(
                "{field}: Input should be '{}'",
                known.join("' or '")
            )));
        }
    }
    Ok(())
}

fn compaction(body: &Block) -> Checked {
    let Some(Value::Object(compaction)) = body.get("compaction") else {
        return Ok(());
    };
    match compaction.get("type").map(Value::as_str) {
        Some(Some("summarize")) => Ok(()),
        Some(_) => Err(ApiError::invalid(
            "compaction.type: Input should be 'summarize'",
        )),
        None => Err(ApiError::required("compaction.type")),
    }
}

fn output_config(body: &Block, betas: &Betas) -> Checked {
    nested(body, "output_config", &["effort", "format", "task_budget"])?;
    let Some(Value::Object(config)) = body.get("output_config") else {
        return Ok(());
    };
    if config.contains_key("task_budget") && !betas.has("task-budgets-2026-03-13") {
        return Err(ApiError::extra("output_config.task_budget"));
    }
    match config.get("effort") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(effort)) if EFFORTS.contains(&effort.as_str()) => Ok(()),
        Some(_) => Err(ApiError::invalid(
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
        )),
    }
}

const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

fn stop_sequences(body: &Block) -> Checked {
    let sequences = match body.get("stop_sequences") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(sequences)) => sequences,
        Some(_) => {
            return Err(ApiError::invalid(
                "stop_sequences: Input should be a valid list",
            ));
        }
    };
    for (index, sequence) in sequences.iter().enumerate() {
        if sequence.as_str().is_none_or(|text| text.trim().is_empty()) {
            return Err(ApiError::invalid(format!(
                "stop_sequences.{index}: each stop sequence must contain non-whitespace"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(
        endpoint: Endpoint,
        version: Version,
        betas: &[&str],
        extra: (&str, Value),
    ) -> Checked<Known> {
        let mut body = json!({"model": "m", "messages": []});
        if endpoint == Endpoint::Messages {
            body["max_tokens"] = json!(5);
        }
        body[extra.0] = extra.1;
        check(
            endpoint,
            version,
            &Betas::new(betas),
            body.as_object().unwrap(),
        )
    }

    fn message(betas: &[&str], extra: (&str, Value)) -> Checked<Known> {
        run(Endpoint::Messages, Version::Classic, betas, extra)
    }

    /// Fact: an unknown field is refused by its path.
    #[test]
    fn unknown_fields_are_named() {
        let error = message(&[], ("wibble", json!(1))).unwrap_err();
        assert_eq!(error.message, "wibble: Extra inputs are not permitted");
        let error = message(&[], ("metadata", json!({"x": 1}))).unwrap_err();
        assert_eq!(error.message, "metadata.x: Extra inputs are not permitted");
    }

    /// Fact: a beta field without its header gives the same error as an unknown field.
    #[test]
    fn beta_fields_need_their_header() {
        for (field, needed) in BETA_FIELDS {
            let value = json!({"type": "summarize"});
            let error = message(&[], (field, value.clone())).unwrap_err();
            assert_eq!(
                error.message,
                format!("{field}: Extra inputs are not permitted")
            );
            assert!(message(&needed[..1], (field, value)).is_ok(), "{field}");
        }
    }

    /// Fact: version 2026-10-21 refuses temperature, `top_p` and `top_k`, even with default values.
    #[test]
    fn the_new_version_has_no_sampling_parameters() {
        for field in SAMPLING {
            let new = run(
                Endpoint::Messages,
                Version::October2026,
                &[],
                (field, json!(1)),
            );
            assert!(new.is_err(), "{field}");
            assert!(message(&[], (field, json!(1))).is_ok(), "{field}");
        }
    }

    /// Fact: `count_tokens` takes the same body without `max_tokens`, stream and the like.
    #[test]
    fn counting_takes_no_output_fields() {
        let count = |extra| run(Endpoint::CountTokens, Version::Classic, &[], extra);
        assert!(count(("max_tokens", json!(5))).is_err());
        assert!(count(("stream", json!(true))).is_err());
        assert!(count(("system", json!("s"))).is_ok());
    }

    /// Fact: model and `max_tokens` are required.
    #[test]
    fn required_fields() {
        let body = json!({"model": "m", "messages": []});
        let check = |body: &Value| {
            check(
                Endpoint::Messages,
                Version::Classic,
                &Betas::default(),
                body.as_object().unwrap(),
            )
        };
        assert_eq!(
            check(&body).unwrap_err().message,
            "max_tokens: Field required"
        );
        let body = json!({"max_tokens": 1, "messages": []});
        assert_eq!(check(&body).unwrap_err().message, "model: Field required");
    }

    /// Fact: `speed` is standard or fast, `service_tier` auto or standard only.
    #[test]
    fn some_fields_have_a_list_of_values() {
        for (field, good, bad) in [
            ("speed", json!("fast"), json!("slow")),
            ("service_tier", json!("auto"), json!(1)),
            ("stop_sequences", json!(["x"]), json!("x")),
        ] {
            assert!(message(&[], (field, good)).is_ok(), "{field}");
            assert!(message(&[], (field, bad)).is_err(), "{field}");
        }
    }

    /// Fact (Claude Code in auto mode): `safeguards` is taken; what is in it is not
    /// documented. Counting takes no such field.
    #[test]
    fn safeguards_are_taken_with_a_message() {
        let value = json!({"mode": "auto", "anything": [1]});
        assert!(message(&[], ("safeguards", value.clone())).is_ok());
        let count = run(
            Endpoint::CountTokens,
            Version::Classic,
            &[],
            ("safeguards", value),
        );
        assert!(count.is_err());
    }

    /// Fact: `compaction` is `{type: "summarize", instructions?}`.
    #[test]
    fn a_compaction_summarizes() {
        let run = |value| message(&[beta::COMPACT_ON_DEMAND], ("compaction", value));
        assert!(run(json!({"type": "summarize", "instructions": "short"})).is_ok());
        assert!(run(json!({"type": "forget"})).is_err());
        assert!(run(json!({})).is_err());
        assert!(run(json!({"type": "summarize", "keep": 2})).is_err());
    }

    /// Fact: on-demand compaction cannot be combined with `context_management`.
    #[test]
    fn compaction_and_context_management_exclude_each_other() {
        let body = json!({"model": "m", "max_tokens": 1, "messages": [],
            "compaction": {"type": "summarize"}, "context_management": {"edits": []}});
        let betas = Betas::new(&[beta::COMPACT_ON_DEMAND, beta::CONTEXT_MANAGEMENT]);
        let result = check(
            Endpoint::Messages,
            Version::Classic,
            &betas,
            body.as_object().unwrap(),
        );
        assert!(result.is_err());
    }
}
