//! The API's own summary, as a part of a view.
//!
//! It is signed, stands first, and takes the place of exactly the messages it was
//! made from. What follows must be what followed then, to the byte: then the
//! thinking in it stays valid, which no summary of ours can do. So nothing else
//! is changed with it. The user's first words are inside it; they and what is
//! pinned follow once more behind the newest message, where they break nothing.

/// A summary of the API's that lies ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// The first message of the tail.
    pub to: u32,
    /// The block that the API gave, as JSON.
    pub block: String,
    /// The text block with what is pinned, as JSON; may be empty.
    pub note: String,
}
