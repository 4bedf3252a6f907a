//! The names by which things are remembered: fixed-size digests, one type each.
//!
//! All of them come out of BLAKE3 and can neither be guessed nor made to
//! collide, so they may be used as keys across processes. Each is derived from
//! something that already contains the tenant, so none needs it beside it.

use std::fmt;

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident, $size:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; $size]);

        impl $name {
            /// From its bytes.
            pub fn from_bytes(bytes: [u8; $size]) -> Self {
                Self(bytes)
            }

            /// From bytes of any length; `None` if it is not the right one.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }

            /// From a longer digest, whose beginning it is.
            pub fn beginning(digest: &[u8; 32]) -> Self {
                let mut bytes = [0; $size];
                for (to, from) in bytes.iter_mut().zip(digest) {
                    *to = *from;
                }
                Self(bytes)
            }

            /// The bytes.
            pub fn as_bytes(&self) -> &[u8; $size] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let [a, b, c, d, ..] = self.0;
                write!(f, concat!(stringify!($name), "({:02x}{:02x}{:02x}{:02x})"), a, b, c, d)
            }
        }
    };
}

digest!(
    /// The hash of a conversation up to some message, or of a view of it.
    ChainHash, 32
);
digest!(
    /// An overlay, by the hash of its stored form.
    OverlayId, 32
);
digest!(
    /// A lineage: what a person calls a session.
    LineageId, 16
);
digest!(
    /// What a client says about which session a request belongs to, hashed with
    /// its tenant. Never proof, only a hint where to look.
    Hint, 16
);
digest!(
    /// A piece of content, by its hash with its tenant.
    BlobId, 32
);
