//! Views: what an agent's history becomes on its way, turn after turn.

pub mod agent;
mod generate;
mod look;
mod talk;
mod world;

mod odd;
mod properties;
mod stories;
mod transcripts;
