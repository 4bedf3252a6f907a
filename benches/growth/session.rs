//! Sessions of a made-up coding agent. Each request is the one before it plus two
//! messages: a tool call and its result.
//!
//! A session is one buffer: every request is a prefix of the last one, followed by
//! a short tail that closes the JSON and puts the cache breakpoint on the newest
//! block, as agents do. So a request is sent straight from the buffer, and nothing
//! is built while the clock runs. Sessions of the same shape differ in a stamp in
//! every message, so no two messages of a run are the same.

use std::fmt::Write as _;

/// The model that all sessions use; Longhaul's configuration describes it.
pub const MODEL: &str = "claude-bench";
/// Bytes of a call and its result in the history that a session starts with.
const USUAL_PAIR: usize = 7_500;
/// Stands for the stamp of a session, which is as long.
const STAMP: &str = "STAMPSTAMPSTAMP#";
/// What follows the prefix.
const TAIL: &str = r#","cache_control":{"type":"ephemeral"}}]}]}"#;
/// Where passes are measured, every 40th request asks for one. A second pass mostly
/// follows when its summary is ready, which makes about one pass in twenty requests.
const ASK_EVERY: usize = 40;

const LINES: [&str; 10] = [
    "    let outcome = self.inner.poll(&mut context, \"ready\");",
    "    if let Some(found) = table.get(\"content-type\") {",
    "        return Err(Error::new(\"expected `}` but found \\\"{\\\" instead\"));",
    "    }",
    "",
    "// The order matters here: the lock is taken before the file is opened.",
    "\tprintf(\"%s: %d\\n\", name, count);",
    "<div class=\"row\" id=\"main\"><a href=\"/index.html\">über uns</a></div>",
    "pub fn measure(bytes: &[u8], limit: usize) -> Result<Vec<Span>, Unclear> {",
    "{\"level\":\"info\",\"path\":\"C:\\\\work\\\\a.txt\",\"took\":12.5}",
];

const WORDS: [&str; 12] = [
    "the", "request", "is", "read", "once", "and", "its", "messages", "are", "kept,", "so", "that",
];

/// What all sessions of one shape have in common.
pub struct Template {
    bytes: Vec<u8>,
    /// Where each request's prefix ends.
    ends: Vec<usize>,
    /// Where the stamp goes.
    stamps: Vec<usize>,
}

/// One session, ready to be sent.
pub struct Session {
    bytes: Vec<u8>,
    requests: Vec<Request>,
}

struct Request {
    end: usize,
    head: String,
    /// The same, asking for a pass.
    pass_head: Option<String>,
}

impl Template {
    /// Starts with `start` bytes and grows by `growth` bytes, `requests` times.
    pub fn new(start: usize, growth: usize, requests: usize) -> Self {
        let mut text = opening(start);
        let mut rng = fastrand::Rng::with_seed(start as u64);
        let mut ends = Vec::new();
        let mut index = 0;
        while ends.len() <= requests {
            let pair = if ends.is_empty() {
                // The last pair before the first request makes up the size.
                let left = start.saturating_sub(text.len() + TAIL.len());
                left.clamp(800, USUAL_PAIR)
            } else {
                growth
            };
            append_pair(&mut text, index, pair, &mut rng);
            index += 1;
            if text.len() + TAIL.len() + 800 > start {
                ends.push(text.len());
            }
            text.push_str("}]}");
        }
        let stamps = memchr::memmem::find_iter(text.as_bytes(), STAMP).collect();
        Self {
            bytes: text.into_bytes(),
            ends,
            stamps,
        }
    }

    /// The session of this number.
    pub fn session(&self, number: u64) -> Session {
        let mut bytes = self.bytes.clone();
        // An odd factor maps numbers to stamps one to one.
        let stamp = format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for at in &self.stamps {
            bytes[*at..at + STAMP.len()].copy_from_slice(stamp.as_bytes());
        }
        // Counted over all sessions, because some are shorter than that.
        let earlier = usize::try_from(number).unwrap() * (self.ends.len() - 1);
        let requests = self.ends.iter().enumerate().map(|(index, end)| {
            let asks_for_pass = (earlier + index) % ASK_EVERY == ASK_EVERY / 4;
            let length = end + TAIL.len();
            Request {
                end: *end,
                head: head(length, ""),
                pass_head: asks_for_pass.then(|| head(length, "x-longhaul-compact: now\r\n")),
            }
        });
        let requests = requests.collect();
        Session { bytes, requests }
    }
}

