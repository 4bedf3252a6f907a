//! The words of real errors, and what they mean.

use super::*;
use serde_json::json;

fn anthropic(message: &str) -> Vec<u8> {
    let error = json!({"type": "invalid_request_error", "message": message});
    json!({"type": "error", "error": error, "request_id": "req_1"})
        .to_string()
        .into_bytes()
}

fn read(message: &str) -> Refusal {
    Refusal::read(400, &anthropic(message))
}

fn exceeded_by(tokens: u64, window: u64) -> Refusal {
    Refusal::ContextExceeded {
        tokens: Some(tokens),
        window: Some(window),
    }
}

const UNNUMBERED: Refusal = Refusal::ContextExceeded {
    tokens: None,
    window: None,
};

#[test]
fn a_prompt_that_is_too_long_tells_the_window() {
    let text = "prompt is too long: 212345 tokens > 200000 maximum";
    assert_eq!(read(text), exceeded_by(212_345, 200_000));
    assert_eq!(
        Refusal::read(413, &anthropic(text)),
        exceeded_by(212_345, 200_000)
    );
    assert_eq!(
        Refusal::read(400, text.as_bytes()),
        exceeded_by(212_345, 200_000)
    );
    let wrapped = format!("litellm.BadRequestError: {{\"message\":\"{text}\"}}");
    assert_eq!(read(&wrapped), exceeded_by(212_345, 200_000));
    assert_eq!(
        read("Prompt is too long: 1,048,577 tokens > 1,000,000 maximum"),
        exceeded_by(1_048_577, 1_000_000)
    );
}

#[test]
fn other_apis_say_it_in_other_words() {
    for (text, expected) in [
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. Please reduce the length of the messages.",
            exceeded_by(204_308, 128_000),
        ),
        (
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 250000 tokens (240000 of text input, 10000 in the output).",
            exceeded_by(250_000, 200_000),
        ),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.",
            exceeded_by(300_123, 272_000),
        ),
        (
            "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).",
            exceeded_by(1_050_000, 1_048_576),
        ),
        ("Input is too long for requested model.", UNNUMBERED),
        (
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            UNNUMBERED,
        ),
        ("capability_rejected: prompt_too_long", UNNUMBERED),
    ] {
        assert_eq!(read(text), expected, "{text}");
        let openai = json!({"error": {"message": text, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}});
        assert_eq!(
            Refusal::read(400, openai.to_string().as_bytes()),
            expected,
            "{text}"
        );
        let bedrock = json!({"message": text});
        assert_eq!(
            Refusal::read(400, bedrock.to_string().as_bytes()),
            expected,
            "{text}"
        );
        assert_eq!(Refusal::read(400, text.as_bytes()), expected, "{text}");
    }
    let coded = json!({"error": {"message": "too much", "code": "context_length_exceeded"}});
    assert_eq!(Refusal::read(400, coded.to_string().as_bytes()), UNNUMBERED);
}

#[test]
fn a_prompt_that_fits_without_its_output_is_another_matter() {
    let refused = |tokens, output, window| Refusal::OutputExceedsWindow {
        tokens: Some(tokens),
        output: Some(output),
        window: Some(window),
    };
    assert_eq!(
        read(
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"
        ),
        refused(188_240, 21_333, 200_000)
    );
    assert_eq!(
        read(
            "This model's maximum context length is 8192 tokens. However, you requested 8334 tokens (338 in the messages, 7996 in the completion). Please reduce the length of the messages or completion."
        ),
        refused(338, 7_996, 8_192)
    );
    for name in ["claude-opus-5-5", "this model"] {
        let text = format!(
            "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for {name}"
        );
        assert_eq!(
            read(&text),
            Refusal::MaxTokensTooLarge {
                most: Some(128_000)
            }
        );
    }
}

