//! Facts that later turns refer back to, in twelve sessions made for it.
//!
//! Each session is that of a coding agent. Facts with values that nobody could
//! guess stand in results of its tools, in the user's words and in its own, and 5
//! to 60 requests later an answer needs each of them: does the view of that
//! request have it? Passes come as they come by default.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use longhaul::config::Sources;
use longhaul::replay::play::{Stage, Way};
use longhaul::replay::session::Session;
use longhaul::replay::settings::Settings;
use longhaul::sim::tokens::Counter;
use serde_json::{Value, json};

use super::coding;

/// Sessions, and cycles and tokens of each.
const SESSIONS: u64 = 12;
const CYCLES: usize = 70;
const TOKENS: usize = 110_000;
/// Facts of each session, by who says them.
const SAID: [(Source, usize); 3] = [(Source::Tool, 6), (Source::User, 2), (Source::Assistant, 2)];
/// How many requests later a fact is needed.
const LATER: std::ops::RangeInclusive<usize> = 5..=60;
/// The share of tools' facts that views must have when they are needed; of what
/// the user and the assistant said, all.
const LEAST_OF_TOOLS: f64 = 0.60;

/// Who says a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Tool,
    User,
    Assistant,
}

/// A fact in one of six shapes: its value and the line that says it.
fn fact(number: usize, rng: &mut Rng) -> (String, String) {
    let secret = format!("q{:012x}", rng.u64(..1 << 48));
    let value = match number % 6 {
        4 => {
            let mut part = || rng.u8(101..199);
            format!("10.{}.{}.{}", part(), part(), part())
        }
        5 => format!("/srv/{secret}/state.db"),
        _ => secret,
    };
    let line = match number % 6 {
        0 => format!("The staging account of the billing service is {value} for now."),
        1 => format!("{{\"deployment\": {{\"release_id\": \"{value}\"}}}}"),
        2 => format!("| billing | {value} | active |"),
        3 => format!("error: migration stopped at checkpoint {value}"),
        4 => format!("database replica listens on {value}:5432"),
        _ => format!("the worker keeps its state in {value}"),
    };
    (value, line)
}

/// The block of a request that a fact of this source can be put into, and the
/// field of its text.
fn place(source: Source, asked: &Value, answer: &Value) -> Option<(usize, &'static str)> {
    let (message, kind, field) = match source {
        Source::Tool => (asked, "tool_result", "content"),
        Source::User => (asked, "text", "text"),
        Source::Assistant => (answer, "text", "text"),
    };
    let blocks = message["content"].as_array()?;
    let at = blocks.iter().position(|block| {
        let is_long = block[field].as_str().is_some_and(|text| text.len() > 40);
        block["type"] == kind && is_long
    })?;
    Some((at, field))
}

