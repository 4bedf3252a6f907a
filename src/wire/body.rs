//! A request body as spans: top-level fields, messages, blocks, cache marks.
//!
//! Everything here points into the client's own bytes; nothing is copied,
//! decoded or rebuilt. The lists are flat, a message owning a range of blocks
//! and of marks, so that a long history costs a few allocations and not some
//! per message. What the API may one day add is simply a field, a message key
//! or a block of unknown kind, with its span.

use std::ops::Range;

use super::scan::{Span, says, spoken};

/// A body, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    pub(super) fields: Vec<Field>,
    pub(super) messages: Vec<Message>,
    pub(super) blocks: Vec<Block>,
    pub(super) marks: Vec<Mark>,
}

/// A top-level field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its key, quotes included.
    pub key: Span,
    /// Its value.
    pub value: Span,
    /// What must be cut to leave it out.
    pub cut: Span,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, or the results of tools.
    User,
    /// The model.
    Assistant,
    /// The operator, in the middle of a conversation.
    System,
    /// Somebody the API may one day add.
    Other,
}

impl Role {
    pub(super) fn named(name: &[u8]) -> Self {
        match &*spoken(name) {
            b"user" => Self::User,
            b"assistant" => Self::Assistant,
            b"system" => Self::System,
            _ => Self::Other,
        }
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// All of it, braces included.
    pub span: Span,
    /// Who speaks.
    pub role: Role,
    /// The content's value: a string, or an array of blocks.
    pub content: Span,
    /// The content is a string, which is the same as one text block.
    pub is_string: bool,
    /// Its keys are `role` and `content` and no other.
    pub is_plain: bool,
    pub(super) blocks: Range<u32>,
    pub(super) marks: Range<u32>,
}

/// What kind of block it is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Text,
    /// A picture.
    Image,
    /// A document.
    Document,
    /// The model's thoughts, readable or not.
    Thinking,
    /// The model calls a tool.
    ToolUse,
    /// What the tool gave back.
    ToolResult,
    /// The API's own summary of what stood before.
    Compaction,
    /// Anything else.
    Other,
}

impl Kind {
    pub(super) fn named(name: &[u8]) -> Self {
        match &*spoken(name) {
            b"text" => Self::Text,
            b"image" => Self::Image,
            b"document" => Self::Document,
            b"thinking" | b"redacted_thinking" => Self::Thinking,
            b"tool_use" => Self::ToolUse,
            b"tool_result" => Self::ToolResult,
            b"compaction" => Self::Compaction,
            _ => Self::Other,
        }
    }
}

/// A block of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// All of it, braces included.
    pub span: Span,
    /// What kind it is.
    pub kind: Kind,
    /// `id` of a tool call, `tool_use_id` of a result: the string's span.
    pub id: Option<Span>,
    /// `name` of a tool call.
    pub name: Option<Span>,
    /// What it holds: `text`, `thinking`, `input` or `content`.
    pub payload: Option<Span>,
    /// `signature` of a thought, or `data` of a hidden one.
    pub seal: Option<Span>,
    /// The result of a tool is an error.
    pub is_error: bool,
    /// Its keys are `type`, `text` and perhaps a cache mark, and no other.
    pub is_plain_text: bool,
    /// It carries references to tools, so that clearing it would unload them.
    pub has_tool_references: bool,
}

/// A cache mark in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Which block of the body carries it.
    pub block: u32,
    /// It stands on a block inside another, a tool's result or a document.
    pub is_nested: bool,
    /// Its value.
    pub value: Span,
    /// What must be cut to leave it out.
    pub cut: Span,
}

impl Body {
    /// An empty one with room for what a body of this many bytes usually holds,
    /// so that the lists of a long history do not have to grow and move.
    pub(super) fn with_room_for(bytes: usize) -> Self {
        Self {
            fields: Vec::with_capacity(16),
            messages: Vec::with_capacity(bytes / 2048 + 16),
            blocks: Vec::with_capacity(bytes / 1024 + 16),
            marks: Vec::with_capacity(8),
        }
    }

    /// The top-level fields, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The value of a top-level field.
    pub fn field(&self, bytes: &[u8], name: &str) -> Option<Span> {
        let field = self.fields.iter().find(|f| says(f.key.of(bytes), name))?;
        Some(field.value)
    }

    /// The messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The blocks of a message; none if its content is a string.
    pub fn blocks(&self, message: &Message) -> &[Block] {
        slice(&self.blocks, &message.blocks)
    }

    /// The cache marks of a message, in order.
    pub fn marks(&self, message: &Message) -> &[Mark] {
        slice(&self.marks, &message.marks)
    }

    /// Which block of its message a mark stands on.
    pub fn index_in(&self, message: &Message, mark: &Mark) -> usize {
        mark.block.saturating_sub(message.blocks.start) as usize
    }
}

