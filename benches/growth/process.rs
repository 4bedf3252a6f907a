//! What a proxy's processes have used, as `/proc` tells it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The kernel counts the processor time of a process in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;
/// How often a process is looked at until it is idle.
const LOOK: Duration = Duration::from_millis(20);
/// Seconds that an idle process may use between two looks: timers, clocks.
const IDLE: f64 = 0.000_2;
/// A process that is busy for longer after the last answer is not waited for.
pub const LIMIT: Duration = Duration::from_secs(10);

/// The processes of one proxy: the one that was started, and its children.
pub struct Processes {
    parent: u32,
    /// Nanoseconds of processor time of each thread, when it was last seen.
    threads: RefCell<HashMap<PathBuf, u64>>,
}

impl Processes {
    /// Those of the process that was started.
    pub fn of(parent: u32) -> Self {
        Self {
            parent,
            threads: RefCell::default(),
        }
    }

    fn ids(&self) -> Vec<u32> {
        let parent = self.parent;
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let children = children.split_whitespace().flat_map(str::parse);
        std::iter::once(parent).chain(children).collect()
    }

    /// Seconds of processor time so far, all threads, those that have ended too.
    ///
    /// The count of the process has all of it, in steps that are too coarse for a
    /// few small requests. The counts of its threads are exact, but a thread that
    /// came and went between two looks is not among them. Neither is ever too high,
    /// so the larger one is nearer.
    pub fn cpu(&self) -> f64 {
        let ids = self.ids();
        let ticks = ids.iter().filter_map(|id| {
            let fields = fields(Path::new(&format!("/proc/{id}/stat")))?;
            Some(fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?)
        });
        let ticks = ticks.sum::<f64>() / TICKS_PER_SECOND;
        let mut threads = self.threads.borrow_mut();
        for id in ids {
            let tasks = std::fs::read_dir(format!("/proc/{id}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let file = task.path().join("schedstat");
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                if let Some(Ok(time)) = text.split(' ').next().map(str::parse) {
                    threads.insert(file, time);
                }
            }
        }
        let exact = threads.values().sum::<u64>() as f64 / 1e9;
        exact.max(ticks)
    }

    /// Waits until next to no processor time has been used for as long as `quiet`;
    /// gives how long there was work.
    pub fn wait_until_idle(&self, quiet: Duration) -> Duration {
        let begun = Instant::now();
        let (mut last, mut busy) = (self.cpu(), Duration::ZERO);
        while begun.elapsed() < LIMIT.min(busy + quiet) {
            std::thread::sleep(LOOK);
            let now = self.cpu();
            if now - last > IDLE || self.is_held_up() {
                busy = begun.elapsed();
            }
            last = now;
        }
        busy
    }

    /// Whether a thread waits for a processor or for the disk: it uses no time, and
    /// is not idle.
    fn is_held_up(&self) -> bool {
        let is_held_up = |id: &u32| {
            let tasks = std::fs::read_dir(format!("/proc/{id}/task"));
            tasks.into_iter().flatten().flatten().any(|task| {
                let state = fields(&task.path().join("stat"));
                state.is_some_and(|fields| matches!(fields[0].as_str(), "R" | "D"))
            })
        };
        self.ids().iter().any(is_held_up)
    }

    /// Lets the peak of resident memory begin anew.
    pub fn reset_peak(&self) {
        for id in self.ids() {
            // Where this is not allowed the peak is that since the start.
            let _ = std::fs::write(format!("/proc/{id}/clear_refs"), "5");
        }
    }

    /// Peak and present resident memory in bytes.
    pub fn memory(&self) -> (u64, u64) {
        let ids = self.ids();
        let sum = |name: &str| ids.iter().map(|id| status(*id, name) * 1024).sum();
        (sum("VmHWM:"), sum("VmRSS:"))
    }

    /// Bytes handed to the disk so far.
    pub fn written(&self) -> u64 {
        let written = self.ids().into_iter().filter_map(|id| {
            let text = std::fs::read_to_string(format!("/proc/{id}/io")).ok()?;
            number_after(&text, "write_bytes:")
        });
        written.sum()
    }
}

/// The fields of a `stat` behind the name, which may hold anything: the state first.
fn fields(file: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(file).ok()?;
    let fields = text.rsplit(')').next()?.split_whitespace();
    Some(fields.map(str::to_owned).collect())
}

fn status(id: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    number_after(&text, name).unwrap_or(0)
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
