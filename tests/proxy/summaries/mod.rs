//! Summaries: a session outlives its window, whatever its summarizer does.

mod doomed;
mod stage;
mod witness;

mod basics;
mod killed;
