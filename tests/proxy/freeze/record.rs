//! What was seen of a session, as the lines of a pinned file.
//!
//! Bodies are hashed as they came. Headers are grouped into sets that are listed at
//! the end, with what differs from run to run taken out: ports, ids, dates. A
//! length is taken out too, because the body's stands beside it.

use longhaul::sim::{Entry, Kind};

use super::pins::{self, Body};
use crate::support::Answer;

/// A pinned file in the making.
pub struct Record {
    name: String,
    step: usize,
    lines: Vec<String>,
    /// Each set of headers, once.
    sets: Vec<String>,
    bodies: Vec<Body>,
}

impl Record {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            step: 0,
            lines: vec!["# step who what bytes BLAKE3 headers; see tests/proxy/freeze".to_owned()],
            sets: Vec::new(),
            bodies: Vec::new(),
        }
    }

    /// Begins another scene: a session of its own.
    pub fn scene(&mut self, title: &str) {
        self.step = 0;
        self.lines.push(format!("\n## {title}"));
    }

    /// A request that the client makes.
    pub fn request(&mut self, what: &str, body: &[u8]) {
        self.step += 1;
        self.line("client", what, body, "");
    }

    /// A request that upstream has seen.
    pub fn seen(&mut self, entry: &Entry) {
        let who = match entry.kind {
            Kind::Summary | Kind::Compaction => "summarizer",
            _ => "upstream",
        };
        let what = format!("{} {}", entry.method, entry.path);
        let headers = entry.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.clone()));
        let set = self.set(headers);
        let body = entry.body.clone().unwrap_or_default();
        self.line(who, &what, &body, &set);
    }

    /// What the client got. An error is written out.
    pub fn answer(&mut self, answer: &Answer) {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let all = answer.headers.iter();
        let all = all.map(|(name, value)| (name.to_lowercase(), text(value)));
        let (ours, theirs): (Vec<_>, Vec<_>) = all.partition(|(name, _)| is_told(name));
        let set = self.set(
            theirs
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone())),
        );
        let told = ours.iter().map(|(name, value)| format!(" {name}={value}"));
        let cut = if answer.complete { "" } else { " (cut off)" };
        let what = format!("{}{cut}{}", answer.status(), told.collect::<String>());
        let id = answer
            .header("x-longhaul-request")
            .unwrap_or("\0")
            .to_owned();
        let body = normal(&text(&answer.body).replace(&id, "<id>"));
        self.line("answer", &what, body.as_bytes(), &set);
        if answer.status() != 200 {
            self.lines
                .push(format!("    {}", body.replace('\n', "\n    ")));
        }
    }

    /// Something else that is worth a line.
    pub fn note(&mut self, text: &str) {
        self.lines.push(format!("{} {text}", self.step));
    }

    fn line(&mut self, who: &str, what: &str, body: &[u8], set: &str) {
        let hash = blake3::hash(body).to_hex();
        let line = format!("{} {who} {what} {} {}", self.step, body.len(), &hash[..32]);
        self.lines
            .push(format!("{line} {set}").trim_end().to_owned());
        let lines = self.lines.iter().map(|text| text.matches('\n').count() + 1);
        let name = format!("line-{}-{who}.txt", lines.sum::<usize>());
        self.bodies.push((name, body.to_vec()));
    }

    /// The name of a set of headers.
    fn set<'h>(&mut self, headers: impl Iterator<Item = (&'h str, String)>) -> String {
        let line = |(name, value): (&str, String)| format!("    {name}: {}", usual(name, &value));
        let set: Vec<String> = headers.map(line).collect();
        let set = set.join("\n");
        let at = self.sets.iter().position(|known| *known == set);
        let at = at.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        format!("h{}", at + 1)
    }

    /// Compares it with what is pinned.
    #[track_caller]
    pub fn check(self) {
        let sets = self.sets.iter().enumerate();
        let sets = sets.map(|(at, set)| format!("h{}\n{set}", at + 1));
        let sets: Vec<String> = sets.collect();
        let text = format!(
            "{}\n\n## headers\n{}\n",
            self.lines.join("\n"),
            sets.join("\n")
        );
        pins::check_with(&self.name, &text, &self.bodies);
    }
}

/// Whether a header of an answer belongs on its line.
fn is_told(name: &str) -> bool {
    name.starts_with("x-longhaul-") && name != "x-longhaul-request"
}

/// A header's value without what differs from run to run.
fn usual(name: &str, value: &str) -> String {
    match name {
        "content-length" => "<length>".to_owned(),
        "date" => "<date>".to_owned(),
        _ if name.ends_with("-reset") => "<date>".to_owned(),
        "request-id" | "x-longhaul-request" => "<id>".to_owned(),
        _ => normal(value),
    }
}

/// A text without the ports that were free.
pub fn normal(text: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    let mut pieces = text.split(HOST);
    let mut normal = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        normal.push_str(HOST);
        normal.push_str("<port>");
        normal.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    normal
}