#[test]
fn numbers_that_cannot_be_true_are_not_believed() {
    for (text, tokens, window) in [
        (
            "prompt is too long: 212345 tokens > 12 maximum",
            Some(212_345),
            None,
        ),
        ("prompt is too long: 5 tokens > 200000 maximum", None, None),
        (
            "prompt is too long: 200000 tokens > 200000 maximum",
            None,
            None,
        ),
        ("prompt is too long", None, None),
        (
            "prompt is too long: 99999999999999999999999 tokens > 200000 maximum",
            None,
            Some(200_000),
        ),
        (
            "prompt is too long: 300000000 tokens > 200000000 maximum",
            Some(300_000_000),
            None,
        ),
    ] {
        assert_eq!(
            read(text),
            Refusal::ContextExceeded { tokens, window },
            "{text}"
        );
    }
}

#[test]
fn thinking_that_does_not_fit_tells_where() {
    let place = |message, block| Some(Place { message, block });
    for (text, expected) in [
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
            Refusal::BoundThinking(place(1, 0)),
        ),
        (
            "messages.13.content.2: Invalid `signature` in `thinking` block",
            Refusal::InvalidThinking(place(13, 2)),
        ),
        (
            "messages.3.content.1: Invalid `data` in `redacted_thinking` block",
            Refusal::InvalidThinking(place(3, 1)),
        ),
        (
            "The block was not created in this conversation",
            Refusal::BoundThinking(None),
        ),
        (
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
            Refusal::LatestThinkingModified(place(1, 0)),
        ),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn what_we_may_have_added_is_named() {
    for (text, expected) in [
        (
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            Refusal::TooManyMarks,
        ),
        (
            "messages.0.content.10.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
            Refusal::TtlOrder,
        ),
        (
            "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header. Please consult our documentation at platform.claude.com/docs or try again without the header.",
            Refusal::UnknownBeta(vec!["thinking-binding-controls-2026-08-01".to_owned()]),
        ),
        (
            "Unexpected value(s) `a`, `b` for the `anthropic-beta` header.",
            Refusal::UnknownBeta(vec!["a".to_owned(), "b".to_owned()]),
        ),
        (
            "thinking.adaptive.block_binding: Extra inputs are not permitted",
            Refusal::ExtraField("thinking.adaptive.block_binding".to_owned()),
        ),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn a_body_that_is_too_large_is_told_apart() {
    let body = json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}});
    assert_eq!(
        Refusal::read(413, body.to_string().as_bytes()),
        Refusal::RequestTooLarge
    );
    assert_eq!(
        Refusal::read(413, br#"{"message":"request entity too large"}"#),
        Refusal::RequestTooLarge
    );
}

#[test]
fn a_page_is_no_proof_of_anything() {
    for body in [
        "",
        "Payload Too Large",
        "<html>413 Payload Too Large</html>",
        "\n <!DOCTYPE html><p>prompt is too long: 210000 tokens &gt; 8192 maximum</p>",
    ] {
        let read = |status| Refusal::read(status, body.as_bytes());
        assert_eq!(read(413), Refusal::BodyRejected, "{body}");
        assert_eq!(read(400), Refusal::Other, "{body}");
    }
    let words = b"prompt is too long: 210000 tokens > 200000 maximum";
    let long = Refusal::ContextExceeded {
        tokens: Some(210_000),
        window: Some(200_000),
    };
    assert_eq!(Refusal::read(413, words), long);
}

#[test]
fn whatever_else_is_said_is_the_clients_to_read() {
    for text in [
        "",
        "messages: at least one message is required",
        "role 'system' is not supported on this model",
    ] {
        assert_eq!(read(text), Refusal::Other, "{text}");
    }
    let long = anthropic("prompt is too long: 212345 tokens > 200000 maximum");
    for status in [200, 401, 403, 404, 429, 500, 529] {
        assert_eq!(Refusal::read(status, &long), Refusal::Other, "{status}");
    }
    for body in [&b""[..], b"\xff\xfe", b"[1]", b"null", b"{\"error\":7}"] {
        assert_eq!(Refusal::read(400, body), Refusal::Other);
    }
}
