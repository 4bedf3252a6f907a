//! What a call did, told where its result stands.
//!
//! A call that failed touched no file. A command that only shows a file counts as
//! a read and not as a command, because that is how it is looked for later.

use super::bounds;
use super::{FactKind, LONG, TEXT, Taken};
use crate::engine::acts::{self, Act, Command, File};
use crate::engine::candidates::{Deed, Fate, Outcome};
use crate::engine::pinned;
use crate::engine::pinned::plan::{self, Told};

/// Characters of a command's line, at most.
const LINE: usize = 300;
/// Bytes of a path, at most: a name cut short would be another.
const PATH: usize = 4096;

/// What begins the text of a command that did not fail.
pub(super) const WORKED: &str = "worked";

/// The words for how a command came out.
fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Good | Outcome::Unchanged => WORKED,
        Outcome::Failed => "failed",
        Outcome::Refused => "refused",
        Outcome::Absent => "unfinished",
    }
}

/// The text of a command: how it came out, and its line.
pub(super) fn run(text: &str) -> (&str, &str) {
    text.split_once(": ").unwrap_or(("", text))
}

/// Adds the facts of a call.
pub(super) fn take(taken: &mut Taken, deed: &Deed<'_>) {
    let (_, block) = deed.result;
    let tool = Some(deed.tool.as_str());
    if deed.fate == Fate::Worked {
        files(taken, deed);
    }
    if deed.act.reading().is_none()
        && let Some((line, folder)) = line(deed)
    {
        let text = format!("{}: {}", word(deed.outcome), bounds::start(&line, LINE));
        taken.add_of(FactKind::Command, block, tool, folder, text);
    }
    if deed.fate != Fate::Worked {
        let said = pinned::result_text(deed.payload);
        let text = match bounds::ends(&said, TEXT) {
            empty if empty.is_empty() => "failed without a word".to_owned(),
            text => text,
        };
        taken.add_of(FactKind::Error, block, tool, target(&deed.act), text);
    }
    match plan::told(deed) {
        Some(Told::All(list)) => {
            taken.add_of(FactKind::Todo, block, tool, None, fitting(&list));
        }
        Some(Told::Item(item)) => {
            taken.add_of(
                FactKind::TodoItem,
                block,
                tool,
                None,
                bounds::start(&item, TEXT),
            );
        }
        None => {}
    }
}

fn files(taken: &mut Taken, deed: &Deed<'_>) {
    let (_, block) = deed.result;
    let tool = Some(deed.tool.as_str());
    for writing in deed.act.writings() {
        let verb = if writing.is_full { "wrote" } else { "changed" };
        let path = name(&writing.file);
        let text = bounds::start(&format!("{verb} {path}"), TEXT);
        taken.add_of(FactKind::FileWritten, block, tool, Some(path), text);
    }
    if let Some(reading) = deed.act.reading() {
        // What is shown is a path and perhaps lines of it, be it by a command.
        let subject = Act::Reads(reading.clone()).subject();
        let text = bounds::start(&format!("read {subject}"), TEXT);
        let path = name(&reading.file);
        taken.add_of(FactKind::FileRead, block, tool, Some(path), text);
    }
}

/// A file as the pinned index names it.
fn name(file: &File) -> String {
    let path = file.path.replace('\0', "\u{fffd}");
    match file.world.as_str() {
        "" => path,
        world => format!("{path} ({})", bounds::start(world, super::TOOL)),
    }
}

/// What was run, and in which folder if that is known.
fn line(deed: &Deed<'_>) -> Option<(String, Option<String>)> {
    match &deed.act {
        Act::Runs(Command {
            text, directory, ..
        }) => {
            let folder = directory.as_ref().filter(|folder| folder.len() <= PATH);
            let folder = folder.map(|folder| folder.replace('\0', "\u{fffd}"));
            Some((text.clone(), folder))
        }
        Act::Opaque => acts::runs(&deed.tool, deed.input).map(|line| (line, None)),
        _ => None,
    }
}

/// The file that a call was about.
fn target(act: &Act) -> Option<String> {
    let written = act.writings().first().map(|writing| &writing.file);
    let file = written.or_else(|| act.reading().map(|reading| &reading.file));
    file.map(name)
}

/// A list in the room there is: what is done goes first, then what comes last.
fn fitting(list: &str) -> String {
    let mut lines: Vec<&str> = list.lines().collect();
    if lines.is_empty() {
        return "no items".to_owned();
    }
    let length = |line: &str| line.chars().count() + 1;
    let mut used: usize = lines.iter().map(|line| length(line)).sum();
    let all = lines.len();
    let room = LONG - 32;
    lines.retain(|line| {
        let goes = used > room && line.starts_with("[x]");
        used -= if goes { length(line) } else { 0 };
        !goes
    });
    while used > room
        && let Some(last) = lines.pop()
    {
        used -= length(last);
    }
    let mut text = lines.join("\n");
    if lines.len() < all {
        text.extend(["\n(", &(all - lines.len()).to_string(), " more)"]);
    }
    bounds::start(&text, LONG)
}
