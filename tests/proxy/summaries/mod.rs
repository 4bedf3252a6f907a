//! Summaries: a session outlives its window, whatever its summarizer does.

mod doomed;
mod stage;
mod witness;

mod again;
mod basics;
mod facts;
mod killed;
mod native;
