//! Longhaul: a reverse proxy that keeps long agent sessions inside their
//! context window.
pub mod cli;
pub mod config;
pub mod sim;
