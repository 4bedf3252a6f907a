//! Overlays that were read, kept because they never change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::ids::OverlayId;
use crate::engine::overlay::Overlay;

/// How many are kept; beyond it all go, and are read again when asked for.
const MOST: usize = 20_000;

/// A memory of overlays.
#[derive(Default)]
pub struct Overlays(Mutex<HashMap<OverlayId, Arc<Overlay>>>);

impl Overlays {
    /// The overlay, if it is held.
    pub fn get(&self, id: OverlayId) -> Option<Arc<Overlay>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(&id).cloned()
    }

    /// Holds an overlay.
    pub fn put(&self, id: OverlayId, overlay: Arc<Overlay>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MOST {
            held.clear();
        }
        held.insert(id, overlay);
    }
}
