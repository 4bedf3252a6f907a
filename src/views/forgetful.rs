//! What is forgotten costs work, and never makes a conversation look smaller
//! than it is.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::build::{Built, Plan, of_view};
use super::known::Known;
use super::recognise::Recognised;
use crate::engine::figures::Figures;
use crate::engine::ids::OverlayId;
use crate::engine::measure::raw_prompt;
use crate::engine::overlay::{Change, Edit, Overlay};
use crate::engine::swift::Key;

fn recognised(turns: usize) -> Recognised {
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({"role": role, "content": [{"type": "text", "text": "many words ".repeat(100)}]})
    };
    let messages: Vec<Value> = (0..turns).map(message).collect();
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    let (key, known) = (Key::new([7; 32]), Known::default());
    Recognised::new(Bytes::from(body), "t".into(), false, &key, &known).unwrap()
}

/// Figures that a newer program wrote, or that are damaged, are as good as none.
#[test]
fn figures_that_cannot_be_read_are_counted_anew_from_the_start() {
    let recognised = recognised(5);
    let place = recognised.hashes().1.get(2).copied();
    let stub = Edit {
        message: 2,
        block: 0,
        change: Change::Payload(r#""less""#.into()),
    };
    let overlay = Overlay {
        made_at: 3,
        edits: vec![stub],
        ..Overlay::default()
    };
    let overlay = (OverlayId::from_bytes([1; 32]), Arc::new(overlay));
    for overlay in [None, Some(overlay)] {
        let plan = Plan {
            overlay,
            figures: Figures::read(br#"{"version":99}"#),
            view: None,
        };
        let built = Built::make(&recognised, plan, Some((3, place)), false).unwrap();
        let whole = raw_prompt(&recognised.bytes, &recognised.body, u64::MAX);
        let (_, size) = of_view(&built.view, "t").unwrap();
        assert!(whole.messages.text > 900);
        assert_eq!(built.history, whole);
        assert_eq!(built.size, size);
    }
}
