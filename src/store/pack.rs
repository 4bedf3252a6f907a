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
    packed().map_err(unpackable)
}

/// Unpacks what [`pack`] made.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut content = Vec::with_capacity(packed.len() * 4);
    zstd::Decoder::with_buffer(packed)
        .and_then(|mut decoder| decoder.read_to_end(&mut content))
        .map_err(|error| StoreError::Failed(format!("stored content is damaged: {error}")))?;
    Ok(content)
}

/// What is shorter gains nothing by being packed.
const SHORT: usize = 512;

/// Something that may be short: packed if that makes it smaller. The first byte
/// says which.
pub fn fold(content: &[u8]) -> Result<Vec<u8>, StoreError> {
    let packed = if content.len() > SHORT {
        let mut zstd = zstd::bulk::Compressor::new(LEVEL).map_err(unpackable)?;
        zstd.include_checksum(true).map_err(unpackable)?;
        let packed = zstd.compress(content).map_err(unpackable)?;
        Some(packed).filter(|packed| packed.len() < content.len())
    } else {
        None
    };
    let (kind, body) = match &packed {
        Some(packed) => (PACKED, packed.as_slice()),
        None => (PLAIN, content),
    };
    Ok([&[kind], body].concat())
}

const PLAIN: u8 = 0;
const PACKED: u8 = 1;

/// What [`fold`] was given.
pub fn unfold(folded: &[u8]) -> Result<Vec<u8>, StoreError> {
    match folded.split_first() {
        Some((&PLAIN, content)) => Ok(content.to_vec()),
        Some((&PACKED, packed)) => unpack(packed),
        _ => Err(StoreError::Failed("stored content is damaged".to_owned())),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it ends a chain of calls")]
fn unpackable(error: std::io::Error) -> StoreError {
    StoreError::Failed(format!("cannot pack content: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_folded_comes_back_and_long_things_are_smaller() {
        for content in [Vec::new(), b"a".to_vec(), vec![7; 513], vec![7; 100_000]] {
            let folded = fold(&content).unwrap();
            assert!(folded.len() <= content.len() + 1);
            assert_eq!(unfold(&folded).unwrap(), content);
        }
        assert!(fold(&vec![7; 513]).unwrap().len() < 100);
        for damaged in [&[][..], &[2, 1], &[1, 0, 0]] {
            unfold(damaged).unwrap_err();
        }
    }

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
