//! Overlays that were made or read, kept because they never change.
//!
//! What is held is bounded in bytes, because one overlay may be ten thousand
//! times as large as another. Beyond the bound the least recently used go, down
//! to half of it, and are read from the store again when asked for. Every
//! request of a lineage asks for its overlay and so keeps it here: while a store
//! is away, all lineages go on whose overlays are among the 128 MiB used last.
//! That is some five thousand with a hundred stubs each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::ids::OverlayId;
use crate::engine::overlay::{Change, Overlay};

/// The most bytes that are held.
const MOST: usize = 256 << 20;
/// What an entry takes besides the texts: an edit, a segment, the overlay.
const EACH: usize = 64;

/// A memory of overlays.
pub struct Overlays {
    held: Mutex<Held>,
    most: usize,
}

#[derive(Default)]
struct Held {
    entries: HashMap<OverlayId, Entry>,
    bytes: usize,
    clock: u64,
}

struct Entry {
    overlay: Arc<Overlay>,
    bytes: usize,
    used: u64,
}

impl Default for Overlays {
    fn default() -> Self {
        Self::with_room_for(MOST)
    }
}

impl Overlays {
    fn with_room_for(most: usize) -> Self {
        let held = Mutex::default();
        Self { held, most }
    }

    /// The overlay, if it is held.
    pub fn get(&self, id: OverlayId) -> Option<Arc<Overlay>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clock += 1;
        let used = held.clock;
        let entry = held.entries.get_mut(&id)?;
        entry.used = used;
        Some(entry.overlay.clone())
    }

    /// Holds an overlay.
    pub fn put(&self, id: OverlayId, overlay: Arc<Overlay>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clock += 1;
        let entry = Entry {
            bytes: cost(&overlay),
            used: held.clock,
            overlay,
        };
        held.bytes += entry.bytes;
        if let Some(old) = held.entries.insert(id, entry) {
            held.bytes -= old.bytes;
        }
        if held.bytes > self.most {
            held.shrink(self.most / 2);
        }
    }
}

impl Held {
    /// Keeps what was used last, as much as fits, and the very last in any case.
    fn shrink(&mut self, most: usize) {
        let mut ages: Vec<(u64, usize)> = self
            .entries
            .values()
            .map(|entry| (entry.used, entry.bytes))
            .collect();
        ages.sort_unstable_by(|a, b| b.cmp(a));
        let (mut bytes, mut oldest) = (0, self.clock);
        for (used, size) in ages {
            if bytes > 0 && bytes + size > most {
                break;
            }
            bytes += size;
            oldest = used;
        }
        self.entries.retain(|_, entry| entry.used >= oldest);
        self.bytes = bytes;
    }
}

/// About how many bytes an overlay takes.
fn cost(overlay: &Overlay) -> usize {
    let around = overlay.before.iter().chain(&overlay.after);
    let segments = overlay.segments.iter().map(|segment| &segment.block);
    let texts = around.chain(segments).map(|text| text.len() + EACH);
    let edits = overlay.edits.iter().map(|edit| match &edit.change {
        Change::Payload(text) | Change::Block(text) => text.len() + EACH,
        Change::Gone => EACH,
        Change::Append(with) => EACH + with.len(),
    });
    texts.chain(edits).sum::<usize>() + 4 * EACH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::Edit;

    fn id(byte: u8) -> OverlayId {
        OverlayId::from_bytes([byte; 32])
    }

    fn of(bytes: usize) -> Arc<Overlay> {
        let edit = Edit {
            message: 0,
            block: 0,
            change: Change::Payload("x".repeat(bytes)),
        };
        Arc::new(Overlay {
            edits: vec![edit],
            ..Overlay::default()
        })
    }

    fn held(overlays: &Overlays) -> Vec<u8> {
        let held = overlays.held.lock().unwrap();
        let bytes: usize = held.entries.values().map(|entry| entry.bytes).sum();
        assert_eq!(bytes, held.bytes);
        (0..=255)
            .filter(|at| held.entries.contains_key(&id(*at)))
            .collect()
    }

    #[test]
    fn beyond_its_bytes_the_least_recently_used_go() {
        let overlays = Overlays::with_room_for(100_000);
        for at in 0..9 {
            overlays.put(id(at), of(10_000));
        }
        assert_eq!(held(&overlays).len(), 9);
        assert!(overlays.get(id(0)).is_some(), "a lineage that goes on");
        overlays.put(id(9), of(10_000));
        assert_eq!(held(&overlays), [0, 7, 8, 9]);
        assert!(overlays.get(id(1)).is_none());
    }

    #[test]
    fn many_small_ones_or_one_large_one_take_the_same_room() {
        let overlays = Overlays::with_room_for(100_000);
        for at in 0..=255 {
            overlays.put(id(at), of(1));
        }
        assert_eq!(held(&overlays).len(), 256);
        overlays.put(id(0), of(90_000));
        assert_eq!(held(&overlays), [0], "the newest is held whatever its size");
        overlays.put(id(0), of(1));
        overlays.put(id(1), of(1));
        assert_eq!(held(&overlays), [0, 1]);
    }
}
