//! Whether an agent could fetch again what its view leaves out.
//!
//! It is asked the way an agent would ask: by a reference that stands in the
//! view, for what was there or for the messages around it, read page by page to
//! its end. What comes back must have the very thing that is needed. So content
//! that is stored but that no reference leads to, or that comes back without it,
//! does not count.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::tokens::tokens;
use super::watch::{Need, Place};
use crate::engine::ids::Reference;
use crate::engine::overlay::{Change, Overlay};
use crate::engine::recall::reference::written;
use crate::metrics::Metrics;
use crate::recall::Recall;
use crate::store::Store;

/// What an agent can look in. What a reference stands for never changes, so each
/// is looked up once.
pub struct Reach {
    recall: Recall,
    known: HashMap<Reference, Answer>,
}

/// What a reference leads to.
#[derive(Default)]
struct Answer {
    text: String,
    tokens: HashSet<String>,
}

impl Reach {
    /// What can be recalled from a store.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, prometheus::Error> {
        Ok(Self {
            recall: Recall::new(store, Arc::new(Metrics::new()?)),
            known: HashMap::new(),
        })
    }

    /// Whether what is needed can be fetched under this overlay.
    pub async fn reaches(&mut self, need: &Need, overlay: &Overlay) -> bool {
        let mut asked = HashSet::new();
        for place in need.places.iter().rev() {
            for reference in references(overlay, *place) {
                if !asked.insert(reference) {
                    continue;
                }
                if !self.known.contains_key(&reference) {
                    let answer = self.expanded(reference).await;
                    self.known.insert(reference, answer);
                }
                let answer = self.known.get(&reference);
                if answer.is_some_and(|answer| answer.has(need)) {
                    return true;
                }
            }
        }
        false
    }

    /// All pages of what a reference stands for, as far as they can be had.
    async fn expanded(&self, reference: Reference) -> Answer {
        let text = self.recall.whole(reference).await.unwrap_or_default();
        let tokens = tokens(&text).map(str::to_owned).collect();
        Answer { text, tokens }
    }
}

impl Answer {
    fn has(&self, need: &Need) -> bool {
        // A rule is needed word for word.
        self.tokens.contains(&need.what) || (need.is_rule() && self.text.contains(&need.what))
    }
}

/// The references that a view shows for a place: in the stub of a block, or in
/// what stands for the messages that are hidden.
fn references(overlay: &Overlay, (message, block): Place) -> Vec<Reference> {
    if overlay.shows(message) {
        return match overlay.change_at(message, block) {
            Some(Change::Payload(json) | Change::Block(json)) => written(json).collect(),
            Some(Change::Gone | Change::Append(_)) | None => Vec::new(),
        };
    }
    let segments = overlay.segments.iter().filter(|segment| {
        let covered = segment.from as usize..segment.to as usize;
        covered.contains(&message)
    });
    let blocks = segments.map(|segment| &segment.block);
    // The API's own summary has its note behind the newest message.
    let notes = overlay.edits.iter().filter_map(|edit| match &edit.change {
        Change::Append(json) => Some(json),
        Change::Payload(_) | Change::Block(_) | Change::Gone => None,
    });
    let pieces = blocks.chain(&overlay.before).chain(&overlay.after);
    let pieces = pieces.chain(notes);
    pieces.flat_map(|piece| written(piece)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::{Edit, Origin, Segment};
    use crate::engine::recall::reference::shown;

    fn reference(number: u8) -> Reference {
        Reference::from_bytes([number; 10])
    }

    fn json(number: u8) -> String {
        format!(r#""archived as {}.""#, shown(reference(number)))
    }

    #[test]
    fn a_place_is_led_to_by_what_stands_for_it() {
        let segment = |from, to, number| Segment {
            block: json(number),
            from,
            to,
            origin: Origin::Summary,
            pinned: 0,
        };
        let edit = |message, change| Edit {
            message,
            block: 0,
            change,
        };
        let plain = Overlay {
            made_at: 9,
            head: 1,
            cut: 5,
            segments: vec![segment(1, 3, 1), segment(3, 5, 2)],
            edits: vec![edit(6, Change::Payload(json(3))), edit(7, Change::Gone)],
            ..Overlay::default()
        };
        let native = Overlay {
            made_at: 9,
            cut: 5,
            native: Some("{}".to_owned()),
            edits: vec![edit(8, Change::Append(json(4)))],
            ..Overlay::default()
        };
        let rows: [(&Overlay, usize, &[u8]); 8] = [
            (&plain, 0, &[]),
            (&plain, 2, &[1]),
            (&plain, 3, &[2]),
            (&plain, 6, &[3]),
            (&plain, 7, &[]),
            (&plain, 8, &[]),
            (&native, 0, &[4]),
            (&native, 8, &[]),
        ];
        for (overlay, message, expected) in rows {
            let expected: Vec<Reference> = expected.iter().copied().map(reference).collect();
            assert_eq!(references(overlay, (message, 0)), expected, "{message}");
        }
    }
}
