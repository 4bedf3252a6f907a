//! placeholder
pub mod client;
pub mod errand;
pub mod gates;
pub mod sender;
