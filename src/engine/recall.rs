//! How what was left out is found again: what an entry of the journal is.

pub mod entry;
pub mod reference;
pub mod telling;
