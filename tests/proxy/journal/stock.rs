//! A journal with a session in it, and ways to ask for it.

use std::sync::Arc;

use longhaul::engine::conversation::Conversation;
use longhaul::engine::facts::facts;
use longhaul::engine::figures::Figures;
use longhaul::engine::ids::{ChainHash, LineageId, Reference};
use longhaul::engine::recall::entries::{LeftOut, Note, entries, noted};
use longhaul::engine::recall::entry::EntryKind;
use longhaul::engine::recall::reference::{reference_at, reference_of_span, shown};
use longhaul::engine::{archive, chain, stub};
use longhaul::store::journal::{Archive, Kept, Promise, Trace};
use longhaul::store::{MarkRow, Memory, Moment, Store};
use longhaul::wire::body::Body;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Proxy, Tap, plain};

/// A session that is in a journal.
#[derive(Clone)]
pub struct Stocked {
    pub id: LineageId,
    seed: ChainHash,
    /// Its messages, as the client sent them.
    pub messages: Vec<u8>,
    /// The reference of all messages but the last.
    pub span: String,
}

impl Stocked {
    /// The reference of a block.
    pub fn block(&self, message: u32, block: u32) -> String {
        shown(self.reference(message, block))
    }

    pub fn reference(&self, message: u32, block: u32) -> Reference {
        reference_at(self.seed, message, block)
    }
}

/// What a tool gave back, long enough to come in pages.
pub fn listing() -> String {
    let line = |at: usize| format!("{at:04} fn step_{at}() {{ schedule({at}); }}\n");
    let lines: String = (0..600).map(line).collect();
    format!("const QUUX_RETRY_BUDGET: u32 = 17;\n{lines}// the end of scheduler.rs \u{e9}\n")
}

/// A short piece of work; `word` tells one from another.
pub fn work(word: &str) -> Vec<Value> {
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, text: &str, failed: bool| {
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}
        ]})
    };
    let said = |text: &str, call: Value| json!({"role": "assistant", "content": [{"type": "text", "text": text}, call]});
    vec![
        json!({"role": "user", "content": format!("Port the scheduler of {word}. Never touch config/legacy.yml.")}),
        said(
            "I'll read it.",
            call("c1", "Read", json!({"file_path": "/src/scheduler.rs"})),
        ),
        result("c1", &listing(), false),
        said(
            "I decided to use a token bucket instead of a leaky bucket.",
            call(
                "c2",
                "Write",
                json!({"file_path": "/src/retry.rs", "content": format!("// {word}\n")}),
            ),
        ),
        result("c2", "File created successfully at: /src/retry.rs", false),
        said(
            "Now the tests.",
            call("c3", "Bash", json!({"command": "cargo test retry"})),
        ),
        result(
            "c3",
            &format!("error[E0308]: mismatched types in {word}"),
            true,
        ),
        json!({"role": "assistant", "content": "Should I bump the version as well?"}),
        json!({"role": "user", "content": "Yes, please."}),
    ]
}

