//! Sizes that are estimated, against the simulator's own counts.
//!
//! The simulator counts with a drift that the estimate is not told, as the real
//! tokenizers are not public either. Conversations grow message by message, as
//! agents send them: before the first reply an estimate may be too high but
//! hardly too low, and from the first reply on it must be near. Recordings of
//! real sessions are used where there are any (see `recordings`); a made-up session
//! is always there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests say what they expect, as tests do"
)]

#[path = "measure/growth.rs"]
mod growth;
#[path = "measure/hostile.rs"]
mod hostile;
#[path = "measure/live.rs"]
mod live;
mod recordings;
#[path = "measure/samples.rs"]
mod samples;
#[path = "measure/sessions.rs"]
mod sessions;
