//! What the metrics say of views, in one story.

use longhaul::sim::Options;

use super::cast::{BOUND, compacted};
use crate::support::{Proxy, simulated::Simulated};

#[test]
fn metrics_tell_of_passes_measures_and_the_store() {
    let upstream = Simulated::start(Options::default());
    let first = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &first, BOUND);
    agent.turn(&upstream, &first, 2);
    let value = |proxy: &Proxy, series: &str| {
        let series = format!("longhaul_{series}");
        proxy.metric(&series).unwrap_or(0.0)
    };
    let passes = "compactions_total{kind=\"clear\",outcome=\"committed\",trigger=\"manual\"}";
    assert!((value(&first, passes) - 1.0).abs() < 0.1);
    assert!(value(&first, "thinking_dropped_total{how=\"view\"}") > 2.0);
    let requests = value(&first, "view_tokens_count{stage=\"sent\"}");
    let entries = u32::try_from(upstream.entries().len()).unwrap();
    assert!((requests - f64::from(entries)).abs() < 0.1);
    let original = value(&first, "view_tokens_sum{stage=\"original\"}");
    let sent = value(&first, "view_tokens_sum{stage=\"sent\"}");
    assert!(0.0 < sent && sent < original);
    let measured = value(&first, "measure_error_ratio_count");
    let ratio = value(&first, "measure_error_ratio_sum") / measured;
    assert!(measured > 5.0 && (0.7..1.4).contains(&ratio), "{ratio}");
    for what in ["marks", "commit", "archive", "learned"] {
        assert!(value(&first, &format!("store_seconds_count{{op=\"{what}\"}}")) > 0.0);
        assert!(value(&first, &format!("store_errors_total{{op=\"{what}\"}}")) < 0.1);
    }
    assert!(value(&first, "fail_open_total{stage=\"store\"}") < 0.1);
    // Another proxy knows nothing of it, and heals what is refused.
    let second = Proxy::before(&upstream.sim.url());
    agent.turn(&upstream, &second, 1);
    assert!((value(&second, "reactive_retries_total{outcome=\"retried\"}") - 1.0).abs() < 0.1);
}
