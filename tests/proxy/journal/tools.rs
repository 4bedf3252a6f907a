//! The tools, as a model uses them.

use std::sync::Arc;

use longhaul::engine::ids::{ChainHash, LineageId, Reference};
use longhaul::sim::Options;
use longhaul::store::journal::{Archive, Promise, Trace};
use longhaul::store::{Memory, Moment, Store};
use serde_json::json;

use super::stock::{House, TOKEN, house, listing, put, wait, work};
use crate::support::{Proxy, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, compaction, session, worked};

#[test]
fn the_tools_introduce_themselves() {
    let house = house();
    let begun = house.rpc(
        "",
        "initialize",
        &json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    assert_eq!(begun["result"]["serverInfo"]["name"], "longhaul");
    assert!(
        begun["result"]["instructions"]
            .as_str()
            .unwrap()
            .contains("lh-")
    );
    let listed = house.rpc("", "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["recall", "expand", "session_status", "compact_now"]);
}

#[test]
fn what_was_left_out_is_found_and_shown_word_for_word() {
    let house = house();
    let arguments = json!({"ref": house.own.span, "query": "what is QUUX_RETRY_BUDGET"});
    let found = house.told("recall", &arguments);
    let reference = house.own.block(2, 0);
    assert!(
        found.contains("| const QUUX_RETRY_BUDGET: u32 = 17;"),
        "{found}"
    );
    assert!(
        found.contains(&reference) && found.contains("/src/scheduler.rs"),
        "{found}"
    );

    let mut whole = String::new();
    for page in 1.. {
        let shown = house.told("expand", &json!({"ref": reference, "page": page}));
        let mut lines: Vec<&str> = shown.split_inclusive('\n').collect();
        let head = lines.remove(0);
        let of: usize = head
            .split(" of ")
            .last()
            .unwrap()
            .trim_end_matches("]\n")
            .parse()
            .unwrap();
        assert!(head.contains(&format!("page {page} of {of}")), "{head}");
        if page < of {
            assert!(lines.pop().unwrap().starts_with("[longhaul: page"));
        }
        whole.extend(lines);
        if page == of {
            break;
        }
    }
    assert_eq!(whole, listing());
    assert_eq!(
        house
            .proxy
            .metric("longhaul_recalls_total")
            .map(|count| count >= 3.0),
        Some(true)
    );
}

#[test]
fn the_messages_behind_a_summary_are_shown_one_after_the_other() {
    let house = house();
    let shown = house.told("expand", &json!({"ref": house.own.span}));
    assert!(
        shown.contains("message 1, user]\nPort the scheduler of alpha"),
        "{shown}"
    );
    assert!(shown.contains("assistant calls Read]"), "{shown}");
}

#[test]
fn where_a_session_stands_is_told() {
    let house = house();
    let status = house.told("session_status", &json!({"ref": house.own.block(6, 0)}));
    for part in ["9 messages", "/src/retry.rs", "/src/scheduler.rs", "E0308"] {
        assert!(status.contains(part), "{part}: {status}");
    }
}

/// Nothing is reachable across tenants, whoever asks for it with what.
#[test]
fn a_reference_leads_only_to_the_conversations_that_contain_it() {
    let house = house();
    for (asks, word) in [(&house.own, "omega"), (&house.foreign, "alpha")] {
        for query in [word, "scheduler retry version tests"] {
            let found = house.told("recall", &json!({"ref": asks.span, "query": query}));
            assert!(!found.contains(word), "{found}");
        }
    }
    let own = house.told("recall", &json!({"ref": house.own.span, "query": "alpha"}));
    assert!(own.contains("alpha"), "{own}");
}

#[test]
fn a_session_is_named_only_with_the_token() {
    let house = house();
    let id = house.own.id.to_string();
    let arguments = json!({"ref": id, "query": "alpha"});
    let (text, failed) = house.call("", "recall", &arguments);
    assert!(
        failed && text.contains("\"ref\" must be one reference"),
        "{text}"
    );
    let token = format!("authorization: Bearer {TOKEN}\r\n");
    let (text, failed) = house.call(&token, "recall", &arguments);
    assert!(!failed && text.contains("alpha"), "{text}");
    let (text, failed) = house.call(&token, "expand", &json!({"ref": id}));
    assert!(!failed && text.contains("message 1, user"), "{text}");
    // A wrong token is refused, or it could be guessed here.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let wrong = "host: localhost\r\nauthorization: Bearer of-the-operato\r\n";
    assert_eq!(house.post(wrong, list.as_bytes()).status(), 401);
    let unknown = json!({"ref": "0".repeat(32), "query": "alpha"});
    let (text, failed) = house.call(&token, "recall", &unknown);
    assert!(!failed && text.contains("no session"), "{text}");
}

#[test]
fn a_pass_is_wished_for_by_a_reference() {
    let house = house();
    let told = house.told("compact_now", &json!({"ref": house.own.span}));
    assert!(told.contains("nothing to make smaller yet"), "{told}");
}

/// The wish reaches the session that contains the reference, and no other.
#[test]
fn a_wish_is_carried_out_with_the_next_request() {
    let upstream = Simulated::start(Options::default());
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let proxy = Proxy::on(store.clone(), &upstream.sim.url(), "", None);
    let mut agent: Agent = worked(&upstream, &proxy, FREE);
    let known = session(&agent.chat(&upstream, &proxy, ""));
    let reference = Reference::from_bytes([7; 10]);
    let trace = Trace {
        tenant: ChainHash::from_bytes([1; 32]),
        lineage: LineageId::from_text(&known).unwrap(),
        label: None,
        from: None,
        through: Vec::new(),
        behind: Vec::new(),
        here: (ChainHash::from_bytes([2; 32]), 4),
    };
    let archive = Archive {
        promises: vec![Promise {
            reference,
            messages: (1, 2),
            block: None,
            blob: None,
        }],
        ..Archive::default()
    };
    wait(store.journal().archive(&trace, &archive, Moment(1))).unwrap();
    let other = wait(put(&*store, "b", &work("omega"), 5));
    let house = House::around(proxy, store, other.clone(), other);
    let told = house.told(
        "compact_now",
        &json!({"ref": format!("lh-{reference}"), "instructions": "keep the names"}),
    );
    assert!(told.starts_with("Noted"), "{told}");
    let answer = agent.chat(&upstream, &house.proxy, "");
    assert_eq!(compaction(&answer), "clear");
}
