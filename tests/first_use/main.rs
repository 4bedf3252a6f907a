//! What somebody meets first: the README's commands, `longhaul run`, the demo.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

mod attacked;
#[path = "../cluster/mod.rs"]
mod cluster;
mod commands;
mod counted;
mod linked;
mod readme;
mod refused;
mod running;
#[allow(dead_code)]
#[path = "../proxy/support/sdk.rs"]
mod sdk;
mod shown;
#[path = "../proxy/support/simulated.rs"]
mod simulated;
mod world;