/// Puts a session into a journal, and a mark of it.
pub async fn put(store: &dyn Store, tenant: &str, messages: &[Value], at: i64) -> Stocked {
    let messages: Vec<u8> = json!(messages).to_string().into_bytes();
    let bytes = [&br#"{"model":"m","messages":"#[..], &messages, b"}"].concat();
    let body = Body::split(&bytes).unwrap();
    let conversation = Conversation::new(&bytes, &body);
    let tenant = chain::start(tenant);
    let hash = blake3::hash(&[tenant.as_bytes().as_slice(), &messages].concat());
    let seed = ChainHash::from_bytes(*hash.as_bytes());
    let id = LineageId::beginning(hash.as_bytes());
    let count = u32::try_from(conversation.len()).unwrap();
    let trace = Trace {
        tenant,
        lineage: id,
        label: Some(format!("label-{at}")),
        from: None,
        through: Vec::new(),
        behind: Vec::new(),
        here: (seed, count),
    };
    let name = |range: std::ops::Range<usize>| stub::blob_id(tenant, &bytes[range]);
    let mut put = Archive::default();
    for message in 0..conversation.len() {
        let parts = archive::parts(&conversation, message);
        let pieces = parts.contents().iter();
        put.blobs
            .extend(pieces.map(|range| (name(range.clone()), bytes[range.clone()].to_vec())));
        let (form, blobs) = archive::encode(&parts, &name);
        let message = u32::try_from(message).unwrap();
        put.messages.push(Kept {
            message,
            parts: form,
            blobs,
        });
    }
    let span = reference_of_span(seed, 0, count - 1);
    let promise = |reference, messages, block| Promise {
        reference,
        messages,
        block,
        blob: None,
    };
    put.promises.push(promise(span, (0, count - 1), None));
    put.promises
        .push(promise(reference_at(seed, 2, 0), (2, 3), Some(0)));
    let journal = store.journal();
    journal.archive(&trace, &put, Moment(at)).await.unwrap();
    let found = facts(&conversation, 0, conversation.len());
    let notes: Vec<Note<'_>> = found
        .iter()
        .map(|fact| Note {
            kind: EntryKind::Fact(fact.kind),
            message: fact.message,
            block: fact.block,
            turn: fact.turn,
            tool: fact.tool.as_deref().unwrap_or_default(),
            path: fact.path.as_deref().unwrap_or_default(),
            text: &fact.text,
        })
        .collect();
    let mut told = noted(seed, &notes);
    told.extend(entries(&LeftOut {
        conversation: &conversation,
        tenant,
        seed,
        hidden: 0..conversation.len() - 1,
        blocks: &[],
    }));
    journal.append(&trace, &told, Moment(at)).await.unwrap();
    let figures = Figures::read(br#"{"version":1,"prompt":2000,"removed":3000,"requests":4}"#);
    let mark = MarkRow {
        chain: seed,
        model: "claude-opus-5-5".to_owned(),
        lineage: id,
        messages: count,
        overlay: None,
        view: seed,
        hint: None,
        sealed: true,
        figures: figures.store(),
        seen_at: Moment(at),
    };
    store.record(&[mark]).await.unwrap();
    Stocked {
        id,
        seed,
        messages,
        span: shown(span),
    }
}

/// Waits for something, in a test that is not asynchronous.
pub fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

pub const TOKEN: &str = "of-the-operator";

/// A proxy with sessions of two tenants in its store.
pub struct House {
    pub proxy: Proxy,
    pub store: Arc<dyn Store>,
    pub own: Stocked,
    pub foreign: Stocked,
    _upstream: Option<Tap>,
}

pub fn house() -> House {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let own = wait(put(&*store, "a", &work("alpha"), 1_000));
    let foreign = wait(put(&*store, "b", &work("omega"), 2_000));
    let upstream = Tap::start(|_| plain(b"upstream"));
    let proxy = Proxy::on(store.clone(), &upstream.url(), "", Some(TOKEN));
    House {
        _upstream: Some(upstream),
        ..House::around(proxy, store, own, foreign)
    }
}

impl House {
    /// A proxy that has an upstream already.
    pub fn around(proxy: Proxy, store: Arc<dyn Store>, own: Stocked, foreign: Stocked) -> Self {
        Self {
            proxy,
            store,
            own,
            foreign,
            _upstream: None,
        }
    }

    /// Sends a request as the operator does.
    pub fn ask(&self, method: &str, path: &str) -> Answer {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        );
        Client::connect(self.proxy.address).send(request).answer()
    }

    /// The JSON of an answer that must be good.
    pub fn json(&self, path: &str) -> Value {
        let answer = self.ask("GET", path);
        let body = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status(), 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// What is wrong, by an answer that must be bad.
    pub fn wrong(&self, method: &str, path: &str, status: u16) -> String {
        let answer = self.ask(method, path);
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status(), status, "{path}: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["type"], "error");
        body["error"]["message"].as_str().unwrap().to_owned()
    }

    /// Sends bytes to the tools.
    pub fn post(&self, headers: &str, body: &[u8]) -> Answer {
        let head = format!(
            "POST /mcp HTTP/1.1\r\n{headers}content-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Client::connect(self.proxy.address)
            .try_send([head.as_bytes(), body].concat())
            .answer()
    }

    /// What a method of the protocol answers.
    pub fn rpc(&self, headers: &str, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = format!("host: localhost\r\n{headers}");
        let answer = self.post(&headers, body.to_string().as_bytes());
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status(), 200, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// What a tool answers, and whether that is an error.
    pub fn call(&self, headers: &str, tool: &str, arguments: &Value) -> (String, bool) {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.rpc(headers, "tools/call", &params);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}")).to_owned();
        (text, result["isError"] == true)
    }

    /// What a tool answers when all is well.
    pub fn told(&self, tool: &str, arguments: &Value) -> String {
        let (text, failed) = self.call("", tool, arguments);
        assert!(!failed, "{text}");
        text
    }
}
