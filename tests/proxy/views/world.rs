//! A proxy between clients and a simulated API, where every request is checked.
//!
//! What holds for one request is checked here, so that each property only has to
//! make conversations: upstream takes it; without an overlay it is the client's
//! own bytes; with one every difference is explained; without a new pass it goes
//! on from the view before; and the same body sent again is the same view.

use std::collections::{BTreeSet, HashMap};

use longhaul::sim::{Entry, Options, Outcome, Reply};
use serde_json::{Value, json};

use super::look::{Sent, bare, explain};
use super::talk::Talk;
use crate::support::simulated::Simulated;
use crate::support::{Answer, Client, Proxy, text};

/// Models that lose earlier thinking by themselves, and so break their prefix.
const STRIPS: [&str; 1] = ["claude-sonnet-4-5"];

/// What became of a request.
pub struct Sending {
    pub answer: Answer,
    /// What upstream got.
    pub sent: Sent,
    /// What a pass did.
    pub compaction: String,
}

pub struct World {
    pub upstream: Simulated,
    proxy: Option<Proxy>,
    client: Option<Client>,
    folder: tempfile::TempDir,
    file: String,
    /// Entries of the ledger that were looked at.
    seen: usize,
    /// Models that have refused thinking once, as they may.
    enforces: BTreeSet<String>,
    /// Whose request was the last of each conversation, as upstream sees it.
    last: HashMap<String, usize>,
    /// Requests so far.
    pub requests: usize,
    /// Passes so far.
    pub passes: usize,
}

impl World {
    pub fn start(options: Options, file: &str) -> Self {
        let upstream = Simulated::start(options);
        let folder = tempfile::tempdir().unwrap();
        let proxy = Proxy::keeping(&upstream.sim.url(), file, folder.path());
        Self {
            upstream,
            proxy: Some(proxy),
            client: None,
            folder,
            file: file.to_owned(),
            seen: 0,
            enforces: BTreeSet::new(),
            last: HashMap::new(),
            requests: 0,
            passes: 0,
        }
    }

    /// Stops the proxy and starts another on the same files.
    pub fn restart(&mut self) {
        self.client = None;
        let mut proxy = self.proxy.take().unwrap();
        proxy.join();
        let url = self.upstream.sim.url();
        self.proxy = Some(Proxy::keeping(&url, &self.file, self.folder.path()));
    }

    /// The same with other settings.
    pub fn restart_with(&mut self, file: &str) {
        file.clone_into(&mut self.file);
        self.restart();
    }

    /// Sends a talk and takes the reply into it.
    pub fn ask(&mut self, talk: &mut Talk, reply: Reply, wish: &str) -> Sending {
        let sending = self.send(talk, reply, wish);
        let reply: Value = serde_json::from_slice(&sending.answer.body).unwrap();
        talk.messages
            .push(json!({"role": "assistant", "content": reply["content"]}));
        sending
    }

    /// Sends a talk, and looks at what upstream got.
    pub fn send(&mut self, talk: &mut Talk, reply: Reply, wish: &str) -> Sending {
        let own = talk.body();
        self.upstream.sim.push_reply(reply);
        let wish = match wish {
            "" => String::new(),
            wish => format!("x-longhaul-compact: {wish}\r\n"),
        };
        let answer = self.post(talk, &own, &wish);
        let said = text(&answer.body);
        assert_eq!(answer.status(), 200, "{said}");
        let header = |name: &str| answer.header(name).unwrap_or("none").to_owned();
        let compaction = header("x-longhaul-compaction");
        let entry = self.taken(talk, compaction != "none");
        let bytes = entry.body.clone().unwrap();
        let sent = check(talk, &own, bytes, &compaction);
        self.check_prefix(talk, &entry, compaction != "none", &sent);
        talk.rewound = false;
        talk.sent
            .entry(talk.model.clone())
            .or_default()
            .insert(talk.messages.len(), sent.clone());
        self.requests += 1;
        self.passes += usize::from(compaction != "none");
        Sending {
            answer,
            sent,
            compaction,
        }
    }

