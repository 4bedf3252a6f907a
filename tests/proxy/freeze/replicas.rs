//! A session whose requests land on two replicas that share a store.
//!
//! A replica writes a part of what it knows without haste. Here the next request
//! waits for that: a question of no importance is sent after each, and what is
//! written of it is written behind everything before it.

use longhaul::sim::{Options, Reply};
use serde_json::json;

use super::record::Record;
use super::rows::{Place, Reader};
use super::stage::{BEGINNING, Stage};
use crate::cluster::Cluster;
use crate::replicas::wait;
use crate::support::{Answer, eventually};
use crate::views::agent::Agent;
use crate::views::cast::{BOUND, FREE, NOW, session};
use crate::views::wishes::{HERE, order};

#[test]
fn a_session_on_two_replicas_with_files_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    plays("replicas-files.txt", &Place::Folder(folder));
}

#[test]
fn a_session_on_two_replicas_with_a_database_is_as_it_was() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let place = Place::database(wait(cluster.database()));
    plays("replicas-database.txt", &place);
}

fn plays(name: &str, place: &Place) {
    let mut record = Record::new(name);
    let mut probes = 0;
    for model in [FREE, BOUND] {
        record.scene(&format!("two replicas, {model}"));
        let more = "[window]\nbudget = 9000\n[summarizer]\nmode = \"model\"\nparallel = 1\n";
        let file = format!("{}{more}", place.setting());
        let stage = Stage::at(2, Options::default(), &file, place.folder(), BEGINNING);
        let store = place.open();
        let mut replicas = Replicas {
            stage,
            store,
            probes,
        };
        replicas.lands_on_both(&mut record, model);
        probes = replicas.probes;
    }
    record.check();
}

/// Replicas, and the store that they share.
struct Replicas {
    stage: Stage,
    store: Reader,
    /// Questions of no importance so far.
    probes: usize,
}

impl Replicas {
    /// Sends a history to a replica, and waits until all that came of it is written.
    fn ask(
        &mut self,
        record: &mut Record,
        at: usize,
        agent: &mut Agent,
        reply: Reply,
        wish: &str,
    ) -> Answer {
        let answer = self.stage.ask(record, at, agent, reply, wish);
        self.probes += 1;
        let mut probe = Agent::new("claude-haiku-4-5");
        probe.user(&format!("Probe {}.", self.probes));
        let before = self.store.marks_of(&probe.model);
        self.stage.upstream.sim.push_reply(Reply::text("Yes."));
        self.stage.send_unrecorded(at, &probe);
        let is_written = || self.store.marks_of(&probe.model) > before;
        eventually("the probe is written", is_written);
        answer
    }

    fn lands_on_both(&mut self, record: &mut Record, model: &str) {
        let mut agent = Agent::new(model);
        agent.headers = "x-claude-code-session-id: one\r\n".to_owned();
        agent.user("Build it. Never touch files under legacy/.");
        for turn in 0..13 {
            let path = format!("src/part_{turn}.rs");
            let reply = Reply::call("Read", &json!({"file_path": path}));
            let reply = reply.after_thinking("I think of it. ");
            self.ask(record, turn % 2, &mut agent, reply, "");
            agent.results(1_200);
            let words = "It is the better one because of what was found. ".repeat(60);
            let at = (turn + turn / 4) % 2;
            let wish = if turn == 6 { NOW } else { "" };
            let answer = self.ask(record, at, &mut agent, Reply::text(words), wish);
            if turn == 8 {
                // One replica is told, whichever gets the next request.
                let noted = order(&self.stage.proxies[at], &session(&answer), HERE, "");
                record.note(&format!("ordered at {at}: {}", noted.status()));
            }
            if turn == 10 {
                self.stage.restart();
            }
            agent.user(&format!("Go on with step {turn}."));
        }
        self.fork(record, &agent);
    }

    /// The client goes back and says something else.
    fn fork(&mut self, record: &mut Record, agent: &Agent) {
        let mut fork = agent.clone();
        let length = fork.history.len();
        fork.history.truncate(length - 5);
        for at in 0..2 {
            fork.user("Another way, please.");
            self.ask(record, at, &mut fork, Reply::text("Another way."), "");
        }
    }
}
