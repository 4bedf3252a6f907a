//! The commands, a file each.
//!
//! A command turns its arguments into a call of the library and the outcome
//! into an exit code: 0 fine, 1 runtime failure, 2 bad usage or configuration.

pub mod check;
mod overrides;

pub use overrides::OverrideArgs;
