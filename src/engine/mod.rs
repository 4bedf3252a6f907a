//! What is decided, as pure functions over values.
//!
//! No I/O, no clock, no randomness: time, prices and counts are arguments, and a
//! decision is returned as a value for the shell to carry out.

pub mod accounts;
pub mod acts;
pub mod archive;
pub mod beside;
pub mod bound;
pub mod breaker;
pub mod cache_marks;
pub mod candidates;
pub mod chain;
pub mod client_edits;
pub mod conversation;
pub mod credential;
pub mod digest;
pub mod facts;
pub mod fallback;
pub mod figures;
pub mod handoff;
#[cfg(test)]
mod hostile;
pub mod ids;
pub mod journal_quota;
pub mod legal;
#[cfg(test)]
mod mark_properties;
pub mod measure;
pub mod money;
pub mod native;
pub mod notice;
pub mod numerals;
pub mod opening;
pub mod overlay;
pub mod passed;
pub mod pinned;
pub mod policy;
#[cfg(test)]
mod properties;
pub mod recall;
pub mod recovery;
pub mod reduce;
pub mod render;
pub mod request;
pub mod rereads;
pub mod span;
pub mod split;
pub mod status;
pub mod stub;
pub mod summary;
pub mod swift;
#[cfg(test)]
mod testing;
pub mod tiers;
pub mod trail;
pub mod trim;
pub mod view;
pub mod weigh;
