//! What went over a connection: whose request it carries, and what came back.
//!
//! A break excuses the request that it broke and no other, so a network has to
//! know whose that was: every request of an agent has its tag in its head. And
//! only on the wire upstream's answer stands as it was, to be compared with what
//! the client got.

use std::collections::HashMap;
use std::sync::Mutex;

use memchr::memmem;

use crate::support::http::{Message, Reader};

/// How the header begins that names a request.
const TAG: &[u8] = b"x-tag: ";

/// Whose request a connection carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The head of it has not come whole.
    Unknown,
    /// No agent's: the proxy asks for itself.
    Nobody,
    /// The request of this tag.
    Tag(String),
}

/// What one connection carries at the moment.
pub struct Line {
    whose: Whose,
    /// The head of the request, as far as it has come.
    head: Vec<u8>,
    /// Its place among all that was heard.
    place: Option<usize>,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            whose: Whose::Unknown,
            head: Vec::new(),
            place: None,
        }
    }
}

impl Line {
    pub fn whose(&self) -> Whose {
        self.whose.clone()
    }
}

/// Every answer that came over a network, each with the tag of its request.
#[derive(Default)]
pub struct Heard(Mutex<Vec<(String, Vec<u8>)>>);

impl Heard {
    /// Bytes of a request.
    pub fn asked(&self, line: &Mutex<Line>, bytes: &[u8]) {
        let mut line = line.lock().unwrap();
        // A request begins with a write of its own, and no text in a body does so.
        if bytes.starts_with(b"POST /") || bytes.starts_with(b"GET /") {
            *line = Line::default();
        }
        if line.whose != Whose::Unknown {
            return;
        }
        line.head.extend_from_slice(bytes);
        let Some(end) = memmem::find(&line.head, b"\r\n\r\n") else {
            return;
        };
        let head = &line.head[..end + 2];
        let tag = memmem::find(head, TAG).map(|at| &head[at + TAG.len()..]);
        let tag = tag.and_then(|rest| rest.split(|byte| *byte == b'\r').next());
        line.whose = tag.map_or(Whose::Nobody, |tag| {
            Whose::Tag(String::from_utf8_lossy(tag).into_owned())
        });
        if let Whose::Tag(tag) = line.whose() {
            let mut all = self.0.lock().unwrap();
            all.push((tag, Vec::new()));
            line.place = Some(all.len() - 1);
        }
    }

    /// Bytes of an answer.
    pub fn answered(&self, line: &Mutex<Line>, bytes: &[u8]) {
        if let Some(place) = line.lock().unwrap().place {
            self.0.lock().unwrap()[place].1.extend_from_slice(bytes);
        }
    }

    /// The answers to each request, as far as they came.
    pub fn answers(&self) -> HashMap<String, Vec<Message>> {
        let mut answers: HashMap<String, Vec<Message>> = HashMap::new();
        for (tag, bytes) in self.0.lock().unwrap().iter() {
            let mut reader = Reader::new(bytes.as_slice());
            if let Ok(Some(mut answer)) = reader.head() {
                let _ = reader.body(&mut answer, true);
                answers.entry(tag.clone()).or_default().push(answer);
            }
        }
        answers
    }
}
