//! What the facts of a conversation come to: what holds now.
//!
//! Only the facts are asked, as a store gives them back, because whoever wants to
//! know may never have seen the conversation. So what was made good is judged more
//! simply than in the pinned index: a command by the same line that worked, a file
//! by a later change of it, or by the same tool that could read it.

use std::collections::HashMap;

use super::calls::{WORKED, run};
use super::{Fact, FactKind};
use crate::engine::acts;
use crate::engine::pinned::plan::{GONE, RENAMED};

/// The facts in order of place; those of one place stay as they are.
pub(in crate::engine) fn in_order(facts: &[Fact]) -> Vec<&Fact> {
    let mut sorted: Vec<&Fact> = facts.iter().collect();
    sorted.sort_by_key(|fact| (fact.message, fact.block));
    sorted
}

/// The files written and those only read, newest first. A file that was both
/// counts as written.
pub(in crate::engine) fn files<'f>(facts: &[&'f Fact]) -> (Vec<&'f str>, Vec<&'f str>) {
    let mut touched: HashMap<&str, (usize, bool)> = HashMap::new();
    for (count, fact) in facts.iter().enumerate() {
        let writes = fact.kind == FactKind::FileWritten;
        let path = fact.path.as_deref();
        if let Some(path) = path.filter(|_| writes || fact.kind == FactKind::FileRead) {
            let entry = touched.entry(path).or_default();
            if writes || !entry.1 {
                *entry = (count, writes);
            }
        }
    }
    let mut newest: Vec<_> = touched.into_iter().collect();
    newest.sort_unstable_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let (written, read): (Vec<_>, Vec<_>) = newest.into_iter().partition(|(_, (_, w))| *w);
    let paths = |list: Vec<(&'f str, _)>| list.into_iter().map(|(path, _)| path).collect();
    (paths(written), paths(read))
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Failure<'f> {
    /// What it said.
    pub(in crate::engine) error: &'f Fact,
    /// What was run, if it was a command.
    pub(in crate::engine) line: Option<&'f str>,
}

impl Failure<'_> {
    /// What was called: the tool, and what it was about.
    pub(in crate::engine) fn call(&self) -> String {
        let tool = self.error.tool.as_deref().unwrap_or_default();
        match self.line.or(self.error.path.as_deref()) {
            Some(about) => format!("{tool}: {about}"),
            None => tool.to_owned(),
        }
    }
}

/// What a failure is about, so that it can be made good.
#[derive(PartialEq, Eq, Hash)]
enum About<'f> {
    /// A command: its tool, folder and line.
    Run(Option<&'f str>, Option<&'f str>, &'f str),
    /// A file.
    File(&'f str),
    /// A call of which no more is known: its tool and what it said.
    Call(Option<&'f str>, &'f str),
}

/// The failures that nothing later has made good, oldest first. Of the same that
/// failed several times the newest counts, and a command that only looks has
/// found nothing rather than failed.
pub(in crate::engine) fn failures<'f>(facts: &[&'f Fact]) -> Vec<Failure<'f>> {
    let mut open: HashMap<About<'f>, (usize, Failure<'f>)> = HashMap::new();
    let mut ran: Option<&Fact> = None;
    for (count, fact) in facts.iter().copied().enumerate() {
        let tool = fact.tool.as_deref();
        match fact.kind {
            FactKind::Command => {
                let (ended, line) = run(&fact.text);
                if ended == WORKED {
                    open.remove(&About::Run(tool, fact.path.as_deref(), line));
                }
                ran = Some(fact);
            }
            FactKind::FileWritten | FactKind::FileRead => {
                let path = fact.path.as_deref().unwrap_or_default();
                let about = About::File(path);
                let failed = open.get(&about).map(|(_, failure)| failure.error);
                let is_good = failed.is_some_and(|error| {
                    fact.kind == FactKind::FileWritten || error.tool == fact.tool
                });
                if is_good {
                    open.remove(&about);
                }
            }
            FactKind::Error => {
                let here = |ran: &&Fact| (ran.message, ran.block) == (fact.message, fact.block);
                let ran = ran.filter(here);
                let line = ran.map(|ran| run(&ran.text).1);
                let about = match (ran, line, fact.path.as_deref()) {
                    (Some(ran), Some(line), _) => About::Run(tool, ran.path.as_deref(), line),
                    (_, _, Some(path)) => About::File(path),
                    _ => About::Call(tool, &fact.text),
                };
                if !line.is_some_and(acts::only_looks) {
                    open.insert(about, (count, Failure { error: fact, line }));
                }
            }
            _ => {}
        }
    }
    let mut open: Vec<(usize, Failure<'f>)> = open.into_values().collect();
    open.sort_unstable_by_key(|(count, _)| *count);
    open.into_iter().map(|(_, failure)| failure).collect()
}

/// Whether a command only looked.
pub(in crate::engine) fn only_looked(fact: &Fact) -> bool {
    acts::only_looks(run(&fact.text).1)
}

/// The to-do list as it last stood: a mark and a text each.
pub(in crate::engine) fn list<'f>(facts: &[&'f Fact]) -> Vec<(&'f str, &'f str)> {
    let mut items: Vec<Option<(&str, &str)>> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for fact in facts.iter().copied() {
        match fact.kind {
            FactKind::Todo => {
                items = fact.text.lines().filter_map(marked).map(Some).collect();
                numbers.clear();
            }
            FactKind::TodoItem => {
                let Some((number, rest)) = numbered(&fact.text) else {
                    continue;
                };
                let known = numbers.get(number).and_then(|at| items.get_mut(*at));
                match (known, marked(rest)) {
                    (Some(place), _) => change(place, rest),
                    (None, Some(item)) if !item.1.is_empty() => {
                        let number = match number {
                            "" => (items.len() + 1).to_string(),
                            number => number.to_owned(),
                        };
                        numbers.insert(number, items.len());
                        items.push(Some(item));
                    }
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }
    items.into_iter().flatten().collect()
}

/// The number of an item and what is said of it.
fn numbered(text: &str) -> Option<(&str, &str)> {
    let behind = text.strip_prefix('#')?;
    Some(behind.split_once(' ').unwrap_or((behind, "")))
}

/// A line that begins with the mark of an item.
fn marked(line: &str) -> Option<(&str, &str)> {
    let is_mark = |mark: &str| mark.starts_with('[') && mark.ends_with(']');
    let (mark, text) = line.split_at_checked(3).filter(|(mark, _)| is_mark(mark))?;
    Some((mark, text.trim()))
}

fn change<'f>(place: &mut Option<(&'f str, &'f str)>, said: &'f str) {
    if said.starts_with(GONE) {
        *place = None;
    } else if let Some(item) = place {
        if let Some((mark, text)) = marked(said) {
            item.0 = mark;
            item.1 = Some(text).filter(|text| !text.is_empty()).unwrap_or(item.1);
        } else if let Some(text) = said.strip_prefix(RENAMED) {
            item.1 = text.trim();
        }
    }
}

/// The questions after which the user has not spoken.
pub(in crate::engine) fn questions<'f>(facts: &[&'f Fact]) -> Vec<&'f Fact> {
    let spoken = facts.iter().filter(|fact| fact.kind == FactKind::Words);
    let spoken = spoken.map(|fact| fact.message).max();
    let open = facts.iter().copied().filter(|fact| {
        let is_later = spoken.is_none_or(|at| fact.message > at);
        fact.kind == FactKind::Question && is_later
    });
    open.collect()
}
