//! Content codings: read a compressed body without changing it.
//!
//! Bodies are decoded piece by piece, on the side: what passes on are still the
//! original bytes. A coding we do not know, or bytes that do not decode, are no
//! error of the exchange; the body is then simply not read. However well a body
//! was compressed, one piece never unfolds into more than a few megabytes, so
//! whoever feeds the decoder can stop in time.

use std::io::{self, Write};

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};

/// How many compressed bytes are decoded at once.
pub const STEP: usize = 4096;
/// The most that one step may unfold into. Deflate cannot reach it; what does is
/// no message but an attack.
pub(super) const UNFOLDED: usize = 8 << 20;

/// A content coding that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// No coding.
    Identity,
    /// `gzip` or `x-gzip`.
    Gzip,
    /// `deflate`: the zlib format.
    Deflate,
    /// `zstd`.
    Zstd,
    /// `br`.
    Brotli,
}

impl Coding {
    /// The coding that the headers declare; `None` when there are several, or one
    /// that we cannot read.
    pub fn declared(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(value) = values.next() else {
            return Some(Self::Identity);
        };
        if values.next().is_some() {
            return None;
        }
        let name = value.to_str().ok()?.trim();
        let known = [
            ("", Self::Identity),
            ("identity", Self::Identity),
            ("gzip", Self::Gzip),
            ("x-gzip", Self::Gzip),
            ("deflate", Self::Deflate),
            ("zstd", Self::Zstd),
            ("br", Self::Brotli),
        ];
        known
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, coding)| *coding)
    }
}

/// Decodes a body that arrives in pieces.
pub struct Decoder(State);

enum State {
    Identity,
    Gzip(Box<MultiGzDecoder<Readable>>),
    Deflate(Box<ZlibDecoder<Readable>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Readable>>),
    Brotli(Box<brotli::DecompressorWriter<Readable>>),
    /// The bytes were not what they should be: nothing more is read.
    Broken,
    /// A step unfolded into too much: nothing more is read.
    Burst,
}

/// What a step has made readable.
#[derive(Default)]
struct Readable {
    bytes: Vec<u8>,
    burst: bool,
}

impl Write for Readable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > UNFOLDED {
            self.burst = true;
            return Err(io::Error::other("unfolds into too much"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// A decoder for one body.
    pub fn new(coding: Coding) -> Self {
        Self(match coding {
            Coding::Identity => State::Identity,
            Coding::Gzip => State::Gzip(Box::new(MultiGzDecoder::new(Readable::default()))),
            Coding::Deflate => State::Deflate(Box::new(ZlibDecoder::new(Readable::default()))),
            Coding::Zstd => zstd::stream::write::Decoder::new(Readable::default())
                .map_or(State::Broken, |decoder| State::Zstd(Box::new(decoder))),
            Coding::Brotli => State::Brotli(Box::new(brotli::DecompressorWriter::new(
                Readable::default(),
                STEP,
            ))),
        })
    }

    /// Whether the body unfolded into more than any message does.
    pub fn burst(&self) -> bool {
        matches!(self.0, State::Burst)
    }

    /// Whether the body turned out not to be what it was said to be.
    pub fn failed(&self) -> bool {
        matches!(self.0, State::Broken | State::Burst)
    }

    /// Decodes one piece and hands on whatever it makes readable.
    pub fn push(&mut self, piece: &[u8], mut sink: impl FnMut(&[u8])) {
        if matches!(self.0, State::Identity) {
            return sink(piece);
        }
        for step in piece.chunks(STEP) {
            let fine = match &mut self.0 {
                State::Identity | State::Broken | State::Burst => return,
                State::Gzip(decoder) => drive(decoder.as_mut(), step),
                State::Deflate(decoder) => drive(decoder.as_mut(), step),
                State::Zstd(decoder) => drive(decoder.as_mut(), step),
                State::Brotli(decoder) => drive(decoder.as_mut(), step),
            };
            let readable = match &mut self.0 {
                State::Identity | State::Broken | State::Burst => return,
                State::Gzip(decoder) => decoder.get_mut(),
                State::Deflate(decoder) => decoder.get_mut(),
                State::Zstd(decoder) => decoder.get_mut(),
                State::Brotli(decoder) => decoder.get_mut(),
            };
            sink(&readable.bytes);
            readable.bytes.clear();
            if !fine {
                self.0 = if readable.burst {
                    State::Burst
                } else {
                    State::Broken
                };
                return;
            }
        }
    }
}

/// Feeds a step and makes the decoder give up what it has: an event must be seen
/// when it passes, not when some inner buffer is full.
fn drive(decoder: &mut impl Write, step: &[u8]) -> bool {
    decoder.write_all(step).is_ok() && decoder.flush().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(coding: Coding, text: &[u8]) -> Vec<u8> {
        match coding {
            Coding::Identity => text.to_vec(),
            Coding::Gzip => {
                let mut writer =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                writer.write_all(text).unwrap();
                writer.finish().unwrap()
            }
            Coding::Deflate => {
                let mut writer =
                    flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                writer.write_all(text).unwrap();
                writer.finish().unwrap()
            }
            Coding::Zstd => zstd::encode_all(text, 3).unwrap(),
            Coding::Brotli => {
                let mut out = Vec::new();
                let mut writer = brotli::CompressorWriter::new(&mut out, 4096, 5, 20);
                writer.write_all(text).unwrap();
                drop(writer);
                out
            }
        }
    }

    const ALL: [Coding; 5] = [
        Coding::Identity,
        Coding::Gzip,
        Coding::Deflate,
        Coding::Zstd,
        Coding::Brotli,
    ];

    #[test]
    fn every_coding_decodes_in_pieces_of_any_size() {
        let text: Vec<u8> = (0..50_000u32)
            .flat_map(|n| n.to_string().into_bytes())
            .collect();
        for coding in ALL {
            let encoded = encode(coding, &text);
            for size in [1, 7, 4096, encoded.len()] {
                let mut decoder = Decoder::new(coding);
                let mut seen = Vec::new();
                for piece in encoded.chunks(size) {
                    decoder.push(piece, |readable| seen.extend_from_slice(readable));
                }
                assert!(seen == text, "{coding:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn bytes_that_do_not_decode_are_survived_and_end_the_reading() {
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd, Coding::Brotli] {
            let garbage = b"\xff\xfe this is no compressed data at all, sorry";
            let mut decoder = Decoder::new(coding);
            decoder.push(garbage, |_| {});
            let mut read = false;
            decoder.push(garbage, |_| read = true);
            assert!(!read, "{coding:?}");
        }
    }

    #[test]
    fn a_declared_coding_is_found_whatever_its_case() {
        let rows = [
            (vec![], Some(Coding::Identity)),
            (vec!["identity"], Some(Coding::Identity)),
            (vec!["GZip"], Some(Coding::Gzip)),
            (vec![" br "], Some(Coding::Brotli)),
            (vec!["zstd"], Some(Coding::Zstd)),
            (vec!["gzip, br"], None),
            (vec!["gzip", "br"], None),
            (vec!["compress"], None),
        ];
        for (values, expected) in rows {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
            }
            assert_eq!(Coding::declared(&headers), expected, "{values:?}");
        }
    }
}
