//! The shape of messages, system blocks and content blocks.
//!
//! Every block type has its required and its optional fields, and everything
//! else is refused. Types this simulator should let pass unseen, to stand for
//! those of next year, are an option.

use serde_json::{Value, json};

use super::betas::{Betas, beta};
use super::block_types::{NESTED, find, nested as nested_block, unknown, values};
use super::error::{ApiError, Checked};
use super::options::Options;
use super::request::{Block, Message, Role, path};

/// Most entries of `messages`.
const MOST_MESSAGES: usize = 100_000;

/// `system` as blocks.
pub fn system(value: Option<Value>) -> Checked<Vec<Block>> {
    let blocks = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => return Ok(Vec::new()),
        Some(Value::String(text)) => return Ok(vec![text_block(&text)]),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(ApiError::invalid("system: Input should be a valid list")),
    };
    let mut parsed = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        let path = format!("system.{index}");
        let Value::Object(block) = block else {
            return Err(ApiError::invalid(format!(
                "{path}: Input should be a valid dictionary"
            )));
        };
        if super::request::kind(&block) != "text" {
            return Err(ApiError::invalid(format!(
                "{path}.type: Input should be 'text'"
            )));
        }
        fields(&path, &block, &["text"], &["cache_control", "citations"])?;
        if super::request::text(&block, "text").is_empty() {
            return Err(ApiError::invalid(
                "system: text content blocks must be non-empty",
            ));
        }
        parsed.push(block);
    }
    Ok(parsed)
}

/// `messages`, with string content turned into one text block.
pub fn messages(value: Option<Value>, betas: &Betas, options: &Options) -> Checked<Vec<Message>> {
    let list = match value {
        None => return Err(ApiError::required("messages")),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::invalid("messages: Input should be a valid list")),
    };
    if list.is_empty() {
        return Err(ApiError::invalid(
            "messages: at least one message is required",
        ));
    }
    if list.len() > MOST_MESSAGES {
        return Err(ApiError::invalid(format!(
            "messages: List should have at most {MOST_MESSAGES} items"
        )));
    }
    let parse = |(index, value)| message(index, value, betas, options);
    list.into_iter().enumerate().map(parse).collect()
}

fn message(number: usize, value: Value, betas: &Betas, options: &Options) -> Checked<Message> {
    let Value::Object(mut object) = value else {
        return Err(ApiError::invalid(format!(
            "messages.{number}: Input should be a valid dictionary"
        )));
    };
    let role = match object.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "messages: Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\"."
            )));
        }
        None => return Err(ApiError::required(format!("messages.{number}.role"))),
    };
    let content = object.shift_remove("content");
    for key in object.keys() {
        let allowed = match key.as_str() {
            "role" => true,
            "clear_at" => {
                role == Role::System && betas.has("mid-conversation-system-clear-at-2026-08-21")
            }
            "output_config" => {
                role == Role::System
                    && betas.any(&[
                        "mid-conversation-output-config-2026-07-01",
                        "per-turn-control-2026-07-01",
                    ])
            }
            _ => false,
        };
        if !allowed {
            return Err(ApiError::extra(format!("messages.{number}.{key}")));
        }
    }
    let blocks = match content {
        Some(Value::String(text)) if text.is_empty() && role == Role::System => {
            return Err(super::roles::empty(number));
        }
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![text_block(&text)],
        Some(Value::Array(list)) => {
            let parse = |(index, value)| block(number, index, value, betas, options);
            list.into_iter()
                .enumerate()
                .map(parse)
                .collect::<Checked<_>>()?
        }
        None => return Err(ApiError::required(format!("messages.{number}.content"))),
        Some(_) => {
            return Err(ApiError::invalid(format!(
                "messages.{number}.content: Input should be a valid list"
            )));
        }
    };
    let fleeting = object.get("clear_at").and_then(Value::as_str) == Some("next_user_message");
    Ok(Message {
        role,
        blocks,
        fleeting,
    })
}

fn block(
    number: usize,
    index: usize,
    value: Value,
    betas: &Betas,
    options: &Options,
) -> Checked<Block> {
    let place = path(number, index);
    let Value::Object(block) = value else {
        return Err(ApiError::invalid(format!(
            "{place}: Input should be a valid dictionary"
        )));
    };
    let kind = match block.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        _ => return Err(ApiError::required(format!("{place}.type"))),
    };
    if options.extra_block_types.contains(&kind) {
        return Ok(block);
    }
    let Some((_, required, optional)) = find(&kind, betas) else {
        return Err(unknown(&place, &kind));
    };
    let place = format!("{place}.{kind}");
    fields(&place, &block, required, optional)?;
    values(&place, &block)?;
    match kind.as_str() {
        "tool_result" => tool_result_content(&place, &block, betas)?,
        "compaction" => compaction(&place, &block, betas)?,
        _ => {}
    }
    Ok(block)
}

