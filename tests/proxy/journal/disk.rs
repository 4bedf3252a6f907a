//! The disk under a running proxy is full, or its data folder is gone: the
//! session goes on from memory as if nothing had happened, whoever asks is told
//! so, and when the files can be written again they have everything.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};

use super::lost::call;
use super::promised::promises;
use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Process};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction, continues, figure, session, shown};

/// Tokens of the window, so that a session outgrows it in some dozen cycles.
const WINDOW: u64 = 16_000;
/// Cycles while nothing can be written: enough for several passes.
const CYCLES: usize = 40;

/// An agent before a proxy of its own process.
struct Scene {
    upstream: Simulated,
    process: Option<Process>,
    agent: Agent,
    store: &'static str,
    data: PathBuf,
    /// What upstream saw before the last request.
    before: Vec<Value>,
    /// References to what went with a folder.
    deleted: Vec<String>,
}

/// What some requests came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Course {
    passes: usize,
    /// Requests that did not begin with what the one before had sent.
    breaks: usize,
    /// Of these, those in which there was no pass.
    unexplained: usize,
}

impl Scene {
    fn new(data: &Path, store: &'static str) -> Self {
        let upstream = Simulated::start(Options::default().with_window(FREE, WINDOW));
        let mut agent = Agent::new(FREE);
        agent.user("Build it. Never touch files under legacy/.");
        let mut scene = Self {
            upstream,
            process: None,
            agent,
            store,
            data: data.to_owned(),
            before: Vec::new(),
            deleted: Vec::new(),
        };
        scene.start();
        scene
    }

    fn start(&mut self) {
        let models = format!("{{ \"{FREE}\" = {{ window = {WINDOW} }} }}");
        let data = self.data.display().to_string();
        let variables = [
            ("LONGHAUL_DATA_DIR", data.as_str()),
            ("LONGHAUL_STORE__URL", self.store),
            ("LONGHAUL_MODELS", &models),
            ("LONGHAUL_SUMMARIZER__MODE", "off"),
            ("LONGHAUL_LOG__LEVEL", "info"),
        ];
        let process = Process::on_a_small_disk(&self.upstream.sim.url(), &variables);
        self.process = Some(process);
    }

    fn process(&self) -> &Process {
        self.process.as_ref().unwrap()
    }

    /// Ends the process; what it had to say.
    fn stop(&mut self) -> String {
        let process = self.process.take().unwrap();
        process.signal("-TERM");
        process.wait().1
    }

    /// One tool call, asked for and answered.
    fn cycle(&mut self, headers: &str) -> Answer {
        let number = self.agent.history.len();
        let command = json!({"command": format!("make target_{number}")});
        self.upstream.sim.push_reply(Reply::call("Bash", &command));
        let address = self.process().address;
        let answer = self.agent.post(address, "/v1/messages", headers);
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status(), 200, "{reply}");
        let content = &reply["content"];
        self.agent
            .history
            .push(json!({"role": "assistant", "content": content}));
        self.agent.results(2_400);
        answer
    }

    /// Works on without a wish, and looks at every view.
    fn works(&mut self, cycles: usize) -> Course {
        let mut course = Course::default();
        for _ in 0..cycles {
            let answer = self.cycle("");
            let size = figure(&answer, "sent");
            assert!(size <= WINDOW, "{size} tokens do not fit into {WINDOW}");
            let now = shown(&self.upstream);
            let broken = !continues(&now, &self.before);
            let passed = compaction(&answer) != "none";
            course.passes += usize::from(passed);
            course.breaks += usize::from(broken);
            course.unexplained += usize::from(broken && !passed);
            self.before = now;
        }
        course
    }

    fn get(&self, path: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = Client::connect(self.process().address).send(&head).answer();
        assert_eq!(answer.status(), 200, "it serves, so it is ready");
        String::from_utf8(answer.body).unwrap()
    }

    /// What is said of the store: in the answer about readiness, and in the
    /// metric.
    fn store(&self) -> (String, bool) {
        let ready: Value = serde_json::from_str(&self.get("/readyz")).unwrap();
        let metrics = self.get("/metrics");
        let up = metrics.lines().any(|line| line == "longhaul_store_up 1");
        (ready["store"].as_str().unwrap().to_owned(), up)
    }

    fn is(&self, state: &str, up: bool) -> bool {
        self.store() == (state.to_owned(), up)
    }

    /// The references in the newest view.
    fn references(&self) -> Vec<String> {
        let made = promises(&shown(&self.upstream)).into_iter();
        made.map(|(reference, _)| reference.to_string()).collect()
    }

    /// Every reference in the newest view leads to what it stands for, except
    /// those whose content was deleted.
    fn recalls_everything(&self) {
        let mut made = self.references();
        made.retain(|reference| !self.deleted.contains(reference));
        assert!(!made.is_empty(), "nothing was left out");
        for reference in &made {
            let asked = json!({"ref": format!("lh-{reference}")});
            let told = call(self.process().address, "expand", &asked);
            assert!(told.contains("of output"), "{told}");
        }
    }

    /// A session before anything is wrong: it has an overlay.
    fn begins(&mut self) {
        for _ in 0..7 {
            self.cycle("");
        }
        assert_ne!(compaction(&self.cycle(NOW)), "none");
        self.before = shown(&self.upstream);
        assert!(self.store == "memory" || self.is("ready", true));
    }

    /// The process ends and another one takes up the session: it sends what was
    /// sent before, and only adds to it.
    fn goes_on_after_a_restart(&mut self) -> String {
        let of = session(&self.cycle(""));
        self.before = shown(&self.upstream);
        let logs = self.stop();
        self.start();
        let answer = self.cycle("");
        assert_eq!(session(&answer), of);
        assert_eq!(compaction(&answer), "none");
        let now = shown(&self.upstream);
        assert!(continues(&now, &self.before), "the prefix breaks");
        self.recalls_everything();
        logs
    }
}

