//! Takes a body apart, in one pass.
//!
//! The order of keys is the client's, so a block's kind may be known only at its
//! end; its members are noted as they come. A key that matters may not stand
//! twice: readers differ in which one counts, and to guess wrong would be to see
//! another conversation than the model does.

use std::borrow::Cow;

use super::body::{Block, Body, Field, Kind, Mark, Message, Role};
use super::scan::{Cursor, Key, Span, Unclear, says, spoken};

/// The most top-level fields; the API knows some thirty.
const FIELDS: usize = 256;

pub(super) fn split(bytes: &[u8]) -> Result<Body, Unclear> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Unclear::TooLarge);
    }
    check_utf8(bytes)?;
    let mut splitter = Splitter {
        bytes,
        body: Body::with_room_for(bytes.len()),
    };
    let mut cursor = Cursor::new(bytes);
    splitter.object(&mut cursor)?;
    cursor.finish()?;
    Ok(splitter.body)
}

/// The quick check says only that something is wrong, the thorough one where.
fn check_utf8(bytes: &[u8]) -> Result<(), Unclear> {
    if simdutf8::basic::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    let checked = std::str::from_utf8(bytes).map(|_| ());
    checked.map_err(|error| Unclear::NotUtf8(error.valid_up_to()))
}

struct Splitter<'a> {
    bytes: &'a [u8],
    body: Body,
}

/// Notes a value, once.
fn once<T>(place: &mut Option<T>, value: T, key: &Key) -> Result<(), Unclear> {
    if place.is_some() {
        return Err(Unclear::DuplicateKey(key.span.start()));
    }
    *place = Some(value);
    Ok(())
}

