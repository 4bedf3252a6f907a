//! The words of an agent's day: a project that ships parcels, its files, its
//! tests, what its owner asks for and what the agent says.

use std::fmt::Write as _;

use super::dice::Dice;

const AREAS: [&str; 10] = [
    "tracking", "billing", "routing", "labels", "webhooks", "accounts", "search", "imports",
    "notices", "reports",
];
const PARTS: [&str; 8] = [
    "store", "handlers", "models", "client", "queue", "cache", "parser", "worker",
];
const VERBS: [&str; 8] = [
    "load", "merge", "retry", "expire", "match", "split", "price", "assign",
];
const NOUNS: [&str; 12] = [
    "parcel", "depot", "courier", "invoice", "address", "route", "scan", "label", "customer",
    "window", "refund", "batch",
];

/// A file of the project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    area: &'static str,
    part: &'static str,
}

/// A place in the project.
pub fn place(dice: &mut Dice) -> Place {
    Place {
        area: dice.one_of(&AREAS),
        part: dice.one_of(&PARTS),
    }
}

impl Place {
    /// Its path.
    pub fn path(self) -> String {
        format!("src/parcel/{}/{}.py", self.area, self.part)
    }

    /// The path of its tests.
    pub fn tests(self) -> String {
        format!("tests/{}/test_{}.py", self.area, self.part)
    }

    /// A number of its own.
    pub fn number(self) -> u64 {
        let of = |list: &[&str], word| list.iter().position(|known| *known == word).unwrap_or(0);
        (of(&AREAS, self.area) * PARTS.len() + of(&PARTS, self.part)) as u64
    }
}

/// The name of a function.
pub fn name(dice: &mut Dice) -> String {
    format!("{}_{}", dice.one_of(&VERBS), dice.one_of(&NOUNS))
}

/// A file as a reading tool shows it.
pub fn file(dice: &mut Dice, letters: usize) -> String {
    let mut text = String::with_capacity(letters + 400);
    let mut number = 1;
    let mut line = |text: &mut String, code: &str| {
        let _ = writeln!(text, "{number:>6}\t{code}");
        number += 1;
    };
    line(&mut text, "from __future__ import annotations");
    while text.len() < letters {
        for code in function(dice) {
            line(&mut text, &code);
        }
    }
    text
}

/// A few functions.
pub fn code(dice: &mut Dice) -> String {
    let count = dice.within(1..4);
    let lines = (0..count).flat_map(|_| function(dice));
    lines.collect::<Vec<_>>().join("\n")
}

fn function(dice: &mut Dice) -> Vec<String> {
    let (verb, a, b) = (
        dice.one_of(&VERBS),
        dice.one_of(&NOUNS),
        dice.one_of(&NOUNS),
    );
    let limit = dice.within(2..90);
    let mut lines = vec![
        String::new(),
        format!("    def {verb}_{a}(self, {b}_id: str, limit: int = {limit}) -> list[{a}]:"),
        format!("        {b} = self.{b}s.get({b}_id)"),
        format!("        if {b} is None:"),
        format!("            raise LookupError(f\"no {b} {{{b}_id}}\")"),
    ];
    if dice.percent(50) {
        lines.push(format!(
            "        # A {a} without a {b} stays open until the next {}.",
            dice.one_of(&NOUNS)
        ));
        lines.push(format!(
            "        {b}.refresh(after={}, attempts={})",
            dice.within(1..60),
            dice.within(2..9)
        ));
    }
    lines.push(format!(
        "        return sorted({b}.{a}s, key=lambda it: it.created)[:limit]"
    ));
    lines
}

/// What a search finds.
pub fn found(dice: &mut Dice, letters: usize) -> String {
    let mut text = String::new();
    while text.len() < letters.max(1) {
        let at = place(dice);
        let (path, function) = (at.path(), name(dice));
        let _ = writeln!(
            text,
            "{path}:{}:        self.{function}(",
            dice.within(4..400)
        );
    }
    text
}

