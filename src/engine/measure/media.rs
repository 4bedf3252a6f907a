//! Pictures and documents: tokens by rule, because their data is no text.
//!
//! A picture costs by its pixels. The beginning of its data tells how many; what
//! cannot be read counts as an ordinary one. The base64 itself is never counted:
//! a screenshot of a megabyte would come to half a million tokens. Providers
//! differ in what a small picture costs and in how large a one they take, so the
//! rule goes from the usual price upwards only.

/// Tokens of an ordinary picture.
const PICTURE: u64 = 1_600;
/// Tokens of the largest one that any model takes without shrinking it.
const LARGEST_PICTURE: u64 = 4_800;
/// Pixels of a token.
const PIXELS: u64 = 750;

/// Bytes and tokens of a page of a binary document.
const PAGE_BYTES: u64 = 40_000;
const PAGE: u64 = 2_500;
/// Pages of a document that is only named.
const UNSEEN_PAGES: u64 = 5;

/// Bytes of a picture's data that are looked at: a JPEG may carry a preview
/// before it says its size.
const LOOKED_AT: usize = 64 * 1024;

/// Tokens of a picture, by its base64 if that is there.
pub(super) fn picture(base64: Option<&[u8]>) -> u64 {
    let pixels = base64.and_then(|data| {
        let data = data.get(..LOOKED_AT.min(data.len())).unwrap_or(data);
        let (width, height) = size(&Bytes(data))?;
        Some(u64::from(width) * u64::from(height))
    });
    let tokens = pixels.map_or(PICTURE, |pixels| pixels.div_ceil(PIXELS));
    tokens.clamp(PICTURE, LARGEST_PICTURE)
}

/// Tokens of a binary document, by the length of its base64 if that is there.
pub(super) fn document(base64: Option<&[u8]>) -> u64 {
    let pages = base64.map_or(UNSEEN_PAGES, |data| {
        let bytes = data.len() as u64 / 4 * 3;
        bytes.div_ceil(PAGE_BYTES).max(1)
    });
    pages * PAGE
}

/// Base64, read byte by byte where it is needed.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn at(&self, index: usize) -> Option<u8> {
        let group = index / 3 * 4;
        let [a, b, c, d] = self.0.get(group..group + 4)? else {
            return None;
        };
        let sextet = |byte: u8| digit(byte).unwrap_or(0);
        let bits = (digit(*a)? << 18) | (digit(*b)? << 12) | (sextet(*c) << 6) | sextet(*d);
        bits.to_be_bytes().get(1 + index % 3).copied()
    }

    fn says(&self, index: usize, text: &[u8]) -> bool {
        text.iter()
            .enumerate()
            .all(|(offset, byte)| self.at(index + offset) == Some(*byte))
    }

    fn big(&self, index: usize) -> Option<u32> {
        Some(u32::from(self.at(index)?) << 8 | u32::from(self.at(index + 1)?))
    }

    fn little(&self, index: usize) -> Option<u32> {
        Some(u32::from(self.at(index)?) | u32::from(self.at(index + 1)?) << 8)
    }
}

fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// Width and height, where the beginning tells them.
fn size(data: &Bytes<'_>) -> Option<(u32, u32)> {
    if data.says(0, b"\x89PNG\r\n\x1a\n") {
        let large = |at| Some(data.big(at)? << 16 | data.big(at + 2)?);
        return Some((large(16)?, large(20)?));
    }
    if data.says(0, b"GIF8") {
        return Some((data.little(6)?, data.little(8)?));
    }
    if data.says(0, b"RIFF") && data.says(8, b"WEBP") {
        return webp(data);
    }
    if data.says(0, b"\xff\xd8") {
        return jpeg(data);
    }
    None
}

fn webp(data: &Bytes<'_>) -> Option<(u32, u32)> {
    let byte = |at| data.at(at).map(u32::from);
    if data.says(12, b"VP8 ") {
        return Some((data.little(26)? & 0x3fff, data.little(28)? & 0x3fff));
    }
    if data.says(12, b"VP8L") {
        let bits = data.little(21)? | data.little(23)? << 16;
        return Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1));
    }
    if data.says(12, b"VP8X") {
        let side = |at| Some((data.little(at)? | byte(at + 2)? << 16) + 1);
        return Some((side(24)?, side(27)?));
    }
    None
}

/// Walks from segment to segment until the one that tells the size.
fn jpeg(data: &Bytes<'_>) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if data.at(at)? != 0xff {
            return None;
        }
        match data.at(at + 1)? {
            0xff => at += 1,
            0xc4 | 0xc8 | 0xcc => at += 2 + data.big(at + 2)? as usize,
            0xc0..=0xcf => return Some((data.big(at + 7)?, data.big(at + 5)?)),
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + data.big(at + 2)?.max(2) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(bytes: &[u8]) -> Vec<u8> {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = Vec::new();
        for group in bytes.chunks(3) {
            let bits = group
                .iter()
                .fold(0, |bits, byte| bits << 8 | usize::from(*byte))
                << (8 * (3 - group.len()));
            for place in 0..4 {
                let digit = DIGITS[bits >> (18 - 6 * place) & 63];
                text.push(if place > group.len() { b'=' } else { digit });
            }
        }
        text
    }

    fn measured(bytes: &[u8]) -> Option<(u32, u32)> {
        size(&Bytes(&base64(bytes)))
    }

    #[test]
    fn the_beginning_of_a_picture_tells_its_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x07\x80\0\0\x04\x38\x08\x06";
        assert_eq!(measured(png), Some((1920, 1080)));
        assert_eq!(measured(b"GIF89a\x80\x02\xe0\x01\xf7\0"), Some((640, 480)));
        let jpeg =
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xdb\0\x03x\xff\xc2\0\x11\x08\x04\x38\x07\x80\x03";
        assert_eq!(measured(jpeg), Some((1920, 1080)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01\0\0";
        assert_eq!(measured(lossy), Some((640, 480)));
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x77\0\0\0";
        assert_eq!(measured(lossless), Some((640, 480)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x7f\x07\0\x37\x04\0\0\0";
        assert_eq!(measured(extended), Some((1920, 1080)));
        for odd in [
            &b""[..],
            b"x",
            b"\xff\xd8\xff",
            b"\xff\xd8\0",
            b"\x89PNG\r\n\x1a\n",
        ] {
            assert_eq!(measured(odd), None);
        }
    }

    #[test]
    fn a_picture_costs_the_usual_or_more_if_it_is_large() {
        let png = |side: u16| {
            let [high, low] = side.to_be_bytes();
            base64(
                &[
                    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0",
                    &[high, low, 0, 0, high, low, 0, 0][..],
                ]
                .concat(),
            )
        };
        assert_eq!(picture(Some(&png(16))), 1_600);
        assert_eq!(picture(Some(&png(1_200))), 1_920);
        assert_eq!(picture(Some(&png(60_000))), 4_800);
        assert_eq!(picture(None), 1_600);
        assert_eq!(picture(Some(b"%%%")), 1_600);
    }

    #[test]
    fn a_document_costs_by_its_bytes() {
        assert_eq!(document(Some(b"JVBERi0=")), 2_500);
        assert_eq!(document(Some(&vec![b'A'; 400_000])), 8 * 2_500);
        assert_eq!(document(None), 5 * 2_500);
    }
}
