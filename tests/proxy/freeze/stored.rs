//! Databases that a version has left behind: opened, read, and gone on with.
//!
//! The fixtures in `tests/freeze/stored` hold two sessions with views: one whose
//! results were cleared and whose turns were summed up by a model, one with
//! thinking and the API's own summary. They are never changed: a later version must
//! open them and send upstream what this one would have sent.

use std::io::{Read, Write};

use longhaul::sim::{Fault, Options, Queued, Reply, Target};
use serde_json::{Value, json};

use super::passes::{call, talk};
use super::pins;
use super::record::Record;
use super::rows::Place;
use super::stage::{BEGINNING, Stage};
use crate::cluster::{Cluster, execute, raw};
use crate::replicas::wait;
use crate::support::eventually;
use crate::views::agent::Agent;
use crate::views::cast::{BOUND, FREE, NOW};

const FILE: &str = "[window]\nbudget = 9000\n[policy]\nmax_segments = 2\n\
                    [tenant]\nby = \"credential\"\n[breaker]\nmax_failures = 1\n\
                    [summarizer]\nmode = \"auto\"\nparallel = 1\n";
/// The files of a folder.
const FILES: [&str; 2] = ["state.db", "journal.db"];

/// The agents, as they were when the proxy ended.
struct Agents {
    now: u64,
    agents: Vec<Agent>,
}

/// The first part of the sessions, each step of which is `waited` for where rows
/// must be the same each time.
fn begin(place: &Place, waited: bool) -> Agents {
    let mut record = Record::new("unused");
    let file = format!("{}{FILE}", place.setting());
    let mut stage = Stage::at(1, Options::default(), &file, place.folder(), BEGINNING);
    if waited {
        stage.wait_for(place.open());
    }
    let mut agents = vec![Agent::new(FREE), Agent::new(BOUND)];
    for agent in &mut agents {
        agent.headers = format!("x-claude-code-session-id: {}\r\n", agent.model);
        agent.user("Build it. Never touch files under legacy/.");
        for turn in 0..7 {
            call(&mut record, &mut stage, agent, 1_800);
            talk(&mut record, &mut stage, agent, 200);
            if turn == 3 {
                agent.user("Tidy up.");
                stage.ask(&mut record, 0, agent, Reply::text("Tidy."), NOW);
            }
        }
    }
    // One goes back and says something else.
    let mut fork = agents[0].clone();
    let length = fork.history.len();
    fork.history.truncate(length - 2);
    talk(&mut record, &mut stage, &mut fork, 50);
    agents.push(fork);
    // Nobody can sum up any more.
    stage.upstream.sim.queue_fault(Queued {
        fault: Fault::parse("529:0").unwrap(),
        target: Target::Summary,
        times: 20,
    });
    for _ in 0..3 {
        talk(&mut record, &mut stage, &mut agents[0], 900);
    }
    stage.settle();
    let now = stage.clock.now().as_millis();
    stage.stop();
    Agents { now, agents }
}

/// The second part.
fn go_on(record: &mut Record, place: &Place, agents: &Agents) {
    let file = format!("{}{FILE}", place.setting());
    let mut stage = Stage::at(1, Options::default(), &file, place.folder(), agents.now);
    for agent in &agents.agents {
        let mut agent = agent.clone();
        record.scene(&format!(
            "{} goes on, {} messages",
            agent.model,
            agent.history.len()
        ));
        for _ in 0..5 {
            call(record, &mut stage, &mut agent, 1_800);
            talk(record, &mut stage, &mut agent, 300);
        }
    }
}

#[test]
fn rows_in_files_are_as_they_were() {
    let place = Place::files();
    begin(&place, true);
    let store = place.open();
    let lines = store.lines();
    pins::check("rows.txt", &lines);
    // A copy notes beside the rows what it has done.
    let copy = Place::files();
    let copied = copy.open();
    store.copy_to(&copied);
    let copied = copied.lines();
    let is_new = |line: &&str| !lines.lines().any(|known| known == *line);
    let new: Vec<&str> = copied.lines().filter(is_new).collect();
    assert_eq!(copied.lines().count(), lines.lines().count() + new.len());
    pins::check("copied.txt", &(new.join("\n") + "\n"));
}