impl Session {
    /// Number of requests, the first one included.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Head, body and tail of a request.
    pub fn request(&self, index: usize, passes: bool) -> [&[u8]; 3] {
        let request = &self.requests[index];
        let pass_head = request.pass_head.as_ref().filter(|_| passes);
        let head = pass_head.unwrap_or(&request.head);
        [head.as_bytes(), &self.bytes[..request.end], TAIL.as_bytes()]
    }
}

fn head(length: usize, extra: &str) -> String {
    format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: bench\r\nx-api-key: key\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\naccept: application/json\r\nuser-agent: bench\r\n{extra}content-length: {length}\r\n\r\n"
    )
}

/// Everything up to the user's first message.
fn opening(start: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(7);
    let (system, tools) = if start > 100_000 {
        (10_000, 20)
    } else {
        (2_000, 4)
    };
    let system = quoted(&prose(&mut rng, system));
    let mut text = format!(
        r#"{{"model":"{MODEL}","max_tokens":32000,"stream":true,"system":[{{"type":"text","text":{system},"cache_control":{{"type":"ephemeral"}}}}],"tools":["#
    );
    for index in 0..tools {
        let comma = if index > 0 { "," } else { "" };
        let name = match index {
            0 => "Read".to_owned(),
            1 => "Edit".to_owned(),
            _ => format!("tool_{index}"),
        };
        let description = quoted(&prose(&mut rng, 400));
        write!(
            text,
            r#"{comma}{{"name":"{name}","description":{description},"input_schema":{{"type":"object","properties":{{"file_path":{{"type":"string","description":"The absolute path"}},"limit":{{"type":"number"}}}},"required":["file_path"]}}}}"#
        )
        .unwrap();
    }
    let task = quoted(&prose(&mut rng, 300));
    let task = task.trim_matches('"');
    write!(
        text,
        r#"],"metadata":{{"user_id":"user_1"}},"messages":[{{"role":"user","content":[{{"type":"text","text":"Task {STAMP}: {task}"}}]}}"#
    )
    .unwrap();
    text
}

/// A call and its result, of about `size` bytes together; the last block and its
/// message are left open.
fn append_pair(text: &mut String, index: usize, size: usize, rng: &mut fastrand::Rng) {
    let begin = text.len();
    let id = format!("toolu_{STAMP}{index:06}");
    let path = format!("/home/user/project/src/part_{}.rs", index % 40);
    text.push_str(r#",{"role":"assistant","content":["#);
    if index.is_multiple_of(3) {
        let words = quoted(&prose(rng, size / 20));
        let words = words.trim_matches('"');
        write!(
            text,
            r#"{{"type":"text","text":"Step {index} of {STAMP}: {words}"}},"#
        )
        .unwrap();
    }
    if index.is_multiple_of(5) {
        let (old, new) = (quoted(&code(rng, size / 16)), quoted(&code(rng, size / 12)));
        write!(text, r#"{{"type":"tool_use","id":"{id}","name":"Edit","input":{{"file_path":"{path}","old_string":{old},"new_string":{new}}}}}]}}"#).unwrap();
    } else {
        write!(text, r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{"file_path":"{path}","offset":{index},"limit":200}}}}]}}"#).unwrap();
    }
    write!(
        text,
        r#",{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{STAMP}\n"#
    )
    .unwrap();
    // Lines are added escaped, until the size is right.
    let end = begin + size - 4;
    let mut number = 1;
    while text.len() < end {
        let line = quoted(&format!(
            "{number:>6}\t{}\n",
            LINES[rng.usize(..LINES.len())]
        ));
        text.push_str(&line[1..line.len() - 1]);
        number += 1;
    }
    text.push('"');
}

fn code(rng: &mut fastrand::Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 100);
    while text.len() < size {
        text += LINES[rng.usize(..LINES.len())];
        text.push('\n');
    }
    text
}

fn prose(rng: &mut fastrand::Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 20);
    while text.len() < size {
        text += WORDS[rng.usize(..WORDS.len())];
        text += if rng.u8(..) < 12 { ".\n\n" } else { " " };
    }
    text
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
