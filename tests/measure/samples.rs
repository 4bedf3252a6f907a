//! What samples miss: whole sessions counted with and without a budget.

use std::fmt::Write;

use longhaul::engine::measure::{BUDGET, raw_prompt};
use longhaul::wire::body::Body;
use serde_json::json;

use super::sessions;

#[test]
fn samples_are_near_the_exact_count() {
    for session in sessions::recorded() {
        let bytes = json!({"messages": session.messages})
            .to_string()
            .into_bytes();
        let body = Body::split(&bytes).unwrap();
        let exact = raw_prompt(&bytes, &body, u64::MAX).raw().total();
        let mut line = format!("{:<24} {:>8} bytes", session.name, bytes.len());
        for (budget, high) in [(BUDGET / 4, 5.0), (BUDGET, 3.0)] {
            let sampled = raw_prompt(&bytes, &body, budget).raw().total();
            #[allow(clippy::cast_precision_loss, reason = "a ratio of token counts")]
            let error = (sampled as f64 / exact as f64 - 1.0) * 100.0;
            write!(line, "  {:>3} KB {error:>6.2}%", budget / 1024).unwrap();
            assert!((-1.0..=high).contains(&error), "{line}");
        }
        println!("{line}");
    }
}
