//! One value of every hash that has a name of ours in it. Stored rows and what
//! models have seen are found by them, so none may ever change.

use http::{HeaderMap, HeaderName, HeaderValue};
use longhaul::compactor::errand;
use longhaul::compactor::sender::{Sender, window_key};
use longhaul::engine::ids::{ChainHash, LineageId, SegmentId};
use longhaul::engine::measure::{Account, WindowKey};
use longhaul::engine::overlay::Overlay;
use longhaul::engine::recall::reference::{reference_at, reference_of_segment, reference_of_span};
use longhaul::engine::{acts, bound, chain, stub};
use longhaul::store::Moment;
use longhaul::store::journal::{Archive, Trace};
use longhaul::views::credentials::{CredentialDigest, Credentials};
use longhaul::views::tenants;
use longhaul::wire::body::Body;

use super::pins;
use super::rows::{Place, hex};
use crate::journal::stock::{TOKEN, house};
use crate::support::Client;

fn hash(byte: u8) -> ChainHash {
    ChainHash::from_bytes([byte; 32])
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    pairs.iter().map(pair).collect()
}

#[test]
fn hashes_are_what_they_were() {
    let lines: Vec<String> = [conversations(), references(), accounts(), calls()]
        .concat()
        .into_iter()
        .map(|(name, value)| format!("{name}: {value}\n"))
        .collect();
    pins::check("hashes.txt", &lines.concat());
}

type Named = (&'static str, String);

fn conversations() -> Vec<Named> {
    let request = br#"{"model":"m","messages":[{"role":"user","content":"Hello."},
        {"role":"assistant","content":[{"type":"text","text":"Yes."}]},
        {"role":"user","content":[{"type":"text","text":"Go.","cache_control":{"type":"ephemeral"}}]}]}"#;
    let body = Body::split(request).unwrap();
    let of_messages = chain::chain("tenant", request, &body);
    let of_messages: Vec<String> = of_messages.iter().map(ToString::to_string).collect();
    let (overlay, bytes) = Overlay::default().store(hash(7)).unwrap();
    vec![
        ("start of a tenant", chain::start("tenant").to_string()),
        ("messages", of_messages.join(" ")),
        (
            "link",
            chain::link(hash(1), [&b"one"[..], b"two"]).to_string(),
        ),
        ("reply", bound::place(hash(1), "toolu_1").to_string()),
        ("blob", stub::blob_id(hash(1), b"content").to_string()),
        (
            "segment",
            errand::id(hash(1), &(2..9), &[3; 32]).to_string(),
        ),
        (
            "overlay",
            format!("{overlay} {}", String::from_utf8(bytes).unwrap()),
        ),
    ]
}

fn references() -> Vec<Named> {
    let segment = SegmentId::from_bytes([1; 32]);
    vec![
        (
            "reference of a block",
            reference_at(hash(1), 2, 3).to_string(),
        ),
        (
            "reference of a span",
            reference_of_span(hash(1), 2, 9).to_string(),
        ),
        (
            "reference of a segment",
            reference_of_segment(segment).to_string(),
        ),
    ]
}

fn accounts() -> Vec<Named> {
    let own = headers(&[
        ("x-api-key", "k"),
        ("authorization", "Bearer t"),
        ("anthropic-workspace-id", "w"),
        ("x-claude-code-session-id", "one"),
        ("x-longhaul-session", "two"),
    ]);
    let upstream = "https://api.example";
    let digest = CredentialDigest::from_headers(upstream, &own);
    let accepted = Credentials::default().accept(&digest, Moment(5)).unwrap();
    let target = "https://api.example/v1/messages".parse().unwrap();
    let tenant = WindowKey::new(upstream, "m", Account::Tenant("t"), false);
    let long = WindowKey::new(upstream, "m", Account::Credential([1; 32]), true);
    let hint = tenants::hint("tenant", &own).unwrap();
    vec![
        ("accepted credential", format!("{accepted:?}")),
        ("hint", hint.to_string()),
        ("sender", hex(&Sender::new(own.clone(), &target).digest())),
        ("window of a tenant", tenant.to_string()),
        ("window of a credential, long", long.to_string()),
        (
            "window of a summarizer",
            window_key(&target, &own, "m").to_string(),
        ),
    ]
}

fn calls() -> Vec<Named> {
    let key = |name: &str, input: &str| {
        let act = acts::act(name, input.as_bytes());
        format!("{:?}", acts::key(name, &act))
    };
    vec![
        ("a file read", key("Read", r#"{"file_path": "/src/a.rs"}"#)),
        (
            "lines of it",
            key(
                "Read",
                r#"{"file_path": "src/a.rs", "offset": 5, "limit": 9}"#,
            ),
        ),
        ("a look", key("Bash", r#"{"command": "ls -la src"}"#)),
        (
            "the end of a file",
            key("Bash", r#"{"command": "tail -n 5 a.log"}"#),
        ),
        ("a question", key("find_order", r#"{"number": 7}"#)),
    ]
}

/// A branch whose first two names are taken is called by a hash.
#[test]
fn branches_are_called_what_they_were_called() {
    let place = Place::files();
    let store = place.open();
    let here = hash(9);
    let taken = LineageId::beginning(here.as_bytes());
    let other = LineageId::from_bytes([5; 16]);
    for (tenant, lineage, here) in [(1, other, hash(7)), (1, taken, hash(8)), (2, other, here)] {
        let trace = Trace {
            tenant: hash(tenant),
            lineage,
            label: Some("label".to_owned()),
            from: None,
            through: Vec::new(),
            behind: Vec::new(),
            here: (here, 3),
        };
        store.archive(&trace, &Archive::default(), Moment(1));
    }
    pins::check("branches.txt", &store.lines());
}

/// Cookies and links outlive a restart.
#[test]
fn the_page_is_opened_by_what_opened_it() {
    let house = house();
    let sealed = |purpose: &str, given: &str| {
        let (until, _) = given.split_once('.').unwrap();
        let key = blake3::derive_key(purpose, TOKEN.as_bytes());
        let until: i64 = until.parse().unwrap();
        format!(
            "{until}.{}",
            blake3::keyed_hash(&key, &until.to_le_bytes()).to_hex()
        )
    };
    let link = house.proxy.page_link.strip_prefix("/longhaul/enter?link=");
    let link = link.unwrap();
    assert_eq!(link, sealed("longhaul 1 link to the web page", link));
    let form = format!("token={TOKEN}");
    let request = format!(
        "POST /longhaul/enter HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let answer = Client::connect(house.proxy.address).send(request).answer();
    let cookie = answer.header("set-cookie").unwrap();
    let (value, rest) = cookie.split_once(';').unwrap();
    let value = value.strip_prefix("longhaul_page=").unwrap();
    assert_eq!(value, sealed("longhaul 1 sign-in to the web page", value));
    assert_eq!(
        rest,
        " Path=/longhaul; Max-Age=43200; HttpOnly; SameSite=Strict"
    );
}
