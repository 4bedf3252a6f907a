//! placeholder
pub mod client;
pub mod sender;
