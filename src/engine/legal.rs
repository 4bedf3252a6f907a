//! Whether a view is a request that the API takes.
//!
//! The whole of it is checked, not only what was changed, and judged on merged
//! turns: calls answered in the next turn, results with a call, results first,
//! system messages where they may stand, nothing empty, four cache marks at
//! most. A client may itself send what is not legal; only what the view has and
//! the history has not is held against the view. So a fault says where it is, in
//! words that are the same in both: one of the client's excuses none of ours.

use std::collections::{BTreeMap, BTreeSet};

use super::cache_marks;
use super::conversation::Conversation;
use crate::wire::body::{Body, Kind, Message, Role};
use crate::wire::canonical::canonical;

/// The most surplus cache marks that are told apart.
const SURPLUS: usize = 100;

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
    /// A message with nothing in it, and how many like it stand before.
    Empty(Vec<u8>, usize),
    /// The first message, this one, is not the user's.
    First(Vec<u8>),
    /// A system message where none may stand.
    System(Vec<u8>),
    /// The last message, this one, is the assistant's.
    Prefill(Vec<u8>),
    /// A cache mark too many: the fifth, the sixth, each by its number.
    Surplus(usize),
}

/// What the API would refuse in a body.
pub fn faults(bytes: &[u8], body: &Body) -> BTreeSet<Fault> {
    let mut walk = Walk {
        bytes,
        body,
        faults: BTreeSet::new(),
        empty: BTreeMap::new(),
        seen: BTreeSet::new(),
        pending: BTreeMap::new(),
        fresh: false,
        others: false,
    };
    let messages = body.messages();
    let mut last: Option<&Message> = None;
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::System {
            let next = messages.get(at + 1).map(|next| next.role);
            let follows = at > 0 && messages.get(at - 1).is_some_and(|m| m.role == Role::User);
            let legal = follows && matches!(next, None | Some(Role::Assistant | Role::System));
            if !legal && !walk.server_tool_before(at) {
                walk.fault(Fault::System(form(bytes, body, message)));
            }
            continue;
        }
        let turns = last.is_none_or(|last| last.role != message.role);
        walk.message(message, turns, at + 1 == messages.len());
        if last.is_none() && message.role == Role::Assistant && !walk.is_summary(message) {
            walk.fault(Fault::First(form(bytes, body, message)));
        }
        last = Some(message);
    }
    if let Some(message) = last.filter(|last| last.role == Role::Assistant) {
        walk.fault(Fault::Prefill(form(bytes, body, message)));
    }
    let marks = cache_marks::count(bytes, body);
    let surplus = (cache_marks::MOST..marks).take(SURPLUS);
    surplus.for_each(|at| walk.fault(Fault::Surplus(at + 1)));
    walk.faults
}

/// Whether a view shows the assistant's newest message as the history has it,
/// cache marks aside, where the API insists on that: while the model is in the
/// middle of its turn. Between two turns its thinking may be left out.
pub fn keeps_newest(history: &Conversation<'_>, view: &Conversation<'_>) -> bool {
    let newest = |of: &Conversation<'_>| {
        let message = of.message(of.last_assistant()?)?;
        Some(form(of.bytes(), of.body(), message))
    };
    !history.is_in_tool_loop() || newest(history) == newest(view)
}

/// A message as it is recognised: cache marks are no part of it.
fn form(bytes: &[u8], body: &Body, message: &Message) -> Vec<u8> {
    let mut form = Vec::new();
    canonical(bytes, body, message, |piece| form.extend_from_slice(piece));
    form
}

