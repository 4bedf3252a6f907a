//! What is told of each turn, whether or not anything was ever left out.

use std::sync::Arc;

use longhaul::engine::conversation::Conversation;
use longhaul::engine::facts::{FactKind, facts};
use longhaul::engine::ids::LineageId;
use longhaul::engine::recall::entry::{EntryKind, Text};
use longhaul::metrics::Metrics;
use longhaul::recall::{Recall, Who};
use longhaul::sim::{Options, Reply};
use longhaul::store::journal::{EntryRow, Listing, scope_of_session};
use longhaul::store::{Store, sqlite};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

use super::promised::promises;
use super::stock::wait;
use crate::support::{Proxy, eventually, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, session, shown};

/// A proxy on files, and what is beside it.
struct Scene {
    upstream: Simulated,
    folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    proxy: Proxy,
}

fn open(folder: &std::path::Path) -> Arc<dyn Store> {
    let patience = std::time::Duration::from_secs(20);
    wait(sqlite::open(&folder.join("data"), patience)).store
}

impl Scene {
    fn new() -> Self {
        let upstream = Simulated::start(Options::default());
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let proxy = Proxy::on(store.clone(), &upstream.sim.url(), "", None);
        Self {
            upstream,
            folder,
            store,
            proxy,
        }
    }

    fn restart(&mut self) {
        self.proxy.join();
        self.store = open(self.folder.path());
        self.proxy = Proxy::on(self.store.clone(), &self.upstream.sim.url(), "", None);
    }

    fn recall(&self) -> Recall {
        Recall::new(self.store.clone(), Arc::new(Metrics::new().unwrap()))
    }

    /// Every fact that is told of a session.
    fn told(&self, session: &str) -> Vec<EntryRow> {
        let id = LineageId::from_text(session).unwrap();
        let journal = self.store.journal();
        let listing = Listing {
            kinds: FactKind::ALL.into_iter().map(EntryKind::Fact).collect(),
            before: None,
            limit: 10_000,
        };
        wait(async {
            let Some(branch) = journal.branch(id).await.unwrap() else {
                return Vec::new();
            };
            let scope = scope_of_session(journal, branch.id).await.unwrap();
            journal.list(&scope, &listing).await.unwrap()
        })
    }

    /// Waits until what is told is what a history says, each thing once.
    #[track_caller]
    fn assert_told(&self, session: &str, history: &[Value]) {
        let expected = all(history);
        let now = || {
            let mut told: Vec<_> = self.told(session).iter().map(line).collect();
            told.sort();
            told
        };
        let told = || now() == expected;
        let begun = std::time::Instant::now();
        while !told() {
            if begun.elapsed() > std::time::Duration::from_secs(5) {
                let now = now();
                let missing: Vec<_> = expected.iter().filter(|one| !now.contains(one)).collect();
                panic!(
                    "{} told instead of {}; missing: {missing:#?}; told: {now:#?}",
                    now.len(),
                    expected.len()
                );
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// A call that is asked for, and its result.
    fn call(
        &self,
        agent: &mut Agent,
        said: &str,
        call: (&str, Value),
        result: &str,
        failed: bool,
    ) -> String {
        let (name, input) = call;
        let number = agent.history.len();
        let block = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input});
        let text = json!({"type": "text", "text": said});
        self.upstream
            .sim
            .push_reply(Reply::blocks(vec![text, block]));
        let answer = agent.ask(&self.proxy, "");
        let last = agent.history.last().unwrap()["content"].as_array().unwrap();
        let id = last
            .iter()
            .find(|block| block["type"] == "tool_use")
            .unwrap()["id"]
            .clone();
        agent.history.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}]}));
        session(&answer)
    }

    /// A turn that touches, runs, fails, decides and plans; `word` tells one
    /// from another. What was sent, and as which session.
    fn turn(&self, agent: &mut Agent, word: &str) -> (String, Vec<Value>) {
        agent.user(&format!(
            "Do the part {word}. Never touch config/{word}.yml."
        ));
        let read = ("Read", json!({"file_path": format!("src/{word}.rs")}));
        self.call(
            agent,
            "I look at it.",
            read,
            &format!("fn {word}() {{}}\n").repeat(150),
            false,
        );
        let write = (
            "Write",
            json!({"file_path": format!("src/{word}_new.rs"), "content": "x"}),
        );
        let decided = format!("I decided to use a token bucket for {word} instead of a leaky one.");
        self.call(agent, &decided, write, "File created successfully", false);
        let run = ("Bash", json!({"command": format!("cargo test {word}")}));
        self.call(
            agent,
            "Now the tests.",
            run,
            &format!("error[E0308]: mismatched types in {word}"),
            true,
        );
        let plan = json!({"todos": [
            {"content": format!("Mend {word}"), "status": "in_progress", "activeForm": "Mending"},
            {"content": format!("Test {word} again"), "status": "pending", "activeForm": "Testing"}]});
        self.call(
            agent,
            "I write the plan down.",
            ("TodoWrite", plan),
            "Todos have been modified",
            false,
        );
        self.upstream
            .sim
            .push_reply(Reply::text(format!("Done with {word}.")));
        let sent = agent.history.clone();
        let answer = agent.ask(&self.proxy, "");
        (session(&answer), sent)
    }
}

