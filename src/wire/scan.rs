//! A cursor over JSON that finds where things are and looks no further.
//!
//! It walks an object or array member by member and skips values it was not
//! asked about, so that a large body costs one pass and no tree. It checks what
//! it steps on; what lies inside a skipped value is only measured, by its
//! strings and brackets, because it goes upstream as it is and is judged there.
//! Nothing recurses: depth is a counter with a limit.

use std::borrow::Cow;
use std::ops::Range;

use super::quote;

/// The deepest nesting that is followed.
const DEPTH: usize = 512;

/// Why a body is not understood. It is then forwarded as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// It is not UTF-8.
    #[error("not UTF-8 after byte {0}")]
    NotUtf8(usize),
    /// It is not JSON.
    #[error("not JSON at byte {0}")]
    NotJson(usize),
    /// It is nested too deeply.
    #[error("nested more than 512 deep at byte {0}")]
    TooDeep(usize),
    /// A key that matters stands twice, and who reads it decides which counts.
    #[error("duplicate key at byte {0}")]
    DuplicateKey(usize),
    /// Something that matters is not of the kind it should be.
    #[error("unexpected kind of value at byte {0}")]
    Unexpected(usize),
    /// It has more messages, blocks, cache marks or fields than are followed.
    #[error("more messages, blocks, cache marks or fields than are followed at byte {0}")]
    TooMany(usize),
    /// It is too large to be measured in spans.
    #[error("larger than 4 GiB")]
    TooLarge,
}

/// A stretch of a body, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// From `start` to before `end`. Both must fit, which whoever splits a body
    /// has checked for the body as a whole.
    fn new(start: usize, end: usize) -> Self {
        let fit = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: fit(start),
            end: fit(end),
        }
    }

    /// A span of a part, as a span of the whole in which this is the part.
    #[must_use]
    pub fn within(self, inner: Self) -> Self {
        Self::new(self.start() + inner.start(), self.start() + inner.end())
    }

    /// As a range of indexes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The bytes it covers; none if it is of another body.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.range()).unwrap_or(&[])
    }

    /// How many bytes it covers.
    pub fn len(self) -> usize {
        self.range().len()
    }

    /// Whether it covers nothing.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The first byte's index.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// The index after the last byte.
    pub fn end(self) -> usize {
        self.end as usize
    }
}

/// A place in a body.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A key of an object, its value still ahead.
pub struct Key {
    /// The key, quotes included.
    pub span: Span,
    /// There may be an escape in it.
    is_escaped: bool,
    /// The comma before it, if it is not the first.
    comma: Option<usize>,
}

impl Key {
    /// What it says, however it is escaped.
    #[inline]
    pub fn name<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let string = self.span.of(bytes);
        match string {
            [b'"', inside @ .., b'"'] if !self.is_escaped => Cow::Borrowed(inside),
            _ => spoken(string),
        }
    }
}

impl<'a> Cursor<'a> {
    /// At the beginning of a body.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[inline]
    fn next_byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is not white space, without passing it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.next_byte() {
            self.at += 1;
        }
        self.next_byte()
    }

    /// Where the cursor is.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Passes this byte, after white space.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Result<(), Unclear> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(Unclear::NotJson(self.at))
        }
    }

    /// What lies between this place and a later one.
    pub fn up_to(&self, later: &Self) -> Span {
        Span::new(self.at, later.at)
    }

    /// Makes sure that nothing but white space follows.
    pub fn finish(mut self) -> Result<(), Unclear> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Unclear::NotJson(self.at)),
        }
    }

    /// The next key of an object whose brace has been passed, its colon passed
    /// too; `None` at the end. `first` is set for the first member and cleared.
    #[inline]
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Key>, Unclear> {
        let comma = match self.separator(first, b'}')? {
            Separator::End => return Ok(None),
            Separator::Comma(at) => Some(at),
            Separator::None => None,
        };
        self.peek();
        let (span, is_escaped) = self.quoted()?;
        self.expect(b':')?;
        Ok(Some(Key {
            span,
            is_escaped,
            comma,
        }))
    }

    /// Whether an array whose bracket has been passed has another element.
    #[inline]
    pub fn element(&mut self, first: &mut bool) -> Result<bool, Unclear> {
        Ok(!matches!(self.separator(first, b']')?, Separator::End))
    }

    #[inline]
    fn separator(&mut self, first: &mut bool, end: u8) -> Result<Separator, Unclear> {
        let begins = std::mem::take(first);
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(Separator::End)
            }
            Some(b',') if !begins => {
                let comma = self.at;
                self.at += 1;
                // A comma promises another member.
                if self.peek() == Some(end) {
                    return Err(Unclear::NotJson(self.at));
                }
                Ok(Separator::Comma(comma))
            }
            Some(_) if begins => Ok(Separator::None),
            _ => Err(Unclear::NotJson(self.at)),
        }
    }

    /// A string, quotes included, and past it.
    #[inline]
    pub fn string(&mut self) -> Result<Span, Unclear> {
        self.quoted().map(|(span, _)| span)
    }

    /// A string, and whether it may hold an escape.
    #[inline]
    fn quoted(&mut self) -> Result<(Span, bool), Unclear> {
        let start = self.at;
        let Some([b'"', inside @ ..]) = self.bytes.get(start..) else {
            return Err(Unclear::NotJson(start));
        };
        let end = quote::end(inside).ok_or(Unclear::NotJson(start))?;
        self.at = start + end.at + 2;
        Ok((Span::new(start, self.at), end.is_escaped))
    }

    /// A value of any kind, and past it.
    #[inline]
    pub fn value(&mut self) -> Result<Span, Unclear> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => return self.string(),
            Some(b'{' | b'[') => self.nested()?,
            Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => self.scalar(),
            _ => return Err(Unclear::NotJson(start)),
        }
        Ok(Span::new(start, self.at))
    }

    fn nested(&mut self) -> Result<(), Unclear> {
        let start = self.at;
        let mut depth = 0;
        loop {
            match self.next_byte() {
                None => return Err(Unclear::NotJson(start)),
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
            if depth > DEPTH {
                return Err(Unclear::TooDeep(self.at));
            }
        }
    }

    #[inline]
    fn scalar(&mut self) {
        while let Some(b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') =
            self.next_byte()
        {
            self.at += 1;
        }
    }

    /// What must be cut to leave `key` and its value `value`, just passed, out
    /// of their object: the member and one comma.
    pub fn member(&mut self, key: &Key, value: Span) -> Span {
        match key.comma {
            Some(comma) => Span::new(comma, value.end()),
            None if self.peek() == Some(b',') => Span::new(key.span.start(), self.at + 1),
            None => Span::new(key.span.start(), value.end()),
        }
    }
}

enum Separator {
    None,
    Comma(usize),
    End,
}

/// What a string, quotes included, says, however it is escaped. One that cannot
/// be unescaped says what it looks like, which is no name that anybody knows,
/// because those have no backslash.
pub fn spoken(string: &[u8]) -> Cow<'_, [u8]> {
    let inside = match string {
        [b'"', inside @ .., b'"'] => inside,
        _ => string,
    };
    if !inside.contains(&b'\\') {
        return Cow::Borrowed(inside);
    }
    serde_json::from_slice::<String>(string).map_or(Cow::Borrowed(inside), |unescaped| {
        Cow::Owned(unescaped.into_bytes())
    })
}

