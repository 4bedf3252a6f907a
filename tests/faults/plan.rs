//! What happens in an episode, drawn from its seed and from nothing else.
//!
//! An episode is a small world that lives for some hundred requests. Its seed
//! says what stands in it (which store, how many proxies, which settings), who
//! talks, and what goes wrong at the how manieth request. The moment at which
//! threads meet is the machine's own, so a seed makes the same troubles again,
//! though not always the same failure at the first try.

use std::time::Duration;

use fastrand::Rng;
use longhaul::sim::Persona;

/// Tokens of every model's window.
pub const WINDOW: u64 = 5_000;

/// Models of every kind: thinking that stands alone, that is bound to what stands
/// before it, that has a budget, that the API forgets.
pub const MODELS: [&str; 4] = [
    "claude-opus-4-8",
    "claude-opus-5-5",
    "claude-opus-4-5",
    "claude-sonnet-4-5",
];

/// Where the proxy lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// In this process, on a store in memory that outlives it.
    Memory,
    /// In this process, on files.
    Files,
    /// In a process of its own, on files.
    Process,
}

/// Something that happens to the world as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The proxy is gone at once, and another one comes.
    Kill,
    /// The proxy is told to end, and another one comes.
    Restart,
    /// The process stands still for so long.
    Stop(Duration),
    /// The store fails, for so many requests.
    StoreDown(usize),
    /// The store does what it is told and says that it was too slow, for so many
    /// requests.
    StoreSlow(usize),
    /// No file can grow, for so many requests.
    DiskFull(usize),
    /// The proxy's clock goes on by so much.
    Forward(Duration),
    /// The proxy's clock goes back by so much.
    Back(Duration),
    /// Every clock goes on: nobody has said anything for a while.
    Idle(Duration),
    /// Nobody can reach upstream, for so many requests.
    Away(usize),
    /// Every connection breaks at once.
    Cut,
    /// Summaries are written by somebody else.
    Summarizer(Persona),
}

/// An episode.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub home: Home,
    /// Proxies side by side on one store.
    pub replicas: usize,
    /// Whether passes are made, only thought of, or not even that.
    pub mode: &'static str,
    /// The configuration file.
    pub file: String,
    /// Whether thinking that does not fit is refused, or only noted.
    pub enforced: bool,
    pub agents: usize,
    /// Requests that each of them has to get answered.
    pub steps: usize,
    /// Events, each with the request before which it happens, in order.
    pub events: Vec<(usize, Event)>,
    /// How many of a hundred connections have bad weather.
    pub weather: u8,
    /// How many of a hundred requests the simulator spoils.
    pub spoilt: u8,
    /// How many of a hundred requests the client walks away from.
    pub left: u8,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let home = match rng.u8(0..16) {
            0..=8 => Home::Memory,
            9..=14 => Home::Files,
            _ => Home::Process,
        };
        let replicas = match home {
            Home::Memory if rng.u8(0..3) == 0 => 2,
            _ => 1,
        };
        let agents = rng.usize(4..9);
        let steps = rng.usize(12..24);
        let requests = agents * steps;
        let count = match home {
            Home::Process => rng.usize(2..4),
            Home::Memory | Home::Files => rng.usize(2..7),
        };
        let mut events: Vec<(usize, Event)> = (0..count)
            .map(|_| {
                let at = rng.usize(5..requests);
                (at, event(&mut rng, home))
            })
            .collect();
        events.sort_by_key(|(at, _)| *at);
        let mut plan = Self {
            seed,
            home,
            replicas,
            mode: "on",
            file: file(&mut rng),
            enforced: rng.u8(0..3) > 0,
            agents,
            steps,
            events,
            weather: [0, 10, 30][rng.usize(0..3)],
            spoilt: [0, 8, 20][rng.usize(0..3)],
            left: [0, 4, 10][rng.usize(0..3)],
        };
        if rng.u8(0..12) == 0 {
            plan.mode = ["off", "observe"][rng.usize(0..2)];
            let policy = format!("[policy]\nmode = \"{}\"", plan.mode);
            plan.file = plan.file.replace("[policy]", &policy);
        }
        plan
    }
}

fn event(rng: &mut Rng, home: Home) -> Event {
    let some = |rng: &mut Rng| rng.usize(4..20);
    if home == Home::Process {
        return match rng.u8(0..8) {
            0..=3 => Event::Kill,
            4 => Event::Restart,
            5 => Event::DiskFull(some(rng)),
            _ => Event::Stop(Duration::from_millis(rng.u64(50..600))),
        };
    }
    let minutes = |rng: &mut Rng| Duration::from_secs(60 * rng.u64(1..600));
    match rng.u8(0..16) {
        0..=3 => Event::Kill,
        4 => Event::Restart,
        5 | 6 => Event::StoreDown(some(rng)),
        7 => Event::StoreSlow(some(rng)),
        8 => Event::Forward(minutes(rng)),
        9 => Event::Back(minutes(rng)),
        10 => Event::Idle(minutes(rng)),
        11 => Event::Away(rng.usize(2..8)),
        12 => Event::Cut,
        _ => Event::Summarizer(PERSONAS[rng.usize(0..PERSONAS.len())]),
    }
}

const PERSONAS: [Persona; 9] = [
    Persona::Good,
    Persona::Good,
    Persona::Forgetful,
    Persona::Malformed,
    Persona::CutOff,
    Persona::InventingPaths,
    Persona::CallsTool,
    Persona::ServerError,
    Persona::RateLimited,
];

/// Settings under which a pass is due every few requests.
fn file(rng: &mut Rng) -> String {
    let summarizer = ["off", "off", "model", "fork"][rng.usize(0..4)];
    let style = match rng.u8(0..5) {
        0 => "style = \"journal\"",
        _ => "",
    };
    // Passes at a size, or when the bill asks for one.
    let when = ["clear_at = 0.6\nsummarize_at = 0.7", "keep_tokens = 1000"][rng.usize(0..2)];
    let tenant = ["header:x-owner", "header:x-owner", "credential"][rng.usize(0..3)];
    format!(
        "store.timeout = \"5s\"\n\
         models.\"claude-*\" = {{ window = {WINDOW} }}\n\
         tenant.by = \"{tenant}\"\n\
         limits.drain = \"2s\"\n\
         pin.user_tokens = 300\n\
         split.turn_clamp = [500, 2000]\n\
         [policy]\n{when}\ntail_messages = {}\n{style}\n\
         [clear]\nenabled = {}\nkeep_tool_uses = {}\nat_least = {}\n\
         [trim]\nenabled = {}\nmax_chars = 2000\n\
         [trim.tools.\"Bash\"]\nhead = 400\ntail = 600\n\
         [journal]\nlive_turns = {}\n\
         [summarizer]\nmode = \"{summarizer}\"\ndeadline = \"3s\"\ntimeout = \"3s\"\n",
        rng.usize(1..8),
        rng.u8(0..4) > 0,
        rng.usize(0..4),
        [200, 1000][rng.usize(0..2)],
        rng.bool(),
        rng.usize(1..4),
    )
}
