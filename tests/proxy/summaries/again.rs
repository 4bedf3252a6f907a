//! Passes after the first: what is cached stays cached, and none is dearer than
//! the one before.

use longhaul::sim::{Entry, Kind, Options};
use serde_json::Value;

use super::stage::{Stage, settings};
use crate::views::cast::{FREE, messages};

/// The text blocks that stand for hidden messages, of a view.
fn segments(shown: &[Value]) -> Vec<String> {
    let blocks = shown.iter().filter_map(|m| m["content"].as_array());
    let texts = blocks.flatten().filter_map(|block| block["text"].as_str());
    let ours = texts.filter(|text| text.starts_with("[longhaul: summary of messages"));
    ours.map(str::to_owned).collect()
}

/// A pass: the request that carried it, the one before, and the summaries that
/// were asked for since the pass before.
struct Pass {
    before: Entry,
    with: Entry,
    summaries: Vec<Entry>,
}

fn passes(stage: &Stage) -> Vec<Pass> {
    let mut passes = Vec::new();
    let mut summaries = Vec::new();
    let mut last: Option<Entry> = None;
    for entry in stage.upstream.entries() {
        if entry.kind == Kind::Summary {
            summaries.push(entry);
            continue;
        }
        if let Some(before) = last.replace(entry.clone())
            && segments(&messages(&entry)) != segments(&messages(&before))
        {
            passes.push(Pass {
                before,
                with: entry,
                summaries: std::mem::take(&mut summaries),
            });
        }
    }
    passes
}

/// Talks in equal steps until there were so many passes.
fn talked(more: &str, passes: usize) -> Stage {
    let file = settings(16_000, more);
    let mut stage = Stage::set(FREE, Options::default(), &file);
    while stage.count("summary") < passes {
        assert!(stage.passes.len() < 300, "{:?}", stage.passes);
        stage.talk("Please go on with the next step.", 700);
        stage.settle();
    }
    stage.assert_accepted();
    assert_eq!(stage.count("truncate"), 0, "{:?}", stage.passes);
    stage
}

#[test]
fn earlier_segments_stay_as_they_are_and_stay_cached() {
    let stage = talked(
        "mode = \"model\"\n[policy]\nmax_segments = 20\ntail_messages = 4",
        10,
    );
    let passes = passes(&stage);
    assert!(passes.len() >= 10);
    for (number, pass) in passes.iter().enumerate() {
        let (old, new) = (
            segments(&messages(&pass.before)),
            segments(&messages(&pass.with)),
        );
        assert_eq!(new.len(), old.len() + 1, "pass {number} adds one");
        assert_eq!(new[..old.len()], old[..], "pass {number} changes no other");
        // Read are system, tools, head and every earlier segment; written what
        // is new and the tail.
        let tokens = pass.with.tokens;
        if let Some(block) = &pass.with.broken_at {
            assert!(block.path.contains("messages"), "pass {number}: {block:?}");
        }
        let ours: usize = old.iter().map(String::len).sum();
        let kept = ours as u64 / 5;
        assert!(
            tokens.read >= kept + 700,
            "pass {number}: {tokens:?}, {kept} of earlier segments"
        );
        println!(
            "pass {}: {} segments, {} read, {} written, summary {} in, {} micro-dollars",
            number + 1,
            new.len(),
            tokens.read,
            tokens.prompt() - tokens.read,
            pass.summaries
                .iter()
                .map(|s| s.tokens.prompt())
                .sum::<u64>(),
            pass.summaries
                .iter()
                .map(|s| s.cost.micro_dollars())
                .sum::<u64>(),
        );
    }
    // Spans of equal size cost the same, however many went before: what it
    // takes to sum up, and to write the view anew.
    let cost = |pass: &Pass| {
        let asked: u64 = pass.summaries.iter().map(|s| s.cost.micro_dollars()).sum();
        let written = pass.with.tokens.prompt() - pass.with.tokens.read;
        (asked, written)
    };
    let (second, tenth) = (cost(&passes[1]), cost(&passes[9]));
    assert!(
        tenth.0 * 100 <= second.0 * 110,
        "the tenth summary: {tenth:?}, the second: {second:?}"
    );
    assert!(
        tenth.1 * 100 <= second.1 * 110,
        "written anew: {tenth:?}, {second:?}"
    );
}

#[test]
fn too_many_segments_become_one_that_is_made_from_the_originals() {
    let stage = talked(
        "mode = \"model\"\n[policy]\nmax_segments = 3\ntail_messages = 4",
        6,
    );
    let passes = passes(&stage);
    let merges: Vec<&Pass> = passes
        .iter()
        .filter(|pass| {
            segments(&messages(&pass.with)).len() < segments(&messages(&pass.before)).len()
        })
        .collect();
    assert!(!merges.is_empty());
    for merge in merges {
        let [one] = &segments(&messages(&merge.with))[..] else {
            panic!("not one");
        };
        // From the first message behind the head on.
        assert!(
            one.contains("[longhaul: summary of messages 2 to "),
            "{one}"
        );
        // What it was made from are the messages: what was said first is there,
        // and no earlier summary.
        let asked = merge.summaries.last().unwrap().json().unwrap()["messages"].to_string();
        assert!(asked.contains("I decided on plan 1"), "{asked}");
        assert!(!asked.contains("[longhaul: summary of messages"));
    }
}

#[test]
fn a_fork_reads_its_input_from_the_cache() {
    let stage = talked("mode = \"fork\"", 3);
    let asked = stage.summaries();
    assert!(asked.len() >= 3);
    for (number, entry) in asked.iter().enumerate() {
        let tokens = entry.tokens;
        let share = tokens.read * 1000 / tokens.prompt();
        println!(
            "fork {number}: {} of {} read, {share} ‰",
            tokens.read,
            tokens.prompt()
        );
        assert_eq!(entry.model.as_deref(), Some(FREE));
        assert!(share >= 900, "{tokens:?}");
    }
}
