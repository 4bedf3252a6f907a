//! A long session, played with Longhaul and without, for somebody to watch.
//!
//! Everything that happens is real but the API and the agent: the proxy with its
//! usual settings, its policy, its summaries, the simulator's cache and prices.
//! The agent's day is made from a seed, so that everybody sees the same; it is
//! played by [`crate::replay`], and needs no key and no network.
//!
//! | step | modules |
//! |---|---|
//! | what the agent does | `dice`, `text`, `day` |
//! | what is known of it so far | `scene` |
//! | how it is shown | `frame` on a terminal, `lines` elsewhere, `table` at the end |

pub mod day;
mod dice;
pub mod frame;
pub mod lines;
pub mod scene;
pub mod table;
mod text;

/// The model whose day it is: the one that most clients ask for by default.
pub const MODEL: &str = "claude-opus-5-5";
