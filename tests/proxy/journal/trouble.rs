//! The journal cannot be written: requests go on, nothing is left out that is
//! not recorded as long as that can be helped, and nothing false is promised.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use longhaul::sim::{Options, Reply};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::runtime::Runtime;

use super::lost::call;
use super::promised::{promises, references};
use crate::support::process::{NOBODY, is_root};
use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Process, eventually};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compaction, figure, shown};

/// Tokens of the window, so that a session outgrows it in some dozen cycles.
const WINDOW: u64 = 16_000;
/// What counts a journal that cannot be written.
const COUNT: &str = "longhaul_fail_open_total{stage=\"journal\"} ";

/// What counts views that leave out what is not recorded.
const UNRECORDED: &str = "longhaul_unrecorded_total ";

/// An agent before a proxy of its own process.
struct Scene {
    upstream: Simulated,
    process: Option<Process>,
    agent: Agent,
}

/// What the proxy is told by its environment.
fn variables(data: &Path) -> Vec<(&'static str, String)> {
    let models = format!("{{ \"{FREE}\" = {{ window = {WINDOW} }} }}");
    vec![
        ("LONGHAUL_DATA_DIR", data.display().to_string()),
        ("LONGHAUL_MODELS", models),
        ("LONGHAUL_STORE__TIMEOUT", "300ms".to_owned()),
        ("LONGHAUL_SUMMARIZER__MODE", "off".to_owned()),
        ("LONGHAUL_LOG__LEVEL", "info".to_owned()),
    ]
}

impl Scene {
    fn new(start: impl Fn(&str, &[(&str, &str)]) -> Process, data: &Path) -> Self {
        let upstream = Simulated::start(Options::default().with_window(FREE, WINDOW));
        let variables = variables(data);
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let process = start(&upstream.sim.url(), &variables);
        let mut agent = Agent::new(FREE);
        agent.user("Build it. Never touch files under legacy/.");
        Self {
            upstream,
            process: Some(process),
            agent,
        }
    }

    fn process(&self) -> &Process {
        self.process.as_ref().unwrap()
    }

    /// One tool call, asked for and answered.
    fn cycle(&mut self, wish: &str) -> Answer {
        let number = self.agent.history.len();
        let command = json!({"command": format!("make target_{number}")});
        self.upstream.sim.push_reply(Reply::call("Bash", &command));
        let address = self.process().address;
        let answer = self.agent.post(address, "/v1/messages", wish);
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status(), 200, "{reply}");
        let content = &reply["content"];
        self.agent
            .history
            .push(json!({"role": "assistant", "content": content}));
        self.agent.results(2_400);
        answer
    }

    fn metric(&self, series: &str) -> f64 {
        let answer = Client::connect(self.process().address)
            .send("GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .answer();
        let text = String::from_utf8(answer.body).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0.0, |number| number.trim().parse().unwrap())
    }

    /// The references that the newest view shows: all lead to something.
    fn promised(&self) -> usize {
        let made = promises(&shown(&self.upstream));
        for (reference, _) in &made {
            let asked = json!({"ref": format!("lh-{reference}")});
            let told = call(self.process().address, "expand", &asked);
            assert!(told.contains("of output"), "{told}");
        }
        made.len()
    }

    /// Ends the process; what it had to say.
    fn logs(&mut self) -> String {
        let process = self.process.take().unwrap();
        process.signal("-TERM");
        process.wait().1
    }

    /// Works on while the journal cannot be written: whatever is wished, nothing
    /// is left out unrecorded as long as there is room, and then there is a view
    /// that fits. It lasts where `state` can be written, else it is made anew for
    /// each request.
    fn works_in_trouble(&mut self, state: bool) {
        let (mut before, mut promised) = (0, self.promised());
        let (mut unrecorded, mut said) = (0, self.metric(UNRECORDED));
        for number in 0..30 {
            let wish = if number % 4 == 1 { NOW } else { "" };
            let answer = self.cycle(wish);
            let size = figure(&answer, "sent");
            assert!(size <= WINDOW, "it does not fit");
            let now = self.promised();
            if compaction(&answer) != "none" && now <= promised {
                unrecorded += 1;
                let whole = figure(&answer, "original");
                let full = if state { before } else { whole } * 100 / WINDOW;
                assert!(full >= 75, "a pass at {full}% of the window");
                let notice = answer.header("x-longhaul-notice");
                assert_eq!(notice, Some("unrecorded"), "nobody says it");
                said += 1.0;
            }
            (before, promised) = (size, now);
        }
        assert!(unrecorded > 0, "there was always room");
        assert!(self.metric(COUNT) > 0.0, "nobody counts it");
        assert!(self.metric(UNRECORDED) >= said, "not all are counted");
    }

    /// The journal can be written again, and is.
    fn recovers(&mut self) {
        eventually("it is written again", || {
            let answer = self.cycle(NOW);
            compaction(&answer) != "none" && self.promised() > 0
        });
        let view = Value::from(shown(&self.upstream)).to_string();
        let reference = format!("lh-{}", references(&view).pop().unwrap());
        let address = self.process().address;
        let told = call(address, "expand", &json!({"ref": reference}));
        assert!(told.contains("of output"), "{told}");
        // What was told of turns in between was kept until it could be written.
        let last = self.agent.history.len() - 6;
        eventually("the turns in between are told", || {
            let asked = json!({"ref": reference, "query": format!("make target_{last}")});
            call(address, "recall", &asked).contains(&format!("make target_{last}"))
        });
    }
}

