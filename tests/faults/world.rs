//! The world of an episode: a simulated API, one or two proxies, a network on
//! either side of them, and the troubles that befall them.
//!
//! Troubles happen in the thread of whoever is about to send the request for
//! which they are planned, while the requests of all others are on their way.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use longhaul::clock::Clock;
use longhaul::sim::tokens::Counter;
use longhaul::sim::{Enforcement, Entry, Options, Rule, Running, Sim};
use longhaul::store::{Memory, Store, sqlite};
use tokio::runtime::Runtime;

use crate::moments::{Moments, Trouble};
use crate::mortal::{Mortal, Spoiler, State};
use crate::plan::{Event, Home, Plan, WINDOW};
use crate::relay::{Door, Relay};
use crate::support::http::Message;
use crate::support::{Process, Proxy};

/// The file in which a proxy in a process of its own logs.
pub const LOG: &str = "log";

/// One counter for all simulators: what one has counted, the others need not.
fn counter() -> Arc<Counter> {
    static COUNTER: OnceLock<Arc<Counter>> = OnceLock::new();
    COUNTER.get_or_init(|| Arc::new(Counter::new(1.0))).clone()
}

pub struct World {
    plan: Plan,
    sim: Running,
    front: Relay,
    back: Relay,
    /// Where clients connect.
    pub address: SocketAddr,
    _entrance: Door,
    pub moments: Arc<Moments>,
    clock: Clock,
    stage: Mutex<Stage>,
    requests: AtomicUsize,
    runtime: Runtime,
    folder: tempfile::TempDir,
}

/// What changes.
struct Stage {
    proxies: Vec<Living>,
    /// Proxies that are dead or have ended, until the world ends.
    gone: Vec<Proxy>,
    /// What a proxy in this process stands on.
    store: Option<Arc<dyn Store>>,
    /// Planned events that have happened.
    done: usize,
    /// Troubles that last, with the request before which they end.
    lasting: Vec<(usize, End)>,
}

enum Living {
    Inside(Proxy, Spoiler, Door),
    Outside(
        Process,
        #[allow(dead_code, reason = "it is open as long as it is there")] Door,
    ),
}

/// How a trouble ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Store(usize),
    Disk(usize),
    Away(usize),
}

impl Living {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Inside(proxy, ..) => proxy.address,
            Self::Outside(process, _) => process.address,
        }
    }
}

