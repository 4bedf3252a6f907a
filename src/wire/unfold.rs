//! Unfolds a compressed body that is there as a whole, in small steps.
//!
//! Whoever unfolds it decides how much it wants next and so how much memory it
//! takes; beside that a decoder needs a window, whose size is known before the
//! first step. Both together bound what a body can cost, however few bytes it has.

use std::io::{self, Read};

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::encoding::{Coding, STEP, UNFOLDED};

/// Deflate's window, its tables, and a step of output.
const DEFLATE_MEMORY: usize = 256 << 10;
/// The largest window of the content coding `zstd` (RFC 9659), as a power of two.
const ZSTD_WINDOW_LOG: u32 = 23;
/// What a zstd decoder needs beside its window.
const ZSTD_TABLES: usize = 1 << 20;
/// What a Brotli decoder needs beside its window: up to 256 code tables of each kind.
const BROTLI_TABLES: usize = 4 << 20;

/// Why a body is not unfolded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It is not what it was said to be.
    Broken,
    /// A few bytes unfold into more than any message has.
    Burst,
}

/// The memory that unfolding a body takes beside the result; `None` if it is
/// certainly not what it was said to be.
pub fn working_memory(coding: Coding, body: &[u8]) -> Option<usize> {
    match coding {
        Coding::Identity => Some(0),
        Coding::Gzip | Coding::Deflate => Some(DEFLATE_MEMORY),
        Coding::Zstd => Some((1 << ZSTD_WINDOW_LOG) + ZSTD_TABLES),
        Coding::Brotli => Some((1 << brotli_window_log(*body.first()?)?) + BROTLI_TABLES),
    }
}

/// The window that the first byte of a Brotli stream declares (RFC 7932, 9.1), as
/// a power of two; `None` for the larger ones of another format.
fn brotli_window_log(first: u8) -> Option<u32> {
    let (low, high) = (u32::from(first >> 1 & 7), u32::from(first >> 4 & 7));
    match (first & 1, low, high) {
        (0, ..) => Some(16),
        (_, 0, 0) => Some(17),
        (_, 0, 1) => None,
        (_, 0, more) => Some(8 + more),
        (_, more, _) => Some(17 + more),
    }
}

/// A body on its way to being unfolded.
pub struct Unfolding<'a> {
    decoder: Decoder<'a>,
    length: usize,
    /// What had been read and unfolded when the last whole step had been read.
    step: (usize, usize),
    unfolded: usize,
}

enum Decoder<'a> {
    Identity(&'a [u8]),
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    Deflate(Box<ZlibDecoder<&'a [u8]>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, &'a [u8]>>),
    Brotli(Box<brotli::Decompressor<&'a [u8]>>),
}

impl<'a> Unfolding<'a> {
    /// Begins to unfold `body`.
    pub fn begin(coding: Coding, body: &'a [u8]) -> Result<Self, Stopped> {
        let decoder = match coding {
            Coding::Identity => Decoder::Identity(body),
            Coding::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(body))),
            Coding::Deflate => Decoder::Deflate(Box::new(ZlibDecoder::new(body))),
            Coding::Zstd => Decoder::Zstd(Box::new(zstd_decoder(body).map_err(broken)?)),
            Coding::Brotli => {
                // The library would take windows of a gigabyte.
                working_memory(coding, body).ok_or(Stopped::Broken)?;
                Decoder::Brotli(Box::new(brotli::Decompressor::new(body, STEP)))
            }
        };
        Ok(Self {
            decoder,
            length: body.len(),
            step: (0, 0),
            unfolded: 0,
        })
    }

    /// Fills a part of `into`; nothing at the end of the body.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Stopped> {
        let count = match &mut self.decoder {
            Decoder::Identity(rest) => rest.read(into),
            Decoder::Gzip(decoder) => decoder.read(into),
            Decoder::Deflate(decoder) => decoder.read(into),
            Decoder::Zstd(decoder) => decoder.read(into),
            Decoder::Brotli(decoder) => decoder.read(into),
        };
        let count = count.map_err(broken)?;
        let rest = match &self.decoder {
            Decoder::Identity(rest) => rest.len(),
            Decoder::Gzip(decoder) => decoder.get_ref().len(),
            Decoder::Deflate(decoder) => decoder.get_ref().len(),
            Decoder::Zstd(decoder) => decoder.get_ref().len(),
            Decoder::Brotli(decoder) => decoder.get_ref().len(),
        };
        if count == 0 && rest > 0 && !into.is_empty() {
            return Err(Stopped::Broken);
        }
        self.unfolded += count;
        let taken = self.length - rest;
        if taken >= self.step.0 + STEP {
            self.step = (taken, self.unfolded);
        }
        if self.unfolded - self.step.1 > UNFOLDED {
            return Err(Stopped::Burst);
        }
        Ok(count)
    }
}

