//! The plan block: what somebody needs who takes the work over, in one place.
//!
//! The goal and the rules in the user's words, what is done and what comes next,
//! what was tried and failed, the files in hand, values that were looked up. It is
//! taken from the whole history up to the end of a span, by code alone, so that it
//! cannot wear away from pass to pass: the newest segment has all of it, and the
//! blocks of older segments are only older. What stands behind the span is not
//! told, because the model still sees it, and because another branch may go on
//! differently from there; it only counts for what was made good.
//!
//! It keeps to a size, each part to its share (`fit.rs`), and is never more than
//! a part of the messages that it stands with.

use std::collections::HashSet;
use std::ops::Range;

use super::fit::{self, Part, Piece};
use super::former::FormerPlan;
use super::genuine::genuine;
use super::next::{Outlook, Said};
use super::plan::Plan;
use super::plan_headings::{HEADINGS, TITLE};
use super::quote::{self, DATA, USER};
use super::turns::{Turns, heading};
use super::{Settings, carried, failures, files, values};
use crate::engine::candidates::Deed;
use crate::engine::conversation::Conversation;
use crate::engine::facts;

/// Bytes of a token, about.
const TOKEN: u64 = 4;
/// The block takes one byte in so many of the span, at most.
const OF_SPAN: usize = 4;
/// With less room than this there is no block.
const LEAST: usize = 640;
/// Bytes for what is ours in the block, about: headings and what had no room.
const OURS: usize = 1_200;
/// The share of the to-do list, in percent.
const LIST: usize = 14;
/// Words of a message that asks for something, at least.
const ASKS: usize = 3;
/// Characters of a rule and of what was asked for, at most.
const RULE: usize = 300;
const ASKED: usize = 600;
/// Items of the to-do list that are done and are shown, at most.
const DONE: usize = 6;
/// Attempts and files that are named, at most.
const ATTEMPTS: usize = 12;
const FILES: usize = 16;

/// The plan as it stood at the end of a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlanBlock {
    /// As it is shown; empty if there is no room for it.
    pub(super) text: String,
    room: usize,
}

impl PlanBlock {
    /// Of the messages up to the end of a span.
    pub(super) fn new(
        conversation: &Conversation<'_>,
        span: &Range<usize>,
        turns: &Turns,
        deeds: &[Deed<'_>],
        settings: &Settings,
    ) -> Self {
        let room =
            usize::try_from(settings.plan_tokens.saturating_mul(TOKEN)).unwrap_or(usize::MAX);
        let room = room.min(bytes_of(conversation, span) / OF_SPAN);
        if room < LEAST {
            return Self::default();
        }
        let to = span.end;
        let count = deeds.partition_point(|deed| deed.used.0 < to);
        let (deeds, behind) = deeds.split_at_checked(count).unwrap_or_default();
        let said = Words::before(conversation, to, turns);
        let outlook = Outlook::before(conversation, to, turns);
        let former = settings.former_plan.iter().flat_map(FormerPlan::parts);
        let [
            goal,
            newest,
            rules,
            before,
            summary,
            to_do,
            said_next,
            tried,
            hands,
            looked_up,
        ] = HEADINGS;
        let parts = [
            Part::new(goal, "messages", 14, said.goal()),
            Part::new(newest, "messages", 8, said.newest()),
            Part::new(rules, "rules", 24, said.rules()),
            Part::new(before, "parts", 30, in_order(former)),
            Part::new(
                summary,
                "parts",
                12,
                in_order(carried::from_summary(conversation, to)),
            ),
            Part::new(to_do, "items", LIST, list(deeds, behind)),
            Part::new(said_next, "statements", 6, stated(&outlook)),
            Part::new(tried, "attempts", 12, attempts(deeds, turns)),
            Part::new(hands, "files", 6, in_hand(deeds, turns)),
            Part::new(looked_up, "values", 4, found(deeds, turns)),
        ];
        let preface = format!(
            "{TITLE}{to}\n{}",
            quote::notice("from the whole conversation up to there; a later plan replaces it")
        );
        let text = fit::text(&preface, "###", parts, room);
        let text = if text == preface { String::new() } else { text };
        Self { text, room }
    }

    /// Whether the block shows all of a to-do list.
    pub(super) fn shows_all_of(&self, list: &Plan) -> bool {
        let room = self.room.saturating_sub(OURS) * LIST / 100;
        let closed = list.items().filter(|(_, is_open)| !is_open).count();
        !self.text.is_empty() && closed <= DONE && list.text().len() <= room
    }
}

/// Bytes of these messages.
fn bytes_of(conversation: &Conversation<'_>, span: &Range<usize>) -> usize {
    let messages = span.clone().filter_map(|at| conversation.message(at));
    messages.map(|message| message.span.len()).sum()
}

/// The user's own words, up to a message.
struct Words {
    /// A turn and a text each.
    said: Vec<(usize, String)>,
}

impl Words {
    fn before(conversation: &Conversation<'_>, to: usize, turns: &Turns) -> Self {
        let said = (0..to).filter_map(|at| Some((turns.of(at), genuine(conversation, at)?)));
        Self {
            said: said.collect(),
        }
    }

