//! The day as lines, where there is no terminal to draw on.
//!
//! Both ways are played at once and neither waits for the other. A line is told
//! when both have come as far, so that they are the same each time.

use super::scene::Scene;
use crate::replay::report::thousands;

/// Turns between two lines about sizes and costs.
const EVERY: usize = 25;

/// What has been told.
#[derive(Debug, Default)]
pub struct Lines {
    requests: usize,
}

impl Lines {
    /// What is new.
    pub fn news(&mut self, scene: &Scene) -> Vec<String> {
        let both = scene.without.prompts.len().min(scene.with.prompts.len());
        let mut told = Vec::new();
        for request in self.requests..both {
            let turn = scene.turn(request);
            if scene.without.over == Some(request) {
                told.push(format!(
                    "turn {turn:>4}  without Longhaul the window ends it here"
                ));
            }
            let passes = scene.with.passes.iter();
            for pass in passes.filter(|pass| pass.request == request) {
                told.push(format!(
                    "turn {turn:>4}  {}: from {} tokens to {}",
                    pass.kinds,
                    thousands(pass.before),
                    thousands(pass.after)
                ));
            }
            let is_last_of_turn = scene.turns.get(request + 1) != Some(&turn);
            if is_last_of_turn && turn.is_multiple_of(EVERY) {
                told.extend(size(scene, request));
            }
        }
        self.requests = both.max(self.requests);
        told
    }
}

fn size(scene: &Scene, request: usize) -> Option<String> {
    let (without, with) = (&scene.without, &scene.with);
    Some(format!(
        "turn {:>4}  without {:>5} tokens, ${:<6.2}  with {:>5} tokens, ${:.2}",
        scene.turn(request),
        thousands(*without.prompts.get(request)?),
        without.dollars.get(request)?,
        thousands(*with.prompts.get(request)?),
        with.dollars.get(request)?
    ))
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::seen;
    use super::*;

    #[test]
    fn lines_do_not_depend_on_which_way_is_faster() {
        let turns: Vec<usize> = (1..=50).collect();
        let without = |at: usize| (0, seen(at, 0, at as u64 * 4_000, &[]));
        let with = |at: usize| {
            let pass: &[&str] = if at == 30 { &["clear"] } else { &[] };
            (1, seen(at, 0, 20_000, pass))
        };
        let orders = [
            (0..50)
                .map(without)
                .chain((0..50).map(with))
                .collect::<Vec<_>>(),
            (0..50).map(with).chain((0..50).map(without)).collect(),
            (0..50).flat_map(|at| [with(at), without(at)]).collect(),
        ];
        let told = orders.map(|order| {
            let (mut scene, mut lines) = (Scene::new(turns.clone(), 100_000), Lines::default());
            let news = order.iter().flat_map(|(way, seen)| {
                scene.note(*way, seen);
                lines.news(&scene)
            });
            news.collect::<Vec<_>>()
        });
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2]);
        let expected = [
            "turn   25  without   96K tokens, $6.25    with   20K tokens, $6.25",
            "turn   27  without Longhaul the window ends it here",
            "turn   31  clear: from 20K tokens to 20K",
            "turn   50  without  196K tokens, $12.50   with   20K tokens, $12.50",
        ];
        assert_eq!(told[0], expected);
    }
}
