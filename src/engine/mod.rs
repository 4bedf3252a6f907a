//! What is decided, as pure functions over values.
//!
//! No I/O, no clock, no randomness: time, prices and counts are arguments, and a
//! decision is returned as a value for the shell to carry out.

pub mod chain;
pub mod ids;
pub mod measure;
