//! The opening of a turn that is cut inside.
//!
//! With manual thinking only the first reply of a turn thinks, and while the
//! turn goes on the API wants it to begin with that. A tail that starts later in
//! the turn could not be sent, and a turn of a thousand calls would outgrow any
//! window. So the opening is carried over the cut: the thought as it was, one
//! call, and a few words for its result, because a call must be answered. All of
//! it is small, whatever the reply held besides; the rest is left out with the
//! messages around it.

use super::conversation::{Call, Conversation};
use super::stub::Cleared;
use crate::wire::body::{Block, Kind, Role};
use crate::wire::scan::Span;

/// Bytes of an input up to which it is carried as it is.
const SMALL_INPUT: usize = 1024;

/// Why the result of the carried call is not there.
const WHY: &str = "the turn that it opens is shown from a later point on";

/// How a turn that is still going on opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The messages that stand before the tail, as JSON.
    pub messages: [String; 2],
    /// The first message of the reply after it.
    end: usize,
}

impl Opening {
    /// Of the turn that is going on, if it begins with thinking, calls a tool and
    /// goes on behind that.
    pub fn of(conversation: &Conversation<'_>) -> Option<Self> {
        let assistant = |at: &usize| {
            let message = conversation.message(*at);
            message.is_some_and(|message| message.role == Role::Assistant)
        };
        let turn = conversation.open_turn();
        let reply = turn.clone().find(assistant)?;
        let answered = (reply..turn.end).find(|at| !assistant(at))?;
        let end = (answered..turn.end).find(assistant)?;
        let begins = conversation.blocks(reply).first()?;
        if begins.kind != Kind::Thinking {
            return None;
        }
        let mut calls = conversation.calls_answered(answered, end).into_iter();
        let call = calls.find(|call| (reply..answered).contains(&call.used.0))?;
        Some(Self {
            messages: messages(conversation, reply, call)?,
            end,
        })
    }

    /// Whether a tail may start at this message if the opening stands before it.
    pub fn may_precede(&self, conversation: &Conversation<'_>, at: usize) -> bool {
        at >= self.end && conversation.is_cut_point(at, false)
    }
}

