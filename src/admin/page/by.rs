//! How somebody was let in to the web page.

/// How somebody was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// They are on this machine.
    Here,
    /// They sent the token.
    Token,
    /// They have signed in.
    Cookie,
    /// They were not.
    Nobody,
}
