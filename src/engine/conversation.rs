//! The shape of a history: who speaks, which call belongs to which result, and
//! where it may be cut.
//!
//! Roles are judged on merged turns, as the API does: messages of one role in a
//! row are one. A cut is an index at which a tail may start: no call is parted
//! from its result, a mid-conversation system message stays with the message
//! it follows, and what tools a result has loaded is not forgotten. With manual
//! thinking a turn that goes on must begin with a thought, which a cut inside it
//! carries over ([`super::opening`]).

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::opening::Opening;
use crate::wire::body::{Block, Body, Kind, Message, Role};
use crate::wire::scan::Span;

/// A history, with what is often asked of it.
pub struct Conversation<'a> {
    bytes: &'a [u8],
    body: &'a Body,
    head: usize,
    last_assistant: Option<usize>,
    loop_start: usize,
    /// Who speaks before each message, system messages aside. Carried forward
    /// once, because to look back from each would be quadratic.
    speakers: Vec<Option<Role>>,
}

impl<'a> Conversation<'a> {
    /// The history of a request.
    pub fn new(bytes: &'a [u8], body: &'a Body) -> Self {
        let messages = body.messages();
        let is_assistant = |message: &Message| message.role == Role::Assistant;
        let first_assistant = messages.iter().position(is_assistant);
        let holds_summary = |message: &Message| {
            let blocks = body.blocks(message);
            blocks.iter().any(|block| is_summary(bytes, block))
        };
        let head = match messages.iter().rposition(holds_summary) {
            Some(at) => at + 1 + answers(body, at),
            None => first_assistant.unwrap_or(messages.len()),
        };
        let mut conversation = Self {
            bytes,
            body,
            head,
            last_assistant: messages.iter().rposition(is_assistant),
            loop_start: 0,
            speakers: speakers(messages),
        };
        let opens = (0..messages.len()).rposition(|at| conversation.opens_turn(at));
        conversation.loop_start = opens.unwrap_or(0);
        conversation
    }

    /// The bytes the history stands in.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The body it was split into.
    pub fn body(&self) -> &'a Body {
        self.body
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.body.messages().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages at the start are kept in every view: all before the
    /// first of the assistant's, or up to the API's own summary, if there is one.
    pub fn head(&self) -> usize {
        self.head
    }

    /// The newest message of the assistant's.
    pub fn last_assistant(&self) -> Option<usize> {
        self.last_assistant
    }

