//! Nothing is ever gone: what views leave out comes back, byte for byte, and is
//! found.
//!
//! Recordings of real agents, where there are any, made-up ones that ship with the
//! project, and generated sessions are played in both styles,
//! with budgets so small that every tier has to give. Then everything is asked
//! back: each history as of each pass, each reference that any view showed, and
//! facts that only the journal still has. A usual run plays a few short
//! sessions; `LONGHAUL_JOURNAL=all` every one to its end, and any other value
//! those with it in their name.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use longhaul::sim::{Kind, Persona};
use serde_json::{Value, json};

use super::lost::{Score, ask, facts};
use super::player::{History, Player, alone};
use super::promised::promises;
use super::returned::Books;
use crate::economy::session::{self, Session};

/// Facts that are asked for in all.
const FACTS: usize = 200;
/// The share of what a session grows to that its views may take, and the least.
const BUDGET: (u64, u64) = (3, 12_000);
/// Turns that the journal style keeps: recordings have few.
const JOURNAL: &str = "[policy]\nstyle = \"journal\"\n[journal]\nlive_turns = 3\n";
const COMPACT: &str = "[summarizer]\nmode = \"model\"\n";
const MODELS: [&str; 2] = ["claude-opus-4-8", "claude-opus-5-5"];

/// What became of a session in one style.
struct Outcome {
    session: String,
    style: &'static str,
    /// Undisturbed: else with forks, restarts and a failing summarizer.
    calm: bool,
    requests: usize,
    kinds: Vec<String>,
    promised: usize,
    exports: usize,
    wrong: Vec<String>,
    /// Micro-dollars, without a proxy and with.
    cost: [u64; 2],
    /// Tokens of the last request, without a proxy and with.
    last: [u64; 2],
    /// Bytes of the messages that the last view does not show.
    hidden: usize,
    summaries: usize,
    scores: [Score; 2],
    missed: Vec<String>,
}

fn part() -> Option<String> {
    std::env::var("LONGHAUL_JOURNAL").ok()
}

fn selection() -> Vec<Session> {
    let Some(part) = part() else {
        let mut few = session::recorded(&["codex-agentv-198k", "cc-entire-113k"], 48);
        few.truncate(2);
        // Always, so that with and without recordings every tier has to give.
        few.extend(session::shipped(48).into_iter().take(1));
        few.push(session::wordy(51, 36, 45_000));
        return few;
    };
    let mut all = session::recorded(&[], usize::MAX);
    all.extend(session::all_generated());
    all.push(session::wordy(52, 200, 160_000));
    all.retain(|session| part == "all" || session.name.contains(&part));
    all
}

/// Everything that was played, once for all tests.
fn outcomes() -> &'static [Outcome] {
    static PLAYED: OnceLock<Vec<Outcome>> = OnceLock::new();
    PLAYED.get_or_init(|| {
        let sessions = selection();
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let each = FACTS.div_ceil(sessions.len().max(1));
        let work = || {
            while let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                let begun = Instant::now();
                let played = all_of(session, MODELS[session.name.len() % 2], each);
                let time = begun.elapsed().as_secs();
                println!("{}: played and asked back in {time} s", session.name);
                outcomes.lock().unwrap().extend(played);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
        let mut outcomes = outcomes.into_inner().unwrap();
        outcomes
            .sort_by(|one, other| (&one.session, one.style).cmp(&(&other.session, other.style)));
        outcomes
    })
}

fn all_of(session: &Session, model: &str, each: usize) -> Vec<Outcome> {
    let none = alone(model, session);
    let budget = (none.1 / BUDGET.0).max(BUDGET.1);
    let mut outcomes = Vec::new();
    for (style, file) in [("compact", COMPACT), ("journal", JOURNAL)] {
        let file = format!("[window]\nbudget = {budget}\n{file}");
        outcomes.push(calm(session, model, style, &file, none, each));
        outcomes.push(rough(session, model, style, &file));
    }
    outcomes
}

fn outcome(session: &Session, style: &'static str, player: &Player, books: Books) -> Outcome {
    let summaries = player.upstream.entries().into_iter();
    Outcome {
        session: session.name.clone(),
        style,
        calm: false,
        requests: player.talks().len(),
        kinds: player
            .passes
            .iter()
            .map(|pass| pass.kinds.clone())
            .collect(),
        promised: books.promised.len(),
        exports: books.exports,
        wrong: books.wrong,
        cost: [0; 2],
        last: [0; 2],
        hidden: 0,
        summaries: summaries
            .filter(|entry| entry.kind == Kind::Summary)
            .count(),
        scores: [Score::default(); 2],
        missed: Vec::new(),
    }
}

