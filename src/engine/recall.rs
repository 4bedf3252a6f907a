//! How what was left out is found again.
//!
//! What a view leaves out becomes entries (`entries.rs`): passages of its text
//! (`text.rs`, `passages.rs`) with the words they are found by (`terms.rs`). A
//! question gives words of the same kind; the entries that have some of them are
//! ranked in two steps (`rank.rs`), and what is shown of the best is sized for a
//! model (`show.rs`). Each has a reference (`reference.rs`) by which all of it is
//! asked for. Where entries are kept is nobody's concern here.

pub mod deferred;
pub mod entries;
pub mod entry;
pub mod passages;
pub mod rank;
pub mod reference;
pub mod show;
pub mod telling;
pub mod terms;
pub mod text;
