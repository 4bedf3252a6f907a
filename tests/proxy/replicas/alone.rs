//! A session over three replicas is the session over one, byte for byte.

use std::time::{Duration, Instant};

use longhaul::sim::prices::Tokens;
use longhaul::sim::{Clock, Kind, Moment, Options, Reply};
use serde_json::json;

use super::wait;
use crate::cluster::{Cluster, number, raw};
use crate::support::{Proxy, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, compaction, figure, same};

/// Clears now and then, and a few summaries.
const FILE: &str = "[window]\nbudget = 10000\n[summarizer]\nmode = \"model\"\n";
const TURNS: usize = 36;

/// Marks whose reply has been noted to its end.
const NOTED: &str = "SELECT count(*) FROM longhaul.marks \
    WHERE position('\"output\":null' IN convert_from(figures, 'UTF8')) = 0";

/// What upstream saw of a session.
struct Played {
    bodies: Vec<Vec<u8>>,
    tokens: Vec<Tokens>,
    summaries: Vec<Vec<u8>>,
    passes: Vec<String>,
}

/// A session whose requests land where `pick` says.
struct Play {
    upstream: Simulated,
    proxies: Vec<Proxy>,
    clock: Clock,
    agent: Agent,
    url: String,
    passes: Vec<String>,
}

impl Play {
    fn set(replicas: usize) -> Option<Self> {
        let url = wait(Cluster::shared()?.database());
        let clock = Clock::frozen(Moment::at_millis(1_800_000_000_000));
        let upstream = Simulated::start(Options {
            clock: clock.clone(),
            ..Options::default()
        });
        let file = format!("store.url = {url:?}\n{FILE}");
        let folder = tempfile::tempdir().unwrap();
        let start = |_| {
            let to = upstream.sim.url();
            Proxy::keeping_time(&to, &file, folder.path(), clock.clone())
        };
        Some(Self {
            proxies: (0..replicas).map(start).collect(),
            agent: Agent::new(FREE),
            passes: Vec::new(),
            upstream,
            clock,
            url,
        })
    }

    /// Sends the history to one of them. Whoever comes next comes when the others
    /// have done what there was to do, as a person does.
    fn ask(&mut self, to: usize, reply: Reply) {
        self.clock.advance(Duration::from_secs(10));
        self.upstream.sim.push_reply(reply);
        let answer = self.agent.ask(&self.proxies[to], "");
        let (done, size) = (compaction(&answer), figure(&answer, "sent"));
        self.proxies.iter().for_each(Proxy::settle);
        let entries = self.upstream.entries();
        let summaries = entries.iter().filter(|entry| entry.kind == Kind::Summary);
        let asked = summaries.count();
        self.passes
            .push(format!("{done} at {size}, {asked} summaries"));
        let begun = Instant::now();
        let noted = async {
            let mut stranger = raw(&self.url).await;
            let expected = i64::try_from(self.passes.len()).unwrap();
            while number(&mut stranger, NOTED).await < expected {
                assert!(begun.elapsed() < Duration::from_secs(20));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        wait(noted);
    }

    fn play(mut self, mut pick: impl FnMut(usize) -> usize) -> Played {
        for turn in 0..TURNS {
            self.agent.user(&format!("Please do step {turn} now."));
            if turn % 4 == 1 {
                let call = json!({"type": "tool_use", "id": format!("toolu_{turn}"), "name": "Bash",
                    "input": {"command": format!("make {turn}")}});
                self.ask(pick(self.passes.len()), Reply::blocks(vec![call]));
                self.agent.results(3_000);
            }
            let reply = format!("Answer {turn}: I decided on plan {turn}. ");
            let reply = reply + &"It is the better one because of what was found. ".repeat(22);
            self.ask(pick(self.passes.len()), Reply::text(reply));
        }
        let entries = self.upstream.entries();
        let of = |kind: Kind| {
            let entries = entries.iter().filter(move |entry| entry.kind == kind);
            entries.inspect(|entry| assert!(entry.is_answered(), "{:?}", entry.outcome))
        };
        Played {
            bodies: of(Kind::Message)
                .map(|e| e.body.clone().unwrap().to_vec())
                .collect(),
            tokens: of(Kind::Message).map(|e| e.tokens).collect(),
            summaries: of(Kind::Summary)
                .map(|e| e.body.clone().unwrap().to_vec())
                .collect(),
            passes: self.passes,
        }
    }
}

#[test]
fn over_three_replicas_views_cache_hits_and_summaries_are_those_of_one() {
    let Some(one) = Play::set(1) else {
        return;
    };
    let one = one.play(|_| 0);
    assert!(one.summaries.len() > 1, "{:?}", one.passes);
    assert!(one.passes.iter().any(|pass| pass.contains("summary")));
    let mut random = fastrand::Rng::with_seed(5);
    let orders: [(&str, &mut dyn FnMut(usize) -> usize); 2] = [
        ("round robin", &mut |request| request % 3),
        ("at random", &mut |_| random.usize(..3)),
    ];
    for (order, pick) in orders {
        let three = Play::set(3).unwrap().play(pick);
        for (at, (done, expected)) in three.passes.iter().zip(&one.passes).enumerate() {
            assert_eq!(done, expected, "{order}, request {at}: {:?}", three.passes);
        }
        for (at, (sent, expected)) in three.bodies.iter().zip(&one.bodies).enumerate() {
            same(sent, expected, &format!("{order}, request {at}"));
        }
        assert_eq!(three.tokens, one.tokens, "{order}");
        assert_eq!(three.summaries.len(), one.summaries.len(), "{order}");
        assert!(three.summaries == one.summaries, "{order}");
    }
}
