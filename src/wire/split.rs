//! Takes a body apart, in one pass.
//!
//! The order of keys is the client's, so a block's kind may be known only at its
//! end; its members are noted as they come. A key that matters may not stand
//! twice: readers differ in which one counts, and to guess wrong would be to see
//! another conversation than the model does.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::body::{Block, Body, Field, Kind, Mark, Message, Role};
use super::scan::{Cursor, Key, Span, Unclear, says};

/// The most top-level fields; the API knows some thirty.
const FIELDS: usize = 256;
/// The most messages: as many as the API takes.
const MESSAGES: usize = 100_000;
/// The most blocks and cache marks, far beyond what anybody sends. A block takes
/// sixty bytes and `{},` three, so without a limit a body could cost twenty
/// times its size; with these the spans of any body take less than 32 MB, and
/// twice that while a list grows.
const BLOCKS: usize = 400_000;
const MARKS: usize = 10_000;
/// How deep blocks stand in each other: a document that a tool has fetched, its
/// source, and the blocks of that.
const DEPTH: u8 = 4;

impl Body {
    /// Takes a body apart in one pass.
    pub fn split(bytes: &[u8]) -> Result<Self, Unclear> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Unclear::TooLarge);
        }
        check_utf8(bytes)?;
        let mut splitter = Splitter {
            bytes,
            body: Body::with_room_for(bytes.len()),
            names: BTreeSet::new(),
        };
        let mut cursor = Cursor::new(bytes);
        splitter.object(&mut cursor)?;
        cursor.finish()?;
        Ok(splitter.body)
    }
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
    /// The names of the top-level fields: escaped and plain spellings of one key
    /// are the same key.
    names: BTreeSet<Cow<'a, [u8]>>,
}

/// Adds to a list that has room for so many.
fn add<T>(list: &mut Vec<T>, most: usize, item: T, at: Span) -> Result<(), Unclear> {
    if list.len() >= most {
        return Err(Unclear::TooMany(at.start()));
    }
    list.push(item);
    Ok(())
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
            if !self.names.insert(name) {
                return Err(Unclear::DuplicateKey(key.start()));
            }
            let field = Field { key, value, cut };
            add(&mut self.body.fields, FIELDS, field, key)?;
        }
        Ok(())
    }

    fn messages(&mut self, cursor: &mut Cursor<'_>) -> Result<Span, Unclear> {
        cursor.peek();
        let begin = *cursor;
        cursor.expect(b'[')?;
        let mut first = true;
        while cursor.element(&mut first)? {
            let message = self.message(cursor)?;
            let span = message.span;
            add(&mut self.body.messages, MESSAGES, message, span)?;
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
            add(&mut self.body.blocks, BLOCKS, block, block.span)?;
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
        let value = match &*name {
            b"content" => self.inside(cursor, found, true, DEPTH)?,
            b"source" => self.inside(cursor, found, false, DEPTH)?,
            _ => cursor.value()?,
        };
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
                add(&mut self.body.marks, MARKS, mark, value)?;
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

    /// What stands inside a block as its `content` (`of_blocks`) or its `source`:
    /// only marks, and references to tools, are of interest.
    fn inside(
        &mut self,
        cursor: &mut Cursor<'_>,
        found: &mut Found,
        of_blocks: bool,
        depth: u8,
    ) -> Result<Span, Unclear> {
        let first = cursor.peek();
        let begin = *cursor;
        match first {
            Some(b'[') if of_blocks && depth > 0 => {
                cursor.expect(b'[')?;
                let mut first = true;
                while cursor.element(&mut first)? {
                    if cursor.peek() == Some(b'{') {
                        self.nested(cursor, found, true, depth - 1)?;
                    } else {
                        cursor.value()?;
                    }
                }
            }
            Some(b'{') if depth > 0 => self.nested(cursor, found, of_blocks, depth - 1)?,
            _ => return cursor.value(),
        }
        Ok(begin.up_to(cursor))
    }

    /// An object inside a block: a block that may carry a mark (`is_block`), or
    /// the source of one. No other member is followed: what a tool is given as
    /// `input` is its own.
    fn nested(
        &mut self,
        cursor: &mut Cursor<'_>,
        found: &mut Found,
        is_block: bool,
        depth: u8,
    ) -> Result<(), Unclear> {
        cursor.expect(b'{')?;
        let (mut first, mut marked) = (true, None);
        while let Some(key) = cursor.key(&mut first)? {
            match &*self.name(&key) {
                b"cache_control" if is_block => {
                    let value = cursor.value()?;
                    once(&mut marked, (), &key)?;
                    let mark = Mark {
                        block: at(self.body.blocks.len()),
                        is_nested: true,
                        value,
                        cut: cursor.member(&key, value),
                    };
                    add(&mut self.body.marks, MARKS, mark, value)?;
                }
                b"type" => {
                    let value = cursor.value()?;
                    found.has_tool_references |= says(value.of(self.bytes), "tool_reference");
                }
                b"content" => {
                    self.inside(cursor, found, true, depth)?;
                }
                b"source" => {
                    self.inside(cursor, found, false, depth)?;
                }
                _ => {
                    cursor.value()?;
                }
            }
        }
        Ok(())
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

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
