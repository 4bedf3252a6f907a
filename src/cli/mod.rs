//! The commands, a file each.

pub mod check;
mod overrides;

pub use overrides::OverrideArgs;