fn slice<'a, T>(all: &'a [T], range: &Range<u32>) -> &'a [T] {
    all.get(range.start as usize..range.end as usize)
        .unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::scan::Unclear;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn text(span: Span, bytes: &[u8]) -> String {
        String::from_utf8(span.of(bytes).to_vec()).unwrap()
    }

    #[test]
    fn fields_messages_blocks_and_marks_are_found_where_they_stand() {
        let source = r#" { "model":"m", "messages" : [
            {"role":"user","content":"hi"},
            {"content":[
                {"signature":"s","type":"thinking","thinking":""},
                {"type":"tool_use","id":"t1","name":"Bash","input":{"cache_control":1,"a":[{"type":"text"}]}}
             ],"role":"assistant"},
            {"role":"user","content":[
                {"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[
                    {"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"tool_reference","tool_name":"n"}]},
                {"cache_control":{"type":"ephemeral","ttl":"1h"},"type":"text","text":"go"}]},
            {"role":"system","content":"note","clear_at":"never"}
          ], "future":{"x":1} } "#;
        let bytes = source.as_bytes();
        let body = Body::split(bytes).unwrap();
        let keys: Vec<_> = body
            .fields()
            .iter()
            .map(|field| text(field.key, bytes))
            .collect();
        assert_eq!(keys, ["\"model\"", "\"messages\"", "\"future\""]);
        assert_eq!(
            text(body.field(bytes, "future").unwrap(), bytes),
            r#"{"x":1}"#
        );
        let roles: Vec<_> = body.messages().iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [Role::User, Role::Assistant, Role::User, Role::System]
        );
        let [first, second, third, fourth] = body.messages() else {
            panic!("four messages");
        };
        assert!(first.is_string && first.is_plain && body.blocks(first).is_empty());
        assert!(!fourth.is_plain);
        let calls = body.blocks(second);
        assert_eq!(calls[0].kind, Kind::Thinking);
        assert_eq!(text(calls[0].seal.unwrap(), bytes), "\"s\"");
        assert_eq!(text(calls[0].payload.unwrap(), bytes), "\"\"");
        assert_eq!(text(calls[1].id.unwrap(), bytes), "\"t1\"");
        assert_eq!(text(calls[1].name.unwrap(), bytes), "\"Bash\"");
        assert!(body.marks(second).is_empty(), "an input's keys are its own");
        let results = body.blocks(third);
        assert!(results[0].is_error && results[0].has_tool_references);
        assert!(results[1].is_plain_text && !results[0].is_plain_text);
        let marks: Vec<_> = body
            .marks(third)
            .iter()
            .map(|mark| (mark.is_nested, text(mark.value, bytes)))
            .collect();
        let ephemeral = r#"{"type":"ephemeral"}"#.to_owned();
        assert_eq!(
            marks,
            [
                (true, ephemeral),
                (false, r#"{"type":"ephemeral","ttl":"1h"}"#.to_owned())
            ]
        );
    }

    #[test]
    fn escaped_keys_are_the_keys_they_say() {
        let source = r#"{"mess\u0061ges":[{"r\u006fle":"us\u0065r","content":[{"typ\u0065":"\u0074ext","text":"x"}]}]}"#;
        let body = Body::split(source.as_bytes()).unwrap();
        assert_eq!(body.messages()[0].role, Role::User);
        assert!(body.blocks(&body.messages()[0])[0].is_plain_text);
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        let rows = [
            (r#"{"a":1,"a":2}"#, "duplicate"),
            (r#"{"\q":1,"\q":2}"#, "duplicate"),
            (r#"{"messages":[],"m\u0065ssages":[]}"#, "duplicate"),
            (
                r#"{"messages":[{"role":"user","content":"x"}],"messages":[]}"#,
                "duplicate",
            ),
            (
                r#"{"messages":[{"role":"user","role":"user","content":"x"}]}"#,
                "duplicate",
            ),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"text","type":"text"}]}]}"#,
                "duplicate",
            ),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","t\u0065xt":"b"}]}]}"#,
                "duplicate",
            ),
            (r#"{"messages":[{"role":"user"}]}"#, "unexpected"),
            (
                r#"{"messages":[{"role":"user","content":null}]}"#,
                "not JSON",
            ),
            (r#"{"messages":{}}"#, "not JSON"),
            (r#"{"messages":["x"]}"#, "not JSON"),
            ("[]", "not JSON"),
            ("", "not JSON"),
            (r#"{"a":1} x"#, "not JSON"),
        ];
        for (source, expected) in rows {
            let error = Body::split(source.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{source}: {error}");
        }
        assert_eq!(Body::split(b"{\"a\":\"\xff\"}"), Err(Unclear::NotUtf8(6)));
    }

    #[test]
    fn what_a_string_holds_is_for_the_reader_upstream_to_judge() {
        let source = "{\"\\q\":\"\\q\\u12\x01\n\\ud800\",\"\":1}";
        let body = Body::split(source.as_bytes()).unwrap();
        assert_eq!(body.fields().len(), 2);
        assert_eq!(body.field(source.as_bytes(), "q"), None);
    }

    fn word() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z\"\\\\{}\\[\\],: \n]{0,12}",
            Just("é😀\u{7f}".to_owned())
        ]
    }

    fn block() -> impl Strategy<Value = Value> {
        let mark = prop::option::of(Just(json!({"type": "ephemeral"})));
        let kinds = prop_oneof![
            word().prop_map(|text| json!({"type": "text", "text": text})),
            (word(), word()).prop_map(|(id, name)| json!({"type": "tool_use", "id": id, "name": name, "input": {"cache_control": [1]}})),
            (word(), word()).prop_map(|(id, text)| json!({"tool_use_id": id, "type": "tool_result", "content": [{"type": "text", "text": text, "cache_control": {}}]})),
            word().prop_map(|thought| json!({"type": "thinking", "thinking": thought, "signature": "s"})),
            word().prop_map(|data| json!({"type": "image", "source": {"type": "base64", "data": data}})),
            Just(json!({"kind": "from the future"})),
        ];
        (kinds, mark).prop_map(|(mut block, mark)| {
            if let Some(mark) = mark {
                block["cache_control"] = mark;
            }
            block
        })
    }

    fn request() -> impl Strategy<Value = Value> {
        let content = prop_oneof![
            word().prop_map(Value::from),
            prop::collection::vec(block(), 0..4).prop_map(Value::from),
        ];
        let message = ("user|assistant|system", content)
            .prop_map(|(role, content)| json!({"role": role, "content": content}));
        prop::collection::vec(message, 0..6)
            .prop_map(|messages| json!({"model": "m", "messages": messages, "stream": true}))
    }

    proptest! {
        /// Spans say the same as a parser that builds a tree, however the text
        /// was laid out.
        #[test]
        fn spans_agree_with_a_tree(request in request(), pretty in any::<bool>()) {
            let source = if pretty { serde_json::to_vec_pretty(&request) } else { serde_json::to_vec(&request) }.unwrap();
            let body = Body::split(&source).unwrap();
            let parse = |span: Span| serde_json::from_slice::<Value>(span.of(&source)).unwrap();
            let messages = request["messages"].as_array().unwrap();
            prop_assert_eq!(body.messages().len(), messages.len());
            for (ours, theirs) in body.messages().iter().zip(messages) {
                prop_assert_eq!(&parse(ours.span), theirs);
                prop_assert_eq!(&parse(ours.content), &theirs["content"]);
                let blocks = theirs["content"].as_array().cloned().unwrap_or_default();
                prop_assert_eq!(body.blocks(ours).len(), blocks.len());
                for (block, value) in body.blocks(ours).iter().zip(&blocks) {
                    prop_assert_eq!(&parse(block.span), value);
                }
                let marks = blocks.iter().filter(|block| block.get("cache_control").is_some()).count();
                prop_assert_eq!(body.marks(ours).iter().filter(|mark| !mark.is_nested).count(), marks);
            }
        }

        /// Cutting every mark out leaves the same request without its marks.
        #[test]
        fn marks_can_be_cut_out(request in request(), pretty in any::<bool>()) {
            let source = if pretty { serde_json::to_string_pretty(&request) } else { serde_json::to_string(&request) }.unwrap();
            let body = Body::split(source.as_bytes()).unwrap();
            let mut rest = source.clone();
            for mark in body.messages().iter().flat_map(|message| body.marks(message)).rev() {
                rest.replace_range(mark.cut.range(), "");
            }
            let mut expected = request;
            for message in expected["messages"].as_array_mut().unwrap() {
                for block in message["content"].as_array_mut().into_iter().flatten() {
                    block.as_object_mut().unwrap().remove("cache_control");
                    for inner in block.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                        inner.as_object_mut().unwrap().remove("cache_control");
                    }
                }
            }
            prop_assert_eq!(serde_json::from_str::<Value>(&rest).unwrap(), expected);
        }

        #[test]
        fn any_bytes_at_all_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Body::split(&bytes);
        }

        #[test]
        fn mutilated_requests_are_survived(request in request(), at in 0usize..400, byte in any::<u8>()) {
            let mut source = serde_json::to_vec(&request).unwrap();
            let at = at % source.len();
            source[at] = byte;
            let _ = Body::split(&source);
            source.truncate(at);
            prop_assert!(Body::split(&source).is_err());
        }
    }
}