    /// Sends a talk whose view is refused and taken back; what was sent at last.
    pub fn ask_refused(&mut self, talk: &mut Talk, reply: Reply, wish: &str) -> Vec<u8> {
        self.upstream.sim.push_reply(reply);
        let wish = format!("x-longhaul-compact: {wish}\r\n");
        let answer = self.post(talk, &talk.body(), &wish);
        let reply: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status(), 200, "{reply}");
        talk.messages
            .push(json!({"role": "assistant", "content": reply["content"]}));
        let entries = self.upstream.sim.ledger().entries;
        self.seen = entries.len();
        entries
            .last()
            .and_then(|e| e.body.clone())
            .unwrap()
            .to_vec()
    }

    fn post(&mut self, talk: &Talk, body: &[u8], wish: &str) -> Answer {
        let address = self.proxy.as_ref().unwrap().address;
        let client = self.client.get_or_insert_with(|| Client::connect(address));
        let headers = format!(
            "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n{}{wish}",
            talk.headers
        );
        client.post("/v1/messages", &headers, body).answer()
    }

    /// The request that upstream answered. It may have refused thinking before,
    /// once for each model: that is how a pass in a tool loop finds out.
    fn taken(&mut self, talk: &Talk, passed: bool) -> Entry {
        let mut entries = self.upstream.sim.ledger().entries.split_off(self.seen);
        self.seen += entries.len();
        let entry = entries.pop().unwrap();
        assert!(entry.is_answered(), "{:?}", entry.outcome);
        for refused in &entries {
            let Outcome::Refused { message, .. } = &refused.outcome else {
                panic!("{:?}", refused.outcome);
            };
            let learns = message.contains("bound to a different conversation")
                && passed
                && self.enforces.insert(talk.model.clone());
            assert!(learns, "upstream refused a view: {message}");
        }
        entry
    }

    /// Upstream's own word on the prefix.
    fn check_prefix(&mut self, talk: &Talk, entry: &Entry, passed: bool, sent: &Sent) {
        // The first image of a prompt changes it from its start.
        let has_image = |sent: &Sent| memchr::memmem::find(&sent.bytes, b"\"image\"").is_some();
        let before = talk.sent.get(&talk.model);
        let before = before.and_then(|before| before.values().next_back());
        let first_image = before.is_some_and(|before| has_image(before) != has_image(sent));
        let conversation = entry.conversation.clone().unwrap();
        let before = self.last.insert(conversation, talk.number);
        let goes_on = before == Some(talk.number) && !talk.rewound && !passed;
        if goes_on && !first_image && !STRIPS.contains(&talk.model.as_str()) {
            assert_eq!(entry.broken_at, None, "the prefix breaks without a reason");
        }
    }
}

/// Invariants 1, 3 and 10.
fn check(talk: &Talk, own: &[u8], bytes: bytes::Bytes, compaction: &str) -> Sent {
    let before = talk.sent.get(&talk.model);
    let again = before.and_then(|sent| sent.get(&talk.messages.len()));
    if let Some(again) = again {
        assert!(
            again.bytes == bytes,
            "a retry is another view: {}",
            text(&bytes)
        );
    }
    let earlier = before.and_then(|sent| sent.range(..talk.messages.len()).next_back());
    let inherits = talk.sent.keys().any(|model| *model != talk.model);
    let overlaid = compaction != "none"
        || again.is_some_and(|again| again.overlaid)
        || match earlier {
            Some((_, earlier)) => earlier.overlaid,
            None => inherits && bytes != own,
        };
    if !overlaid {
        assert!(bytes == own, "not the client's own bytes: {}", text(&bytes));
    }
    let shape = explain(own, &bytes);
    let shape = shape.unwrap_or_else(|what| panic!("{what}"));
    assert!(
        compaction == "none" || shape.hidden + shape.stubs > 0,
        "a pass did nothing"
    );
    let view = bare(&bytes);
    let goes_on = compaction == "none" && again.is_none();
    if let Some((_, earlier)) = earlier.filter(|_| goes_on) {
        let same = earlier.view.iter().zip(&view).take_while(|(a, b)| a == b);
        let at = same.count();
        assert!(
            at == earlier.view.len(),
            "the view parts from the one before at message {at}:\n{:?}\n{:?}",
            earlier.view.get(at),
            view.get(at)
        );
    }
    Sent {
        bytes,
        view,
        overlaid,
    }
}
