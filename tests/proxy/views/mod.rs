//! Views: what an agent's history becomes on its way, turn after turn.

pub mod agent;
pub mod cast;
mod generate;
mod look;
mod talk;
mod world;

mod client_clears;
mod client_shapes;
mod control;
mod figures;
mod kinds;
mod learned_windows;
mod marks;
mod odd;
mod outgrown;
mod passes;
mod properties;
mod races;
mod reckoning;
mod refusal_bodies;
mod refusals;
mod restart;
mod spurious;
mod store_trouble;
mod stories;
pub mod transcripts;
pub mod wishes;
