//! The commands, a file each.
//!
//! A command turns its arguments into a call of the library and the outcome
//! into an exit code: 0 fine, 1 runtime failure, 2 bad usage or configuration.

pub mod check;
pub mod demo;
mod desk;
mod exposure;
pub mod health;
pub mod journal;
mod log_file;
mod logs;
mod overrides;
mod progress;
pub mod replay;
pub mod run;
pub mod serve;
pub mod sessions;
mod signals;
pub mod sim;
pub mod store;

pub use desk::StoreArgs;
pub use overrides::OverrideArgs;

/// The exit code for bad usage or configuration.
const BAD_CONFIGURATION: u8 = 2;