    /// The message at an index.
    pub fn message(&self, at: usize) -> Option<&'a Message> {
        self.body.messages().get(at)
    }

    /// The blocks of the message at an index.
    pub fn blocks(&self, at: usize) -> &'a [Block] {
        self.message(at)
            .map_or(&[], |message| self.body.blocks(message))
    }

    fn role(&self, at: usize) -> Option<Role> {
        self.message(at).map(|message| message.role)
    }

    fn has(&self, at: usize, kind: Kind) -> bool {
        self.blocks(at).iter().any(|block| block.kind == kind)
    }

    /// The role that speaks before a message, system messages aside.
    fn role_before(&self, at: usize) -> Option<Role> {
        self.speakers.get(at).copied().flatten()
    }

    /// Whether a message opens a turn: it is the user's and not only results.
    pub fn opens_turn(&self, at: usize) -> bool {
        let blocks = self.blocks(at);
        let only_results =
            !blocks.is_empty() && blocks.iter().all(|block| block.kind == Kind::ToolResult);
        self.role(at) == Some(Role::User) && !only_results
    }

    /// The messages of the turn that is still going on.
    pub fn open_turn(&self) -> Range<usize> {
        self.loop_start..self.len()
    }

    /// Whether a message belongs to the turn that is still going on.
    pub fn in_open_turn(&self, at: usize) -> bool {
        at >= self.loop_start
    }

    /// Whether the model is in the middle of its turn, so that its newest message
    /// may not be changed: its calls are being answered, whatever else is said
    /// with that, or it is to go on where it stopped.
    pub fn is_in_tool_loop(&self) -> bool {
        let mut said = (0..self.len())
            .rev()
            .filter(|at| self.role(*at) != Some(Role::System))
            .peekable();
        let stopped = said.peek().is_some_and(|at| self.is_assistant(*at));
        let mut turn = said.take_while(|at| self.role(*at) == Some(Role::User));
        stopped || turn.any(|at| self.has(at, Kind::ToolResult))
    }

    /// Whether any thinking is in it.
    pub fn thinks(&self) -> bool {
        (0..self.len()).any(|at| self.has(at, Kind::Thinking))
    }

    /// Whether a tail may start at this message, with nothing carried over to it.
    pub fn is_cut_point(&self, at: usize, manual_thinking: bool) -> bool {
        if at <= self.head || self.last_assistant.is_none_or(|last| at > last) {
            return false;
        }
        let (Some(role), Some(before)) = (self.role(at), self.role_before(at)) else {
            return false;
        };
        match role {
            Role::User => before == Role::Assistant && !self.run_has_results(at),
            Role::Assistant => {
                before == Role::User
                    && !self.may_answer_itself(at)
                    && (!manual_thinking || !self.in_open_turn(at) || self.starts_thinking(at))
            }
            Role::System | Role::Other => false,
        }
    }

    /// Whether the user's messages from here to the assistant's next hold a
    /// result.
    fn run_has_results(&self, from: usize) -> bool {
        (from..self.len())
            .take_while(|at| self.role(*at) != Some(Role::Assistant))
            .any(|at| self.has(at, Kind::ToolResult))
    }

    /// Whether the assistant's turn may hold the result of a tool of the server's
    /// that it called before its other calls were answered. Both are of kinds
    /// not known here, and the API wants them together.
    fn may_answer_itself(&self, from: usize) -> bool {
        let mut before = (0..from).rev().take_while(|at| !self.is_assistant(*at));
        let mut turn = (from..self.len()).take_while(|at| self.is_assistant(*at));
        before.any(|at| self.has(at, Kind::ToolResult)) && turn.any(|at| self.has(at, Kind::Other))
    }

    fn is_assistant(&self, at: usize) -> bool {
        self.role(at) == Some(Role::Assistant)
    }

    fn starts_thinking(&self, at: usize) -> bool {
        let first = self.blocks(at).first();
        first.is_some_and(|block| block.kind == Kind::Thinking)
    }

    /// The first message after the head that cannot be hidden: it loads or
    /// unloads tools, or speaks in a way that is not known.
    pub fn first_indispensable(&self) -> usize {
        let indispensable = |at: &usize| {
            let Some(message) = self.message(*at) else {
                return false;
            };
            let blocks = self.body.blocks(message);
            let loads = blocks.iter().any(|block| {
                block.has_tool_references
                    || (message.role == Role::System && block.kind != Kind::Text)
            });
            loads || message.role == Role::Other
        };
        (self.head..self.len())
            .find(indispensable)
            .unwrap_or(self.len())
    }

    /// The cut points, in order. Behind some of them the opening of the turn has
    /// to be carried over.
    pub fn cut_points(&self, manual_thinking: bool) -> Vec<usize> {
        let limit = self.first_indispensable();
        let opening = manual_thinking.then(|| Opening::of(self)).flatten();
        let carries =
            |at: usize| (opening.as_ref()).is_some_and(|opening| opening.may_precede(self, at));
        (self.head..=limit)
            .filter(|at| self.is_cut_point(*at, manual_thinking) || carries(*at))
            .collect()
    }

    /// The tool calls, in order, with their results where there are some.
    pub fn calls(&self) -> Vec<Call> {
        self.calls_within(0, self.len())
    }

    /// The calls whose results stand in these messages, in the order of results.
    /// A call may stand before them, in the turn that they answer.
    pub fn calls_answered(&self, from: usize, to: usize) -> Vec<Call> {
        let asks =
            |at: &usize| self.is_assistant(*at) && self.role_before(*at) != Some(Role::Assistant);
        let start = (0..from.min(self.len())).rev().find(asks).unwrap_or(from);
        let mut calls = self.calls_within(start, to.min(self.len()));
        calls.retain(|call| call.result.is_some_and(|(at, _)| at >= from));
        calls.sort_by_key(|call| call.result);
        calls
    }

    /// The calls of these messages, of which the first begins a turn of the
    /// assistant's or has no calls before it.
    fn calls_within(&self, from: usize, to: usize) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        // The calls of this turn that wait for a result, oldest first, by id.
        let mut waiting: BTreeMap<&[u8], VecDeque<usize>> = BTreeMap::new();
        for at in from..to {
            let role = self.role(at);
            if role == Some(Role::Assistant) && self.role_before(at) != Some(Role::Assistant) {
                waiting.clear();
            }
            for (index, block) in self.blocks(at).iter().enumerate() {
                let id = block.id.map(|id| id.of(self.bytes));
                match (role, block.kind) {
                    (Some(Role::Assistant), Kind::ToolUse) => {
                        if let Some(id) = id {
                            waiting.entry(id).or_default().push_back(calls.len());
                        }
                        calls.push(Call {
                            used: (at, index),
                            result: None,
                        });
                    }
                    (Some(Role::User), Kind::ToolResult) => {
                        let asked = id.and_then(|id| waiting.get_mut(id)?.pop_front());
                        if let Some(call) = asked.and_then(|asked| calls.get_mut(asked)) {
                            call.result = Some((at, index));
                        }
                    }
                    _ => {}
                }
            }
        }
        calls
    }

    /// The block at a place.
    pub fn block_at(&self, (message, block): (usize, usize)) -> Option<&'a Block> {
        self.blocks(message).get(block)
    }
}

/// Who speaks before each message, system messages aside.
fn speakers(messages: &[Message]) -> Vec<Option<Role>> {
    let before = |last: &mut Option<Role>, message: &Message| {
        let before = *last;
        if message.role != Role::System {
            *last = Some(message.role);
        }
        Some(before)
    };
    messages.iter().scan(None, before).collect()
}

/// Whether a block is the API's own summary; one that failed says nothing.
fn is_summary(bytes: &[u8], block: &Block) -> bool {
    let says = |payload: Span| payload.of(bytes) != b"null";
    block.kind == Kind::Compaction && block.payload.is_some_and(says)
}

/// How many messages behind this one answer its calls.
fn answers(body: &Body, at: usize) -> usize {
    let mut rest = body.messages().iter().skip(at);
    let calls = |message: &Message| {
        let blocks = body.blocks(message);
        blocks.iter().any(|block| block.kind == Kind::ToolUse)
    };
    if !rest.next().is_some_and(calls) {
        return 0;
    }
    rest.take_while(|m| m.role != Role::Assistant).count()
}

/// A tool call and its result: message and block of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Where the model asks.
    pub used: (usize, usize),
    /// Where the answer stands.
    pub result: Option<(usize, usize)>,
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
