//! What views have left out, asked back: by a model, by an operator.

mod api;
mod cli;
mod client;
mod copied;
mod hostile;
mod stock;
mod tools;
