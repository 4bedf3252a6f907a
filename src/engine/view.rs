//! A view, ready to be sent: the client's bytes with every change made.
//!
//! Three things may change a body: the overlay, cache marks of ours, and the
//! request that upstream drop thinking which no longer fits. Each can be left
//! out on its own, because upstream may refuse each on its own. What a client
//! asks of the API, and the API does not know, can be left out too.

use bytes::Bytes;

use super::cache_marks::{self, Basis, Lifetime, Place, Placement};
use super::client_edits;
use super::conversation::Conversation;
use super::overlay::Overlay;
use super::render::{Misfit, render};
use crate::wire::native;
use crate::wire::scan::{Cursor, says};
use crate::wire::splice::{Overlap, Splice, joined, splice};

/// The name under which the API offers to drop thinking.
pub const DROP_BETA: &str = "thinking-binding-controls-2026-08-01";
const DROP: &str = r#""block_binding":{"prefix_mismatch_behavior":"drop_block"}"#;

/// What makes a view.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The overlay; none: the history as it is.
    pub overlay: Option<&'a Overlay>,
    /// Whether cache marks may be placed, and by what they go.
    pub marks: Option<Basis>,
    /// Whether upstream is asked to drop thinking that does not fit.
    pub drop_block: bool,
    /// Whether the clearing that the client asks for is left out, because it is
    /// not upstream that does it.
    pub without_client_clear: bool,
}

/// A body that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a change of its own")]
pub struct View {
    /// Its bytes, in pieces.
    pub pieces: Vec<Bytes>,
    /// It is not what the client sent.
    pub edited: bool,
    /// Cache marks were added or moved.
    pub added_marks: bool,
    /// Upstream is asked to drop thinking; the beta must be announced.
    pub added_drop: bool,
    /// A summary of the API's own stands in it; the beta must be announced.
    pub added_native: bool,
    /// Where the last cache mark stands.
    pub marked: Option<Place>,
    /// Where a mark of ours stands.
    pub ours: Option<Place>,
    /// How long the client's cache lives.
    pub lifetime: Option<Lifetime>,
}

/// Why there is no view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoView {
    /// The overlay is of another history.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// Changes contradict each other.
    #[error(transparent)]
    Overlap(#[from] Overlap),
}

impl View {
    /// Makes a view.
    pub fn make(
        bytes: &Bytes,
        conversation: &Conversation<'_>,
        recipe: Recipe<'_>,
    ) -> Result<Self, NoView> {
        let none = Overlay::default();
        let overlay = recipe.overlay.unwrap_or(&none);
        let is_ours = |basis: &Basis| !overlay.is_empty() || basis.stable.is_some() || basis.long;
        let basis = recipe.marks.filter(is_ours);
        let placement = cache_marks::place(conversation, overlay, basis.unwrap_or_default());
        let Placement {
            segment,
            changes: marks,
            last,
            ours,
            lifetime,
        } = placement;
        let added_marks = basis.is_some() && (!segment.is_empty() || !marks.is_empty());
        let segment = if added_marks { segment } else { "" };
        let mut changes = render(conversation, overlay, segment)?;
        if added_marks {
            changes.extend(marks);
        }
        let drop = recipe
            .drop_block
            .then(|| ask_to_drop(conversation))
            .flatten();
        let added_drop = drop.is_some();
        changes.extend(drop);
        if recipe.without_client_clear {
            let body = conversation.body();
            changes.extend(client_edits::without_clear(conversation.bytes(), body));
        }
        let edited = !changes.is_empty();
        Ok(Self {
            pieces: splice(bytes, changes)?,
            edited,
            added_marks,
            added_drop,
            added_native: overlay.native.is_some(),
            marked: last,
            ours: ours.filter(|_| added_marks),
            lifetime,
        })
    }

    /// The client's own bytes.
    pub fn original(bytes: Bytes) -> Self {
        Self {
            pieces: vec![bytes],
            edited: false,
            added_marks: false,
            added_drop: false,
            added_native: false,
            marked: None,
            ours: None,
            lifetime: None,
        }
    }

    /// The betas that must be announced with it.
    pub fn betas(&self) -> Vec<&'static str> {
        let drop = self.added_drop.then_some(DROP_BETA);
        let native = self.added_native.then_some(native::BETA);
        drop.into_iter().chain(native).collect()
    }

    /// Its bytes, counted.
    pub fn size(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    /// All of it in one piece.
    pub fn bytes(&self) -> Bytes {
        joined(&self.pieces)
    }
}