/// From the first request to the last, as it was recorded.
fn calm(
    session: &Session,
    model: &str,
    style: &'static str,
    file: &str,
    none: (u64, u64),
    each: usize,
) -> Outcome {
    let mut player = Player::start(model, session, file);
    let mut history = History::default();
    let mut books = Books::default();
    let mut view: Vec<Value> = Vec::new();
    for step in &session.steps {
        player.clock.advance(step.pause);
        view = player.ask(&mut history, &step.asked, &step.answer);
        books.note(&view, 0);
    }
    let cost = player.cost();
    let last = player.talks().last().unwrap().tokens.prompt();
    // What is found follows in the background, and is there when it has ended.
    player.restart();
    let whole = history.messages();
    books.settle(&player, std::slice::from_ref(&whole));
    let asked = &whole[..whole.len() - 1];
    let chosen = facts(asked, &view, each);
    let from = promises(&view).pop();
    let (scores, missed) = match from {
        Some((from, _)) => ask(&player, from, &chosen, asked),
        None => ([Score::default(); 2], Vec::new()),
    };
    let size = |messages: &[Value]| json!(messages).to_string().len();
    Outcome {
        calm: true,
        cost: [none.0, cost],
        last: [none.1, last],
        hidden: size(asked).saturating_sub(size(&view)),
        scores,
        missed,
        ..outcome(session, style, &player, books)
    }
}

/// The same with what may come in between: the proxy is started again twice,
/// others go on from places in the middle, and for a while nobody can sum up.
fn rough(session: &Session, model: &str, style: &'static str, file: &str) -> Outcome {
    let mut player = Player::start(model, session, file);
    let mut history = History::default();
    let mut books = Books::default();
    let count = session.steps.len();
    let mut forks: Vec<(usize, History)> = Vec::new();
    let mut gone: Vec<Vec<Value>> = Vec::new();
    for (at, step) in session.steps.iter().enumerate() {
        player.clock.advance(step.pause);
        let thirds = at * 3 / count;
        player.persona(if thirds == 1 {
            Persona::Forgetful
        } else {
            Persona::Good
        });
        if at > 0 && at * 3 / count > (at - 1) * 3 / count {
            player.restart();
        }
        // One leaves while the proxy knows the place, one just after a restart.
        if at == count * 5 / 12 || at == (count * 2).div_ceil(3) {
            forks.push((at, history.clone()));
        }
        let view = player.ask(&mut history, &step.asked, &step.answer);
        books.note(&view, 0);
        for (number, (left, fork)) in forks.iter_mut().enumerate() {
            // Elsewhere the same work goes on in other words.
            if at >= *left + count / 6 {
                continue;
            }
            let name = format!("fork{number}");
            // The first results belong to calls that both have made.
            let before = if at == *left { "" } else { &name };
            let said = |text: String| json!({"type": "text", "text": text});
            let mut other = renamed(&step.asked, before);
            let words = said(format!("Another way in {name}, step {at}."));
            other["content"].as_array_mut().unwrap().push(words);
            let mut answer = renamed(&step.answer, &name);
            let blocks = answer["content"].as_array_mut().unwrap();
            blocks.push(said(format!("So be it in {name} at step {at}.")));
            blocks.sort_by_key(|block| block["type"] == "tool_use");
            let view = player.ask(fork, &other, &answer);
            books.note(&view, number + 1);
        }
    }
    player.restart();
    gone.push(history.messages());
    gone.extend(forks.iter().map(|(_, fork)| fork.messages()));
    books.settle(&player, &gone);
    outcome(session, style, &player, books)
}

/// A message whose calls have other names.
fn renamed(message: &Value, suffix: &str) -> Value {
    let mut message = message.clone();
    for block in message["content"].as_array_mut().unwrap() {
        for name in ["id", "tool_use_id"] {
            if let Some(id) = block[name].as_str() {
                block[name] = json!(format!("{id}{suffix}"));
            } else if let Some(object) = block.as_object_mut() {
                object.shift_remove(name);
            }
        }
    }
    message
}

