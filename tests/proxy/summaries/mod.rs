//! Summaries: a session outlives its window, whatever its summarizer does.

mod stage;

mod basics;
mod breakers;
mod failures;
mod healing;
mod personas;
