//! Text as it stands in a body, handed out as the model gets it.
//!
//! A string in JSON is escaped; the model sees it unescaped. It is decoded
//! chunk by chunk into one small buffer, so a text of many megabytes is never
//! copied whole. JSON that the model sees as JSON, such as a tool's input, keeps
//! its escapes but loses the white space between its tokens and the `\u` before
//! what is not ASCII, because clients differ in both and the model's prompt does
//! not. Escapes that mean nothing are taken as they stand.

/// How the bytes of a text are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// They are the text.
    Plain,
    /// A JSON string, without its quotes.
    Escaped,
    /// A JSON value that is shown as JSON.
    Json,
}

/// Hands out the decoded text in chunks of about `size` bytes.
pub(super) fn chunks(bytes: &[u8], form: Form, size: usize, mut sink: impl FnMut(&str)) {
    let mut buffer = String::with_capacity(size.min(bytes.len()) + 8);
    let mut in_string = false;
    let mut give = |buffer: &mut String| {
        if buffer.len() >= size {
            sink(buffer);
            buffer.clear();
        }
    };
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        // No further than what is copied next: to look through all that is left
        // each time would cost the square of a long text.
        let room = size.saturating_sub(buffer.len()).max(1).min(rest.len());
        let ahead = rest.get(..room).unwrap_or(rest);
        let stop = match form {
            Form::Plain => None,
            Form::Escaped => memchr::memchr(b'\\', ahead),
            Form::Json if in_string => memchr::memchr2(b'\\', b'"', ahead),
            Form::Json => ahead.iter().position(|byte| special(*byte)),
        };
        match (stop, first) {
            (Some(0), b'\\') => {
                let (taken, decoded) = escape(rest);
                match decoded {
                    Some(character) if form == Form::Escaped || !character.is_ascii() => {
                        buffer.push(character);
                    }
                    _ => copy(rest.get(..taken).unwrap_or(rest), &mut buffer),
                }
                rest = rest.get(taken..).unwrap_or(&[]);
            }
            (Some(0), b'"') => {
                in_string = !in_string;
                buffer.push('"');
                rest = rest.get(1..).unwrap_or(&[]);
            }
            // White space between the tokens of JSON.
            (Some(0), _) => rest = rest.get(1..).unwrap_or(&[]),
            _ => {
                let end = character_end(rest, stop.unwrap_or(room));
                let (plain, after) = rest.split_at(end);
                copy(plain, &mut buffer);
                rest = after;
            }
        }
        give(&mut buffer);
    }
    if !buffer.is_empty() {
        sink(&buffer);
    }
}

fn special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b' ' | b'\n' | b'\r' | b'\t')
}

/// The end of the character that `end` would cut.
fn character_end(bytes: &[u8], mut end: usize) -> usize {
    while bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
        end += 1;
    }
    end.min(bytes.len())
}

fn copy(bytes: &[u8], buffer: &mut String) {
    for chunk in bytes.utf8_chunks() {
        buffer.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            buffer.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Bytes of the escape that the text begins with, and what it stands for.
fn escape(bytes: &[u8]) -> (usize, Option<char>) {
    let plain = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
        Some(b'u') => return unicode(bytes),
        Some(_) | None => return (1, None),
    };
    (2, Some(plain))
}

fn unicode(bytes: &[u8]) -> (usize, Option<char>) {
    let Some(unit) = hexadecimal(bytes, 2) else {
        return (2, None);
    };
    if !(0xD800..0xE000).contains(&unit) {
        return (6, char::from_u32(unit));
    }
    let low = hexadecimal(bytes, 8).filter(|_| bytes.get(6..8) == Some(b"\\u"));
    match low {
        Some(low @ 0xDC00..0xE000) if unit < 0xDC00 => {
            let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            (12, char::from_u32(code))
        }
        // Half a pair stands for nothing.
        _ => (6, Some(char::REPLACEMENT_CHARACTER)),
    }
}

fn hexadecimal(bytes: &[u8], from: usize) -> Option<u32> {
    let digits = bytes.get(from..from + 4)?;
    digits.iter().try_fold(0, |number, digit| {
        char::from(*digit)
            .to_digit(16)
            .map(|digit| number * 16 + digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str, form: Form, size: usize) -> String {
        let mut whole = String::new();
        chunks(text.as_bytes(), form, size, |chunk| {
            assert!(!chunk.is_empty() && chunk.len() < size + 12);
            whole.push_str(chunk);
        });
        whole
    }

    #[test]
    fn broken_escapes_are_taken_as_they_stand() {
        for (text, expected) in [
            (r"a\nb\t\r\b\f\/\\", "a\nb\t\r\u{8}\u{c}/\\"),
            (r#"say \"x\""#, "say \"x\""),
            (r"\u00e9\u0000\ud83d\ude00", "é\0😀"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ude00x", "\u{fffd}x"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\x\", "\\x\\"),
            (r"\u12", r"\u12"),
            (r"\uzzzz", r"\uzzzz"),
        ] {
            assert_eq!(decoded(text, Form::Escaped, 1024), expected, "{text}");
            assert_eq!(decoded(text, Form::Escaped, 1), expected, "{text}");
        }
    }

    #[test]
    fn json_keeps_its_escapes_and_loses_its_layout() {
        for (text, expected) in [
            ("{ \"a\" : [ 1,\n\t2 ] }", r#"{"a":[1,2]}"#),
            (r#"{"a b":"c \" d \n"}"#, r#"{"a b":"c \" d \n"}"#),
            (r#""\u00e9\u0041\\u00e9""#, r#""é\u0041\\u00e9""#),
            ("\"open", "\"open"),
        ] {
            assert_eq!(decoded(text, Form::Json, 1024), expected, "{text}");
            assert_eq!(decoded(text, Form::Json, 3), expected, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_survived() {
        let mut whole = String::new();
        chunks(b"a\xff\xfe\\u\xffb\x80", Form::Escaped, 4, |chunk| {
            whole.push_str(chunk);
        });
        assert!(whole.starts_with('a') && whole.contains('b'));
    }

    proptest! {
        #[test]
        fn what_was_escaped_comes_back_whatever_the_chunks(text in any::<String>(), size in 1usize..40) {
            let escaped = serde_json::to_string(&text).unwrap();
            let inner = &escaped[1..escaped.len() - 1];
            prop_assert_eq!(decoded(inner, Form::Escaped, size), text.clone());
            prop_assert_eq!(decoded(&text, Form::Plain, size), text);
        }

        #[test]
        fn compact_json_stays_as_it_is(text in any::<String>(), size in 1usize..40) {
            let value = serde_json::json!({"a": text, "b": [1.5, null, "c d"]}).to_string();
            // Control characters keep their escapes, as they stand.
            prop_assert_eq!(decoded(&value, Form::Json, size), value);
        }
    }
}
