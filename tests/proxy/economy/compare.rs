//! One session under every policy.
//!
//! What the plain policies send depends on whether the model binds thinking and
//! on the client's cache marks, not on prices: they are played once for each and
//! priced for every model.

use std::collections::HashMap;

use longhaul::sim::models;

use super::figures::Figures;
use super::play::{Run, Stage};
use super::policy::{Policy, watermark};
use super::session::Session;
use super::setting::Setting;

/// What the proxy must be cheaper than.
const RIVALS: [Policy; 3] = [Policy::Rolling(3), Policy::Rolling(10), Policy::Trigger];

/// A session under one setting.
#[derive(Debug, Clone)]
pub struct Case {
    pub session: String,
    pub setting: String,
    /// Requests whose whole history was over the watermark.
    pub beyond: usize,
    pub none: Figures,
    pub rivals: Vec<Figures>,
    /// A proxy that does not reckon.
    pub batch: Figures,
    pub longhaul: Figures,
}

/// The plain policies, `none` first.
type Plain = Vec<Run>;

pub fn compare(session: &Session, settings: &[Setting]) -> Vec<Case> {
    let stage = Stage::new();
    let mut played: HashMap<(bool, &str), Plain> = HashMap::new();
    let case = |setting: &Setting| {
        let binds = models::find(setting.model).unwrap().binds_thinking;
        let plain = played.entry((binds, setting.lifetime)).or_insert_with(|| {
            let policies = [Policy::None].into_iter().chain(RIVALS);
            policies
                .map(|policy| stage.play(session, policy, setting))
                .collect()
        });
        let none = &plain[0];
        let budget = setting.budget(none);
        let mark = watermark(budget.min(usable(setting.model)));
        let batch = stage.play(session, Policy::Batch(budget), setting);
        let longhaul = stage.play(session, Policy::Longhaul(budget), setting);
        let figures = |run: &Run| Figures::new(run, none, setting.model, budget);
        Case {
            session: session.name.clone(),
            setting: setting.name(),
            beyond: none
                .played
                .iter()
                .filter(|one| one.tokens.prompt() > mark)
                .count(),
            none: figures(none),
            rivals: plain[1..].iter().map(figures).collect(),
            batch: figures(&batch),
            longhaul: figures(&longhaul),
        }
    };
    settings.iter().map(case).collect()
}

/// The window less the margin that is kept free by default.
fn usable(model: &str) -> u64 {
    models::find(model).unwrap().window / 100 * 95
}
