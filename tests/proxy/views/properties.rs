//! Invariants 1 to 5, 9 and 10 over generated conversations.
//!
//! Each case is a client of a random kind before a proxy with random limits that
//! talks, asks for passes, repeats itself, goes back, forks, and finds the proxy
//! restarted. `LONGHAUL_CASES` makes more cases, `LONGHAUL_TEST_SEED` others.

use fastrand::Rng;
use longhaul::sim::{Enforcement, Options};

use super::generate::{self, Oddities};
use super::talk::Talk;
use super::world::World;

/// How many cases of each kind.
pub fn cases(usual: usize) -> usize {
    let said = std::env::var("LONGHAUL_CASES").ok();
    said.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

pub fn first_seed() -> u64 {
    let said = std::env::var("LONGHAUL_TEST_SEED").ok();
    said.and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// Names the case that was being tried when a test failed.
pub struct Named(pub String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed in {}", self.0);
        }
    }
}

/// A small world for this model.
fn world(rng: &mut Rng, odd: Oddities) -> World {
    let options = Options {
        enforcement: [Enforcement::Enforced, Enforcement::Recorded][rng.usize(0..2)],
        split_results: odd.split,
        extra_block_types: vec!["hologram".to_owned()],
        ..Options::default()
    };
    let file = format!(
        "window.budget = {}\npolicy.tail_messages = {}\nclear.enabled = {}\nclear.keep_tool_uses = {}\n",
        [1000, 1500, 3000, 100_000][rng.usize(0..4)],
        rng.usize(1..10),
        rng.u8(0..3) > 0,
        rng.usize(0..4),
    );
    World::start(options, &(file + style(rng)))
}

/// Either style, with few turns that stay; what was drawn before stays so.
pub fn style(rng: &Rng) -> &'static str {
    match rng.clone().usize(0..4) {
        0 => "policy.style = \"journal\"\njournal.live_turns = 1\n",
        1 => "policy.style = \"journal\"\njournal.live_turns = 3\n",
        _ => "",
    }
}

fn oddities(rng: &mut Rng, model: &str) -> Oddities {
    Oddities {
        system: !model.contains("4-5") && rng.bool(),
        split: rng.bool(),
        holograms: rng.bool(),
    }
}

/// One more exchange of a talk.
fn step(rng: &mut Rng, world: &mut World, talk: &mut Talk, odd: Oddities) {
    generate::user(rng, talk, odd);
    let wish = if rng.u8(0..4) == 0 { "now" } else { "" };
    match rng.u8(0..8) {
        0 => {
            // The answer is lost on the way, and the client tries again.
            let lost = generate::reply(rng, talk, odd);
            world.send(talk, lost, wish);
            if rng.bool() {
                world.restart();
            }
        }
        1 => world.restart(),
        _ => {}
    }
    let reply = generate::reply(rng, talk, odd);
    world.ask(talk, reply, wish);
}

fn case(seed: u64, model: &str, steps: usize) -> (usize, usize) {
    let _named = Named(format!("case {seed} of {model}"));
    let mut rng = Rng::with_seed(seed);
    let odd = oddities(&mut rng, model);
    let mut world = world(&mut rng, odd);
    let mut talks = vec![generate::talk(&mut rng, 0, model)];
    for _ in 0..steps {
        let chosen = rng.usize(0..talks.len());
        if rng.u8(0..10) == 0 && talks.len() < 3 && talks[chosen].messages.len() > 4 {
            let mut fork = talks[chosen].clone();
            fork.number = talks.len();
            if rng.bool() {
                let at = rng.usize(2..fork.messages.len());
                fork.rewind(at);
            }
            talks.push(fork);
        }
        let talk = &mut talks[chosen];
        if rng.u8(0..12) == 0 && talk.messages.len() > 4 {
            let at = rng.usize(2..talk.messages.len());
            talk.rewind(at);
        }
        step(&mut rng, &mut world, talk, odd);
    }
    (world.requests, world.passes)
}

/// Every view is taken, stable and explained.
fn holds_for(model: &str) {
    let cases = cases(5);
    let (mut requests, mut passes) = (0, 0);
    for seed in first_seed()..first_seed() + cases as u64 {
        let done = case(seed, model, 24);
        requests += done.0;
        passes += done.1;
    }
    println!("{model}: {cases} cases, {requests} requests, {passes} passes");
    assert!(passes > 0, "{model}");
}

#[test]
fn views_hold_where_thinking_is_bound_to_what_stands_before_it() {
    holds_for("claude-opus-5-5");
}

#[test]
fn views_hold_where_thinking_stands_alone() {
    holds_for("claude-opus-4-8");
}

#[test]
fn views_hold_where_thinking_has_a_budget() {
    holds_for("claude-opus-4-5");
}

#[test]
fn views_hold_where_the_api_forgets_earlier_thinking() {
    holds_for("claude-sonnet-4-5");
}