fn database(data: &Path) -> PathBuf {
    data.join("journal.db")
}

/// Holds the lock of a database, as another process does.
struct Locked {
    runtime: Runtime,
    connection: Option<SqliteConnection>,
}

impl Locked {
    fn new(file: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let connection = runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(file);
            let mut connection = options.connect().await.unwrap();
            let begin = sqlx::query("BEGIN EXCLUSIVE");
            begin.execute(&mut connection).await.unwrap();
            connection
        });
        Self {
            runtime,
            connection: Some(connection),
        }
    }

    fn release(mut self) {
        let connection = self.connection.take().unwrap();
        self.runtime.block_on(connection.close()).unwrap();
    }
}

#[test]
fn a_locked_journal_costs_no_request_and_nothing_unrecorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(Process::start, folder.path());
    for _ in 0..7 {
        scene.cycle("");
    }
    let locked = Locked::new(&database(folder.path()));
    scene.works_in_trouble(true);
    locked.release();
    scene.recovers();
    let logs = scene.logs();
    for line in [
        "what turns decided, touched and failed at is not being recorded",
        "nothing is left out unrecorded, and the journal cannot be written",
        "what it leaves out is not recorded and cannot be recalled",
        "the journal is written again",
    ] {
        assert!(logs.contains(line), "{line}: {logs}");
    }
}

/// What a pass must leave out is recorded if the journal is only busy: the
/// request waits for it.
#[test]
fn a_pass_that_cannot_be_done_without_waits_for_a_busy_journal() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(Process::start, folder.path());
    for _ in 0..3 {
        scene.cycle("");
    }
    // Past the window: the next request cannot be sent as it is.
    for number in 0..8 {
        let call = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash",
            "input": {"command": format!("make all_{number}")}});
        let history = &mut scene.agent.history;
        history.push(json!({"role": "assistant", "content": [call]}));
        scene.agent.results(8_000);
    }
    let errors = "longhaul_store_errors_total{op=\"archive\"} ";
    let before = scene.metric(errors);
    let locked = Locked::new(&database(folder.path()));
    let (agent, address) = (scene.agent.clone(), scene.process().address);
    let asking = std::thread::spawn(move || agent.post(address, "/v1/messages", ""));
    eventually("the journal is busy", || scene.metric(errors) > before);
    locked.release();
    let answer = asking.join().unwrap();
    assert_eq!(answer.status(), 200);
    assert_ne!(compaction(&answer), "none");
    assert_eq!(answer.header("x-longhaul-notice"), None);
    assert!(scene.promised() > 0, "what it left out can be recalled");
    assert!(scene.metric(UNRECORDED) < 1.0);
}

/// No file may grow, as if every disk were full.
fn full(process: &Process, is_full: bool) {
    let id = i32::try_from(process.id()).unwrap();
    let mut limits = (0, 0);
    let resource = rlimit::Resource::FSIZE;
    rlimit::prlimit(id, resource, None, Some((&mut limits.0, &mut limits.1))).unwrap();
    let soft = if is_full { 1 } else { limits.1 };
    rlimit::prlimit(id, resource, Some((soft, limits.1)), None).unwrap();
}

fn warns(logs: &str) {
    for line in ["is not being recorded", "the journal is written again"] {
        assert!(logs.contains(line), "{line}: {logs}");
    }
}

#[test]
fn a_disk_that_is_full_costs_no_request_and_nothing_unrecorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(Process::on_a_small_disk, folder.path());
    for _ in 0..7 {
        scene.cycle("");
    }
    full(scene.process(), true);
    scene.works_in_trouble(false);
    full(scene.process(), false);
    scene.recovers();
    warns(&scene.logs());
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
fn a_file_system_without_room_costs_no_request_and_nothing_unrecorded() {
    let Some(disk) = Disk::of(8) else {
        println!("no file system can be mounted here: nothing to do");
        return;
    };
    let mut scene = Scene::new(Process::start, &disk.0.path().join("data"));
    for _ in 0..7 {
        scene.cycle("");
    }
    disk.fill();
    scene.works_in_trouble(false);
    std::fs::remove_file(disk.filler()).unwrap();
    scene.recovers();
    warns(&scene.logs());
}

#[test]
fn in_a_read_only_folder_the_journal_is_kept_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    std::fs::set_permissions(&data, Permissions::from_mode(0o500)).unwrap();
    let mut scene = Scene::new(Process::as_nobody, &data);
    for _ in 0..7 {
        scene.cycle("");
    }
    scene.recovers();
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
    let logs = scene.logs();
    assert!(logs.contains("journal.db cannot be used"), "{logs}");
}
