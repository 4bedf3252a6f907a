//! Signatures of thinking and of compaction blocks.
//!
//! A signature carries what it vouches for and a keyed hash over it, so the
//! simulator needs no memory to check one, and one simulator accepts what
//! another one signed, as the real platforms do.

use std::fmt::Write;

use super::canonical::Digest;

/// What the signature of a thinking block vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkingSeal {
    /// Id of the model that thought.
    pub model: String,
    /// Organization it thought for.
    pub organization: String,
    /// Everything before the block when it was made.
    pub prefix: Digest,
    /// The text of the block as it was handed out.
    pub content: Digest,
    /// The reply the block is part of.
    pub reply: String,
    /// Which of the reply's thinking blocks it is.
    pub index: u64,
    /// How many thinking blocks the reply has.
    pub total: u64,
    /// Its size in tokens, which the text need not show.
    pub tokens: u64,
}

/// What the signature of a compaction block vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionSeal {
    /// The summary.
    pub content: Digest,
    /// System and tools of the request that was compacted.
    pub base: Digest,
    /// What the summarised messages come to, in every way they may be continued.
    pub ends: Vec<Digest>,
    /// Whether the last summarised message was the assistant's.
    pub after_assistant: bool,
    /// Whether this and every earlier compaction ran on a model that binds thinking.
    pub bound: bool,
    /// The conversation, for the ledger.
    pub conversation: String,
}

const SECRET: &str = "longhaul simulator, signatures, version 1";
const MAC_CHARS: usize = 32;

impl ThinkingSeal {
    /// The signature.
    pub fn sign(&self) -> String {
        sign(&format!(
            "t|{}|{}|{}|{}|{}|{}|{}|{}",
            self.model,
            self.organization,
            self.prefix,
            self.content,
            self.reply,
            self.index,
            self.total,
            self.tokens
        ))
    }

    /// What a signature vouches for, if it is a genuine one.
    pub fn open(signature: &str) -> Option<Self> {
        let payload = open(signature)?;
        let mut parts = payload.split('|');
        if parts.next() != Some("t") {
            return None;
        }
        Some(Self {
            model: parts.next()?.to_owned(),
            organization: parts.next()?.to_owned(),
            prefix: Digest::parse(parts.next()?)?,
            content: Digest::parse(parts.next()?)?,
            reply: parts.next()?.to_owned(),
            index: parts.next()?.parse().ok()?,
            total: parts.next()?.parse().ok()?,
            tokens: parts.next()?.parse().ok()?,
        })
    }
}

impl CompactionSeal {
    /// The signature.
    pub fn sign(&self) -> String {
        let ends: Vec<_> = self.ends.iter().map(ToString::to_string).collect();
        sign(&format!(
            "c|{}|{}|{}|{}|{}|{}",
            self.content,
            self.base,
            ends.join(","),
            u8::from(self.after_assistant),
            u8::from(self.bound),
            self.conversation
        ))
    }

    /// What a signature vouches for, if it is a genuine one.
    pub fn open(signature: &str) -> Option<Self> {
        let payload = open(signature)?;
        let mut parts = payload.split('|');
        if parts.next() != Some("c") {
            return None;
        }
        Some(Self {
            content: Digest::parse(parts.next()?)?,
            base: Digest::parse(parts.next()?)?,
            ends: parts.next()?.split(',').filter_map(Digest::parse).collect(),
            after_assistant: parts.next()? == "1",
            bound: parts.next()? == "1",
            conversation: parts.next()?.to_owned(),
        })
    }
}

fn sign(payload: &str) -> String {
    let hex = |mut all: String, byte| {
        // Writing to a string cannot fail.
        let _ = write!(all, "{byte:02x}");
        all
    };
    let mut signature = payload.bytes().fold(String::new(), hex);
    signature.push_str(&mac(payload));
    signature
}

fn open(signature: &str) -> Option<String> {
    let cut = signature.len().checked_sub(MAC_CHARS)?;
    let (hex, claimed) = signature.split_at_checked(cut)?;
    let bytes: Option<Vec<u8>> = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    let payload = String::from_utf8(bytes?).ok()?;
    (mac(&payload) == claimed).then_some(payload)
}

fn mac(payload: &str) -> String {
    let key = blake3::derive_key(SECRET, b"");
    blake3::keyed_hash(&key, payload.as_bytes())
        .to_hex()
        .chars()
        .take(MAC_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinking() -> ThinkingSeal {
        ThinkingSeal {
            model: "claude-opus-5-5".to_owned(),
            organization: "org_1".to_owned(),
            prefix: Digest::of("prefix"),
            content: Digest::of("content"),
            reply: "msg_1".to_owned(),
            index: 0,
            total: 2,
            tokens: 17,
        }
    }

    #[test]
    fn seals_survive_their_text_form() {
        let seal = thinking();
        assert_eq!(ThinkingSeal::open(&seal.sign()), Some(seal));
        let seal = CompactionSeal {
            content: Digest::of("s"),
            base: Digest::of("b"),
            ends: vec![Digest::of("1"), Digest::of("2")],
            after_assistant: true,
            bound: false,
            conversation: "c".to_owned(),
        };
        assert_eq!(CompactionSeal::open(&seal.sign()), Some(seal));
    }

    #[test]
    fn a_forged_seal_does_not_open() {
        let signature = thinking().sign();
        let forged = format!("0{}", &signature[1..]);
        for bad in [
            forged.as_str(),
            "",
            "EqQBCkYIARgCKkA",
            &signature[1..],
            "zz",
        ] {
            assert_eq!(ThinkingSeal::open(bad), None);
        }
        assert_eq!(CompactionSeal::open(&signature), None);
    }
}