/// What on-demand compaction wrote is signed and needs the header it came with.
fn compaction(place: &str, block: &Block, betas: &Betas) -> Checked {
    if block.get("content").and_then(Value::as_str) == Some("") {
        return Err(ApiError::invalid(format!(
            "{place}.content: must not be empty"
        )));
    }
    let signed = ["signature", "tool_changes"]
        .into_iter()
        .find(|field| block.get(*field).is_some_and(|value| !value.is_null()));
    match signed {
        Some(field) if !betas.has(beta::COMPACT_ON_DEMAND) => {
            Err(ApiError::extra(format!("{place}.{field}")))
        }
        _ => Ok(()),
    }
}

fn tool_result_content(place: &str, block: &Block, betas: &Betas) -> Checked {
    let nested = match block.get("content") {
        None | Some(Value::Null | Value::String(_)) => return Ok(()),
        Some(Value::Array(nested)) => nested,
        Some(_) => {
            return Err(ApiError::invalid(format!(
                "{place}.content: Input should be a valid list"
            )));
        }
    };
    for (index, value) in nested.iter().enumerate() {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("");
        if !NESTED.contains(&kind) {
            return Err(ApiError::invalid(format!(
                "{place}.content.{index}: Input tag '{kind}' found using 'type' does not match any \
                 of the expected tags: 'text', 'image', 'search_result', 'document', 'tool_reference'"
            )));
        }
        if kind == "text"
            && value
                .get("text")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        {
            return Err(ApiError::invalid(
                "messages: text content blocks must be non-empty",
            ));
        }
        if let Value::Object(inner) = value {
            nested_block(&format!("{place}.content.{index}.{kind}"), inner, betas)?;
        }
    }
    Ok(())
}

/// Checks the fields of an object against what is required and allowed.
pub fn fields(place: &str, block: &Block, required: &[&str], optional: &[&str]) -> Checked {
    for field in required {
        match (*field, block.get(*field)) {
            (_, None) => return Err(ApiError::required(format!("{place}.{field}"))),
            ("input", Some(value)) if !value.is_object() => {
                return Err(ApiError::invalid(format!(
                    "{place}.input: Input should be a valid dictionary"
                )));
            }
            (
                "text" | "thinking" | "signature" | "data" | "id" | "name" | "tool_use_id",
                Some(value),
            ) if !value.is_string() => {
                return Err(ApiError::invalid(format!(
                    "{place}.{field}: Input should be a valid string"
                )));
            }
            _ => {}
        }
    }
    let known = |key: &str| key == "type" || required.contains(&key) || optional.contains(&key);
    match block.keys().find(|key| !known(key)) {
        Some(key) => Err(ApiError::extra(format!("{place}.{key}"))),
        None => Ok(()),
    }
}