#[test]
fn rows_in_a_database_are_as_they_were() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let place = Place::database(wait(cluster.database()));
    begin(&place, true);
    pins::check("rows.txt", &place.open().lines());
}

#[test]
fn files_that_this_version_left_are_gone_on_with() {
    if pins::writes() && !pins::path("stored/state.db.zst").exists() {
        make_files();
    }
    let place = Place::files();
    std::fs::create_dir_all(place.data()).unwrap();
    for name in FILES {
        let file = unpack(&format!("stored/{name}.zst"));
        std::fs::write(place.data().join(name), file).unwrap();
    }
    let agents = agents("stored/files.json.zst");
    let mut record = Record::new("continued.txt");
    go_on(&mut record, &place, &agents);
    record.check();
}

#[test]
fn a_database_that_this_version_left_is_gone_on_with() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    if pins::writes() && !pins::path("stored/postgres.sql").exists() {
        make_dump(cluster);
    }
    let place = Place::database(wait(cluster.database()));
    let Place::Database(url, _) = &place else {
        unreachable!()
    };
    let sql = std::fs::read_to_string(pins::path("stored/postgres.sql")).unwrap();
    wait(async {
        let mut connection = raw(url).await;
        execute(&mut connection, &sql).await;
    });
    let agents = agents("stored/database.json.zst");
    let mut record = Record::new("continued.txt");
    go_on(&mut record, &place, &agents);
    record.check();
}

fn make_files() {
    let place = Place::files();
    let agents = begin(&place, false);
    eventually("the files are closed", || {
        FILES
            .iter()
            .all(|name| !place.data().join(format!("{name}-wal")).exists())
    });
    for name in FILES {
        let file = std::fs::read(place.data().join(name)).unwrap();
        pack(&format!("stored/{name}.zst"), &file);
    }
    keep(&agents, "stored/files.json.zst");
}

fn make_dump(cluster: &Cluster) {
    let place = Place::database(wait(cluster.database()));
    let agents = begin(&place, false);
    let Place::Database(url, _) = &place else {
        unreachable!()
    };
    let dump = cluster.dump(url.rsplit('/').next().unwrap());
    let line = |line: &&str| {
        let skipped = ["--", "\\", "SET ", "SELECT pg_catalog.set_config"];
        !line.is_empty() && !skipped.iter().any(|start| line.starts_with(start))
    };
    let lines: Vec<&str> = dump.lines().filter(line).collect();
    let path = pins::path("stored/postgres.sql");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
    keep(&agents, "stored/database.json.zst");
}

fn keep(agents: &Agents, name: &str) {
    let agent = |agent: &Agent| {
        json!({"model": agent.model, "headers": agent.headers, "history": agent.history,
               "fields": agent.fields})
    };
    let all: Vec<Value> = agents.agents.iter().map(agent).collect();
    let text = json!({"now": agents.now, "agents": all}).to_string();
    pack(name, text.as_bytes());
}

fn agents(name: &str) -> Agents {
    let kept: Value = serde_json::from_slice(&unpack(name)).unwrap();
    let agent = |kept: &Value| Agent {
        headers: kept["headers"].as_str().unwrap().to_owned(),
        history: kept["history"].as_array().unwrap().clone(),
        fields: kept["fields"].clone(),
        ..Agent::new(kept["model"].as_str().unwrap())
    };
    Agents {
        now: kept["now"].as_u64().unwrap(),
        agents: kept["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(agent)
            .collect(),
    }
}

fn pack(name: &str, content: &[u8]) {
    let path = pins::path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut encoder = zstd::Encoder::new(Vec::new(), 19).unwrap();
    encoder.write_all(content).unwrap();
    std::fs::write(path, encoder.finish().unwrap()).unwrap();
}

fn unpack(name: &str) -> Vec<u8> {
    let packed = std::fs::read(pins::path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut content = Vec::new();
    let mut decoder = zstd::Decoder::new(&*packed).unwrap();
    decoder.read_to_end(&mut content).unwrap();
    content
}
