//! What is known of the day so far, in both ways in which it is played.

use crate::replay::play::Seen;

/// A pass, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The request with which it was made.
    pub request: usize,
    /// What it did.
    pub kinds: String,
    /// Tokens of the prompt before it, and of the first with it.
    pub before: u64,
    /// The same with it.
    pub after: u64,
}

/// One way in which the day is played.
#[derive(Debug, Clone, Default)]
pub struct Course {
    /// Tokens of each prompt.
    pub prompts: Vec<u64>,
    /// Dollars spent up to each.
    pub dollars: Vec<f64>,
    /// Tokens of all prompts, and those of them that were read from the cache.
    read: (u64, u64),
    /// Passes that changed what had been sent before.
    pub passes: Vec<Pass>,
    /// Results that were only trimmed as they arrived.
    pub trims: usize,
    /// The first request whose prompt is larger than the window.
    pub over: Option<usize>,
}

/// The whole day.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The turn of each request.
    pub turns: Vec<usize>,
    /// The model's window.
    pub window: u64,
    /// Without Longhaul.
    pub without: Course,
    /// With it.
    pub with: Course,
}

impl Course {
    /// The share of all prompts that came from the cache, in percent.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn cached(&self) -> f64 {
        let (all, read) = self.read;
        read as f64 * 100.0 / all.max(1) as f64
    }

    /// The newest prompt.
    pub fn prompt(&self) -> u64 {
        self.prompts.last().copied().unwrap_or(0)
    }

    /// What was spent so far.
    pub fn spent(&self) -> f64 {
        self.dollars.last().copied().unwrap_or(0.0)
    }

    fn note(&mut self, seen: &Seen, window: u64) {
        let (before, prompt) = (self.prompt(), seen.tokens.prompt());
        if prompt > window && self.over.is_none() {
            self.over = Some(seen.request);
        }
        if seen.pass == ["trim"] {
            self.trims += 1;
        } else if !seen.pass.is_empty() {
            self.passes.push(Pass {
                request: seen.request,
                kinds: seen.pass.join(" + "),
                before,
                after: prompt,
            });
        }
        self.read.0 += prompt;
        self.read.1 += seen.tokens.read;
        self.dollars.push(self.spent() + seen.dollars);
        self.prompts.push(prompt);
    }
}

impl Scene {
    /// Nothing has happened yet.
    pub fn new(turns: Vec<usize>, window: u64) -> Self {
        Self {
            turns,
            window,
            without: Course::default(),
            with: Course::default(),
        }
    }

    /// A request was answered; the first way is the one without.
    pub fn note(&mut self, way: usize, seen: &Seen) {
        let course = if way == 0 {
            &mut self.without
        } else {
            &mut self.with
        };
        course.note(seen, self.window);
    }

    /// The turn of a request.
    pub fn turn(&self, request: usize) -> usize {
        self.turns.get(request).copied().unwrap_or(0)
    }

    /// How far a course has come, in turns.
    pub fn reached(&self, course: &Course) -> usize {
        course
            .prompts
            .len()
            .checked_sub(1)
            .map_or(0, |at| self.turn(at))
    }

    /// How many turns there are.
    pub fn all_turns(&self) -> usize {
        self.turns.last().copied().unwrap_or(0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sim::prices::Tokens;

    /// A request as a test sees it.
    pub fn seen(request: usize, read: u64, input: u64, pass: &[&str]) -> Seen {
        Seen {
            request,
            tokens: Tokens {
                input,
                read,
                ..Tokens::default()
            },
            dollars: 0.25,
            pass: pass.iter().map(|kind| (*kind).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_seen_adds_up() {
        let mut scene = Scene::new(vec![1, 1, 2], 100);
        for (request, input) in [(0, 80), (1, 50), (2, 60)] {
            scene.note(0, &seen(request, 50 * u64::from(request > 0), input, &[]));
        }
        scene.note(1, &seen(0, 0, 80, &[]));
        scene.note(1, &seen(1, 20, 20, &["clear", "summary"]));
        scene.note(1, &seen(2, 40, 5, &["trim"]));
        assert_eq!(scene.without.over, Some(2));
        assert_eq!(scene.turn(2), 2);
        assert!((scene.without.cached() - 100.0 * 100.0 / 290.0).abs() < 1e-9);
        assert_eq!(scene.with.passes.len(), 1);
        assert_eq!(scene.with.trims, 1);
        let pass = &scene.with.passes[0];
        assert_eq!((pass.before, pass.after), (80, 40));
        assert_eq!(pass.kinds, "clear + summary");
        assert!((scene.with.spent() - 0.75).abs() < 1e-9);
        assert_eq!(scene.reached(&scene.with), 2);
    }
}
