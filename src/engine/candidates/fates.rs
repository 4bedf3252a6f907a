//! What became of each call: it worked, or it failed and was made good since, or
//! it failed and nothing later shows that it was.
//!
//! The judgement is the one by which results give way, with nothing hidden, so
//! that what is kept as an open failure and what may be cleared never disagree.
//! One thing is added: a call of which nothing is known is still made good by the
//! very same call, if that worked later.

use std::collections::HashMap;

use super::items::{self, Item};
use super::later::Later;
use super::outcome::Outcome;
use crate::engine::acts::Act;
use crate::engine::conversation::Conversation;
use crate::engine::overlay::Overlay;

/// A call that has a result, and what became of it.
pub(in crate::engine) struct Deed<'a> {
    /// Where the model asks: message and block.
    pub(in crate::engine) used: (usize, usize),
    /// Where the answer stands.
    pub(in crate::engine) result: (usize, usize),
    /// The tool.
    pub(in crate::engine) tool: String,
    /// What the call does.
    pub(in crate::engine) act: Act,
    /// Its arguments, as JSON.
    pub(in crate::engine) input: &'a [u8],
    /// What the result holds, as JSON.
    pub(in crate::engine) payload: &'a [u8],
    /// How it came out.
    pub(in crate::engine) outcome: Outcome,
    /// What became of it.
    pub(in crate::engine) fate: Fate,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Fate {
    /// It did not fail.
    Worked,
    /// It failed, and that was made good since.
    MadeGood,
    /// It failed, or a person refused it, and nothing later made it good.
    Open,
}

/// The calls that have results, in order.
pub(in crate::engine) fn deeds<'a>(conversation: &Conversation<'a>) -> Vec<Deed<'a>> {
    let items = items::items(conversation, &Overlay::default(), usize::MAX);
    let inputs: Vec<&[u8]> = items.iter().map(|item| input(conversation, item)).collect();
    let mut worked: HashMap<(&str, &[u8]), usize> = HashMap::new();
    for (item, input) in items.iter().zip(&inputs) {
        if item.is_good() {
            worked.insert((&item.tool, input), item.used.0);
        }
    }
    let later = Later::new(&items);
    let fates: Vec<Fate> = items
        .iter()
        .zip(&inputs)
        .enumerate()
        .map(|(number, (item, input))| {
            if !fails(item) {
                return Fate::Worked;
            }
            let again = worked.get(&(item.tool.as_str(), *input));
            let is_good = again.is_some_and(|again| *again > item.result.0)
                || (item.outcome == Outcome::Failed
                    && (later.made_good(number).is_some() || later.changed_later(number)));
            if is_good { Fate::MadeGood } else { Fate::Open }
        })
        .collect();
    let told = items.into_iter().zip(inputs).zip(fates);
    told.map(|((item, input), fate)| deed(item, input, fate))
        .collect()
}

/// The calls whose results stand in these messages, in the order of results, by
/// what was known there: nothing that comes later counts, so a failure is open.
pub(in crate::engine) fn answered<'a>(
    conversation: &Conversation<'a>,
    from: usize,
    to: usize,
) -> Vec<Deed<'a>> {
    let overlay = Overlay::default();
    let calls = conversation.calls_answered(from, to).into_iter();
    calls
        .filter_map(|call| items::item(conversation, call, &overlay, usize::MAX))
        .map(|item| {
            let input = input(conversation, &item);
            let fate = if fails(&item) {
                Fate::Open
            } else {
                Fate::Worked
            };
            deed(item, input, fate)
        })
        .collect()
}

fn fails(item: &Item<'_>) -> bool {
    matches!(item.outcome, Outcome::Failed | Outcome::Refused)
}

/// The arguments of a call, as JSON.
fn input<'a>(conversation: &Conversation<'a>, item: &Item<'a>) -> &'a [u8] {
    let asked = conversation.block_at(item.used);
    let input = asked.and_then(|block| block.payload);
    input.map_or(&b"{}"[..], |input| input.of(conversation.bytes()))
}

fn deed<'a>(item: Item<'a>, input: &'a [u8], fate: Fate) -> Deed<'a> {
    Deed {
        used: item.used,
        result: item.result,
        payload: item.payload.unwrap_or_default(),
        tool: item.tool,
        act: item.act,
        input,
        outcome: item.outcome,
        fate,
    }
}