fn all_kinds(outcomes: &[Outcome], style: &str) -> Vec<String> {
    let of_it = outcomes.iter().filter(|one| one.style == style);
    let kinds = of_it
        .flat_map(|one| &one.kinds)
        .flat_map(|kinds| kinds.split('+'));
    let mut kinds: Vec<String> = kinds.map(str::to_owned).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Invariant 6, and what it is for.
#[test]
fn every_byte_that_a_view_hides_comes_back_as_it_was() {
    let outcomes = outcomes();
    let sum = |of: &dyn Fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    println!(
        "asked back: {} sessions played in {} ways, {} requests, {} passes exported, {} references expanded, {} wrong",
        outcomes.len() / 4,
        outcomes.len(),
        sum(&|one| one.requests),
        sum(&|one| one.exports),
        sum(&|one| one.promised),
        sum(&|one| one.wrong.len()),
    );
    for style in ["compact", "journal"] {
        println!(
            "asked back: {style}: {}",
            all_kinds(outcomes, style).join(", ")
        );
    }
    let wrong: Vec<String> = outcomes
        .iter()
        .flat_map(|one| {
            let way = if one.calm { "calm" } else { "rough" };
            let told = move |why: &String| format!("{}, {}, {way}: {why}", one.session, one.style);
            one.wrong.iter().take(8).map(told)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (style, kinds) in [
        ("compact", &["clear", "trim", "summary", "truncate"][..]),
        ("journal", &["clear", "journal"]),
    ] {
        let seen = all_kinds(outcomes, style);
        for kind in kinds {
            assert!(seen.iter().any(|seen| seen == kind), "{style}: no {kind}");
        }
    }
}

#[test]
fn facts_that_only_the_journal_has_are_among_the_first_five() {
    let mut table = "\n### Facts found again\n\n| session | style | by name | first | in five \
        | by words beside it | first | in five |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut all = [[Score::default(); 2]; 2];
    for one in outcomes().iter().filter(|one| one.calm) {
        table.push_str(&format!("  {}", row(&one.session, one.style, one.scores)));
        let sums = &mut all[usize::from(one.style == "journal")];
        for (sum, score) in sums.iter_mut().zip(one.scores) {
            sum.add(score);
        }
        for missed in &one.missed {
            table.push_str(&format!("  not found: {missed}\n"));
        }
    }
    for (style, scores) in ["compact", "journal"].into_iter().zip(all) {
        table.push_str(&row("all", style, scores));
    }
    println!("{table}");
    for [named, _] in all {
        assert!(named.asked >= FACTS / 4, "{} facts", named.asked);
        assert!(named.percent() >= 95, "{named:?}");
    }
}

fn row(session: &str, style: &str, [named, beside]: [Score; 2]) -> String {
    format!(
        "| {session} | {style} | {} | {} | {} ({}%) | {} | {} | {} ({}%) |\n",
        named.asked,
        named.first,
        named.found,
        named.percent(),
        beside.asked,
        beside.first,
        beside.found,
        beside.percent()
    )
}

/// A line of the table of both styles, for one session or the sum of several.
#[allow(clippy::cast_precision_loss)]
fn line(name: &str, style: &str, all: &[&Outcome]) -> String {
    let sum = |of: &dyn Fn(&Outcome) -> u64| all.iter().map(|one| of(one)).sum::<u64>();
    let (without, with) = (sum(&|one| one.cost[0]), sum(&|one| one.cost[1]));
    let mut score = Score::default();
    for one in all {
        score.add(one.scores[0]);
    }
    format!(
        "| {name} | {style} | {} | {:.3} | {:.3} | {} | {} | {} | {} | {} | {}% |\n",
        all.len(),
        with as f64 / 1e6,
        with as f64 / without.max(1) as f64,
        sum(&|one| one.last[1]),
        sum(&|one| one.last[0]),
        sum(&|one| one.hidden as u64),
        sum(&|one| one.kinds.len() as u64),
        sum(&|one| one.summaries as u64),
        score.percent(),
    )
}

#[test]
fn both_styles_bring_sessions_to_their_end() {
    let mut table = "\n### Both styles\n\n| session | style | completed | dollars | to none \
        | tokens at the end | without | bytes left out | passes | summaries | found in five |\n\
        |---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let calm = || outcomes().iter().filter(|one| one.calm);
    for one in calm() {
        table.push_str(&format!("  {}", line(&one.session, one.style, &[one])));
    }
    for style in ["compact", "journal"] {
        let of_it: Vec<&Outcome> = calm().filter(|one| one.style == style).collect();
        table.push_str(&line("all", style, &of_it));
        let passes: usize = of_it.iter().map(|one| one.kinds.len()).sum();
        assert!(passes > 0, "{style}");
    }
    println!("{table}");
    let mut journal = outcomes().iter().filter(|one| one.style == "journal");
    assert!(journal.all(|one| one.summaries == 0));
}
