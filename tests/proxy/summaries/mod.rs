//! Summaries: a session outlives its window, whatever its summarizer does.

mod stage;

mod again;
mod basics;
mod facts;
mod latency;
mod opening;
mod recorded;
mod sharing;
mod wishes;
