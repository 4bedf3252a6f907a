//! A session whose requests land on two replicas that share a store.

use longhaul::sim::{Options, Reply};
use serde_json::json;

use super::record::Record;
use super::rows::Place;
use super::stage::{BEGINNING, Stage};
use crate::cluster::Cluster;
use crate::replicas::wait;
use crate::views::agent::Agent;
use crate::views::cast::{BOUND, FREE, NOW, session};
use crate::views::wishes::{HERE, order};

#[test]
fn a_session_on_two_replicas_with_files_is_as_it_was() {
    plays("replicas-files.txt", &Place::files());
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
    for model in [FREE, BOUND] {
        record.scene(&format!("two replicas, {model}"));
        let more = "[window]\nbudget = 9000\n[summarizer]\nmode = \"model\"\nparallel = 1\n";
        let file = format!("{}{more}", place.setting());
        let mut stage = Stage::at(2, Options::default(), &file, place.folder(), BEGINNING);
        stage.wait_for(place.open());
        lands_on_both(&mut record, &mut stage, model);
    }
    record.check();
}

fn lands_on_both(record: &mut Record, stage: &mut Stage, model: &str) {
    let mut agent = Agent::new(model);
    "x-claude-code-session-id: one\r\n".clone_into(&mut agent.headers);
    agent.user("Build it. Never touch files under legacy/.");
    agent.user("Begin.");
    for turn in 0..13 {
        let path = format!("src/part_{turn}.rs");
        let reply = Reply::call("Read", &json!({"file_path": path}));
        let reply = reply.after_thinking("I think of it. ");
        stage.ask(record, turn % 2, &mut agent, reply, "");
        agent.results(1_200);
        let words = "It is the better one because of what was found. ".repeat(60);
        let at = (turn + turn / 4) % 2;
        let wish = if turn == 6 { NOW } else { "" };
        let answer = stage.ask(record, at, &mut agent, Reply::text(words), wish);
        if turn == 8 {
            // One replica is told, whichever gets the next request.
            let noted = order(&stage.proxies[at], &session(&answer), HERE, "");
            record.note(&format!("ordered at {at}: {}", noted.status()));
        }
        if turn == 10 {
            stage.restart();
        }
        agent.user(&format!("Go on with step {turn}."));
    }
    fork(record, stage, &agent);
}

/// The client goes back and says something else.
fn fork(record: &mut Record, stage: &mut Stage, agent: &Agent) {
    let mut fork = agent.clone();
    let length = fork.history.len();
    fork.history.truncate(length - 5);
    for at in 0..2 {
        fork.user("Another way, please.");
        stage.ask(record, at, &mut fork, Reply::text("Another way."), "");
    }
}