/// Waits for something that takes seconds, and on a busy machine many.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(2), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count(logs: &str, line: &str) -> usize {
    logs.lines().filter(|logged| logged.contains(line)).count()
}

/// The store goes away and comes back once, and both is said once.
fn says_so_once(logs: &str) {
    assert_eq!(count(logs, "the store is away"), 1, "{logs}");
    assert_eq!(count(logs, "the store is back"), 1, "{logs}");
    assert!(count(logs, "figures are not written yet") <= 1, "{logs}");
    let unrecorded = "what it leaves out is not recorded";
    assert_eq!(count(logs, unrecorded), 0, "{logs}");
}

/// How the same session goes where nothing is ever written.
fn in_memory() -> Course {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(folder.path(), "memory");
    scene.begins();
    scene.works(CYCLES)
}

/// Nothing can be written from `fill` to `free`.
fn a_full_disk(data: &Path, fill: impl Fn(&Process), free: impl Fn(&Process)) {
    let mut scene = Scene::new(data, "sqlite");
    scene.begins();
    fill(scene.process());
    let course = scene.works(CYCLES);
    let memory = in_memory();
    assert!(course.passes > 0, "there was always room");
    assert_eq!(course.unexplained, 0, "{course:?}");
    assert!(course.breaks <= memory.breaks, "{course:?}, {memory:?}");
    assert!(scene.is("away", false), "{:?}", scene.store());
    scene.recalls_everything();
    // Somebody who was not there before is served as well.
    let elsewhere = scene.agent.clone();
    scene.agent = Agent::new(FREE);
    scene.agent.user("Something else.");
    scene.before.clear();
    assert_eq!(scene.works(3).breaks, 0);
    scene.agent = elsewhere;

    free(scene.process());
    until("the store is used again", || scene.is("ready", true));
    says_so_once(&scene.goes_on_after_a_restart());
}

/// No file may grow, as if every disk were full.
fn limit_files(process: &Process, is_full: bool) {
    let id = i32::try_from(process.id()).unwrap();
    let mut limits = (0, 0);
    let resource = rlimit::Resource::FSIZE;
    rlimit::prlimit(id, resource, None, Some((&mut limits.0, &mut limits.1))).unwrap();
    let soft = if is_full { 1 } else { limits.1 };
    rlimit::prlimit(id, resource, Some((soft, limits.1)), None).unwrap();
}

#[test]
fn while_no_file_can_grow_a_session_goes_on_and_afterwards_it_is_all_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (fill, free) = (
        |process: &Process| limit_files(process, true),
        |process: &Process| limit_files(process, false),
    );
    a_full_disk(folder.path(), fill, free);
}

/// A small file system, where one can be had; goes with this.
struct Disk(tempfile::TempDir);

impl Disk {
    fn of(megabytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        let mounted = mounted.is_ok_and(|done| done.status.success());
        mounted.then(|| Self(folder))
    }

    fn filler(&self) -> PathBuf {
        self.0.path().join("filler")
    }

    fn fill(&self) {
        // It ends when nothing more fits.
        let _ = std::fs::write(self.filler(), vec![0; 64 << 20]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn while_a_file_system_is_full_a_session_goes_on_and_afterwards_it_is_all_stored() {
    let Some(disk) = Disk::of(12) else {
        println!("no file system can be mounted here: the limit on files stands in for it");
        return;
    };
    let data = disk.0.path().join("data");
    let free = |_: &Process| std::fs::remove_file(disk.filler()).unwrap();
    a_full_disk(&data, |_| disk.fill(), free);
}

#[test]
fn a_data_folder_that_was_deleted_is_made_anew_and_has_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut scene = Scene::new(&data, "sqlite");
    scene.begins();
    scene.deleted = scene.references();
    std::fs::remove_dir_all(&data).unwrap();
    // Nobody asks for anything, and it is noticed all the same.
    until("it is made anew", || data.join("state.db").exists());
    until("it is used", || scene.is("ready", true));
    assert_eq!(scene.works(3).breaks, 0);
    assert_ne!(compaction(&scene.cycle(NOW)), "none");
    says_so_once(&scene.goes_on_after_a_restart());
}

/// The process ends before the session has sent anything to the new files.
#[test]
fn a_session_that_rests_while_its_folder_is_deleted_is_in_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut scene = Scene::new(&data, "sqlite");
    scene.begins();
    std::fs::remove_dir_all(&data).unwrap();
    until("it is made anew", || data.join("state.db").exists());
    until("it is used", || scene.is("ready", true));
    scene.stop();
    scene.start();
    assert_eq!(scene.works(1).breaks, 0);
}

#[test]
fn while_something_else_is_where_the_data_folder_was_a_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut scene = Scene::new(&data, "sqlite");
    scene.begins();
    scene.deleted = scene.references();
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::write(&data, "in the way").unwrap();
    let course = scene.works(CYCLES);
    assert!(course.passes > 0, "there was always room");
    assert_eq!(course.unexplained, 0, "{course:?}");
    assert!(scene.is("away", false), "{:?}", scene.store());
    std::fs::remove_file(&data).unwrap();
    until("the store is used again", || scene.is("ready", true));
    says_so_once(&scene.goes_on_after_a_restart());
}
