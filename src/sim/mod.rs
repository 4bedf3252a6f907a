//! The simulated upstream.
//!
//! A stand-in for the real API that validates, caches, bills, signs, streams
//! and fails like it, without a key or a network. It is the judge of the
//! proxy's tests and is written from what the API does, not from what the
//! proxy does: where the two could agree on a mistake, this side is stricter.
//!
//! | step | modules |
//! |---|---|
//! | who and what | `arrival`, `account`, `betas`, `encoding`, `request`, `fields`, `shape`, `block_types` |
//! | is it legal | `roles`, `system_messages`, `pairing`, `tools`, `thinking`, `marks`, `limits` |
//! | does thinking fit | `seal`, `binding`, `round_trip` |
//! | what the model sees | `threads`, `pieces`, `edits`, `prompt`, `canonical`, `tokens` |
//! | what it costs | `cache`, `diagnostics`, `prices`, `models` |
//! | what is said | `reply`, `rule`, `persona`, `summary`, `compose`, `message` |
//! | how it is sent | `stream`, `wire`, `fault`, `respond`, `serve` |
//! | how it is told | `routes`, `control`, `exchange`, `ledger`, `catalog` |

pub mod account;
mod arrival;
pub mod betas;
pub mod binding;
mod block_types;
pub mod cache;
pub mod canonical;
mod catalog;
mod compose;
mod control;
mod diagnostics;
pub mod edits;
mod encoding;
pub mod error;
mod exchange;
pub mod fault;
mod fields;
pub mod ledger;
mod limits;
pub mod marks;
pub mod message;
pub mod models;
pub mod options;
mod pairing;
pub mod persona;
pub mod pieces;
pub mod prices;
pub mod prompt;
pub mod reply;
pub mod request;
mod respond;
mod roles;
mod round_trip;
mod routes;
pub mod rule;
pub mod seal;
mod serve;
mod shape;
mod state;
mod stream;
mod summary;
mod system_messages;
#[cfg(test)]
mod testing;
pub mod thinking;
mod threads;
pub mod tokens;
mod tools;
mod wire;

pub use crate::clock::{Clock, Moment};
pub use fault::{Fault, Queued, Target};
pub use ledger::{Entry, Kind, Ledger, Outcome, Totals};
pub use options::{Enforcement, Key, ModelOverride, Options};
pub use persona::Persona;
pub use reply::Reply;
pub use rule::Rule;
pub use serve::Running;
pub use state::Sim;
