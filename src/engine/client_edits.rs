//! What a client asks the API to leave out: `context_management`.
//!
//! One edit is of interest here, the clearing of old tool results: an upstream
//! that does not know it can be spared it, and the work be done on this side. It
//! is read as strictly as the API would read it. Whatever is not understood, or
//! stands twice, is no such edit: it goes on as it came, and the API says what
//! is wrong with it.

use std::ops::Range;

use serde::Deserialize;

use super::tiers;
use crate::wire::body::Body;
use crate::wire::report::CLEAR_TOOL_USES;
use crate::wire::scan::{Cursor, Span, says};
use crate::wire::splice::Splice;

const FIELD: &str = "context_management";
/// The longest edit that is read.
const LONGEST: usize = 64 * 1024;

/// How a client wants old tool results cleared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClearToolUses {
    #[serde(rename = "type")]
    kind: Named,
    /// When anything is cleared at all.
    #[serde(default)]
    pub trigger: Trigger,
    #[serde(default)]
    keep: Keep,
    #[serde(default)]
    clear_at_least: Option<AtLeast>,
    #[serde(default)]
    exclude_tools: Option<Vec<String>>,
    #[serde(default)]
    clear_tool_inputs: Option<Inputs>,
}

/// Beyond which size results are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[serde(deny_unknown_fields)]
pub enum Trigger {
    /// More tokens of input than these.
    InputTokens(u64),
    /// More calls of tools than these.
    ToolUses(u64),
}

