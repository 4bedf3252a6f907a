//! Longhaul: a reverse proxy that keeps long agent sessions inside their
//! context window.
pub mod app;
pub mod cli;
pub mod config;
pub mod metrics;
pub mod server;
pub mod sim;
pub mod upstream;
pub mod wire;
