//! The windows of summarizers, as their refusals tell them.
//!
//! A model may be smaller than its entry in the table, behind a gateway or in a
//! test; what it said itself is believed for as long as the process runs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most models that are remembered.
const MODELS: usize = 256;

/// What was said.
#[derive(Default)]
pub struct Windows(Mutex<HashMap<String, u64>>);

impl Windows {
    /// A model said how large its window is.
    pub fn learn(&self, model: &str, window: u64) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MODELS || said.contains_key(model) {
            said.insert(model.to_owned(), window);
        }
    }

    /// The window of a model, given what is configured.
    pub fn of(&self, model: &str, configured: u64) -> u64 {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.get(model)
            .map_or(configured, |said| configured.min(*said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_can_only_make_a_window_smaller() {
        let windows = Windows::default();
        assert_eq!(windows.of("m", 200_000), 200_000);
        windows.learn("m", 50_000);
        assert_eq!(windows.of("m", 200_000), 50_000);
        windows.learn("m", 500_000);
        assert_eq!(windows.of("m", 200_000), 200_000);
    }
}
