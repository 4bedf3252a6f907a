//! One session under every policy.
//!
//! What the plain policies send depends on whether the model binds thinking and
//! on the client's cache marks, not on prices: they are played once for each and
//! priced for every model.

use std::rc::Rc;

use longhaul::sim::models;

use super::figures::Figures;
use super::play::{Played, Run, Stage};
use super::policy::{Policy, watermark};
use super::session::Session;
use super::setting::Setting;

/// What the proxy must be cheaper than; the last only where there is time for it.
const RIVALS: [Policy; 3] = [Policy::Rolling(3), Policy::Trigger, Policy::Rolling(10)];

/// A session under one setting.
#[derive(Debug, Clone)]
pub struct Case {
    pub session: String,
    pub setting: String,
    /// Requests whose whole history was over the watermark.
    pub beyond: usize,
    pub none: Figures,
    pub rivals: Vec<Figures>,
    /// A proxy that does not reckon, where there is time for it.
    pub batch: Option<Figures>,
    pub longhaul: Figures,
}

/// What was played already, by policy, whether thinking is bound, and cache marks.
type Plain = Vec<((Policy, bool, &'static str), Rc<Run>)>;

pub fn compare(session: &Session, settings: &[Setting], thorough: bool) -> Vec<Case> {
    let rivals = if thorough { &RIVALS[..] } else { &RIVALS[..2] };
    let stage = Stage::new();
    let mut played = Plain::new();
    let case = |setting: &Setting| {
        let binds = models::find(setting.model).unwrap().binds_thinking;
        let mut plain = |policy: Policy| {
            let wanted = (policy, binds, setting.lifetime);
            if let Some((_, run)) = played.iter().find(|(key, _)| *key == wanted) {
                return Rc::clone(run);
            }
            let run = Rc::new(stage.play(session, policy, setting));
            played.push((wanted, Rc::clone(&run)));
            run
        };
        let none = plain(Policy::None);
        let budget = setting.budget(&none);
        let mark = watermark(budget.min(usable(setting.model)));
        let rivals: Vec<_> = rivals.iter().map(|rival| plain(*rival)).collect();
        let batch = thorough.then(|| plain(Policy::Batch(budget)));
        let longhaul = stage.play(session, Policy::Longhaul(budget), setting);
        let figures = |run: &Run| Figures::new(run, &none, setting.model, budget);
        let beyond = |one: &&Played| one.tokens.prompt() > mark;
        Case {
            session: session.name.clone(),
            setting: setting.name(),
            beyond: none.played.iter().filter(beyond).count(),
            none: figures(&none),
            rivals: rivals.iter().map(|run| figures(run)).collect(),
            batch: batch.map(|run| figures(&run)),
            longhaul: figures(&longhaul),
        }
    };
    settings.iter().map(case).collect()
}

/// The window less the margin that is kept free by default.
fn usable(model: &str) -> u64 {
    models::find(model).unwrap().window / 100 * 95
}
