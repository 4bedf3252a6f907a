//! Summaries: a session outlives its window, whatever its summarizer does.

mod doomed;
pub mod stage;
mod witness;

mod again;
mod basics;
mod breakers;
mod carried;
mod facts;
mod failures;
mod healing;
mod in_journal;
mod killed;
mod latency;
mod manual;
mod native;
mod opening;
mod personas;
mod plan;
mod recorded;
mod sharing;
mod wishes;
