//! The arguments of a call, found where they stand.
//!
//! A call that writes a file carries all of it, so values are stepped over and
//! only those that are asked for are decoded. An object with very many members,
//! or with one of them twice, is not looked into.

use std::borrow::Cow;

use crate::wire::scan::Cursor;

/// More members than any tool has.
const MEMBERS: usize = 64;
/// The longest string that is decoded, as it stands in JSON.
const TEXT: usize = 256 * 1024;
/// The longest arguments that are told apart by what they say.
const ARGUMENTS: usize = 16 * 1024;

/// Arguments that say how a call is carried out and not what it is about.
const MANNER: [&str; 9] = [
    "description",
    "explanation",
    "justification",
    "timeout",
    "timeout_ms",
    "yield_time_ms",
    "security_risk",
    "requires_approval",
    "toolCallId",
];

/// The members of an object: names, and values as JSON.
pub(super) struct Fields<'a> {
    members: Vec<(Cow<'a, [u8]>, &'a [u8])>,
}

impl<'a> Fields<'a> {
    /// The members of this object.
    pub(super) fn read(object: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(object);
        cursor.expect(b'{').ok()?;
        let mut members: Vec<(Cow<'a, [u8]>, &'a [u8])> = Vec::with_capacity(8);
        let mut first = true;
        while let Some(key) = cursor.key(&mut first).ok()? {
            let value = cursor.value().ok()?.of(object);
            let name = key.name(object);
            if members.len() >= MEMBERS || members.iter().any(|(other, _)| *other == name) {
                return None;
            }
            members.push((name, value));
        }
        Some(Self { members })
    }

    /// The value of a member, as JSON; `null` is as good as none.
    pub(super) fn raw(&self, name: &str) -> Option<&'a [u8]> {
        let named = |(key, _): &&(Cow<'a, [u8]>, &'a [u8])| **key == *name.as_bytes();
        let (_, value) = self.members.iter().find(named)?;
        (*value != b"null").then_some(*value)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// What the first of these members that is there says, if it is a string.
    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        text(names.iter().find_map(|name| self.raw(name))?)
    }

    /// The first of these members that is there, if it is a number not negative,
    /// or a string that is one.
    pub(super) fn number(&self, names: &[&str]) -> Option<u64> {
        number(names.iter().find_map(|name| self.raw(name))?)
    }

    /// Whether a member is true, or a string that says so.
    pub(super) fn is_true(&self, name: &str) -> bool {
        let raw = self.raw(name).unwrap_or_default();
        raw == b"true" || raw.eq_ignore_ascii_case(b"\"true\"")
    }

    /// The members of an array.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&'a [u8]>> {
        elements(self.raw(name)?)
    }

    /// Every member whose value is a short string.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        let short = |value: &&&[u8]| value.len() < 1024;
        let values = self.members.iter().map(|(_, value)| value);
        values.filter(short).filter_map(|value| text(value))
    }

    /// Whether all that is said besides the manner is in these members.
    pub(super) fn are_only(&self, names: &[&[&str]]) -> bool {
        self.members.iter().all(|(key, value)| {
            let is = |name: &&str| **key == *name.as_bytes();
            *value == b"null" || names.iter().copied().flatten().any(is) || MANNER.iter().any(is)
        })
    }

    /// What is said besides the manner, by name, so that two calls can be
    /// compared. `None` if that is very long.
    pub(super) fn arguments(&self) -> Option<String> {
        let counts = |(key, value): &&(Cow<'a, [u8]>, &'a [u8])| {
            *value != b"null" && !MANNER.iter().any(|name| **key == *name.as_bytes())
        };
        let mut members: Vec<_> = self.members.iter().filter(counts).collect();
        members.sort();
        let length: usize = members.iter().map(|(k, v)| k.len() + v.len() + 2).sum();
        if length > ARGUMENTS {
            return None;
        }
        let mut arguments = String::with_capacity(length);
        for (name, value) in members {
            arguments.push_str(&String::from_utf8_lossy(name));
            arguments.push('=');
            arguments.push_str(std::str::from_utf8(value).ok()?);
            arguments.push(' ');
        }
        Some(arguments)
    }
}

/// A JSON string, decoded; `None` if it is none, or very long.
pub(super) fn text(value: &[u8]) -> Option<String> {
    if value.len() > TEXT {
        return None;
    }
    match value {
        [b'"', inside @ .., b'"'] if !inside.contains(&b'\\') => {
            String::from_utf8(inside.to_vec()).ok()
        }
        [b'"', ..] => serde_json::from_slice(value).ok(),
        _ => None,
    }
}

/// A whole number that is not negative, or a string that says one.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"\"").unwrap_or(value);
    let digits = digits.strip_suffix(b"\"").unwrap_or(digits);
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The elements of a JSON array.
pub(super) fn elements(array: &[u8]) -> Option<Vec<&[u8]>> {
    let mut cursor = Cursor::new(array);
    cursor.expect(b'[').ok()?;
    let (mut elements, mut first) = (Vec::new(), true);
    while cursor.element(&mut first).ok()? {
        elements.push(cursor.value().ok()?.of(array));
    }
    Some(elements)
}
