//! The client's marks on tools and system, and how they are kept for longer.

use super::{Lifetime, NONE, Placement, lifetime, shown};
use crate::engine::conversation::Conversation;
use crate::engine::overlay::Overlay;
use crate::wire::body::Body;
use crate::wire::scan::{Cursor, Span, says};
use crate::wire::splice::Splice;

/// The values of the client's marks in an array of blocks or tools, in order.
fn marks_in(bytes: &[u8], array: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let inner = array.of(bytes);
    let mut cursor = Cursor::new(inner);
    if cursor.expect(b'[').is_err() {
        return found;
    }
    let mut first = true;
    while let Ok(true) = cursor.element(&mut first) {
        if cursor.peek() != Some(b'{') {
            if cursor.value().is_err() {
                break;
            }
            continue;
        }
        if cursor.expect(b'{').is_err() {
            break;
        }
        let mut first = true;
        while let Ok(Some(key)) = cursor.key(&mut first) {
            let Ok(value) = cursor.value() else {
                return found;
            };
            if says(key.span.of(inner), "cache_control") && value.of(inner) != NONE {
                found.push(array.within(value));
            }
        }
    }
    found
}

/// The values of the client's marks on tools and system, in order.
pub(super) fn fixed(bytes: &[u8], body: &Body) -> Vec<Span> {
    ["tools", "system"]
        .into_iter()
        .filter_map(|name| body.field(bytes, name))
        .flat_map(|span| marks_in(bytes, span))
        .collect()
}

/// Asks for an hour for system, tools and segments. Longer lifetimes must stand
/// first, so the segments have it only where no mark of the client's stands between.
pub(super) fn keep_for_longer(
    conversation: &Conversation<'_>,
    overlay: &Overlay,
    to: &mut Placement,
) {
    let (bytes, body) = (conversation.bytes(), conversation.body());
    let fixed = fixed(bytes, body);
    let longer = |mark: &Span| {
        let value = lifetime::lengthened(mark.of(bytes))?;
        Some(Splice::replace(mark.range(), value))
    };
    to.changes.extend(fixed.iter().filter_map(longer));
    let first = shown(conversation, overlay).into_iter().next();
    let between = first.is_some_and(|mark| mark.place.0 < overlay.cut as usize);
    if !to.segment.is_empty() && !between {
        to.segment = Lifetime::Long.mark();
    }
}