/// The thinking that a reply begins with and a call of it, and the call's answer.
fn messages(conversation: &Conversation<'_>, reply: usize, call: Call) -> Option<[String; 2]> {
    let (used, result) = (call.used, call.result?);
    let called = conversation.block_at(used)?;
    let name = called.name?.of(conversation.bytes());
    let name: String = serde_json::from_slice(name).ok()?;
    let cleared = |block: &Block| Cleared {
        tool: &name,
        subject: "",
        bytes: block.payload.map_or(0, Span::len),
        why: WHY,
        beginning: "",
        digest: "",
        archived: None,
    };
    let blocks = conversation.blocks(reply).iter().enumerate();
    let thinking = blocks.take_while(|(_, block)| block.kind == Kind::Thinking);
    let mut said: Vec<String> = thinking
        .map(|(at, _)| written(conversation, (reply, at), None))
        .collect::<Option<_>>()?;
    let large = called.payload?.len() > SMALL_INPUT;
    let input = large.then(|| cleared(called).input());
    said.push(written(conversation, used, input)?);
    let stub = cleared(conversation.block_at(result)?).result();
    let answer = written(conversation, result, Some(stub))?;
    Some([
        format!(r#"{{"role":"assistant","content":[{}]}}"#, said.join(",")),
        format!(r#"{{"role":"user","content":[{answer}]}}"#),
    ])
}

/// A block without its cache marks, which have moved on with the conversation,
/// and with something else for what it holds, if it holds anything.
fn written(
    conversation: &Conversation<'_>,
    place: (usize, usize),
    with: Option<String>,
) -> Option<String> {
    let message = conversation.message(place.0)?;
    let block = conversation.block_at(place)?;
    let payload = block.payload.filter(|_| with.is_some());
    let held = payload.map(Span::range);
    let marks = conversation.body().marks(message).iter();
    let marks = marks.map(|mark| mark.cut.range());
    let inside = |cut: &std::ops::Range<usize>| {
        let within = |of: &std::ops::Range<usize>| of.start <= cut.start && cut.end <= of.end;
        within(&block.span.range()) && !held.as_ref().is_some_and(within)
    };
    let mut cuts: Vec<_> = marks.filter(inside).map(|cut| (cut, "")).collect();
    let with = with.unwrap_or_default();
    cuts.extend(held.clone().map(|held| (held, with.as_str())));
    cuts.sort_by_key(|(cut, _)| cut.start);
    let mut text = Vec::with_capacity(block.span.len());
    let mut from = block.span.start();
    for (cut, with) in cuts {
        text.extend_from_slice(conversation.bytes().get(from..cut.start)?);
        text.extend_from_slice(with.as_bytes());
        from = cut.end;
    }
    text.extend_from_slice(conversation.bytes().get(from..block.span.end())?);
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::{Value, json};

    fn with<T>(messages: &[Value], look: impl FnOnce(&Conversation<'_>) -> T) -> T {
        let bytes = json!({"model": "m", "messages": messages}).to_string();
        let body = Body::split(bytes.as_bytes()).unwrap();
        look(&Conversation::new(bytes.as_bytes(), &body))
    }

    fn thought(text: &str) -> Value {
        json!({"type": "thinking", "thinking": text, "signature": "s"})
    }

    fn call(id: &str, input: usize) -> Value {
        json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "x".repeat(input)}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": [
            {"type": "text", "text": "out", "cache_control": {"type": "ephemeral"}}
        ], "cache_control": {"type": "ephemeral"}})
    }

    fn says(role: &str, content: impl Into<Value>) -> Value {
        json!({"role": role, "content": content.into()})
    }

    /// A turn whose first reply is this.
    fn turn(reply: Vec<Value>, results: &[&str]) -> Vec<Value> {
        let results: Vec<Value> = results.iter().map(|id| result(id)).collect();
        vec![
            says("user", "go"),
            says("assistant", reply),
            says("user", results),
            says("assistant", vec![call("y", 1)]),
            says("user", vec![result("y")]),
            says("assistant", vec![call("z", 1)]),
            says("user", vec![result("z")]),
        ]
    }

    fn carried(messages: &[Value]) -> Option<[Value; 2]> {
        let written = with(messages, Opening::of)?.messages;
        Some(written.map(|message| serde_json::from_str(&message).unwrap()))
    }

    #[test]
    fn the_thought_and_one_call_are_carried_and_the_result_is_a_few_words() {
        let words = json!({"type": "text", "text": "first"});
        let hidden = json!({"type": "redacted_thinking", "data": "d"});
        let reply = vec![
            thought("a"),
            hidden.clone(),
            words,
            call("b", 1),
            call("c", 1),
        ];
        let [said, answer] = carried(&turn(reply, &["b", "c"])).unwrap();
        let expected = vec![thought("a"), hidden, call("b", 1)];
        assert_eq!(said, says("assistant", expected));
        let stub = answer["content"][0]["content"].as_str().unwrap();
        assert!(
            stub.starts_with("[longhaul: the result of Bash ("),
            "{stub}"
        );
        let expected = json!({"type": "tool_result", "tool_use_id": "b", "content": stub});
        assert_eq!(answer, says("user", vec![expected]));
    }

    #[test]
    fn a_large_input_is_not_carried() {
        let [said, _] = carried(&turn(vec![thought("a"), call("b", 5_000)], &["b"])).unwrap();
        let input = &said["content"][1]["input"];
        assert!(input["longhaul"].is_string(), "{input}");
    }

    #[test]
    fn a_tail_may_start_behind_the_opening_and_nowhere_in_it() {
        let history = turn(vec![thought("a"), call("b", 1)], &["b"]);
        let may = with(&history, |c| {
            let opening = Opening::of(c).unwrap();
            let at = (0..c.len()).filter(|at| opening.may_precede(c, *at));
            at.collect::<Vec<_>>()
        });
        assert_eq!(may, [3, 5]);
    }

    #[test]
    fn what_does_not_open_with_an_answered_thought_has_no_opening() {
        let good = turn(vec![thought("a"), call("b", 1)], &["b"]);
        let mut closed = good.clone();
        closed.push(says("assistant", "done"));
        closed.push(says("user", "next"));
        let rows = [
            turn(vec![call("b", 1)], &["b"]),
            turn(vec![thought("a"), call("b", 1)], &["other"]),
            good[..3].to_vec(),
            good[..1].to_vec(),
            closed,
            Vec::new(),
        ];
        for row in rows {
            assert_eq!(carried(&row), None, "{row:?}");
        }
        assert!(carried(&good).is_some());
    }
}
