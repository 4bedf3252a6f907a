//! Reads HTTP/1 messages from a socket without any library's help.

use std::io::{self, Read};

/// A message as it came.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// The first line.
    pub line: String,
    /// Names as spelled, values as bytes.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, without chunked framing.
    pub body: Vec<u8>,
    /// The body came to its proper end.
    pub complete: bool,
}

impl Message {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&found.1).ok()
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<&[u8]> {
        let same = |(n, _): &&(String, Vec<u8>)| n.eq_ignore_ascii_case(name);
        self.headers
            .iter()
            .filter(same)
            .map(|(_, value)| value.as_slice())
            .collect()
    }

    /// The status, if it is a response.
    pub fn status(&self) -> u16 {
        self.line
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .unwrap_or(0)
    }
}

/// A socket with what was read from it but not used.
pub struct Reader<R> {
    source: R,
    ahead: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(source: R) -> Self {
        Self {
            source,
            ahead: Vec::new(),
        }
    }

    /// Reads whatever comes next; empty at the end.
    pub fn some(&mut self) -> io::Result<Vec<u8>> {
        if !self.ahead.is_empty() {
            return Ok(std::mem::take(&mut self.ahead));
        }
        let mut buffer = vec![0; 64 * 1024];
        let count = self.source.read(&mut buffer)?;
        buffer.truncate(count);
        Ok(buffer)
    }

    fn more(&mut self) -> io::Result<bool> {
        let mut ahead = std::mem::take(&mut self.ahead);
        let read = self.some();
        let more = read.as_ref().is_ok_and(|read| !read.is_empty());
        ahead.extend_from_slice(read.as_deref().unwrap_or(&[]));
        self.ahead = ahead;
        read.map(|_| more)
    }

    fn until(&mut self, end: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut from = 0;
        loop {
            if let Some(at) = memchr::memmem::find(&self.ahead[from..], end) {
                let rest = self.ahead.split_off(from + at + end.len());
                return Ok(Some(std::mem::replace(&mut self.ahead, rest)));
            }
            from = self.ahead.len().saturating_sub(end.len());
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    fn exactly(&mut self, count: usize, into: &mut Vec<u8>) -> io::Result<bool> {
        while self.ahead.len() < count {
            match self.more() {
                Ok(true) => {}
                other => {
                    into.append(&mut self.ahead);
                    return other;
                }
            }
        }
        let rest = self.ahead.split_off(count);
        into.append(&mut self.ahead);
        self.ahead = rest;
        Ok(true)
    }

    /// The head of the next message; `None` if the peer closed instead.
    pub fn head(&mut self) -> io::Result<Option<Message>> {
        loop {
            let Some(head) = self.until(b"\r\n\r\n")? else {
                return Ok(None);
            };
            let mut lines = head[..head.len() - 4].split(|byte| *byte == b'\n');
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
            let line = text(lines.next().unwrap_or(&[]));
            if line.starts_with("HTTP/1.1 100") {
                continue;
            }
            let headers = lines
                .filter_map(|line| {
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    let colon = line.iter().position(|byte| *byte == b':')?;
                    let value = line[colon + 1..]
                        .strip_prefix(b" ")
                        .unwrap_or(&line[colon + 1..]);
                    Some((text(&line[..colon]), value.to_vec()))
                })
                .collect();
            return Ok(Some(Message {
                line,
                headers,
                ..Message::default()
            }));
        }
    }

    /// The body that belongs to `message`; to the end of the connection if it
    /// has neither length nor chunks and `to_end` is set.
    pub fn body(&mut self, message: &mut Message, to_end: bool) -> io::Result<()> {
        if message
            .header("transfer-encoding")
            .is_some_and(|value| value.contains("chunked"))
        {
            loop {
                let Some(size) = self.until(b"\r\n")? else {
                    return Ok(());
                };
                let size = String::from_utf8_lossy(&size).trim().to_owned();
                let size = usize::from_str_radix(size.split(';').next().unwrap_or(""), 16)
                    .map_err(|_| io::Error::other(format!("bad chunk size {size:?}")))?;
                if size == 0 {
                    // Trailers, if any, then an empty line.
                    while let Some(line) = self.until(b"\r\n")? {
                        if line == b"\r\n" {
                            message.complete = true;
                            break;
                        }
                    }
                    return Ok(());
                }
                let mut data = std::mem::take(&mut message.body);
                let whole = self.exactly(size, &mut data);
                message.body = data;
                if !whole? || self.until(b"\r\n")?.is_none() {
                    return Ok(());
                }
            }
        }
        let length = message
            .header("content-length")
            .and_then(|value| value.parse().ok());
        if let Some(length) = length {
            let mut data = Vec::new();
            let whole = self.exactly(length, &mut data);
            message.body = data;
            message.complete = whole?;
        } else if to_end {
            while self.more()? {}
            message.body = std::mem::take(&mut self.ahead);
            message.complete = true;
        } else {
            message.complete = true;
        }
        Ok(())
    }
}
