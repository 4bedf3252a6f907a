//! One seed: a world, those who live in it, and the judgement.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::agent::Agent;
use crate::invariants::{Judge, Tally};
use crate::plan::Plan;
use crate::recalled;
use crate::story::story;
use crate::world::World;

/// Lives through a seed; what was seen, and what is wrong.
pub fn live(seed: u64) -> (Tally, Vec<String>) {
    let plan = Plan::draw(seed);
    let panics = panics();
    let before = panics.load(Ordering::SeqCst);
    let world = World::start(&plan);
    let mut wrong = Vec::new();
    let agents: Vec<Agent> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.agents)
            .map(|number| {
                let (plan, world) = (&plan, &world);
                scope.spawn(move || {
                    let mut agent = Agent::new(plan, number);
                    let stuck = agent.work(world, plan.steps).err();
                    (agent, stuck)
                })
            })
            .collect();
        let done = workers.into_iter().map(|worker| worker.join().unwrap());
        done.map(|(agent, stuck)| {
            wrong.extend(stuck);
            agent
        })
        .collect()
    });
    world.calm();
    let entries = world.entries();
    let mut judge = Judge::new(&world, &entries);
    judge.wrong = wrong;
    judge.learn(&agents);
    for agent in &agents {
        judge.agent(agent);
    }
    judge.summaries(&entries);
    judge.files(world.folder());
    let (references, lost) = recalled::check(&world, &agents, &entries);
    judge.tally.references = references;
    for (number, (tag, mut told)) in lost.into_iter().enumerate() {
        let first = agents.iter().filter(|_| number == 0);
        for agent in first {
            if let Some(attempt) = agent.log.iter().find(|held| held.tag == tag) {
                told.push_str(&story(&judge, agent, attempt));
            }
        }
        judge.wrong.push(told);
    }
    let (tally, mut wrong) = (judge.tally, judge.wrong);
    if panics.load(Ordering::SeqCst) > before {
        wrong.push("a worker panicked".to_owned());
    }
    if let Some(first) = wrong.first_mut() {
        *first = format!("{plan:?}\n{first}");
    }
    (tally, wrong)
}

/// How often a thread of a proxy has panicked.
fn panics() -> &'static Arc<AtomicUsize> {
    static PANICS: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    PANICS.get_or_init(|| {
        let panics = Arc::new(AtomicUsize::new(0));
        let (count, usual) = (panics.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            let name = std::thread::current().name().map(str::to_owned);
            if name.is_some_and(|name| name.starts_with("worker-")) {
                count.fetch_add(1, Ordering::SeqCst);
            }
            usual(info);
        }));
        panics
    })
}
