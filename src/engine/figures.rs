//! What a mark remembers besides its overlay.
//!
//! The plan, so that the same request is rendered the same again; what upstream
//! said of it, so that the next one can be measured; and what the lineage has
//! been through. The stored form is JSON with a version; a field that is missing
//! takes its default, so that older figures stay readable, and what cannot be
//! read at all costs a count from the start and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::breaker::Breaker;
use super::cache_marks::{Basis, Held, Stable};
use super::ids::{ChainHash, OverlayId};
use super::measure::{Anchor, Base, Raw, Size};
use super::passed::Passed;
use super::policy::{Course, LongPrefix, Recent};
use super::trail::Trail;

const VERSION: u32 = 1;

/// A mark's figures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Figures {
    version: u32,
    /// This was the first request with its overlay.
    pub swap: bool,
    /// Where the request before had its last cache mark.
    pub previous: Option<(usize, usize)>,
    /// Where this one had its last.
    pub marked: Option<(usize, usize)>,
    /// Where a mark of ours stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ours: Option<(usize, usize)>,
    /// Where the part of the view ends that later passes leave as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<Stable>,
    /// A place that is kept in the cache for a summary up to there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Where recent requests ended, for the next such place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Held>,
    /// Whether the stable part is kept in the cache for longer.
    #[serde(skip_serializing_if = "LongPrefix::is_unused")]
    pub long: LongPrefix,
    /// From where the cache can still be read.
    pub trail: Trail,
    /// Upstream is asked to drop thinking that does not fit.
    pub drop_block: bool,
    /// A pass has left thinking that does not fit, and no answer has shown yet
    /// whether upstream minds.
    #[serde(skip_serializing_if = "is_false")]
    pub unfit: bool,
    /// The plan was made for a refusal and no answer has confirmed it: the one
    /// before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisional: Option<Box<Earlier>>,
    /// How long the client's cache lives, in seconds.
    pub lifetime: Option<u64>,
    /// The raw count of the history as the client sent it.
    history: Counts,
    /// The raw count of the view.
    view: Counts,
    /// System and tools.
    base: Counts,
    base_digest: String,
    /// Tokens of the prompt, as upstream counted them.
    pub prompt: Option<u64>,
    /// Tokens of the reply.
    pub output: Option<u64>,
    /// Tokens read from the cache.
    pub cache_read: Option<u64>,
    /// Tokens that the cache holds of this prompt.
    pub cached: Option<u64>,
    /// Tokens that passes keep out of the view.
    pub removed: u64,
    /// Tells the fields that the cache goes by besides system and tools.
    pub settings: u64,
    /// What the lineage has been through.
    pub course: Course,
    /// How large things have recently been.
    pub recent: Recent,
    /// The session's breaker, by requests.
    pub breaker: Breaker,
    /// What passes removed and the agent has fetched again.
    pub fetched: Vec<u64>,
    /// The pass that was made for this request, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<Passed>,
    /// Requests of the lineage so far, this one included.
    pub requests: u32,
    /// What tells the reply when the client sends it back: the ids of its calls.
    pub reply: Vec<String>,
    /// The factor that was known after this reply, as text: who has not seen the
    /// reply counts by it all the same.
    pub factor: String,
    /// A pass that an operator wishes for with the request that goes on from
    /// here, in these words, which may be none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wished: Option<String>,
    /// The model of this request has never had the conversation before.
    #[serde(skip)]
    pub new_model: bool,
    /// The overlays that other models have in this lineage; empty: none.
    pub others: BTreeMap<String, String>,
    /// The other models for which upstream is asked to drop thinking.
    pub others_drop: BTreeSet<String>,
}

/// A plan as it was before a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Earlier {
    /// Its overlay; empty: none.
    overlay: String,
    /// Its view.
    view: String,
    /// Whether it had been answered.
    pub sealed: bool,
    /// Its figures.
    pub figures: Figures,
}

impl Earlier {
    /// The plan with this overlay, view and figures.
    pub fn new(
        overlay: Option<OverlayId>,
        view: ChainHash,
        sealed: bool,
        figures: &Figures,
    ) -> Self {
        Self {
            overlay: overlay.map(|id| id.to_string()).unwrap_or_default(),
            view: view.to_string(),
            sealed,
            figures: Figures {
                version: VERSION,
                provisional: None,
                ..figures.clone()
            },
        }
    }

