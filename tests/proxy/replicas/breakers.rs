//! A summarizer that is down is found out by one replica for all of them.

use longhaul::sim::{Kind, Options, Persona};
use serde_json::json;

use super::wait;
use crate::cluster::Cluster;
use crate::support::{Client, Process, eventually, simulated::Simulated, text};
use crate::views::agent::Agent;
use crate::views::cast::FREE;

/// How many breakers of summarizers are open at a replica.
fn open(replica: &Process) -> Option<u32> {
    let ask = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = Client::connect(replica.address).send(ask).answer();
    let series = "longhaul_breaker_state{scope=\"summarizer\",state=\"open\"} ";
    let text = text(&answer.body);
    let line = text.lines().find_map(|line| line.strip_prefix(series))?;
    line.parse().ok()
}

/// A history that is too long for what a view may have.
fn too_long(name: &str) -> Agent {
    let mut agent = Agent::new(FREE);
    agent.fields["system"] = json!("Be brief.");
    for number in 0..12 {
        agent.user(&format!("{name}: please do step {number} now."));
        let reply = format!("Answer {number}: I decided on plan {number}. ");
        let reply = reply + &"It is the better one because of what was found. ".repeat(25);
        let reply = json!([{"type": "text", "text": reply}]);
        agent
            .history
            .push(json!({"role": "assistant", "content": reply}));
    }
    agent.user("And now?");
    agent
}

#[test]
fn a_summarizer_that_one_replica_found_down_is_asked_by_no_other() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = wait(cluster.database());
    let upstream = Simulated::start(Options::default());
    let variables = [
        ("LONGHAUL_STORE__URL", url.as_str()),
        ("LONGHAUL_STORE__TIMEOUT", "20s"),
        ("LONGHAUL_LOG__LEVEL", "error"),
        ("LONGHAUL_WINDOW__BUDGET", "3000"),
        ("LONGHAUL_SUMMARIZER__MODE", "model"),
        ("LONGHAUL_SUMMARIZER__TIMEOUT", "1s"),
        ("LONGHAUL_SUMMARIZER__DEADLINE", "200ms"),
        ("LONGHAUL_BREAKER__MAX_FAILURES", "1"),
        ("LONGHAUL_BREAKER__SUMMARIZER_COOLDOWN", "1h"),
    ];
    let replicas = [(); 2].map(|()| Process::start(&upstream.sim.url(), &variables));
    let asked = || {
        let entries = upstream.entries();
        let summaries = entries.iter().filter(|entry| entry.kind == Kind::Summary);
        summaries.count()
    };
    let post = |agent: &Agent, replica: &Process| {
        assert_eq!(
            agent.post(replica.address, "/v1/messages", "").status(),
            200
        );
    };
    upstream.sim.set_persona(Persona::Overloaded);
    post(&too_long("One"), &replicas[0]);
    // The summarizer's model, and the one to fall back on.
    eventually("the breakers open", || open(&replicas[0]) == Some(2));
    assert_eq!(open(&replicas[1]), Some(0));
    upstream.sim.set_persona(Persona::Good);
    let before = asked();
    post(&too_long("Another"), &replicas[1]);
    eventually("the other has heard of it", || {
        open(&replicas[1]) == Some(2)
    });
    assert_eq!(asked(), before, "nobody is asked");
    // Nor by one that starts later.
    let third = Process::start(&upstream.sim.url(), &variables);
    post(&too_long("A third"), &third);
    eventually("the third has heard of it", || open(&third) == Some(2));
    assert_eq!(asked(), before, "nobody is asked");
}
