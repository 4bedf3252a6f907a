//! Takes a body apart, in one pass.
//!
//! The order of keys is the client's, so a block's kind may be known only at its
//! end; its members are noted as they come. A key that matters may not stand
//! twice: readers differ in which one counts, and to guess wrong would be to see
//! another conversation than the model does.

use super::body::{Block, Body, Field, Kind, Mark, Message, Role};
use super::scan::{Cursor, Key, Span, Unclear, says};

/// The most top-level fields; the API knows some thirty.
const FIELDS: usize = 256;

pub(super) fn split(bytes: &[u8]) -> Result<Body, Unclear> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Unclear::TooLarge);
    }
    std::str::from_utf8(bytes).map_err(|error| Unclear::NotUtf8(error.valid_up_to()))?;
    let mut splitter = Splitter {
        bytes,
        body: Body::default(),
    };
    let mut cursor = Cursor::new(bytes);
    splitter.object(&mut cursor)?;
    cursor.finish()?;
    Ok(splitter.body)
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

impl Splitter<'_> {
    fn is(&self, key: &Key, name: &str) -> bool {
        says(key.span.of(self.bytes), name)
    }

    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Unclear> {
        cursor.expect(b'{')?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            let value = if self.is(&key, "messages") {
                if !self.body.messages.is_empty() {
                    return Err(Unclear::DuplicateKey(key.span.start()));
                }
                self.messages(cursor)?
            } else {
                cursor.value()?
            };
            let cut = cursor.member(&key, value);
            let key = key.span;
            if self.body.fields.len() >= FIELDS || self.has_field(key) {
                return Err(Unclear::DuplicateKey(key.start()));
            }
            self.body.fields.push(Field { key, value, cut });
        }
        Ok(())
    }

    /// Escaped and plain spellings of one key are the same key.
    fn has_field(&self, key: Span) -> bool {
        let name = serde_json::from_slice::<String>(key.of(self.bytes)).unwrap_or_default();
        let fields = self.body.fields.iter();
        fields
            .into_iter()
            .any(|f| says(f.key.of(self.bytes), &name))
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
            if self.is(&key, "role") {
                let value = cursor.value()?;
                once(&mut role, self.role(value), &key)?;
            } else if self.is(&key, "content") {
                is_string = cursor.peek() != Some(b'[');
                let value = if is_string {
                    cursor.string()?
                } else {
                    self.blocks(cursor)?
                };
                once(&mut content, value, &key)?;
            } else {
                is_plain = false;
                cursor.value()?;
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

    fn role(&self, value: Span) -> Role {
        let name = value.of(self.bytes);
        let known = [
            ("user", Role::User),
            ("assistant", Role::Assistant),
            ("system", Role::System),
        ];
        let found = known.iter().find(|(known, _)| says(name, known));
        found.map_or(Role::Other, |(_, role)| *role)
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
        let name = key.span.of(self.bytes);
        if says(name, "content") && cursor.peek() == Some(b'[') {
            let value = self.nested(cursor, found)?;
            return once(&mut found.payload, value, key);
        }
        let value = cursor.value()?;
        if says(name, "type") {
            return once(&mut found.kind, Kind::named(value.of(self.bytes)), key);
        }
        if says(name, "cache_control") {
            let mark = Mark {
                block: at(self.body.blocks.len()),
                is_nested: false,
                value,
                cut: cursor.member(key, value),
            };
            self.body.marks.push(mark);
            return once(&mut found.mark, (), key);
        }
        if says(name, "text") {
            once(&mut found.text, (), key)?;
            return once(&mut found.payload, value, key);
        }
        found.has_others = true;
        if says(name, "id") || says(name, "tool_use_id") {
            once(&mut found.id, value, key)
        } else if says(name, "name") {
            once(&mut found.name, value, key)
        } else if says(name, "thinking") || says(name, "input") || says(name, "content") {
            once(&mut found.payload, value, key)
        } else if says(name, "signature") || says(name, "data") {
            once(&mut found.seal, value, key)
        } else if says(name, "is_error") {
            once(&mut found.is_error, value.of(self.bytes) == b"true", key)
        } else {
            Ok(())
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
                if self.is(&key, "cache_control") {
                    once(&mut marked, (), &key)?;
                    let cut = cursor.member(&key, value);
                    self.body.marks.push(Mark {
                        block,
                        is_nested: true,
                        value,
                        cut,
                    });
                } else if self.is(&key, "type") {
                    found.has_tool_references |= says(value.of(self.bytes), "tool_reference");
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