struct Walk<'a> {
    bytes: &'a [u8],
    body: &'a Body,
    faults: BTreeSet<Fault>,
    /// Messages with nothing in them so far, by how they are written.
    empty: BTreeMap<&'a [u8], usize>,
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
            let written = message.span.of(self.bytes);
            let alike = self.empty.entry(written).or_default();
            let fault = Fault::Empty(written.to_vec(), *alike);
            *alike += 1;
            self.fault(fault);
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

    fn faults_of(request: &Value) -> BTreeSet<Fault> {
        let bytes = serde_json::to_vec(request).unwrap();
        faults(&bytes, &Body::split(&bytes).unwrap())
    }

    fn found(messages: &Value) -> Vec<Fault> {
        let found = faults_of(&json!({"messages": messages}));
        found.into_iter().collect()
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
            assert_eq!(found(&messages), [], "{messages}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        let id = |id: &str| format!("\"{id}\"").into_bytes();
        let system = json!({"role": "system", "content": "s"});
        let raw = b"st\"s\"".to_vec();
        let empty = serde_json::to_vec(&user("")).unwrap();
        let calls = [
            &b"ab"[..],
            &serde_json::to_vec(&call(&["x"])["content"]).unwrap(),
        ]
        .concat();
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
                json!([user(""), call(&["x"]), result(&["x"]), user("")]),
                vec![Fault::Empty(empty.clone(), 0), Fault::Empty(empty, 1)],
            ),
            (
                json!([call(&["x"]), result(&["x"])]),
                vec![Fault::First(calls)],
            ),
            (json!([system, user("a")]), vec![Fault::System(raw.clone())]),
            (
                json!([user("a"), system, user("b")]),
                vec![Fault::System(raw)],
            ),
            (
                json!([user("a"), {"role": "assistant", "content": "b"}]),
                vec![Fault::Prefill(b"at\"b\"".to_vec())],
            ),
        ];
        for (messages, expected) in rows {
            assert_eq!(found(&messages), expected, "{messages}");
        }
    }

    #[test]
    fn a_fault_of_the_client_s_excuses_none_of_ours() {
        let set = |messages: &Value| found(messages).into_iter().collect::<BTreeSet<_>>();
        let says = |text: &str| json!({"role": "assistant", "content": text});
        let none = json!({"role": "user", "content": []});
        let rows = [
            (json!([user("")]), json!([user(""), user("")])),
            (json!([user("")]), json!([none])),
            (json!([says("a"), user("b")]), json!([says("c"), user("b")])),
            (json!([user("a"), says("b")]), json!([user("a"), says("c")])),
        ];
        for (theirs, ours) in rows {
            assert!(!set(&ours).is_subset(&set(&theirs)), "{ours}");
        }
    }

    #[test]
    fn more_than_four_cache_marks_are_too_many_and_fewer_than_before_are_not() {
        let marked = |count: usize| {
            let block =
                json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
            let blocks = vec![block; count];
            faults_of(
                &json!({"system": [blocks[0]], "cache_control": {"type": "ephemeral"},
                "messages": [{"role": "user", "content": blocks}]}),
            )
        };
        assert!(marked(2).is_empty());
        assert_eq!(
            marked(4),
            BTreeSet::from([Fault::Surplus(5), Fault::Surplus(6)])
        );
        assert!(marked(3).is_subset(&marked(4)));
        assert!(!marked(5).is_subset(&marked(4)));
    }

    /// Fact: thinking in the latest assistant message cannot be modified.
    #[test]
    fn in_the_middle_of_its_turn_the_newest_message_stays_as_it_is() {
        let kept = |history: &Value, view: &Value| {
            let [history, view] = [history, view].map(|messages| {
                let bytes = serde_json::to_vec(&json!({"messages": messages})).unwrap();
                let body = Body::split(&bytes).unwrap();
                (bytes, body)
            });
            keeps_newest(
                &Conversation::new(&history.0, &history.1),
                &Conversation::new(&view.0, &view.1),
            )
        };
        let full = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "tool_use", "id": "x", "name": "n", "input": {}}]});
        let mut marked = full.clone();
        marked["content"][1]["cache_control"] = json!({"type": "ephemeral"});
        let bare = call(&["x"]);
        let open = |newest: &Value| json!([user("a"), newest, result(&["x"])]);
        let done = |newest: &Value| json!([user("a"), newest, user("b")]);
        assert!(kept(&open(&full), &open(&full)));
        assert!(kept(&open(&full), &open(&marked)));
        assert!(!kept(&open(&full), &open(&bare)));
        assert!(!kept(&open(&full), &json!([user("a")])));
        assert!(kept(&done(&full), &done(&bare)), "between two turns");
    }
}
