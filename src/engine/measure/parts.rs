//! What of a block weighs, and how.
//!
//! A block is taken apart into the few things a model is shown: text, JSON,
//! thinking, sealed content, and what counts by rule. Ids, cache marks and the
//! names of fields weigh nothing of their own; a frame around each block stands
//! for them. What no rule knows is counted as the JSON it is, because the API
//! grows new kinds of blocks and to leave one out would be to count too little.
//!
//! Thinking may be hidden: its text is empty or shortened, and the signature
//! carries the whole. In recorded sessions a signature is the thought's bytes
//! and some 175 more, in base64; the rest of it is taken for hidden thought.

use super::counter::inner;
use super::media;
use crate::wire::scan::{Cursor, Unclear, says};

/// Tokens around a block.
const FRAME: u64 = 4;

/// Tokens of the definition that a reference to a tool loads.
const REFERENCED_TOOL: u64 = 500;

/// Blocks are nested so deep and no deeper: a document in a tool's result.
const DEPTH: u8 = 4;

/// The first system block of this kind is for the API and not for the model.
const BILLING_LINE: &[u8] = b"x-anthropic-billing-header:";

/// One thing that weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A JSON string whose text the model sees.
    Text(&'a [u8]),
    /// A JSON value that the model sees as JSON.
    Json(&'a [u8]),
    /// A thought, as a JSON string, and the length of the seal it came with.
    Thinking(&'a [u8], usize),
    /// Encrypted content of that many characters.
    Sealed(usize),
    /// Tokens by rule.
    Fixed(u64),
}

/// Takes parts.
pub(super) type Sink<'s, 'a> = &'s mut dyn FnMut(Part<'a>);

/// The content of a message, of a tool's result or of `system`: a string, which
/// is one text block, or a list of blocks.
pub(super) fn content<'a>(value: &'a [u8], sink: Sink<'_, 'a>) {
    nested(value, DEPTH, sink);
}

/// A block.
pub(super) fn block<'a>(value: &'a [u8], sink: Sink<'_, 'a>) {
    whole_block(value, DEPTH, sink);
}

/// `system`.
pub(super) fn system<'a>(value: &'a [u8], sink: Sink<'_, 'a>) {
    if !value.starts_with(b"[") {
        return content(value, sink);
    }
    let mut first = true;
    elements(value, |element| {
        let text = member(element, "text").map_or(&[][..], inner);
        if !std::mem::take(&mut first) || !text.starts_with(BILLING_LINE) {
            block(element, sink);
        }
    });
}

/// `tools`: the definitions that are loaded from the start.
pub(super) fn tools<'a>(value: &'a [u8], sink: Sink<'_, 'a>) {
    elements(value, |tool| {
        if member(tool, "defer_loading") == Some(b"true") {
            return;
        }
        let mut from = 0;
        let cut = |start: usize, end: usize, sink: Sink<'_, 'a>| {
            sink(Part::Json(tool.get(start..end).unwrap_or(&[])));
        };
        if let Some(mark) = cache_mark(tool) {
            cut(from, mark.start, sink);
            from = mark.end;
        }
        cut(from, tool.len(), sink);
    });
}

fn cache_mark(object: &[u8]) -> Option<std::ops::Range<usize>> {
    let mut cursor = Cursor::new(object);
    cursor.expect(b'{').ok()?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first).ok()? {
        let value = cursor.value().ok()?;
        if says(key.span.of(object), "cache_control") {
            return Some(cursor.member(&key, value).range());
        }
    }
    None
}

fn nested<'a>(value: &'a [u8], depth: u8, sink: Sink<'_, 'a>) {
    match value.first() {
        Some(b'"') if inner(value).is_empty() => {}
        Some(b'"') => {
            sink(Part::Fixed(FRAME));
            sink(Part::Text(value));
        }
        Some(b'[') if depth > 0 => elements(value, |block| whole_block(block, depth - 1, sink)),
        Some(b'n') | None => {}
        Some(_) => json(value, sink),
    }
}

