//! What stands in the bytes: pure functions over what passes.
//!
//! Nothing here does I/O, reads a clock or keeps a connection. A decoder is fed
//! bytes in whatever pieces they arrive and gives back values; how the pieces
//! were cut never changes the result, and no input makes it fail loudly.

pub mod body;
pub mod canonical;
pub mod encoding;
pub mod fork;
pub mod letters;
pub mod native;
pub mod observe;
mod quote;
pub mod refusal;
pub mod reply;
pub mod report;
pub mod rewrite;
pub mod scan;
pub mod splice;
mod split;
pub mod sse;
pub mod unfold;
