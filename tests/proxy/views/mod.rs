//! Views: what an agent's history becomes on its way, turn after turn.

pub mod agent;

mod stories;