fn zstd_decoder(body: &[u8]) -> io::Result<zstd::stream::read::Decoder<'static, &[u8]>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}

fn broken(_: io::Error) -> Stopped {
    Stopped::Broken
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(coding: Coding, text: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::default();
        match coding {
            Coding::Identity => text.to_vec(),
            Coding::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), level);
                writer.write_all(text).unwrap();
                writer.finish().unwrap()
            }
            Coding::Deflate => {
                let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), level);
                writer.write_all(text).unwrap();
                writer.finish().unwrap()
            }
            Coding::Zstd => zstd::encode_all(text, 3).unwrap(),
            Coding::Brotli => brotli_packed(text, 22),
        }
    }

    fn brotli_packed(text: &[u8], window_log: u32) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut writer = brotli::CompressorWriter::new(&mut packed, 4096, 5, window_log);
        writer.write_all(text).unwrap();
        drop(writer);
        packed
    }

    const ALL: [Coding; 5] = [
        Coding::Identity,
        Coding::Gzip,
        Coding::Deflate,
        Coding::Zstd,
        Coding::Brotli,
    ];

    fn unfold(coding: Coding, body: &[u8], step: usize) -> Result<Vec<u8>, Stopped> {
        let mut unfolding = Unfolding::begin(coding, body)?;
        let (mut all, mut piece) = (Vec::new(), vec![0; step]);
        loop {
            match unfolding.read(&mut piece)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&piece[..count]),
            }
        }
    }

    #[test]
    fn every_coding_unfolds_in_steps_of_any_size() {
        let text: Vec<u8> = (0..30_000u32)
            .flat_map(|n| n.to_string().into_bytes())
            .collect();
        for coding in ALL {
            let body = packed(coding, &text);
            assert!(working_memory(coding, &body).is_some(), "{coding:?}");
            for step in [7, 4096, 1 << 20] {
                assert!(
                    unfold(coding, &body, step).as_ref() == Ok(&text),
                    "{coding:?} {step}"
                );
            }
        }
    }

    #[test]
    fn what_does_not_decode_is_said_to_be_broken() {
        let garbage = b"\xff\xfe this is no compressed data at all, sorry";
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd, Coding::Brotli] {
            assert_eq!(
                unfold(coding, garbage, 100),
                Err(Stopped::Broken),
                "{coding:?}"
            );
        }
    }

    #[test]
    fn few_bytes_do_not_unfold_into_millions() {
        let large = vec![b' '; UNFOLDED + (1 << 20)];
        for coding in [Coding::Zstd, Coding::Brotli] {
            let body = packed(coding, &large);
            assert!(body.len() < STEP, "{coding:?} {}", body.len());
            assert_eq!(
                unfold(coding, &body, 1 << 16),
                Err(Stopped::Burst),
                "{coding:?}"
            );
        }
    }

    #[test]
    fn a_window_is_known_before_it_is_made_and_never_larger_than_its_coding_allows() {
        for log in 10..=24 {
            let body = brotli_packed(b"hello", log);
            assert_eq!(brotli_window_log(body[0]), Some(log), "{log}");
        }
        // The first byte of a stream in the format with larger windows.
        assert_eq!(working_memory(Coding::Brotli, &[0x11, 0x1e]), None);
        assert_eq!(
            unfold(Coding::Brotli, &[0x11, 0x1e, 0, 0], 10),
            Err(Stopped::Broken)
        );
        let mut writer = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        writer.window_log(27).unwrap();
        writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let body = writer.finish().unwrap();
        assert_eq!(unfold(Coding::Zstd, &body, 4096), Err(Stopped::Broken));
    }
}