type Line = (u32, u32, &'static str, String, String);

fn line(row: &EntryRow) -> Line {
    let entry = &row.entry;
    let text = match &entry.text {
        Text::Inline(text) => text.clone(),
        Text::Content { .. } => String::new(),
    };
    (
        entry.message,
        entry.block,
        entry.kind.name(),
        entry.path.clone(),
        text,
    )
}

/// All facts of a history.
fn all(history: &[Value]) -> Vec<Line> {
    let bytes = json!({"model": "m", "messages": history}).to_string();
    let body = Body::split(bytes.as_bytes()).unwrap();
    let conversation = Conversation::new(bytes.as_bytes(), &body);
    let found = facts(&conversation, 0, conversation.len());
    let mut lines: Vec<Line> = found
        .into_iter()
        .map(|fact| {
            let path = fact.path.unwrap_or_default();
            (fact.message, fact.block, fact.kind.name(), path, fact.text)
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn each_turn_is_told_of_although_nothing_is_left_out() {
    let scene = Scene::new();
    let mut agent = Agent::new(FREE);
    for word in ["parser", "lexer", "printer"] {
        let (id, sent) = scene.turn(&mut agent, word);
        scene.assert_told(&id, &sent);
        let id = LineageId::from_text(&id).unwrap();
        let status = wait(scene.recall().status(Who::Session(id))).unwrap();
        let status = format!("{status:?}");
        for part in [
            format!("src/{word}.rs"),
            format!("src/{word}_new.rs"),
            format!("mismatched types in {word}"),
            format!("Mend {word}"),
        ] {
            assert!(status.contains(&part), "{part}: {status}");
        }
        let kinds: Vec<&str> = all(&sent).iter().map(|line| line.2).collect();
        for kind in [
            "file_read",
            "file_written",
            "command",
            "error",
            "decision",
            "constraint",
        ] {
            assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
        }
    }
    let view = shown(&scene.upstream);
    assert!(promises(&view).is_empty(), "nothing was left out");
}

#[test]
fn after_a_restart_nothing_is_told_twice_and_nothing_is_missing() {
    let mut scene = Scene::new();
    let mut agent = Agent::new(FREE);
    let (first, _) = scene.turn(&mut agent, "parser");
    for word in ["lexer", "printer", "reader"] {
        scene.restart();
        let (id, sent) = scene.turn(&mut agent, word);
        assert_eq!(id, first);
        scene.assert_told(&id, &sent);
    }
    // In the middle of a turn, and with a view that leaves something out.
    agent.user("Look at one more.");
    let read = ("Read", json!({"file_path": "src/more.rs"}));
    scene.call(
        &mut agent,
        "I look.",
        read,
        &"fn more() {}\n".repeat(400),
        false,
    );
    scene.restart();
    scene.upstream.sim.push_reply(Reply::text("Seen."));
    let sent = agent.history.clone();
    agent.ask(&scene.proxy, NOW);
    scene.assert_told(&first, &sent);
}

/// Two conversations go on from one place, turn by turn.
fn forked(scene: &mut Scene, restarts: bool) {
    let mut one = Agent::new(FREE);
    let (_, _) = scene.turn(&mut one, "common");
    let mut other = one.clone();
    let mut ids = [String::new(), String::new()];
    let mut sent = [Vec::new(), Vec::new()];
    for round in 0..3 {
        let sides = [(&mut one, "alpha"), (&mut other, "omega")];
        for (side, (agent, word)) in sides.into_iter().enumerate() {
            (ids[side], sent[side]) = scene.turn(agent, &format!("{word}{round}"));
            if restarts {
                scene.restart();
            }
        }
    }
    assert_ne!(ids[0], ids[1]);
    for side in 0..2 {
        scene.assert_told(&ids[side], &sent[side]);
    }
    let recall = scene.recall();
    let words = [("alpha", "omega"), ("omega", "alpha")];
    for ((agent, (own, foreign)), id) in [one, other].iter_mut().zip(words).zip(&ids) {
        scene.upstream.sim.push_reply(Reply::text("Yes."));
        agent.user("Go on.");
        agent.ask(&scene.proxy, NOW);
        let made = promises(&shown(&scene.upstream));
        assert!(!made.is_empty());
        for (reference, what) in made {
            let ask = |query: &str| {
                let asked = recall.recall(Who::Reference(reference), query, 20);
                wait(asked).unwrap().text()
            };
            // What both have is a way into both; what one has into that alone.
            let common = wait(recall.containing(Who::Reference(reference)))
                .unwrap()
                .len();
            let foreign_found = ask(&format!("what of {foreign}0 {foreign}1 {foreign}2"));
            if common == 1 {
                assert!(
                    !foreign_found.contains(&format!("{foreign}1")),
                    "{what:?}: {foreign_found}"
                );
            }
            eventually("its own is found", || {
                ask(&format!("{own}1")).contains(&format!("{own}1"))
            });
        }
        // From the session itself, whatever references it shows.
        let who = Who::Session(LineageId::from_text(id).unwrap());
        let found = wait(recall.recall(who, &format!("{foreign}1 token bucket"), 20)).unwrap();
        assert!(!found.text().contains(&format!("{foreign}1")));
    }
}

#[test]
fn forks_have_branches_of_their_own() {
    forked(&mut Scene::new(), false);
}

#[test]
fn forks_have_branches_of_their_own_although_the_proxy_forgets() {
    forked(&mut Scene::new(), true);
}

/// What was kept is not taken for kept any more.
#[test]
fn a_session_that_goes_on_after_it_was_forgotten_is_put_away_anew() {
    let scene = Scene::new();
    let mut agent = Agent::new(FREE);
    let (id, _) = scene.turn(&mut agent, "parser");
    scene.turn(&mut agent, "lexer");
    let now = |agent: &mut Agent| {
        scene.upstream.sim.push_reply(Reply::text("Yes."));
        agent.user("Go on.");
        let sent = json!(agent.history.clone());
        agent.ask(&scene.proxy, NOW);
        (sent, promises(&shown(&scene.upstream)))
    };
    let (_, old) = now(&mut agent);
    assert!(!old.is_empty());
    let (recall, id) = (scene.recall(), LineageId::from_text(&id).unwrap());
    wait(recall.forget(id)).unwrap();
    scene.turn(&mut agent, "printer");
    scene.turn(&mut agent, "reader");
    let (sent, made) = now(&mut agent);
    let new: Vec<_> = made.iter().filter(|one| !old.contains(one)).collect();
    assert!(!new.is_empty());
    for (reference, what) in new {
        let told = wait(recall.expand(Who::Reference(*reference), 1));
        assert!(told.is_ok(), "{what:?}: {told:?}");
    }
    let exported = wait(recall.export(id, None)).unwrap();
    assert_eq!(exported.messages, sent.as_array().unwrap().len());
}

/// As Claude Code does after idling. What was told of it before is found where
/// the session is now.
#[test]
fn a_session_whose_history_the_client_edits_stays_in_its_branch() {
    for restarts in [false, true] {
        let mut scene = Scene::new();
        let mut agent = Agent::new(FREE).saying("x-claude-code-session-id: one\r\n");
        agent.turn(&scene.upstream, &scene.proxy, 4);
        agent.turn(&scene.upstream, &scene.proxy, 3);
        let name = session(&agent.chat(&scene.upstream, &scene.proxy, NOW));
        agent.chat(&scene.upstream, &scene.proxy, "");
        if restarts {
            scene.restart();
        }
        let result = |message: &&mut Value| message["content"][0]["type"] == "tool_result";
        let old = agent.history.iter_mut().find(result).unwrap();
        old["content"][0]["content"] = json!("[Old tool result content cleared]");
        for wish in ["", NOW, ""] {
            let answer = agent.chat(&scene.upstream, &scene.proxy, wish);
            assert_eq!(session(&answer), name);
        }
        // What waits to be told is told at the end of a process.
        scene.restart();
        let branches = wait(scene.store.journal().branches(None, 9)).unwrap();
        let names: Vec<String> = branches
            .iter()
            .map(|branch| branch.id.to_string())
            .collect();
        assert_eq!(names, [name], "restarts: {restarts}");
    }
}