    /// Overlay and view; `None` if they cannot be read.
    pub fn plan(&self) -> Option<(Option<OverlayId>, ChainHash)> {
        let view = ChainHash::from_text(&self.view)?;
        if self.overlay.is_empty() {
            return Some((None, view));
        }
        Some((Some(OverlayId::from_text(&self.overlay)?), view))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Counts {
    text: u64,
    thinking: u64,
    fixed: u64,
}

impl From<Raw> for Counts {
    fn from(raw: Raw) -> Self {
        Self {
            text: raw.text,
            thinking: raw.thinking,
            fixed: raw.fixed,
        }
    }
}

impl From<Counts> for Raw {
    fn from(counts: Counts) -> Self {
        Self {
            text: counts.text,
            thinking: counts.thinking,
            fixed: counts.fixed,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(it: &bool) -> bool {
    !it
}

impl Figures {
    /// From the stored form; the default if it cannot be read.
    pub fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes)
            .ok()
            .filter(|figures: &Self| figures.version <= VERSION)
            .unwrap_or_default()
    }

    /// The stored form.
    pub fn store(&self) -> Vec<u8> {
        let figures = Self {
            version: VERSION,
            ..self.clone()
        };
        serde_json::to_vec(&figures).unwrap_or_default()
    }

    /// No place is kept for a summary.
    pub fn hold_no_place(&mut self) {
        self.held = None;
        self.ends.clear();
    }

    /// No place is kept in the cache by a mark of ours.
    pub fn keep_no_place(&mut self) {
        self.hold_no_place();
        self.stable = None;
        self.ours = None;
    }

    /// What the placement of cache marks goes by.
    pub fn basis(&self) -> Basis {
        Basis {
            swap: self.swap,
            previous: self.previous,
            stable: self.held.map(Held::place).or(self.stable),
            long: self.long.on,
        }
    }

    /// The sizes of the history and of the view; `None` if they were never
    /// noted, so that nobody takes them for zero.
    pub fn sizes(&self) -> Option<(Size, Size)> {
        if self.base_digest.is_empty() || self.history == Counts::default() {
            return None;
        }
        let mut digest = [0; 16];
        for (at, byte) in digest.iter_mut().enumerate() {
            let digits = self.base_digest.get(at * 2..at * 2 + 2);
            *byte = digits
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                .unwrap_or(0);
        }
        let base = Base {
            digest,
            raw: self.base.into(),
        };
        let sized = |messages: Counts| Size {
            base,
            messages: messages.into(),
        };
        Some((sized(self.history), sized(self.view)))
    }

    /// Notes the sizes of the history and of the view.
    pub fn set_sizes(&mut self, history: &Size, view: &Size) {
        self.history = history.messages.into();
        self.view = view.messages.into();
        self.base = view.base.raw.into();
        let hex = |byte: &u8| format!("{byte:02x}");
        self.base_digest = view.base.digest.iter().map(hex).collect();
    }

    /// What upstream said of the view, if it did.
    pub fn anchor(&self) -> Option<Anchor> {
        let tokens = self.prompt?;
        let (_, size) = self.sizes()?;
        Some(Anchor { tokens, size })
    }

    /// The overlay another model has in this lineage, if it is known.
    pub fn overlay_of(&self, model: &str) -> Option<Option<OverlayId>> {
        let stored = self.others.get(model)?;
        if stored.is_empty() {
            return Some(None);
        }
        let bytes: Option<Vec<u8>> = (0..stored.len() / 2)
            .map(|at| u8::from_str_radix(stored.get(at * 2..at * 2 + 2)?, 16).ok())
            .collect();
        OverlayId::from_slice(&bytes?).map(Some)
    }

    /// Notes the overlay that another model has in this lineage.
    pub fn set_overlay_of(&mut self, model: &str, overlay: Option<OverlayId>) {
        let stored = overlay.map(|id| id.to_string()).unwrap_or_default();
        self.others.insert(model.to_owned(), stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_what_is_read() {
        let mut figures = Figures {
            previous: Some((3, 1)),
            prompt: Some(1234),
            ..Figures::default()
        };
        let raw = |text| Raw {
            text,
            thinking: 2,
            fixed: 3,
        };
        let base = Base {
            digest: *b"0123456789abcdef",
            raw: raw(7),
        };
        let (history, view) = (
            Size {
                base,
                messages: raw(100),
            },
            Size {
                base,
                messages: raw(50),
            },
        );
        figures.set_sizes(&history, &view);
        figures.set_overlay_of("a", None);
        figures.set_overlay_of("b", Some(OverlayId::from_bytes([9; 32])));
        let read = Figures::read(&figures.store());
        assert_eq!(read.sizes(), Some((history, view)));
        assert_eq!(read.overlay_of("a"), Some(None));
        assert_eq!(
            read.overlay_of("b"),
            Some(Some(OverlayId::from_bytes([9; 32])))
        );
        assert_eq!(read.overlay_of("c"), None);
        assert_eq!(read.basis(), figures.basis());
    }

    #[test]
    fn what_cannot_be_read_is_as_good_as_nothing() {
        for bytes in [&b""[..], b"{", b"[]", br#"{"version":99,"prompt":1}"#] {
            assert_eq!(Figures::read(bytes), Figures::default());
            assert_eq!(Figures::read(bytes).sizes(), None, "not zero");
        }
        assert_eq!(Figures::read(br#"{"prompt":5}"#).prompt, Some(5));
    }
}