/// What a test run prints.
pub fn test_run(dice: &mut Dice, letters: usize, failing: Option<&str>) -> String {
    let mut text = "============ test session starts ============\n".to_owned();
    let mut passed = 0;
    while text.len() < letters {
        let at = place(dice);
        let (tests, function) = (at.tests(), name(dice));
        let _ = writeln!(
            text,
            "{tests}::test_{function}_{} PASSED",
            dice.within(1..40)
        );
        passed += 1;
    }
    let seconds = dice.within(2..40);
    let _ = match failing {
        Some(what) => writeln!(
            text,
            "FAILED {what} - AssertionError: expected 3, got 2\n1 failed, {passed} passed in {seconds}s"
        ),
        None => writeln!(text, "{passed} passed in {seconds}s"),
    };
    text
}

/// What the owner asks for.
pub fn ask(dice: &mut Dice, at: Place) -> String {
    let (path, function) = (at.path(), name(dice));
    let (noun, other) = (dice.one_of(&NOUNS), place(dice).path());
    let mut text = match dice.within(0..7) {
        0 => format!(
            "Add a filter by {noun} to {function} in {path}, and keep its signature as it is."
        ),
        1 => format!(
            "{function} in {path} gives stale results after a retry. Find out why and fix it."
        ),
        2 => format!("Write tests for {path}. Use the fixtures that are there, no mocks."),
        3 => format!(
            "Why does {path} import from {other}? If there is no good reason, untangle them."
        ),
        4 => format!("A customer saw the same {noun} twice. Start with {function} in {path}."),
        5 => format!(
            "Rename {function} in {path} so that it says what it does, and everything that calls it."
        ),
        _ => format!(
            "{path} is slow for accounts with many of {noun}. Measure first, then change one thing."
        ),
    };
    // Things that hold from here on, said once.
    if dice.percent(6) {
        text.push_str(dice.one_of(&[
            " And from now on: never touch anything under migrations/.",
            " By the way, money is always in cents, never in floats.",
            " Please do not add dependencies without asking me.",
            " Always run the tests of an area before you say that it is done.",
        ]));
    }
    text
}

/// What the agent says before it calls a tool; often nothing.
pub fn remark(dice: &mut Dice, at: Place) -> Option<String> {
    let path = at.path();
    dice.percent(40).then(|| match dice.within(0..3) {
        0 => format!("Let me look at {path} first."),
        1 => format!("I will check who calls into {path}."),
        _ => format!("That should be in {path}."),
    })
}

/// What the agent says when it is done.
pub fn conclusion(dice: &mut Dice, at: Place) -> String {
    let mut text = format!("Done in {}.", at.path());
    for _ in 0..dice.within(4..12) {
        text.push(' ');
        text.push_str(&sentence(dice, at));
    }
    text
}

fn sentence(dice: &mut Dice, at: Place) -> String {
    let (function, other) = (name(dice), place(dice));
    let (a, b) = (dice.one_of(&NOUNS), dice.one_of(&NOUNS));
    match dice.within(0..8) {
        0 => format!(
            "`{function}` read the {a} before the {b} was refreshed, so the first answer after a retry was the old one."
        ),
        1 => format!(
            "I decided to keep the {a} and the {b} apart, because they expire at different times."
        ),
        2 => format!(
            "The tests in {} cover it, also with an empty {b}.",
            at.tests()
        ),
        3 => format!("Nothing but {} calls it with a {a}.", other.path()),
        4 => format!(
            "What I left alone: the {b} still comes from {}.",
            other.path()
        ),
        5 => format!(
            "There is one more place, `{function}`, where a {a} without a {b} would be dropped without a word; it now raises."
        ),
        6 => format!("A {a} is looked up once for each {b}, which is enough up to a few thousand."),
        _ => format!(
            "If you want {} to do the same, it needs the {b} first; I have not touched it.",
            other.path()
        ),
    }
}