/// A session with its facts, and who said each, in the order in which they are
/// needed.
fn session(seed: u64) -> (Session, Vec<Source>) {
    let mut rng = Rng::with_seed(seed);
    let messages = coding::session(seed, CYCLES, TOKENS);
    let mut session = Session::of(&format!("facts-{seed}"), &messages, Duration::from_secs(30));
    let requests = session.steps.len();
    let mut needed: Vec<(usize, Source, String)> = Vec::new();
    let sources = SAID
        .into_iter()
        .flat_map(|(it, many)| std::iter::repeat_n(it, many));
    for (number, source) in sources.enumerate() {
        let (value, line) = match source {
            Source::Tool | Source::User => fact(number, &mut rng),
            Source::Assistant => {
                let (value, _) = fact(0, &mut rng);
                let line = format!("I decided on {value} as the release to roll back to.");
                (value, line)
            }
        };
        let latest = requests - LATER.start() - 1;
        let start = rng.usize(1..requests / 2);
        let found = (start..latest).find_map(|request| {
            let step = &session.steps[request];
            let (at, field) = place(source, &step.asked, &step.answer)?;
            Some((request, at, field))
        });
        let (request, at, field) = found.unwrap();
        let step = &mut session.steps[request];
        let message = match source {
            Source::Assistant => &mut step.answer,
            Source::Tool | Source::User => &mut step.asked,
        };
        let text = message["content"][at][field].as_str().unwrap();
        // In the middle, where neither end of a long result protects it; what the
        // assistant decides it says first.
        let lines: Vec<&str> = text.lines().collect();
        let at_line = match source {
            Source::Tool | Source::User => lines.len() / 2,
            Source::Assistant => 0,
        };
        let (before, behind) = lines.split_at(at_line);
        let text = [before, &[line.as_str()], behind].concat().join("\n");
        message["content"][at][field] = json!(text);
        let most = (*LATER.end()).min(requests - 1 - request);
        let later = rng.usize(*LATER.start()..=most);
        needed.push((request + later, source, value));
    }
    needed.sort_by_key(|(at, ..)| *at);
    for (at, _, value) in &needed {
        let step = &mut session.steps[*at];
        step.asks.push(value.clone());
        let words = json!({"type": "text", "text": format!("For this I need {value}.")});
        let blocks = step.answer["content"].as_array_mut().unwrap();
        let calls = blocks.iter().position(|block| block["type"] == "tool_use");
        blocks.insert(calls.unwrap_or(blocks.len()), words);
    }
    let sources = needed.into_iter().map(|(_, source, _)| source);
    (session, sources.collect())
}

/// Who said each fact that is needed, and whether the view has it then.
fn play(seed: u64) -> (Vec<(Source, bool)>, usize) {
    let (session, sources) = session(seed);
    let settings = Settings::new("claude-opus-4-8", None, None, Sources::default()).unwrap();
    let stage = Stage {
        session: &session,
        settings: &settings,
        counter: Arc::new(Counter::new(1.0)),
        forced: &|_| false,
        progress: &|_| {},
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let run = runtime
        .block_on(stage.play(&Way::Through(Vec::new())))
        .unwrap();
    assert_eq!(run.refused, None);
    assert_eq!(run.asks.len(), sources.len());
    let passes = run.played.iter().filter(|it| !it.pass.is_empty()).count();
    (sources.into_iter().zip(run.asks).collect(), passes)
}

#[test]
fn what_was_said_and_most_of_what_tools_showed_is_in_view_when_it_is_needed() {
    let seeds: Vec<u64> = (0..SESSIONS).map(|at| 900 + at).collect();
    let told: Vec<(Vec<(Source, bool)>, usize)> = std::thread::scope(|scope| {
        let halves = seeds.chunks(seeds.len() / 2).map(|seeds| {
            let play_each = || seeds.iter().map(|seed| play(*seed)).collect::<Vec<_>>();
            scope.spawn(play_each)
        });
        let halves: Vec<_> = halves.collect();
        let done = halves.into_iter().map(|half| half.join().unwrap());
        done.flatten().collect()
    });
    let passes: usize = told.iter().map(|(_, passes)| passes).sum();
    assert!(passes as u64 >= SESSIONS, "{passes}");
    for (source, _) in SAID {
        let of_it = told.iter().flat_map(|(facts, _)| facts);
        let of_it: Vec<bool> = of_it
            .filter(|(by, _)| *by == source)
            .map(|it| it.1)
            .collect();
        let seen = of_it.iter().filter(|seen| **seen).count();
        let share = seen as f64 / of_it.len() as f64;
        println!(
            "{source:?}: {seen} of {} facts in view when they are needed ({:.0}%), {passes} passes",
            of_it.len(),
            share * 100.0
        );
        match source {
            Source::Tool => assert!(share >= LEAST_OF_TOOLS, "{seen} of {}", of_it.len()),
            Source::Assistant | Source::User => assert_eq!(seen, of_it.len(), "{source:?}"),
        }
    }
}
