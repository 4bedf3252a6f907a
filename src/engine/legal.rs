//! Whether a view is a request that the API takes.
//!
//! The whole of it is checked, not only what was changed, and judged on merged
//! turns: calls answered in the next turn, results with a call, results first,
//! system messages where they may stand, nothing empty. A client may itself
//! send what is not legal; only what the view has and the history has not is
//! held against the view.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::body::{Body, Kind, Message, Role};

/// Something the API would refuse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A call that is not answered in the next turn.
    Unanswered(Vec<u8>),
    /// A result without a call in the turn before.
    Orphan(Vec<u8>),
    /// A result that stands behind something else.
    Late(Vec<u8>),
    /// Two calls with one name.
    Twice(Vec<u8>),
    /// A message with nothing in it.
    Empty,
    /// The first message is not the user's.
    First,
    /// A system message where none may stand.
    System(Vec<u8>),
    /// The last message is the assistant's.
    Prefill,
}

/// What the API would refuse in a body.
pub fn faults(bytes: &[u8], body: &Body) -> BTreeSet<Fault> {
    let mut walk = Walk {
        bytes,
        body,
        faults: BTreeSet::new(),
        seen: BTreeSet::new(),
        pending: BTreeMap::new(),
        fresh: false,
        others: false,
    };
    let messages = body.messages();
    let mut speaker: Option<Role> = None;
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::System {
            let next = messages.get(at + 1).map(|next| next.role);
            let follows = at > 0 && messages.get(at - 1).is_some_and(|m| m.role == Role::User);
            let legal = follows && matches!(next, None | Some(Role::Assistant | Role::System));
            if !legal && !walk.server_tool_before(at) {
                walk.fault(Fault::System(message.span.of(bytes).to_vec()));
            }
            continue;
        }
        let turns = speaker != Some(message.role);
        walk.message(message, turns, at + 1 == messages.len());
        if speaker.is_none() && message.role == Role::Assistant && !walk.is_summary(message) {
            walk.fault(Fault::First);
        }
        speaker = Some(message.role);
    }
    if speaker == Some(Role::Assistant) {
        walk.fault(Fault::Prefill);
    }
    walk.faults
}

struct Walk<'a> {
    bytes: &'a [u8],
    body: &'a Body,
    faults: BTreeSet<Fault>,
    seen: BTreeSet<&'a [u8]>,
    /// Calls of the assistant's turn before, not answered yet: how many of each
    /// name.
    pending: BTreeMap<&'a [u8], usize>,
    /// The assistant has just spoken.
    fresh: bool,
    /// Something besides results has come in the user's turn.
    others: bool,
}

impl<'a> Walk<'a> {
    fn fault(&mut self, fault: Fault) {
        self.faults.insert(fault);
    }

    fn is_summary(&self, message: &Message) -> bool {
        let blocks = self.body.blocks(message);
        blocks.iter().any(|block| block.kind == Kind::Compaction)
    }

    /// A system message may also follow an assistant's turn that ends with the
    /// result of a server's tool, which is of a kind not known here.
    fn server_tool_before(&self, at: usize) -> bool {
        let before = at
            .checked_sub(1)
            .and_then(|at| self.body.messages().get(at));
        before.is_some_and(|message| {
            let last = self.body.blocks(message).last();
            message.role == Role::Assistant && last.is_some_and(|block| block.kind == Kind::Other)
        })
    }

    fn message(&mut self, message: &Message, turns: bool, is_last: bool) {
        let blocks = self.body.blocks(message);
        let is_empty = if message.is_string {
            message.content.len() <= 2
        } else {
            blocks.is_empty()
        };
        if is_empty && !(is_last && message.role == Role::Assistant) {
            self.fault(Fault::Empty);
        }
        if turns {
            self.turn(message.role);
        }
        self.others |= message.is_string && message.role == Role::User;
        for block in blocks {
            let id: &'a [u8] = block.id.map_or(&[], |id| id.of(self.bytes));
            match (message.role, block.kind) {
                (Role::Assistant, Kind::ToolUse) => {
                    if !self.seen.insert(id) {
                        self.fault(Fault::Twice(id.to_vec()));
                    }
                    *self.pending.entry(id).or_default() += 1;
                }
                (Role::User, Kind::ToolResult) => {
                    if !self.fresh || !self.answer(id) {
                        self.fault(Fault::Orphan(id.to_vec()));
                    } else if self.others {
                        self.fault(Fault::Late(id.to_vec()));
                    }
                }
                (Role::User, _) => self.others = true,
                _ => {}
            }
        }
    }

