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

            /// From the text that it is written as; `None` if it is another one.
            pub fn from_text(text: &str) -> Option<Self> {
                let (pairs, rest) = text.as_bytes().as_chunks::<2>();
                if pairs.len() != $size || !rest.is_empty() {
                    return None;
                }
                let digit = |byte: u8| match byte {
                    b'0'..=b'9' => Some(byte - b'0'),
                    b'a'..=b'f' => Some(byte - b'a' + 10),
                    _ => None,
                };
                let mut bytes = [0; $size];
                for (to, [high, low]) in bytes.iter_mut().zip(pairs) {
                    *to = digit(*high)? << 4 | digit(*low)?;
                }
                Some(Self(bytes))
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
digest!(
    /// A finished segment, by what it was made from: the tenant, the span it
    /// closes and the settings that shaped it. Whoever would make the same one
    /// can look for it before there is anything to hash.
    SegmentId, 32
);

digest!(
    /// What a view shows instead of something, and by which it is asked for. It
    /// is permission too, so it is derived from all of a conversation, and
    /// whoever has not seen that cannot make it up.
    Reference, 10
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_not_otherwise() {
        let id = LineageId::from_bytes([0x0f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xa9]);
        let text = id.to_string();
        assert_eq!(LineageId::from_text(&text), Some(id));
        for other in [
            String::new(),
            text.to_uppercase(),
            text[1..].to_owned(),
            format!("{text}0"),
            format!("{text}00"),
            text.replace('f', "g"),
            text.replace("0f", "\u{e9}"),
        ] {
            assert_eq!(LineageId::from_text(&other), None, "{other}");
        }
    }
}
