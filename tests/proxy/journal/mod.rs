//! What views have left out, asked back: by a model, by an operator.

mod lost;
mod player;
mod promised;
mod returned;
pub mod stock;

mod api;
mod cli;
mod client;
mod copied;
mod due;
mod fed;
mod hostile;
mod limited;
mod nothing_gone;
mod tools;
mod trouble;
mod wording;
