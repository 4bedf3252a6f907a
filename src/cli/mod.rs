//! The commands, a file each.
//!
//! A command turns its arguments into a call of the library and the outcome
//! into an exit code: 0 fine, 1 runtime failure, 2 bad usage or configuration.

pub mod check;
pub mod health;
mod logs;
mod overrides;
pub mod serve;
pub mod sim;

pub use overrides::OverrideArgs;

/// The exit code for bad usage or configuration.
const BAD_CONFIGURATION: u8 = 2;