fn text_block(text: &str) -> Block {
    let mut block = Block::new();
    block.insert("type".to_owned(), json!("text"));
    block.insert("text".to_owned(), json!(text));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(blocks: &Value) -> Checked<Vec<Message>> {
        parse_with(blocks, &Betas::default(), &Options::default())
    }

    fn parse_with(blocks: &Value, betas: &Betas, options: &Options) -> Checked<Vec<Message>> {
        messages(
            Some(json!([{"role": "user", "content": blocks}])),
            betas,
            options,
        )
    }

    /// Fact: string content is one text block.
    #[test]
    fn a_string_is_one_text_block() {
        let string = parse(&json!("hello")).unwrap();
        assert_eq!(
            string,
            parse(&json!([{"type": "text", "text": "hello"}])).unwrap()
        );
    }

    /// Fact: thinking needs its signature and carries no cache mark.
    #[test]
    fn thinking_needs_a_signature_and_takes_no_mark() {
        let error = parse(&json!([{"type": "thinking", "thinking": "x"}])).unwrap_err();
        assert_eq!(
            error.message,
            "messages.0.content.0.thinking.signature: Field required"
        );
        let marked = json!([{"type": "thinking", "thinking": "x", "signature": "s",
            "cache_control": {"type": "ephemeral"}}]);
        assert_eq!(
            parse(&marked).unwrap_err().message,
            "messages.0.content.0.thinking.cache_control: Extra inputs are not permitted"
        );
    }

    /// Fact: block types are a closed list on the server; unknown ones are refused.
    #[test]
    fn unknown_types_are_refused_unless_let_through() {
        let blocks = json!([{"type": "hologram", "x": 1}]);
        assert!(parse(&blocks).unwrap_err().message.contains("'hologram'"));
        let options = Options {
            extra_block_types: vec!["hologram".to_owned()],
            ..Options::default()
        };
        assert!(parse_with(&blocks, &Betas::default(), &options).is_ok());
    }

    /// Fact: a compaction block needs its beta on every request that carries it,
    /// and its content may be null but not empty.
    #[test]
    fn a_compaction_block_needs_its_beta() {
        let with = |content: Value| json!([{"type": "compaction", "content": content}]);
        assert!(parse(&with(json!("s"))).is_err());
        let betas = Betas::new(&[beta::COMPACT_ON_DEMAND]);
        let options = Options::default();
        assert!(parse_with(&with(json!("s")), &betas, &options).is_ok());
        assert!(parse_with(&with(Value::Null), &betas, &options).is_ok());
        assert!(parse_with(&with(json!("")), &betas, &options).is_err());
    }

    /// Fact: a block from on-demand compaction needs the very header it was made
    /// with; that of threshold compaction, whose blocks are unsigned, will not do.
    #[test]
    fn a_signed_compaction_needs_its_own_beta() {
        let block = json!([{"type": "compaction", "content": "s", "signature": "x"}]);
        let run = |name| parse_with(&block, &Betas::new(&[name]), &Options::default());
        assert!(run(beta::COMPACT_ON_DEMAND).is_ok());
        assert_eq!(
            run(beta::COMPACT_THRESHOLD).unwrap_err().message,
            "messages.0.content.0.compaction.signature: Extra inputs are not permitted"
        );
    }

    /// Fact: the content of a tool result may be absent or empty, but not hold an empty text block.
    #[test]
    fn tool_results_may_be_empty() {
        let result = |content: Value| {
            let mut block = json!({"type": "tool_result", "tool_use_id": "a"});
            if !content.is_null() {
                block["content"] = content;
            }
            parse(&json!([block]))
        };
        assert!(result(Value::Null).is_ok());
        assert!(result(json!("")).is_ok());
        assert!(result(json!([])).is_ok());
        assert!(result(json!([{"type": "text", "text": ""}])).is_err());
        assert!(result(json!([{"type": "thinking"}])).is_err());
    }

    /// Fact: unknown fields are refused by their path inside tool results too, and an
    /// image or a document has one of a few kinds of source.
    #[test]
    fn nested_blocks_and_sources_have_a_shape() {
        let nested = |inner: Value| {
            parse(&json!([{"type": "tool_result", "tool_use_id": "a", "content": [inner]}]))
        };
        let error = nested(json!({"type": "text", "text": "x", "note": 1})).unwrap_err();
        assert_eq!(
            error.message,
            "messages.0.content.0.tool_result.content.0.text.note: Extra inputs are not permitted"
        );
        let url = json!({"type": "image", "source": {"type": "url", "url": "u"}});
        assert!(nested(url.clone()).is_ok());
        assert!(parse(&json!([url])).is_ok());
        for source in [json!("gone"), json!({}), json!({"type": "base64"})] {
            let image = json!({"type": "image", "source": source});
            assert!(nested(image.clone()).is_err(), "{image}");
            assert!(parse(&json!([image])).is_err(), "{image}");
        }
        let failed = json!([{"type": "tool_result", "tool_use_id": "a", "is_error": "yes"}]);
        assert!(parse(&failed).is_err());
    }

    /// Fact: at most 100,000 messages.
    #[test]
    fn messages_have_a_limit() {
        let many = vec![json!({"role": "user", "content": "x"}); MOST_MESSAGES + 1];
        assert!(
            messages(
                Some(Value::Array(many)),
                &Betas::default(),
                &Options::default()
            )
            .is_err()
        );
    }

    /// Fact: `clear_at` on a mid-conversation system message needs its beta.
    #[test]
    fn message_fields_need_their_beta() {
        let list = json!([{"role": "system", "content": "x", "clear_at": "never"}]);
        let run = |betas: &Betas| messages(Some(list.clone()), betas, &Options::default());
        assert_eq!(
            run(&Betas::default()).unwrap_err().message,
            "messages.0.clear_at: Extra inputs are not permitted"
        );
        assert!(
            run(&Betas::new(&[
                "mid-conversation-system-clear-at-2026-08-21"
            ]))
            .is_ok()
        );
    }
}
