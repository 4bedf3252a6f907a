//! What was learned from upstream's answers.
//!
//! How a model's tokens compare with ours and what it has refused, per model; how
//! large a window really is, per upstream, model and account. It is read from the store at the start and written when it
//! changes enough to matter; losing it costs an estimate or a retry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::measure::{
    self, Anchor, Factor, LearnedWindow, LearnedWindows, Size, WindowKey, prior,
};
use crate::store::Moment;

/// The most models that are remembered: their names come from clients.
const MODELS: usize = 1_000;
/// The kind of the notes about windows.
const WINDOW: &str = "window_of";
/// A factor is written again when it has changed by this share.
const CHANGE: f64 = 0.01;

/// Something upstream has refused to take from us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// Cache marks of ours.
    NoMarks,
    /// The request to drop thinking that does not fit.
    NoDrop,
    /// It has refused thinking that does not fit: it enforces the check.
    Enforces,
    /// To sum a conversation up itself, or a view with what it wrote. Kept per
    /// upstream and model.
    NoNative,
}

impl Quirk {
    const WORDS: [(&'static str, Self); 4] = [
        ("no_marks", Self::NoMarks),
        ("no_drop", Self::NoDrop),
        ("enforces", Self::Enforces),
        ("no_native", Self::NoNative),
    ];

    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, quirk)| *quirk == self);
        found.map_or("", |(word, _)| word)
    }
}

#[derive(Default)]
struct Facts {
    factors: BTreeMap<String, (Factor, f64)>,
    windows: LearnedWindows,
    quirks: BTreeSet<(Quirk, String)>,
}

/// What was learned.
#[derive(Default)]
pub struct Learned(Mutex<Facts>);

/// Something to be written down: key and value.
pub type Note = (String, String);

impl Learned {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back what was written down.
    pub fn restore(&self, notes: &[Note]) {
        let mut facts = self.facts();
        for (key, value) in notes {
            let Some((kind, model)) = key.split_once(':') else {
                continue;
            };
            match kind {
                "factor" => {
                    if let Some(factor) = Factor::from_text(value) {
                        let written = factor.value();
                        facts.factors.insert(model.to_owned(), (factor, written));
                    }
                }
                WINDOW => {
                    if let Some(key) = WindowKey::from_text(model) {
                        facts.windows.merge(key, value);
                    }
                }
                // Written by older versions for everybody who uses a model.
                "window" => {}
                _ => {
                    let found = Quirk::WORDS.iter().find(|(word, _)| *word == kind);
                    if let Some((_, quirk)) = found.filter(|_| value == "yes") {
                        facts.quirks.insert((*quirk, model.to_owned()));
                    }
                }
            }
        }
    }

    /// The factor of a model.
    pub fn factor(&self, model: &str) -> Factor {
        let known = self.facts().factors.get(model).map(|(factor, _)| *factor);
        known.unwrap_or_else(|| prior(model))
    }

    /// Takes over what another process knew of a model, unless this one has seen
    /// more.
    pub fn hear(&self, model: &str, factor: &str) {
        let Some(told) = Factor::from_text(factor).filter(Factor::is_learned) else {
            return;
        };
        let mut facts = self.facts();
        if facts.factors.len() >= MODELS && !facts.factors.contains_key(model) {
            return;
        }
        // As written: it is for whoever told to write it down.
        let first = (prior(model), told.value());
        let (factor, _) = facts.factors.entry(model.to_owned()).or_insert(first);
        if told.evidence() >= factor.evidence() {
            *factor = told;
        }
    }

    /// Learns from a prompt's size, as counted and as reported, and from the
    /// prompt it grew out of.
    pub fn observe(
        &self,
        model: &str,
        anchor: Option<&Anchor>,
        size: &Size,
        reported: u64,
    ) -> Option<Note> {
        let mut facts = self.facts();
        if facts.factors.len() >= MODELS && !facts.factors.contains_key(model) {
            return None;
        }
        let first = (prior(model), 0.0);
        let (factor, written) = facts.factors.entry(model.to_owned()).or_insert(first);
        measure::learn(factor, anchor, size, reported);
        if !factor.is_learned() || (factor.value() - *written).abs() <= *written * CHANGE {
            return None;
        }
        *written = factor.value();
        Some((format!("factor:{model}"), factor.to_text()))
    }

    /// The window that counts for a key, given the one in the table.
    pub fn window(&self, key: &WindowKey, table: u64, now: Moment) -> u64 {
        self.facts().windows.get(key).window(table, now.0)
    }

    /// Whether a key was answered at this size before.
    pub fn was_answered_at(&self, key: &WindowKey, tokens: u64) -> bool {
        self.facts().windows.get(key).was_answered_at(tokens)
    }

    /// A refusal said how large the window is.
    pub fn window_claimed(&self, key: WindowKey, window: u64, now: Moment) -> Option<Note> {
        let stored = self.facts().windows.refused(key, window, now.0);
        stored.map(|stored| (window_note(key), stored))
    }