fn whole_block<'a>(value: &'a [u8], depth: u8, sink: Sink<'_, 'a>) {
    let mut found = Found::default();
    let read = members(value, |key, value| found.note(key, value));
    sink(Part::Fixed(FRAME));
    if read.is_err() || found.kind.is_none() {
        return json(value, sink);
    }
    let kind = found.kind.unwrap_or_default();
    let text = |field: Option<&'a [u8]>, sink: Sink<'_, 'a>| {
        if let Some(text) = field.filter(|text| text.starts_with(b"\"")) {
            sink(Part::Text(text));
        }
    };
    match inner(kind) {
        b"text" => text(found.text, sink),
        b"thinking" | b"redacted_thinking" => {
            let seal = found
                .seal
                .or(found.data)
                .map_or(0, |seal| inner(seal).len());
            sink(Part::Thinking(found.thinking.unwrap_or(b"\"\""), seal));
        }
        b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => {
            text(found.name, sink);
            sink(Part::Json(found.input.unwrap_or(b"{}")));
        }
        b"tool_result" | b"mcp_tool_result" => {
            nested(found.content.unwrap_or(b"null"), depth, sink);
        }
        b"image" => sink(Part::Fixed(media::picture(base64(found.source)))),
        b"document" => {
            text(found.title, sink);
            text(found.context, sink);
            document(found.source, depth, sink);
        }
        b"search_result" => {
            text(found.title, sink);
            text(found.source, sink);
            nested(found.content.unwrap_or(b"null"), depth, sink);
        }
        b"compaction" => {
            text(found.content, sink);
            sink(Part::Sealed(found.encrypted.map_or(0, <[u8]>::len)));
        }
        b"tool_reference" => sink(Part::Fixed(REFERENCED_TOOL)),
        _ => json(value, sink),
    }
}

fn document<'a>(source: Option<&'a [u8]>, depth: u8, sink: Sink<'_, 'a>) {
    let source = source.unwrap_or(b"null");
    match member(source, "type").map(inner) {
        Some(b"text") => sink(Part::Text(member(source, "data").unwrap_or(b"\"\""))),
        Some(b"content") => nested(member(source, "content").unwrap_or(b"null"), depth, sink),
        _ => sink(Part::Fixed(media::document(base64(Some(source))))),
    }
}

fn base64(source: Option<&[u8]>) -> Option<&[u8]> {
    member(source?, "data").map(inner)
}

/// Any value, as the JSON it is; what is encrypted in it, by its length.
pub(super) fn json<'a>(value: &'a [u8], sink: Sink<'_, 'a>) {
    if memchr::memmem::find(value, b"\"encrypted_").is_none() {
        return sink(Part::Json(value));
    }
    match value.first() {
        Some(b'{') => {
            let read = members(value, |key, value| {
                if inner(key).starts_with(b"encrypted_") && value.starts_with(b"\"") {
                    sink(Part::Sealed(value.len()));
                } else if !says(key, "cache_control") {
                    json(value, sink);
                }
            });
            if read.is_err() {
                sink(Part::Json(value));
            }
        }
        Some(b'[') => elements(value, |element| json(element, sink)),
        _ => sink(Part::Json(value)),
    }
}

/// The members of a block that matter.
#[derive(Default)]
struct Found<'a> {
    kind: Option<&'a [u8]>,
    text: Option<&'a [u8]>,
    thinking: Option<&'a [u8]>,
    seal: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    input: Option<&'a [u8]>,
    content: Option<&'a [u8]>,
    source: Option<&'a [u8]>,
    title: Option<&'a [u8]>,
    context: Option<&'a [u8]>,
    encrypted: Option<&'a [u8]>,
}

impl<'a> Found<'a> {
    fn note(&mut self, key: &[u8], value: &'a [u8]) {
        let fields = [
            ("type", &mut self.kind),
            ("text", &mut self.text),
            ("thinking", &mut self.thinking),
            ("signature", &mut self.seal),
            ("data", &mut self.data),
            ("name", &mut self.name),
            ("input", &mut self.input),
            ("content", &mut self.content),
            ("source", &mut self.source),
            ("title", &mut self.title),
            ("context", &mut self.context),
            ("encrypted_content", &mut self.encrypted),
        ];
        if let Some((_, field)) = fields.into_iter().find(|(name, _)| says(key, name)) {
            *field = Some(value);
        }
    }
}

/// The members of an object, as far as it can be read.
fn members<'a>(object: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) -> Result<(), Unclear> {
    let mut cursor = Cursor::new(object);
    cursor.expect(b'{')?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        each(key.span.of(object), value.of(object));
    }
    Ok(())
}

/// One member of an object.
fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    let read = members(object, |key, value| {
        if says(key, name) {
            found = Some(value);
        }
    });
    read.ok().and(found)
}

