//! Freeze tests: what the proxy does today, pinned to the byte.
//!
//! They say nothing about whether a behaviour is right. They hold it still while
//! the code is restructured: every body and header that upstream and the
//! summarizer get, what the client is told, what is stored, and every name that
//! others rely on. The pinned values are the text files in `tests/freeze`, one
//! line a request, so that a diff shows which request changed.
//!
//! After a deliberate change, write the files again and read the diff:
//!
//! ```sh
//! LONGHAUL_FREEZE=write cargo test --locked --test proxy -- freeze::
//! ```
//!
//! `LONGHAUL_FREEZE=bodies` compares as usual and keeps every body under
//! `target/tmp/freeze`; run it before and after a change to see both.
//!
//! `tests/freeze/stored` is different: those are databases that a released version
//! has left behind. They are written only where they are missing. To make them
//! anew, remove that folder first.

mod admin;
mod faults;
mod forms;
mod hashes;
mod metrics;
mod passes;
mod pins;
mod record;
mod replicas;
mod rows;
mod stage;
mod stored;
mod texts;
