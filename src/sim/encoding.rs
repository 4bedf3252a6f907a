//! Compressed request bodies.
//!
//! Clients may compress what they send. The limit holds for the body as it is
//! after decoding, so a small body cannot unpack into an endless one.

use std::io::Read;

use bytes::Bytes;

use super::error::{ApiError, Checked};

/// The body behind its `content-encoding`, at most `limit` bytes of it.
pub fn decode(body: &Bytes, encoding: Option<&str>, limit: usize) -> Checked<Bytes> {
    let raw: &[u8] = body;
    let unpacked = match encoding.map(str::trim) {
        None | Some("" | "identity") => return within(body.clone(), limit),
        Some("gzip") => read(flate2::read::MultiGzDecoder::new(raw), limit),
        Some("deflate") => read(flate2::read::ZlibDecoder::new(raw), limit),
        Some("zstd") => match zstd::stream::read::Decoder::new(raw) {
            Ok(decoder) => read(decoder, limit),
            Err(error) => Err(error),
        },
        Some("br") => read(brotli::Decompressor::new(raw, 4096), limit),
        Some(other) => {
            return Err(
                ApiError::new(415, format!("Unsupported content-encoding: {other}"))
                    .with_code("request_body_encoding_unsupported"),
            );
        }
    };
    match unpacked {
        Ok(bytes) => within(bytes, limit),
        Err(_) => Err(ApiError::invalid("The request body could not be decoded")
            .with_code("request_body_encoding_invalid")),
    }
}

fn read(decoder: impl Read, limit: usize) -> std::io::Result<Bytes> {
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut plain = Vec::new();
    decoder.take(cap).read_to_end(&mut plain)?;
    Ok(Bytes::from(plain))
}

fn within(body: Bytes, limit: usize) -> Checked<Bytes> {
    if body.len() > limit {
        return Err(too_large());
    }
    Ok(body)
}

/// 413, as it is answered for a body over the limit.
pub fn too_large() -> ApiError {
    ApiError::new(413, "Request exceeds the maximum size")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        Bytes::from(encoder.finish().unwrap())
    }

    /// Fact: request bodies may be compressed.
    #[test]
    fn the_usual_encodings_are_decoded() {
        let text = b"{\"model\":\"m\"}";
        let zstd = Bytes::from(zstd::encode_all(&text[..], 1).unwrap());
        let mut brotli = Vec::new();
        brotli::CompressorWriter::new(&mut brotli, 4096, 3, 20)
            .write_all(text)
            .unwrap();
        let cases = [
            (Bytes::from_static(text), None),
            (gzip(text), Some("gzip")),
            (zstd, Some("zstd")),
            (Bytes::from(brotli), Some("br")),
        ];
        for (body, encoding) in cases {
            assert_eq!(
                decode(&body, encoding, 100).unwrap(),
                &text[..],
                "{encoding:?}"
            );
        }
    }

    /// Fact: a body over the limit is answered with 413, also when it was small on the wire.
    #[test]
    fn the_limit_holds_after_decoding() {
        let error = decode(&gzip(&[b' '; 1000]), Some("gzip"), 100).unwrap_err();
        assert_eq!((error.status, error.kind), (413, "request_too_large"));
        assert_eq!(
            decode(&Bytes::from_static(b"12345"), None, 4)
                .unwrap_err()
                .status,
            413
        );
    }

    /// Fact: a broken or unknown encoding has its own error code.
    #[test]
    fn broken_encodings_are_refused() {
        let broken = decode(&Bytes::from_static(b"no gzip"), Some("gzip"), 100).unwrap_err();
        assert_eq!(broken.code, Some("request_body_encoding_invalid"));
        let unknown = decode(&Bytes::from_static(b""), Some("lzw"), 100).unwrap_err();
        assert_eq!(unknown.code, Some("request_body_encoding_unsupported"));
    }
}
