//! The packed form of a blob or a segment: one Zstandard frame with a checksum.
//!
//! What a view leaves out is mostly tool output, which shrinks to a fifth and
//! less. The checksum turns a bit that flipped on disk into an error instead of
//! into other words.

use std::io::{Read, Write};

use super::StoreError;

/// Higher levels cost several times the time for a few percent.
const LEVEL: i32 = 3;

/// Packs content.
pub fn pack(content: &[u8]) -> Result<Vec<u8>, StoreError> {
    let packed = || {
        let mut encoder = zstd::Encoder::new(Vec::with_capacity(content.len() / 3 + 64), LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.write_all(content)?;
        encoder.finish()
    };
    packed().map_err(|error| StoreError::Failed(format!("cannot pack content: {error}")))
}

/// Unpacks what [`pack`] made.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut content = Vec::with_capacity(packed.len() * 4);
    zstd::Decoder::with_buffer(packed)
        .and_then(|mut decoder| decoder.read_to_end(&mut content))
        .map_err(|error| StoreError::Failed(format!("stored content is damaged: {error}")))?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_comes_back_as_it_was() {
        for content in [Vec::new(), b"a".to_vec(), vec![7; 100_000]] {
            assert_eq!(unpack(&pack(&content).unwrap()).unwrap(), content);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let packed = pack(b"the words of a tool, which may not become others").unwrap();
        for at in 0..packed.len() {
            let mut flipped = packed.clone();
            flipped[at] ^= 1;
            let content = unpack(&flipped).unwrap_or_default();
            assert!(content.is_empty() || content.starts_with(b"the words"));
        }
    }
}