/// The elements of a list, as far as it can be read.
fn elements<'a>(list: &'a [u8], mut each: impl FnMut(&'a [u8])) {
    let mut cursor = Cursor::new(list);
    let mut first = true;
    if cursor.expect(b'[').is_err() {
        return;
    }
    while let Ok(true) = cursor.element(&mut first) {
        let Ok(value) = cursor.value() else {
            return;
        };
        each(value.of(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&[u8], &mut dyn FnMut(Part<'_>));

    fn parts(source: &str, of: Rule) -> Vec<String> {
        let mut all = Vec::new();
        of(source.as_bytes(), &mut |part| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.push(match part {
                Part::Text(string) => format!("text {}", text(string)),
                Part::Json(value) => format!("json {}", text(value)),
                Part::Thinking(shown, seal) => format!("thinking {} {seal}", text(shown)),
                Part::Sealed(length) => format!("sealed {length}"),
                Part::Fixed(FRAME) => "frame".to_owned(),
                Part::Fixed(tokens) => format!("fixed {tokens}"),
            });
        });
        all
    }

    #[test]
    fn every_kind_of_block_is_taken_apart_by_its_rule() {
        let rows: &[(&str, &[&str])] = &[
            (
                r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#,
                &["frame", r#"text "x""#],
            ),
            (
                r#"{"signature":"abcd","thinking":"","type":"thinking"}"#,
                &["frame", r#"thinking "" 4"#],
            ),
            (
                r#"{"type":"redacted_thinking","data":"abc"}"#,
                &["frame", r#"thinking "" 3"#],
            ),
            (
                r#"{"type":"tool_use","id":"t","name":"Bash","input":{"a":1}}"#,
                &["frame", r#"text "Bash""#, r#"json {"a":1}"#],
            ),
            (
                r#"{"type":"tool_result","tool_use_id":"t","content":"x"}"#,
                &["frame", "frame", r#"text "x""#],
            ),
            (r#"{"type":"tool_result","tool_use_id":"t"}"#, &["frame"]),
            (
                r#"{"type":"tool_result","tool_use_id":"t","content":""}"#,
                &["frame"],
            ),
            (
                r#"{"type":"tool_result","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","data":"AAAA"}},{"type":"tool_reference","tool_name":"n"}]}"#,
                &[
                    "frame",
                    "frame",
                    r#"text "x""#,
                    "frame",
                    "fixed 1600",
                    "frame",
                    "fixed 500",
                ],
            ),
            (
                r#"{"type":"image","source":{"type":"url","url":"https://x"}}"#,
                &["frame", "fixed 1600"],
            ),
            (
                r#"{"type":"document","title":"t","source":{"type":"text","data":"x"}}"#,
                &["frame", r#"text "t""#, r#"text "x""#],
            ),
            (
                r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"}]}}"#,
                &["frame", "frame", r#"text "x""#],
            ),
            (
                r#"{"type":"document","source":{"type":"base64","data":"JVBERi0="}}"#,
                &["frame", "fixed 2500"],
            ),
            (
                r#"{"type":"document","source":{"type":"file","file_id":"f"}}"#,
                &["frame", "fixed 12500"],
            ),
            (
                r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}"#,
                &[
                    "frame",
                    r#"text "t""#,
                    r#"text "s""#,
                    "frame",
                    r#"text "x""#,
                ],
            ),
            (
                r#"{"type":"web_search_tool_result","content":[{"title":"t","encrypted_content":"abcdef"}]}"#,
                &[
                    "frame",
                    r#"json "web_search_tool_result""#,
                    r#"json "t""#,
                    "sealed 8",
                ],
            ),
            (
                r#"{"type":"compaction","content":"sum","signature":"abc"}"#,
                &["frame", r#"text "sum""#, "sealed 0"],
            ),
            (
                r#"{"type":"compaction","content":null}"#,
                &["frame", "sealed 0"],
            ),
            (
                r#"{"type":"from_the_future","x":[1]}"#,
                &["frame", r#"json {"type":"from_the_future","x":[1]}"#],
            ),
            (r#"{"x":1}"#, &["frame", r#"json {"x":1}"#]),
            ("7", &["frame", "json 7"]),
        ];
        for (source, expected) in rows {
            assert_eq!(
                parts(source, |value, sink| block(value, sink)),
                *expected,
                "{source}"
            );
        }
    }

    #[test]
    fn what_the_model_is_not_shown_of_system_and_tools_weighs_nothing() {
        let source = r#"[{"type":"text","text":"x-anthropic-billing-header: cc;"},{"type":"text","text":"x"}]"#;
        assert_eq!(
            parts(source, |value, sink| system(value, sink)),
            ["frame", r#"text "x""#]
        );
        assert_eq!(
            parts(r#""x""#, |value, sink| system(value, sink)),
            ["frame", r#"text "x""#]
        );
        let source = r#"[{"name":"a","cache_control":{"type":"ephemeral"},"input_schema":{}},{"name":"b","defer_loading":true},{"name":"c"}]"#;
        assert_eq!(
            parts(source, |value, sink| tools(value, sink)),
            [
                r#"json {"name":"a""#,
                r#"json ,"input_schema":{}}"#,
                r#"json {"name":"c"}"#
            ]
        );
    }
}
