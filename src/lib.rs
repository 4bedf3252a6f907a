//! Longhaul: a reverse proxy that keeps long agent sessions inside their
//! context window.
pub mod config;
pub mod sim;
