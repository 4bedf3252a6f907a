//! The models API.

use serde_json::{Value, json};

use super::models::{self, Disabling, Model};
use super::options::Options;

/// `GET /v1/models`.
pub fn list(options: &Options) -> Value {
    let items: Vec<Value> = models::all()
        .iter()
        .filter_map(|model| one(options, model.id))
        .collect();
    let id = |item: Option<&Value>| item.and_then(|item| item.get("id")).cloned();
    json!({
        "data": items,
        "first_id": id(items.first()),
        "last_id": id(items.last()),
        "has_more": false,
    })
}

/// `GET /v1/models/{id}`.
pub fn one(options: &Options, name: &str) -> Option<Value> {
    let model = options.model(name)?;
    Some(json!({
        "id": name,
        "type": "model",
        "display_name": display_name(model.id),
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": model.window,
        "max_tokens": model.max_output,
        "lifecycle": "active",
        "capabilities": capabilities(&model, options),
    }))
}

fn capabilities(model: &Model, options: &Options) -> Value {
    let supported = |yes: bool| json!({"supported": yes});
    let edits = options.context_management;
    let thinking = model.thinking;
    json!({
        "batch": supported(false),
        "citations": supported(true),
        "code_execution": supported(false),
        "image_input": supported(true),
        "pdf_input": supported(true),
        "structured_outputs": supported(true),
        "effort": supported(thinking.adaptive),
        "context_management": {
            "supported": edits,
            "clear_tool_uses_20250919": supported(edits),
            "clear_thinking_20251015": supported(edits),
            "compact_20260112": supported(edits && model.compaction),
        },
        "compaction": {"summarize": supported(options.compaction && model.summarizes)},
        "thinking": {
            "supported": true,
            "types": {
                "adaptive": supported(thinking.adaptive),
                "enabled": supported(thinking.enabled),
                "disabled": supported(thinking.disabled != Disabling::Refused),
                "between_tools": supported(thinking.between_tools),
            },
        },
    })
}

fn display_name(id: &str) -> String {
    let mut words = id.split('-').map(|word| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    });
    let family: Vec<String> = words.by_ref().take(2).collect();
    let version: Vec<String> = words.collect();
    format!("{} {}", family.join(" "), version.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fact: an item of the models API has its window, its output limit and its capabilities.
    #[test]
    fn an_item_says_what_the_model_can_do() {
        let options = Options::default().with_window("claude-opus-5-5", 32_000);
        let item = one(&options, "claude-opus-5-5").unwrap();
        assert_eq!(item["max_input_tokens"], 32_000);
        assert_eq!(item["display_name"], "Claude Opus 5.5");
        assert_eq!(
            item["capabilities"]["compaction"]["summarize"]["supported"],
            true
        );
        let old = one(&options, "claude-haiku-4-5-20251001").unwrap();
        assert_eq!(
            old["capabilities"]["compaction"]["summarize"]["supported"],
            false
        );
        assert!(one(&options, "claude-foo").is_none());
    }

    /// Fact: a list has data, `first_id`, `last_id` and `has_more`.
    #[test]
    fn the_list_has_the_shape_of_a_page() {
        let list = list(&Options::default());
        assert_eq!(list["data"].as_array().unwrap().len(), models::all().len());
        assert_eq!(list["first_id"], "claude-fable-5-2");
        assert_eq!(list["has_more"], false);
    }
}
