//! The sessions that are played, and where passes are forced in them.

use std::time::Duration;

use longhaul::config::Sources;
use longhaul::replay::all::Plan;
use longhaul::replay::probes::Kind;
use longhaul::replay::read::read;
use longhaul::replay::session::Session;
use longhaul::replay::settings::Settings;

use super::{Signals, coding, recordings};

/// Where no time was recorded.
const PAUSE: Duration = Duration::from_secs(30);

/// With which requests a pass is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Forced {
    /// With none: the policy decides.
    Never,
    /// With every so many.
    Each(usize),
    /// With one in so many, by this seed.
    Random(u64, u8),
}

impl Forced {
    fn at(self, request: usize) -> bool {
        match self {
            Self::Never => false,
            Self::Each(many) => (request + 1).is_multiple_of(many),
            Self::Random(seed, many) => {
                let seed = seed * 1_000_003 + request as u64;
                fastrand::Rng::with_seed(seed).u8(0..many) == 0
            }
        }
    }

    fn word(self) -> String {
        match self {
            Self::Never => "left alone".to_owned(),
            Self::Each(many) => format!("forced each {many}"),
            Self::Random(seed, many) => format!("forced one in {many} by {seed}"),
        }
    }
}

/// A session under some conditions.
pub struct Case {
    pub name: String,
    pub session: Session,
    pub model: &'static str,
    pub budget: u64,
    pub forced: Forced,
}

impl Case {
    fn new(session: Session, model: &'static str, budget: u64, forced: Forced) -> Self {
        let name = format!("{}, {model}, {budget}, {}", session.name, forced.word());
        Self {
            name,
            session,
            model,
            budget,
            forced,
        }
    }

    /// Plays it and tells its signals.
    pub fn play(&self) -> Signals {
        let sources = Sources::default();
        let plan = Plan {
            sessions: vec![self.session.clone()],
            settings: Settings::new(self.model, None, Some(self.budget), sources).unwrap(),
            variations: Vec::new(),
        };
        let told = plan.play(&|at| self.forced.at(at), &|_, _| {}).unwrap();
        let (outcome, run) = &told[0].with[0];
        assert_eq!(run.refused, None, "{}", self.name);
        assert!(outcome.with.completed, "{}", self.name);
        let alone = &told[0].alone.0;
        let signals = outcome.signals();
        let count = |of: &dyn Fn(Kind) -> bool| {
            let probes = outcome.sums.probes.iter();
            probes.filter(|probe| of(probe.kind)).count() as f64
        };
        let all = [
            ("cost_share", Some(outcome.with.dollars / alone.dollars)),
            ("compression_ratio", signals.compression_ratio),
            ("trigger_precision", signals.trigger_precision),
            ("probe_recovery", signals.probe_recovery),
            ("recall_recovery", signals.recall_recovery),
            ("planted_recovery", signals.planted_recovery),
            ("planted_recall", signals.planted_recall),
            ("degradation", signals.degradation),
            (
                "amortization_usd_per_turn",
                signals.amortization_usd_per_turn,
            ),
            ("reread_rate", signals.reread_rate),
            ("next_action_support", signals.next_action_support),
            ("edit_support", signals.edit_support),
            ("line_recovery", signals.line_recovery),
            ("constraint_survival", signals.constraint_survival),
            ("stale_facts", signals.stale_facts),
            ("passes", Some(outcome.sums.passes.0 as f64)),
            ("probes", Some(count(&Kind::is_natural))),
            ("planted", Some(count(&|kind| kind == Kind::Planted))),
        ];
        let known = all
            .into_iter()
            .filter_map(|(name, signal)| Some((name, signal?)));
        known
            .map(|(name, signal)| (name.to_owned(), (signal * 1e4).round() / 1e4))
            .collect()
    }
}

/// A session of an agent at work, of about so many tokens.
pub fn generated(kind: &str, seed: u64, cycles: usize, tokens: usize) -> Session {
    let messages = match kind {
        "wordy" => coding::wordy(seed, cycles, tokens),
        _ => coding::session(seed, cycles, tokens),
    };
    Session::of(&format!("{kind}-{seed}-{cycles}"), &messages, PAUSE)
}

/// The recordings of these names that are there, or all.
fn recorded(names: &[&str]) -> Vec<Session> {
    let paths = recordings::all();
    let sessions = paths
        .iter()
        .map(|path| Session::new(&read(path).unwrap().recording, PAUSE));
    sessions
        .filter(|session| names.is_empty() || names.contains(&session.name.as_str()))
        .collect()
}

const FREE: &str = "claude-opus-4-8";
const BOUND: &str = "claude-opus-5-5";

/// A usual run.
pub fn few() -> Vec<Case> {
    let mut cases = vec![
        Case::new(
            generated("coding", 71, 36, 50_000),
            FREE,
            40_000,
            Forced::Each(9),
        ),
        Case::new(
            generated("wordy", 72, 30, 45_000),
            BOUND,
            40_000,
            Forced::Random(1, 8),
        ),
    ];
    let forced = [Forced::Each(6), Forced::Random(2, 6)];
    let sessions = recorded(&["openhands-ponyc-a", "tau-airline-a"]);
    let budgets = [60_000, 60_000];
    for ((session, forced), budget) in sessions.into_iter().zip(forced).zip(budgets) {
        cases.push(Case::new(session, FREE, budget, forced));
    }
    cases
}

/// Everything.
pub fn all() -> Vec<Case> {
    let mut cases = few();
    let generated = [
        (generated("coding", 73, 200, 260_000), 100_000),
        (generated("wordy", 74, 300, 400_000), 200_000),
    ];
    let recorded = recorded(&[]).into_iter().map(|session| (session, 100_000));
    for (session, budget) in generated.into_iter().chain(recorded) {
        let settings = [
            (FREE, Forced::Never),
            (BOUND, Forced::Never),
            (BOUND, Forced::Each(40)),
            (FREE, Forced::Random(3, 30)),
        ];
        for (model, forced) in settings {
            cases.push(Case::new(session.clone(), model, budget, forced));
        }
    }
    cases
}
