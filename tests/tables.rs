//! The proxy's model table and the simulator's are written apart; where they
//! speak of the same thing they must agree.
#![allow(clippy::unwrap_used, missing_docs)]

use longhaul::config::{Config, Price};
use longhaul::sim::models::all;
use longhaul::sim::prices::Prices;

#[test]
fn windows_minimums_bindings_and_prices_are_the_same_in_both() {
    let models = Config::default().models;
    for theirs in all() {
        let ours = models.lookup(theirs.id);
        let name = theirs.id;
        assert_eq!(models.label(name), name, "the proxy does not know {name}");
        assert_eq!(ours.window, theirs.window, "{name}");
        assert_eq!(ours.min_cacheable, theirs.min_cacheable, "{name}");
        assert_eq!(ours.binds_thinking, theirs.binds_thinking, "{name}");
        let Some(prices) = ours.prices(0) else {
            // Retired models, whose prices nobody publishes any more.
            let retired = [
                "claude-opus-4-1",
                "claude-opus-4",
                "claude-sonnet-4",
                "claude-haiku-3-5",
            ];
            assert!(retired.contains(&name), "no prices for {name}");
            continue;
        };
        same_prices(name, prices, &theirs.prices);
        let steps: Vec<_> = ours.price_steps().collect();
        let above: Vec<_> = theirs.step.iter().map(|step| step.above).collect();
        assert_eq!(steps, above, "{name}");
        if let Some(step) = &theirs.step {
            same_prices(name, ours.prices(step.above).unwrap(), &theirs.prices);
            same_prices(name, ours.prices(step.above + 1).unwrap(), &step.prices);
        }
    }
}

fn same_prices(name: &str, ours: longhaul::config::Prices, theirs: &Prices) {
    // Micro-dollars per million tokens are pico-dollars per token.
    let pico = Price::pico_dollars_per_token;
    let rows = [
        (ours.input, theirs.input),
        (ours.write_5m, theirs.write_5m),
        (ours.write_1h, theirs.write_1h),
        (ours.read, theirs.read),
        (ours.output, theirs.output),
    ];
    for (ours, theirs) in rows {
        assert_eq!(pico(ours), theirs, "{name}");
    }
}