impl Default for Trigger {
    fn default() -> Self {
        Self::InputTokens(100_000)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Named {
    #[serde(rename = "clear_tool_uses_20250919")]
    ClearToolUses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[serde(deny_unknown_fields)]
enum Keep {
    ToolUses(usize),
}

impl Default for Keep {
    fn default() -> Self {
        Self::ToolUses(3)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[serde(deny_unknown_fields)]
enum AtLeast {
    InputTokens(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Inputs {
    Switch(bool),
    Of(Vec<String>),
}

impl ClearToolUses {
    /// The newest calls whose results are never cleared.
    pub fn keep(&self) -> usize {
        let Keep::ToolUses(newest) = self.keep;
        newest
    }

    /// Tokens that must go, or nothing does.
    pub fn at_least(&self) -> u64 {
        self.clear_at_least
            .map_or(0, |AtLeast::InputTokens(tokens)| tokens)
    }

    /// The tools whose results are never cleared.
    pub fn excluded(&self) -> &[String] {
        self.exclude_tools.as_deref().unwrap_or(&[])
    }

    /// Whose inputs go with their results.
    pub fn inputs(&self) -> tiers::Inputs {
        match &self.clear_tool_inputs {
            None | Some(Inputs::Switch(false)) => tiers::Inputs::None,
            Some(Inputs::Switch(true)) => tiers::Inputs::All,
            Some(Inputs::Of(names)) => tiers::Inputs::Of(names.clone()),
        }
    }
}

/// The clearing that a request asks for; `None` if it asks for none, or in a way
/// that is not understood.
pub fn asked(bytes: &[u8], body: &Body) -> Option<ClearToolUses> {
    find(bytes, body).map(|(edit, _)| edit)
}

/// The change that leaves that edit out of a request, and with it the field, if
/// it says nothing else.
pub fn without_clear(bytes: &[u8], body: &Body) -> Option<Splice> {
    find(bytes, body).map(|(_, cut)| Splice::remove(cut))
}

/// The edit, and what must be cut to leave it out.
fn find(bytes: &[u8], body: &Body) -> Option<(ClearToolUses, Range<usize>)> {
    let is_ours = |key: Span| says(key.of(bytes), FIELD);
    let field = body.fields().iter().find(|field| is_ours(field.key))?;
    let value = field.value.of(bytes);
    let (edits, others) = list(value)?;
    let is_clear = |edit: &&Span| is_clear(edit.of(value));
    let mut clears = edits.iter().enumerate().filter(|(_, edit)| is_clear(edit));
    let (index, span) = clears.next()?;
    if clears.next().is_some() {
        return None;
    }
    let edit = span.of(value);
    let edit = (edit.len() <= LONGEST).then(|| serde_json::from_slice(edit).ok())??;
    let before = index.checked_sub(1).and_then(|index| edits.get(index));
    let cut = match (before, edits.get(index + 1)) {
        (None, None) if !others => return Some((edit, field.cut.range())),
        (None, None) => span.range(),
        (None, Some(next)) => span.start()..next.start(),
        (Some(before), _) => before.end()..span.end(),
    };
    let start = field.value.start();
    Some((edit, start + cut.start..start + cut.end))
}

/// The edits of a field's value, and whether it has other members.
fn list(value: &[u8]) -> Option<(Vec<Span>, bool)> {
    let mut cursor = Cursor::new(value);
    let (mut edits, mut others, mut first) = (None, false, true);
    cursor.expect(b'{').ok()?;
    while let Some(key) = cursor.key(&mut first).ok()? {
        if !says(key.span.of(value), "edits") {
            others = true;
            cursor.value().ok()?;
            continue;
        }
        if edits.is_some() {
            return None;
        }
        let (mut list, mut first) = (Vec::new(), true);
        cursor.expect(b'[').ok()?;
        while cursor.element(&mut first).ok()? {
            list.push(cursor.value().ok()?);
        }
        edits = Some(list);
    }
    Some((edits?, others))
}

fn is_clear(edit: &[u8]) -> bool {
    let mut cursor = Cursor::new(edit);
    let mut first = true;
    if cursor.expect(b'{').is_err() {
        return false;
    }
    while let Ok(Some(key)) = cursor.key(&mut first) {
        let Ok(value) = cursor.value() else {
            return false;
        };
        if says(key.span.of(edit), "type") && says(value.of(edit), CLEAR_TOOL_USES) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::splice::{joined, splice};
    use bytes::Bytes;

    fn edit(members: &str) -> String {
        format!(r#"{{"type":"clear_tool_uses_20250919"{members}}}"#)
    }

    fn read(source: &str) -> Option<ClearToolUses> {
        let body = Body::split(source.as_bytes()).unwrap();
        asked(source.as_bytes(), &body)
    }

    fn asked_by(edit: &str) -> Option<ClearToolUses> {
        read(&format!(
            r#"{{"model":"m","context_management":{{"edits":[{edit}]}},"messages":[]}}"#
        ))
    }

    fn without(source: &str) -> Option<String> {
        let bytes = Bytes::from(source.to_owned());
        let body = Body::split(&bytes).unwrap();
        let change = without_clear(&bytes, &body)?;
        let rest = joined(&splice(&bytes, vec![change]).unwrap());
        Some(String::from_utf8(rest.to_vec()).unwrap())
    }

    #[test]
    fn what_is_left_unsaid_is_the_api_s_default() {
        for members in [
            "",
            r#","clear_at_least":null,"exclude_tools":null,"clear_tool_inputs":null"#,
        ] {
            let clear = asked_by(&edit(members)).unwrap();
            assert_eq!(clear.trigger, Trigger::InputTokens(100_000));
            assert_eq!((clear.keep(), clear.at_least()), (3, 0));
            assert!(clear.excluded().is_empty());
            assert!(!clear.inputs().of("Bash"));
        }
    }

    #[test]
    fn everything_can_be_said_in_any_order_and_spelling() {
        let clear = asked_by(
            r#" { "clear_tool_inputs" : ["Bash"], "exclude_tools":["memory", "a\u0062"],
            "clear_at_least":{"value":5000,"type":"input_tokens"}, "keep":{"type":"tool_uses","value":0},
            "trigger" : { "value":7, "type":"tool_uses" }, "typ\u0065":"clear_tool_uses_2025\u0030919" } "#,
        )
        .unwrap();
        assert_eq!(clear.trigger, Trigger::ToolUses(7));
        assert_eq!((clear.keep(), clear.at_least()), (0, 5_000));
        assert!(clear.excluded() == ["memory", "ab"]);
        assert!(clear.inputs().of("Bash") && !clear.inputs().of("Read"));
        let clear = asked_by(&edit(
            r#","trigger":{"type":"input_tokens","value":50},"clear_tool_inputs":true"#,
        ));
        let clear = clear.unwrap();
        assert_eq!(clear.trigger, Trigger::InputTokens(50));
        assert!(clear.inputs().of("anything"));
    }

    #[test]
    fn what_is_not_understood_is_the_api_s_to_judge() {
        for members in [
            r#","unknown":1"#,
            r#","type":"clear_tool_uses_20250919""#,
            r#","keep":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":2}"#,
            r#","trigger":null"#,
            r#","trigger":5"#,
            r#","trigger":{"type":"tool_uses"}"#,
            r#","trigger":{"value":5}"#,
            r#","trigger":{"type":"messages","value":5}"#,
            r#","trigger":{"type":"tool_uses","value":-5}"#,
            r#","trigger":{"type":"tool_uses","value":5.5}"#,
            r#","trigger":{"type":"tool_uses","value":"5"}"#,
            r#","trigger":{"type":"tool_uses","value":5,"more":1}"#,
            r#","keep":null"#,
            r#","keep":{"type":"input_tokens","value":5}"#,
            r#","keep":{"type":"tool_uses","value":5,"more":1}"#,
            r#","clear_at_least":{"type":"tool_uses","value":5}"#,
            r#","exclude_tools":"Bash""#,
            r#","exclude_tools":[1]"#,
            r#","clear_tool_inputs":"Bash""#,
            r#","clear_tool_inputs":[1]"#,
        ] {
            assert_eq!(asked_by(&edit(members)), None, "{members}");
        }
        let huge = format!(r#","exclude_tools":["{}"]"#, "x".repeat(LONGEST));
        assert_eq!(asked_by(&edit(&huge)), None);
        assert_eq!(asked_by(&format!("{0},{0}", edit(""))), None, "twice");
        for source in [
            r#"{"messages":[]}"#,
            r#"{"context_management":null}"#,
            r#"{"context_management":[]}"#,
            r#"{"context_management":{}}"#,
            r#"{"context_management":{"edits":null}}"#,
            r#"{"context_management":{"edits":[]}}"#,
            r#"{"context_management":{"edits":["x",5,null]}}"#,
            r#"{"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}}"#,
            r#"{"context_management":{"edits":[],"edits":[{"type":"clear_tool_uses_20250919"}]}}"#,
            r#"{"other":{"edits":[{"type":"clear_tool_uses_20250919"}]}}"#,
        ] {
            assert_eq!(read(source), None, "{source}");
            assert_eq!(without(source), None, "{source}");
        }
    }

    #[test]
    fn the_edit_is_left_out_with_its_comma_or_with_the_whole_field() {
        let clear = r#"{"keep":{"type":"tool_uses","value":1},"type":"clear_tool_uses_20250919"}"#;
        let other = r#"{"type":"clear_thinking_20251015"}"#;
        let rows = [
            (
                format!(r#"{{"model":"m","context_management":{{"edits":[{clear}]}},"x":1}}"#),
                r#"{"model":"m","x":1}"#.to_owned(),
            ),
            (
                format!(r#"{{ "context_management" : {{ "edits" : [ {clear} ] }} , "x":1 }}"#),
                r#"{  "x":1 }"#.to_owned(),
            ),
            (
                format!(r#"{{"x":1, "context_management":{{"edits":[{clear}]}}}}"#),
                r#"{"x":1}"#.to_owned(),
            ),
            (
                format!(r#"{{"context_management":{{"edits":[{other}, {clear}]}}}}"#),
                format!(r#"{{"context_management":{{"edits":[{other}]}}}}"#),
            ),
            (
                format!(r#"{{"context_management":{{"edits":[ {clear} , {other} ]}}}}"#),
                format!(r#"{{"context_management":{{"edits":[ {other} ]}}}}"#),
            ),
            (
                format!(r#"{{"context_management":{{"edits":[{other},{clear},{other}]}}}}"#),
                format!(r#"{{"context_management":{{"edits":[{other},{other}]}}}}"#),
            ),
            (
                format!(r#"{{"c\u006fntext_management":{{"more":1,"edits":[ {clear} ]}}}}"#),
                r#"{"c\u006fntext_management":{"more":1,"edits":[  ]}}"#.to_owned(),
            ),
        ];
        for (source, expected) in rows {
            assert_eq!(without(&source).as_deref(), Some(&*expected), "{source}");
            assert!(serde_json::from_str::<serde_json::Value>(&expected).is_ok());
        }
    }
}