impl World {
    pub fn start(plan: &Plan) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mut options = Options {
            window: Some(WINDOW),
            ..Options::default()
        };
        if plan.mode != "on" {
            // Nobody keeps these histories small.
            options.window = None;
        }
        if !plan.enforced {
            options.enforcement = Enforcement::Recorded;
        }
        let sim = Sim::counting(options, counter());
        let sim = runtime.block_on(sim.run()).unwrap();
        sim.set_rule(Rule::CallTool {
            name: None,
            input: None,
            times: 2 + plan.seed % 4,
            parallel: 1 + plan.seed % 3,
            words: 12,
            finish: None,
        });
        let moments = Arc::new(Moments::default());
        let relay = |seed: u64| {
            Relay::start(
                runtime.handle(),
                plan.seed ^ seed,
                plan.weather,
                moments.clone(),
            )
        };
        let (front, back) = (relay(1 << 32), relay(2 << 32));
        let entrance = front.open();
        back.lead_to(vec![sim.address()]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("longhaul.toml"), &plan.file).unwrap();
        let world = Self {
            plan: plan.clone(),
            sim,
            front,
            back,
            address: entrance.address,
            _entrance: entrance,
            moments,
            clock: Clock::default(),
            stage: Mutex::new(Stage {
                proxies: Vec::new(),
                gone: Vec::new(),
                store: None,
                done: 0,
                lasting: Vec::new(),
            }),
            requests: AtomicUsize::new(0),
            runtime,
            folder,
        };
        world.people(&mut world.stage.lock().unwrap());
        world
    }

    /// Where a proxy itself listens.
    pub fn proxy(&self) -> SocketAddr {
        self.stage.lock().unwrap().proxies[0].address()
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Everything that upstream was asked.
    pub fn entries(&self) -> Vec<Entry> {
        self.sim.ledger().entries
    }

    /// What upstream answered on the wire, by the tag of the request.
    pub fn answers(&self) -> HashMap<String, Vec<Message>> {
        self.back.answers()
    }

    /// How many proxies there are side by side.
    pub fn replicas(&self) -> usize {
        self.plan.replicas
    }

    /// Whether no pass may be made.
    pub fn is_quiet(&self) -> bool {
        self.plan.mode != "on"
    }

    /// Puts proxies where there are none.
    fn people(&self, stage: &mut Stage) {
        for _ in stage.proxies.len()..self.plan.replicas {
            let door = self.back.open();
            let url = format!("http://{}", door.address);
            let living = match self.plan.home {
                Home::Process => Living::Outside(self.process(&url), door),
                Home::Memory | Home::Files => self.inside(stage, &url, door),
            };
            stage.proxies.push(living);
        }
        let addresses = stage.proxies.iter().map(Living::address).collect();
        self.front.lead_to(addresses);
    }

    fn inside(&self, stage: &mut Stage, url: &str, door: Door) -> Living {
        let store = stage.store.get_or_insert_with(|| match self.plan.home {
            Home::Files => {
                let folder = self.folder.path().join("data");
                let opened = sqlite::open(&folder, Duration::from_secs(5));
                self.runtime.block_on(opened).store
            }
            Home::Memory | Home::Process => Arc::new(Memory::new()),
        });
        let spoiler = Spoiler::default();
        let mortal = Arc::new(Mortal::new(store.clone(), &spoiler));
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let clock = self.clock.clone();
        let proxy = Proxy::on_time(mortal, url, &self.plan.file, folder.path(), clock);
        Living::Inside(proxy, spoiler, door)
    }

    fn process(&self, url: &str) -> Process {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (config, data, log) = (path("longhaul.toml"), path("data"), path(LOG));
        let variables = [
            ("LONGHAUL_CONFIG", config.as_str()),
            ("LONGHAUL_DATA_DIR", &data),
            ("LONGHAUL_LOG__LEVEL", "debug"),
            ("LOG", &log),
            ("LONGHAUL_WORKERS", "1"),
        ];
        Process::on_a_small_disk(url, &variables)
    }

    /// Whatever is planned for the next request happens now.
    pub fn before_request(&self) {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let mut stage = self.stage.lock().unwrap();
        self.end(&mut stage, number);
        while let Some((at, event)) = self.plan.events.get(stage.done).copied() {
            if at > number {
                break;
            }
            stage.done += 1;
            self.happen(&mut stage, number, event);
        }
    }

    /// All troubles end.
    pub fn calm(&self) {
        self.end(&mut self.stage.lock().unwrap(), usize::MAX);
    }

    fn happen(&self, stage: &mut Stage, number: usize, event: Event) {
        let lasts = |stage: &mut Stage, requests: usize, end: End| {
            stage
                .lasting
                .push((number.saturating_add(requests).saturating_add(1), end));
        };
        match event {
            Event::Kill => self.kill(stage),
            Event::Restart => self.restart(stage),
            Event::Stop(time) => {
                for living in &stage.proxies {
                    if let Living::Outside(process, _) = living {
                        process.signal("-STOP");
                        std::thread::sleep(time);
                        process.signal("-CONT");
                    }
                }
            }
            Event::StoreDown(requests) => {
                let trouble = self.spoil(stage, State::Down);
                lasts(stage, requests, End::Store(trouble));
            }
            Event::StoreSlow(requests) => {
                let trouble = self.spoil(stage, State::Slow);
                lasts(stage, requests, End::Store(trouble));
            }
            Event::DiskFull(requests) => {
                let trouble = self.moments.begins(Trouble::Store);
                fill(stage, true);
                lasts(stage, requests, End::Disk(trouble));
            }
            Event::Forward(time) => self.clock.advance(time),
            Event::Back(time) => self.clock.turn_back(time),
            Event::Idle(time) => {
                self.clock.advance(time);
                self.sim.clock().advance(time);
            }
            Event::Away(requests) => {
                let trouble = self.moments.begins(Trouble::Broken);
                self.back.lead_to(Vec::new());
                self.back.cut();
                lasts(stage, requests, End::Away(trouble));
            }
            Event::Cut => {
                self.front.cut();
                self.back.cut();
            }
            Event::Summarizer(persona) => self.sim.set_persona(persona),
        }
    }

    fn spoil(&self, stage: &mut Stage, how: State) -> usize {
        let trouble = self.moments.begins(Trouble::Store);
        for living in &stage.proxies {
            if let Living::Inside(_, spoiler, _) = living {
                spoiler.set(how);
            }
        }
        trouble
    }

    /// Ends what lasts no longer than this request.
    fn end(&self, stage: &mut Stage, number: usize) {
        let lasting = std::mem::take(&mut stage.lasting);
        let (over, later) = lasting.into_iter().partition(|(at, _)| *at <= number);
        stage.lasting = later;
        let over: Vec<(usize, End)> = over;
        for (_, end) in over {
            match end {
                End::Store(trouble) => {
                    for living in &stage.proxies {
                        if let Living::Inside(_, spoiler, _) = living {
                            spoiler.set(State::Fine);
                        }
                    }
                    self.moments.ends(trouble);
                }
                End::Disk(trouble) => {
                    fill(stage, false);
                    self.moments.ends(trouble);
                }
                End::Away(trouble) => {
                    self.back.lead_to(vec![self.sim.address()]);
                    self.moments.ends(trouble);
                }
            }
        }
    }

    /// The first proxy is gone without a word, and another one comes.
    fn kill(&self, stage: &mut Stage) {
        let broken = self.moments.begins(Trouble::Broken);
        match stage.proxies.remove(0) {
            Living::Inside(mut proxy, spoiler, door) => {
                // It lives on without its store, but nobody hears of it.
                door.shut();
                spoiler.set(State::Dead);
                self.front.cut();
                self.back.cut();
                proxy.tell_to_stop();
                stage.gone.push(proxy);
                if self.plan.home == Home::Files {
                    stage.store = None;
                }
            }
            Living::Outside(process, _) => process.signal("-9"),
        }
        self.moments.happened(Trouble::Forgotten);
        self.people(stage);
        self.moments.ends(broken);
    }

    /// The first proxy ends in good order, and another one comes.
    fn restart(&self, stage: &mut Stage) {
        let broken = self.moments.begins(Trouble::Broken);
        match stage.proxies.remove(0) {
            Living::Inside(mut proxy, ..) => proxy.join(),
            Living::Outside(process, _) => {
                process.signal("-TERM");
                process.wait();
            }
        }
        self.moments.happened(Trouble::Forgotten);
        self.people(stage);
        self.moments.ends(broken);
    }
}

/// No file may grow, as if every disk were full.
fn fill(stage: &Stage, is_full: bool) {
    for living in &stage.proxies {
        if let Living::Outside(process, _) = living {
            let id = i32::try_from(process.id()).unwrap();
            let resource = rlimit::Resource::FSIZE;
            let mut limits = (0, 0);
            rlimit::prlimit(id, resource, None, Some((&mut limits.0, &mut limits.1))).unwrap();
            let soft = if is_full { 1 } else { limits.1 };
            rlimit::prlimit(id, resource, Some((soft, limits.1)), None).unwrap();
        }
    }
}
