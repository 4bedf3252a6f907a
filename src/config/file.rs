//! A TOML text as a list of given values, each with its line.
//!
//! Every syntax error is reported, and what could still be read is read, so
//! that one missing quote does not hide the mistakes after it.

use super::given::Given;
use super::path::{Path, Place};
use super::problem::{Mistake, Problem, Source};
use std::ops::Range;
use toml::de::{DeTable, DeValue, Error};
use toml::{Spanned, Table, Value};

/// The values of a file and the mistakes in its syntax.
pub(super) fn parse(path: &std::path::Path, text: &str) -> (Vec<Given>, Vec<Problem>) {
    let source = |span: Range<usize>| Source::File(path.to_owned(), Some(line(text, span.start)));
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut walk = Walk {
        text,
        source: &source,
        found: Vec::new(),
    };
    walk.table(&Path::default(), table.get_ref());
    let problems = errors.iter().map(|error| syntax(text, &source, error));
    (walk.found, problems.collect())
}

/// The values of an inline table given for a section by other means.
pub(super) fn parse_inline(section: &Path, text: &str, source: &Source) -> Option<Vec<Given>> {
    let value = DeValue::parse(text).ok()?;
    let mut walk = Walk {
        text,
        source: &|_| source.clone(),
        found: Vec::new(),
    };
    walk.table(section, value.get_ref().as_table()?);
    Some(walk.found)
}

struct Walk<'a> {
    text: &'a str,
    source: &'a dyn Fn(Range<usize>) -> Source,
    found: Vec<Given>,
}

impl Walk<'_> {
    fn table(&mut self, section: &Path, table: &DeTable<'_>) {
        for (name, item) in table {
            let path = section.join(name.get_ref());
            match (path.place(), item.get_ref()) {
                (Place::Section, DeValue::Table(table)) => self.table(&path, table),
                _ => self.value(path, name.span(), item),
            }
        }
    }

    fn value(&mut self, path: Path, name: Range<usize>, item: &Spanned<DeValue<'_>>) {
        let written = self.text.get(item.span()).unwrap_or_default();
        self.found.push(Given {
            path,
            readings: vec![plain(item.get_ref())],
            written: written.to_owned(),
            source: (self.source)(name),
        });
    }
}

/// The value without its place in the text.
fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            // Too large for any range: no key accepts it as a text either.
            .map_or_else(|_| Value::String(number.to_string()), Value::Integer),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| Value::String(number.to_string()), Value::Float),
        DeValue::Boolean(switch) => Value::Boolean(*switch),
        DeValue::Datetime(time) => Value::Datetime(*time),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| plain(item.get_ref())).collect())
        }
        DeValue::Table(table) => {
            let entries = table.iter();
            let entries = entries.map(|(key, item)| (key.to_string(), plain(item.get_ref())));
            Value::Table(entries.collect::<Table>())
        }
    }
}

fn syntax(text: &str, source: &dyn Fn(Range<usize>) -> Source, error: &Error) -> Problem {
    let span = error.span().unwrap_or_default();
    let before = text.get(..span.start).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    Problem {
        source: source(span),
        key: String::new(),
        value: None,
        mistake: Mistake::Syntax {
            column: line.chars().count() + 1,
            message: error.message().to_owned(),
        },
    }
}

fn line(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    before.filter(|byte| *byte == b'\n').count() + 1
}