impl<'a> Splitter<'a> {
    fn name(&self, key: &Key) -> Cow<'a, [u8]> {
        key.name(self.bytes)
    }

    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Unclear> {
        cursor.expect(b'{')?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            let name = self.name(&key);
            let value = if &*name == b"messages" {
                if !self.body.messages.is_empty() {
                    return Err(Unclear::DuplicateKey(key.span.start()));
                }
                self.messages(cursor)?
            } else {
                cursor.value()?
            };
            let cut = cursor.member(&key, value);
            let key = key.span;
            if self.body.fields.len() >= FIELDS || self.has_field(&name) {
                return Err(Unclear::DuplicateKey(key.start()));
            }
            self.body.fields.push(Field { key, value, cut });
        }
        Ok(())
    }

    /// Escaped and plain spellings of one key are the same key.
    fn has_field(&self, name: &[u8]) -> bool {
        let mut fields = self.body.fields.iter();
        fields.any(|field| *spoken(field.key.of(self.bytes)) == *name)
    }

    fn messages(&mut self, cursor: &mut Cursor<'_>) -> Result<Span, Unclear> {
        cursor.peek();
        let begin = *cursor;
        cursor.expect(b'[')?;
        let mut first = true;
        while cursor.element(&mut first)? {
            let message = self.message(cursor)?;
            self.body.messages.push(message);
        }
        Ok(begin.up_to(cursor))
    }

    fn message(&mut self, cursor: &mut Cursor<'_>) -> Result<Message, Unclear> {
        cursor.peek();
        let begin = *cursor;
        cursor.expect(b'{')?;
        let (blocks, marks) = (self.body.blocks.len(), self.body.marks.len());
        let (mut role, mut content, mut is_string) = (None, None, false);
        let (mut is_plain, mut first) = (true, true);
        while let Some(key) = cursor.key(&mut first)? {
            match &*self.name(&key) {
                b"role" => {
                    let value = cursor.value()?;
                    once(&mut role, Role::named(value.of(self.bytes)), &key)?;
                }
                b"content" => {
                    is_string = cursor.peek() != Some(b'[');
                    let value = if is_string {
                        cursor.string()?
                    } else {
                        self.blocks(cursor)?
                    };
                    once(&mut content, value, &key)?;
                }
                _ => {
                    is_plain = false;
                    cursor.value()?;
                }
            }
        }
        let span = begin.up_to(cursor);
        let (Some(role), Some(content)) = (role, content) else {
            return Err(Unclear::Unexpected(span.start()));
        };
        Ok(Message {
            span,
            role,
            content,
            is_string,
            is_plain,
            blocks: range(blocks, self.body.blocks.len()),
            marks: range(marks, self.body.marks.len()),
        })
    }

    fn blocks(&mut self, cursor: &mut Cursor<'_>) -> Result<Span, Unclear> {
        let begin = *cursor;
        cursor.expect(b'[')?;
        let mut first = true;
        while cursor.element(&mut first)? {
            let block = self.block(cursor)?;
            self.body.blocks.push(block);
        }
        Ok(begin.up_to(cursor))
    }

    fn block(&mut self, cursor: &mut Cursor<'_>) -> Result<Block, Unclear> {
        cursor.peek();
        let begin = *cursor;
        cursor.expect(b'{')?;
        let mut found = Found::default();
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            self.member(cursor, &key, &mut found)?;
        }
        let kind = found.kind.unwrap_or(Kind::Other);
        let plain = kind == Kind::Text && !found.has_others;
        Ok(Block {
            span: begin.up_to(cursor),
            kind,
            id: found.id,
            name: found.name,
            payload: found.payload,
            seal: found.seal,
            is_error: found.is_error.unwrap_or(false),
            is_plain_text: plain && found.text.is_some() && found.id.is_none(),
            has_tool_references: found.has_tool_references,
        })
    }

    fn member(
        &mut self,
        cursor: &mut Cursor<'_>,
        key: &Key,
        found: &mut Found,
    ) -> Result<(), Unclear> {
        let name = self.name(key);
        if &*name == b"content" && cursor.peek() == Some(b'[') {
            let value = self.nested(cursor, found)?;
            return once(&mut found.payload, value, key);
        }
        let value = cursor.value()?;
        found.has_others |= !matches!(&*name, b"type" | b"text" | b"cache_control");
        match &*name {
            b"type" => once(&mut found.kind, Kind::named(value.of(self.bytes)), key),
            b"cache_control" => {
                let mark = Mark {
                    block: at(self.body.blocks.len()),
                    is_nested: false,
                    value,
                    cut: cursor.member(key, value),
                };
                self.body.marks.push(mark);
                once(&mut found.mark, (), key)
            }
            b"text" => {
                once(&mut found.text, (), key)?;
                once(&mut found.payload, value, key)
            }
            b"id" | b"tool_use_id" => once(&mut found.id, value, key),
            b"name" => once(&mut found.name, value, key),
            b"thinking" | b"input" | b"content" => once(&mut found.payload, value, key),
            b"signature" | b"data" => once(&mut found.seal, value, key),
            b"is_error" => once(&mut found.is_error, value.of(self.bytes) == b"true", key),
            _ => Ok(()),
        }
    }

    /// The blocks inside a tool's result: only their marks, and whether they
    /// refer to tools, are of interest.
    fn nested(&mut self, cursor: &mut Cursor<'_>, found: &mut Found) -> Result<Span, Unclear> {
        let begin = *cursor;
        cursor.expect(b'[')?;
        let block = at(self.body.blocks.len());
        let mut first = true;
        while cursor.element(&mut first)? {
            if cursor.peek() != Some(b'{') {
                cursor.value()?;
                continue;
            }
            cursor.expect(b'{')?;
            let (mut first, mut marked) = (true, None);
            while let Some(key) = cursor.key(&mut first)? {
                let value = cursor.value()?;
                match &*self.name(&key) {
                    b"cache_control" => {
                        once(&mut marked, (), &key)?;
                        let cut = cursor.member(&key, value);
                        self.body.marks.push(Mark {
                            block,
                            is_nested: true,
                            value,
                            cut,
                        });
                    }
                    b"type" => {
                        found.has_tool_references |= says(value.of(self.bytes), "tool_reference");
                    }
                    _ => {}
                }
            }
        }
        found.has_others = true;
        Ok(begin.up_to(cursor))
    }
}

/// The members of a block, as they come.
#[derive(Default)]
struct Found {
    kind: Option<Kind>,
    id: Option<Span>,
    name: Option<Span>,
    payload: Option<Span>,
    seal: Option<Span>,
    is_error: Option<bool>,
    text: Option<()>,
    mark: Option<()>,
    has_others: bool,
    has_tool_references: bool,
}

fn at(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn range(from: usize, to: usize) -> std::ops::Range<u32> {
    at(from)..at(to)
}