    /// What the user asked for first.
    fn goal(&self) -> Vec<Piece> {
        let first = self.said.first().into_iter();
        first.map(asked).collect()
    }

    /// What the user asked for last, if it is more than a nod.
    fn newest(&self) -> Vec<Piece> {
        let later = self.said.get(1..).unwrap_or_default();
        let asks = |said: &&(usize, String)| said.1.split_whitespace().count() >= ASKS;
        let newest = later.iter().rev().find(asks).into_iter();
        newest.map(asked).collect()
    }

    /// The rules, the newest first; one that was said again counts where it was
    /// said last.
    fn rules(&self) -> Vec<Piece> {
        let mut known = HashSet::new();
        let mut rules = Vec::new();
        for (turn, text) in self.said.iter().rev() {
            for rule in facts::rules(text).into_iter().rev() {
                if known.insert(rule) {
                    rules.push((*turn, facts::shortened(rule, RULE)));
                }
            }
        }
        let count = rules.len();
        let rules = rules.iter().enumerate();
        rules
            .map(|(rank, rule)| spoken(count - rank, rule))
            .collect()
    }
}

/// What the user asked for in a turn: how it begins.
fn asked((turn, text): &(usize, String)) -> Piece {
    spoken(0, &(*turn, facts::shortened(text, ASKED)))
}

/// Something that the user said in a turn.
fn spoken(place: usize, (turn, text): &(usize, String)) -> Piece {
    Piece {
        place,
        heading: heading(*turn),
        mark: USER,
        text: text.clone(),
    }
}

/// Something that is quoted as data.
fn data(place: usize, heading: String, text: String) -> Piece {
    Piece {
        place,
        heading,
        mark: DATA,
        text,
    }
}

/// Texts that stand in the order of importance.
fn in_order(texts: impl IntoIterator<Item = String>) -> Vec<Piece> {
    let texts = texts.into_iter().enumerate();
    texts
        .map(|(place, text)| data(place, String::new(), text))
        .collect()
}

/// The to-do list as it last stood; what is done gives way first.
fn list(deeds: &[Deed<'_>], behind: &[Deed<'_>]) -> Vec<Piece> {
    let plan = Plan::new(&[], deeds, behind);
    let items: Vec<(usize, (String, bool))> = plan.items().enumerate().collect();
    let (open, closed): (Vec<_>, Vec<_>) = items.into_iter().partition(|(_, item)| item.1);
    // The first of what is open, the last of what is done.
    let items = open.into_iter().chain(closed.into_iter().rev().take(DONE));
    items
        .map(|(place, (text, _))| data(place, String::new(), text))
        .collect()
}

/// What the assistant said of both; what comes next is more important.
fn stated(outlook: &Outlook) -> Vec<Piece> {
    let piece = |place: usize, what: &str, said: &Option<Said>| {
        let said = said.as_ref()?;
        let heading = format!("{what}, turn {}:\n", said.turn);
        Some(data(place, heading, said.lines.join("\n")))
    };
    let next = piece(1, "next", &outlook.next);
    next.into_iter()
        .chain(piece(0, "done", &outlook.done))
        .collect()
}

fn attempts(deeds: &[Deed<'_>], turns: &Turns) -> Vec<Piece> {
    let attempts = failures::attempts(deeds, turns, ATTEMPTS);
    let count = attempts.len();
    let piece = |(rank, attempt): (usize, failures::Attempt)| {
        let text = format!("{}\n{}", attempt.call, attempt.error);
        data(count - rank, heading(attempt.turn), text)
    };
    attempts.into_iter().enumerate().map(piece).collect()
}

fn in_hand(deeds: &[Deed<'_>], turns: &Turns) -> Vec<Piece> {
    let files = files::in_hand(deeds, turns, FILES);
    in_order(files.iter().map(files::InHand::line))
}

fn found(deeds: &[Deed<'_>], turns: &Turns) -> Vec<Piece> {
    let values = values::found(deeds, turns).into_iter();
    in_order(values.map(|value| match value.subject.as_str() {
        "" => format!("{} (turn {})", value.line, value.turn),
        subject => format!("{} (turn {}, {subject})", value.line, value.turn),
    }))
}

#[cfg(test)]
#[path = "plan_block_tests.rs"]
mod tests;