    /// Answers a call of this name; whether there was one.
    fn answer(&mut self, id: &[u8]) -> bool {
        let Some(waiting) = self.pending.get_mut(id) else {
            return false;
        };
        *waiting -= 1;
        if *waiting == 0 {
            self.pending.remove(id);
        }
        true
    }

    /// Another speaker begins.
    fn turn(&mut self, role: Role) {
        match role {
            Role::Assistant => {
                for (id, _) in std::mem::take(&mut self.pending) {
                    self.fault(Fault::Unanswered(id.to_vec()));
                }
                self.fresh = false;
            }
            _ => self.fresh = true,
        }
        self.others = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(messages: Value) -> Vec<Fault> {
        let bytes = serde_json::to_vec(&json!({"messages": messages})).unwrap();
        let body = Body::split(&bytes).unwrap();
        faults(&bytes, &body).into_iter().collect()
    }

    fn call(ids: &[&str]) -> Value {
        let blocks: Vec<Value> = ids
            .iter()
            .map(|id| json!({"type": "tool_use", "id": id, "name": "n", "input": {}}))
            .collect();
        json!({"role": "assistant", "content": blocks})
    }

    fn result(ids: &[&str]) -> Value {
        let blocks: Vec<Value> = ids
            .iter()
            .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"}))
            .collect();
        json!({"role": "user", "content": blocks})
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    #[test]
    fn legal_histories_have_no_fault() {
        let system = json!({"role": "system", "content": "s"});
        let summary =
            json!({"role": "assistant", "content": [{"type": "compaction", "content": "s"}]});
        for messages in [
            json!([user("a")]),
            json!([user("a"), call(&["x", "y"]), result(&["y", "x"]), user("b")]),
            json!([user("a"), call(&["x", "y"]), result(&["x"]), result(&["y"])]),
            json!([user("a"), call(&["x"]), result(&["x"]), system]),
            json!([user("a"), system, call(&["x"]), result(&["x"])]),
            json!([summary, user("a")]),
        ] {
            assert_eq!(found(messages.clone()), [], "{messages}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        let id = |id: &str| format!("\"{id}\"").into_bytes();
        let system = json!({"role": "system", "content": "s"});
        let raw = serde_json::to_vec(&system).unwrap();
        let rows = [
            (
                json!([
                    user("a"),
                    call(&["x", "y"]),
                    result(&["x"]),
                    call(&["z"]),
                    result(&["z"])
                ]),
                vec![Fault::Unanswered(id("y"))],
            ),
            (
                json!([user("a"), result(&["x"])]),
                vec![Fault::Orphan(id("x"))],
            ),
            (
                json!([user("a"), call(&["x"]), user("b"), result(&["x"])]),
                vec![Fault::Late(id("x"))],
            ),
            (
                json!([
                    user("a"),
                    call(&["x"]),
                    result(&["x"]),
                    call(&["x"]),
                    result(&["x"])
                ]),
                vec![Fault::Twice(id("x"))],
            ),
            (
                json!([user(""), call(&["x"]), result(&["x"])]),
                vec![Fault::Empty],
            ),
            (json!([call(&["x"]), result(&["x"])]), vec![Fault::First]),
            (json!([system, user("a")]), vec![Fault::System(raw.clone())]),
            (
                json!([user("a"), system, user("b")]),
                vec![Fault::System(raw)],
            ),
            (
                json!([user("a"), {"role": "assistant", "content": "b"}]),
                vec![Fault::Prefill],
            ),
        ];
        for (messages, expected) in rows {
            assert_eq!(found(messages.clone()), expected, "{messages}");
        }
    }
}