    /// A prompt was answered; if refusals came before, they claimed this window.
    pub fn answered(&self, key: WindowKey, tokens: u64, claimed: Option<u64>) -> Option<Note> {
        let stored = self.facts().windows.answered(key, tokens, claimed);
        stored.map(|stored| (window_note(key), stored))
    }

    /// Takes in what another process has stored about a window.
    pub fn merge_window(&self, key: WindowKey, stored: &str) {
        self.facts().windows.merge(key, stored);
    }

    /// Whether a model has this quirk.
    pub fn has(&self, quirk: Quirk, model: &str) -> bool {
        self.facts().quirks.contains(&(quirk, model.to_owned()))
    }

    /// A model has shown a quirk.
    pub fn shown(&self, quirk: Quirk, model: &str) -> Option<Note> {
        let mut facts = self.facts();
        if facts.quirks.len() >= MODELS {
            return None;
        }
        let news = facts.quirks.insert((quirk, model.to_owned()));
        news.then(|| (format!("{}:{model}", quirk.word()), "yes".to_owned()))
    }
}

/// The note that keeps what is known of a window.
pub fn window_note(key: WindowKey) -> String {
    format!("{WINDOW}:{key}")
}

/// A note about a window that also says what was stored before.
pub fn merged_window(ours: &str, stored: &str) -> String {
    let both = LearnedWindow::from_text(ours).zip(LearnedWindow::from_text(stored));
    both.map_or_else(
        || ours.to_owned(),
        |(mut ours, stored)| {
            ours.merge(&stored);
            ours.to_text()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::measure::Account;

    fn size(text: u64) -> Size {
        let mut size = Size::default();
        size.messages.text = text;
        size
    }

    #[test]
    fn what_is_written_down_is_taken_back() {
        let learned = Learned::default();
        let key = WindowKey::new("u", "m", Account::Tenant("t"), false);
        let notes: Vec<Note> = [
            learned.observe("m", None, &size(10_000), 13_000),
            learned.window_claimed(key, 150_000, Moment(5)),
            learned.shown(Quirk::NoMarks, "m"),
        ]
        .into_iter()
        .flatten()
        .collect();
        assert_eq!(notes.len(), 3);
        assert_eq!(learned.shown(Quirk::NoMarks, "m"), None, "no news");
        let restored = Learned::default();
        restored.restore(&notes);
        assert_eq!(restored.factor("m"), learned.factor("m"));
        let window = |key| restored.window(&key, 200_000, Moment(6));
        assert_eq!(window(key), 150_000);
        assert_eq!(window(WindowKey::default()), 200_000, "another's");
        assert!(restored.has(Quirk::NoMarks, "m") && !restored.has(Quirk::NoDrop, "m"));
        assert!(!restored.has(Quirk::NoMarks, "n"));
    }

    /// They were learned from one account and cut all others.
    #[test]
    fn windows_that_older_versions_have_stored_are_ignored() {
        let learned = Learned::default();
        let old = ("window:m".to_owned(), "8192".to_owned());
        learned.restore(&[old, ("window_of:m".to_owned(), "8192".to_owned())]);
        assert_eq!(learned.facts().windows, LearnedWindows::default());
    }

    #[test]
    fn a_note_about_a_window_keeps_what_another_process_has_stored() {
        let [one, other] = [(); 2].map(|()| Learned::default());
        let key = WindowKey::default();
        let (_, answered) = one.answered(key, 567_611, None).unwrap();
        let (_, claimed) = other.window_claimed(key, 500_000, Moment(5)).unwrap();
        for text in [
            merged_window(&claimed, &answered),
            merged_window(&answered, &claimed),
        ] {
            let third = Learned::default();
            third.merge_window(key, &text);
            assert_eq!(third.window(&key, 1_000_000, Moment(6)), 1_000_000);
            assert!(third.was_answered_at(&key, 567_611));
        }
        assert_eq!(merged_window(&claimed, ""), claimed);
    }

    #[test]
    fn what_others_have_seen_more_of_is_taken_over() {
        let [one, other] = [(); 2].map(|()| Learned::default());
        one.observe("m", None, &size(10_000), 13_000);
        other.hear("m", &one.factor("m").to_text());
        assert_eq!(other.factor("m"), one.factor("m"), "to the last digit");
        other.observe("m", None, &size(10_000), 14_000);
        let more = other.factor("m");
        for told in [one.factor("m").to_text().as_str(), "", "x", "9 9"] {
            other.hear("m", told);
            assert_eq!(other.factor("m"), more, "{told}");
        }
    }

    #[test]
    fn a_factor_is_written_again_only_when_it_changed() {
        let learned = Learned::default();
        assert!(
            learned
                .observe("m", None, &size(100_000), 130_000)
                .is_some()
        );
        assert!(
            learned
                .observe("m", None, &size(100_000), 130_100)
                .is_none()
        );
    }
}