/// Whether a string, quotes included, says `name`, however it is escaped.
pub fn says(string: &[u8], name: &str) -> bool {
    // An escape of six bytes stands for at least one, so what is longer cannot
    // be the name, and need not be unescaped to know.
    string.len() <= name.len() * 6 + 2 && *spoken(string) == *name.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<String, Unclear> {
        let mut cursor = Cursor::new(text.as_bytes());
        let span = cursor.value()?;
        cursor.finish()?;
        Ok(String::from_utf8_lossy(span.of(text.as_bytes())).into_owned())
    }

    #[test]
    fn a_value_is_found_whole_and_nothing_may_follow() {
        for text in [
            "1",
            "-0.1E+5",
            "true",
            "null",
            r#""a\"b\\""#,
            r#""\\""#,
            r#"{"a":[1,{"b":"}]"}],"c":"\"]"}"#,
            "[]",
            " { } ",
        ] {
            assert_eq!(value(text).as_deref(), Ok(text.trim()), "{text}");
        }
        for text in [
            "",
            " ",
            "\"",
            r#""\""#,
            "[",
            "{\"a\":\"]",
            "1 2",
            "[] ]",
            "}",
            "\u{feff}1",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(value(&nested(DEPTH)).is_ok());
        assert!(matches!(
            value(&nested(DEPTH + 1)),
            Err(Unclear::TooDeep(_))
        ));
        assert!(matches!(
            value(&"[".repeat(100_000)),
            Err(Unclear::TooDeep(_))
        ));
    }

    #[test]
    fn a_member_can_be_cut_out_of_its_object_wherever_it_stands() {
        for (text, without) in [
            (r#"{"x":1}"#, "{}"),
            (r#"{ "x" : 1 }"#, "{  }"),
            (r#"{"x":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":2,"x":1}"#, r#"{"a":2}"#),
            (
                r#"{"a":2 , "x":{"y":[","]} , "b":3}"#,
                r#"{"a":2  , "b":3}"#,
            ),
            (r#"{"\u0078":1,"a":2}"#, r#"{"a":2}"#),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            cursor.expect(b'{').unwrap();
            let (mut first, mut cut) = (true, None);
            while let Some(key) = cursor.key(&mut first).unwrap() {
                let value = cursor.value().unwrap();
                if says(key.span.of(text.as_bytes()), "x") {
                    cut = Some(cursor.member(&key, value));
                }
            }
            let mut rest = text.to_owned();
            rest.replace_range(cut.unwrap().range(), "");
            assert_eq!(rest, without, "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(&rest).is_ok());
        }
    }

    #[test]
    fn missing_and_surplus_commas_are_refused() {
        for text in [
            "{,}",
            r#"{"a":1,}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a" 1}"#,
            "{1:2}",
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            cursor.expect(b'{').unwrap();
            let mut first = true;
            let outcome = loop {
                match cursor.key(&mut first) {
                    Ok(Some(_)) => match cursor.value() {
                        Ok(_) => {}
                        Err(error) => break Err(error),
                    },
                    other => break other.map(|_| ()),
                }
            };
            assert!(outcome.is_err(), "{text}");
        }
    }
}
