//! The web page at `/longhaul/`: what it shows, to whom, and what it does not let
//! through; and all of it in a real browser.

mod browser;
mod guarded;
mod hostile;
mod paged;
mod shown;
pub mod visitor;