/// Whether upstream can be asked to drop thinking that does not fit.
pub fn can_ask_to_drop(conversation: &Conversation<'_>) -> bool {
    ask_to_drop(conversation).is_some()
}

/// Asks upstream to drop thinking that does not fit; `None` if the client says
/// itself what to do, or has switched thinking off.
fn ask_to_drop(conversation: &Conversation<'_>) -> Option<Splice> {
    let (bytes, body) = (conversation.bytes(), conversation.body());
    let Some(thinking) = body.field(bytes, "thinking") else {
        // Thinking is on unless a request says otherwise, and adaptive.
        let first = body.fields().first()?;
        let field = format!(r#""thinking":{{"type":"adaptive",{DROP}}},"#);
        return Some(Splice::insert(first.key.start(), field));
    };
    let value = thinking.of(bytes);
    let mut cursor = Cursor::new(value);
    cursor.expect(b'{').ok()?;
    let (mut first, mut members) = (true, 0);
    while let Some(key) = cursor.key(&mut first).ok()? {
        let said = cursor.value().ok()?;
        let is_off = says(key.span.of(value), "type") && says(said.of(value), "disabled");
        if is_off || says(key.span.of(value), "block_binding") {
            return None;
        }
        members += 1;
    }
    let comma = if members > 0 { "," } else { "" };
    let brace = thinking.end().checked_sub(1)?;
    Some(Splice::insert(brace, format!("{comma}{DROP}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::body::Body;
    use serde_json::{Value, json};

    fn made(source: &str, drop_block: bool) -> (View, Value) {
        let bytes = Bytes::from(source.to_owned());
        let body = Body::split(&bytes).unwrap();
        let conversation = Conversation::new(&bytes, &body);
        let recipe = Recipe {
            overlay: None,
            marks: Some(Basis::default()),
            drop_block,
            without_client_clear: drop_block,
        };
        let view = View::make(&bytes, &conversation, recipe).unwrap();
        let value = serde_json::from_slice(&view.bytes()).unwrap();
        (view, value)
    }

    /// Wherever the two stand to each other.
    #[test]
    fn what_the_client_wants_cleared_can_be_left_out_beside_all_else() {
        let clear = r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}"#;
        for source in [
            format!(r#"{{{clear},"model":"m","messages":[]}}"#),
            format!(r#"{{"thinking":{{"type":"adaptive"}},{clear},"model":"m","messages":[]}}"#),
            format!(r#"{{"model":"m","messages":[],{clear}}}"#),
            format!(r#"{{{clear},"thinking":{{"type":"disabled"}},"messages":[]}}"#),
        ] {
            let (view, value) = made(&source, true);
            assert!(view.edited);
            assert_eq!(value.get("context_management"), None, "{source}");
            assert_eq!(
                view.added_drop,
                value["thinking"].get("block_binding").is_some()
            );
            let (view, value) = made(&source, false);
            assert!(!view.edited && value.get("context_management").is_some());
        }
    }

    #[test]
    fn upstream_is_asked_to_drop_in_the_client_s_own_words() {
        let expected = json!({"prefix_mismatch_behavior": "drop_block"});
        for thinking in [
            "",
            r#""thinking": {"type":"adaptive", "display":"omitted" },"#,
            r#""thinking":{},"#,
        ] {
            let source = format!(r#"{{{thinking}"model":"m","messages":[]}}"#);
            let (view, value) = made(&source, true);
            assert!(view.edited && view.added_drop);
            assert_eq!(value["thinking"]["block_binding"], expected, "{source}");
        }
        for thinking in [
            r#""thinking":{"type":"disabled"},"#,
            r#""thinking":{"block_binding":{}},"#,
            r#""thinking":null,"#,
        ] {
            let source = format!(r#"{{{thinking}"model":"m","messages":[]}}"#);
            let (view, _) = made(&source, true);
            assert!(!view.edited && !view.added_drop, "{source}");
            assert_eq!(view.bytes(), source);
        }
    }

    #[test]
    fn without_anything_to_do_the_client_s_bytes_are_shared() {
        let (view, _) = made(
            r#"{"model":"m", "messages":[{"role":"user","content":"x"}]}"#,
            false,
        );
        assert_eq!(view.pieces.len(), 1);
        assert!(!view.edited);
    }
}
