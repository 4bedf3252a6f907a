//! The simulated upstream over a real socket.
//!
//! What its modules promise one by one is checked there; here whole requests
//! are sent and whole answers read. Each test names the fact it rests on.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests say what they expect, as tests do"
)]

#[path = "sim/support.rs"]
mod support;

#[path = "sim/basics.rs"]
mod basics;
#[path = "sim/binding.rs"]
mod binding;
#[path = "sim/caching.rs"]
mod caching;
#[path = "sim/compaction.rs"]
mod compaction;
#[path = "sim/control.rs"]
mod control;
#[path = "sim/edits.rs"]
mod edits;
#[path = "sim/faults.rs"]
mod faults;
#[path = "sim/same_message.rs"]
mod same_message;
#[path = "sim/summaries.rs"]
mod summaries;
#[path = "sim/threads.rs"]
mod threads;
#[path = "sim/tool_loops.rs"]
mod tool_loops;
