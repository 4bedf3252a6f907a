//! Texts that models read: how summaries are asked for, and what the tools say of
//! themselves. Stubs, notices and segments are in the bodies of the sessions.

use longhaul::engine::ids::Reference;
use longhaul::engine::recall::telling::Telling;
use longhaul::engine::summary::Narrative;
use longhaul::engine::summary::check::Problem;
use longhaul::engine::summary::prompt::{Ask, End, Wishes, around, parts, repair};
use serde_json::{Value, json};

use super::pins;
use crate::journal::stock::house;

#[test]
fn tools_introduce_themselves_as_they_did() {
    let house = house();
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let begun = house.rpc("", "initialize", &params);
    let listed = house.rpc("", "tools/list", &json!({}));
    let told = json!({"initialize": begun["result"], "tools/list": listed["result"]});
    pins::check("tools.json", &(pretty(&told) + "\n"));
}

/// What they answer, to a model that does all right and to one that does not.
#[test]
fn tools_answer_as_they_did() {
    let house = house();
    let (span, block) = (house.own.span.clone(), house.own.block(2, 0));
    let wrong = format!("lh-{}", "0".repeat(20));
    let calls = [
        ("recall", json!({"ref": span, "query": "QUUX_RETRY_BUDGET"})),
        (
            "recall",
            json!({"ref": span, "query": "token bucket", "limit": 2}),
        ),
        ("recall", json!({"ref": span, "query": "zebra"})),
        ("recall", json!({"ref": wrong, "query": "scheduler"})),
        ("recall", json!({"ref": span})),
        ("expand", json!({"ref": block})),
        ("expand", json!({"ref": block, "page": 2})),
        ("expand", json!({"ref": block, "page": 99})),
        ("expand", json!({"ref": span})),
        ("expand", json!({"ref": "nonsense"})),
        ("session_status", json!({"ref": span})),
        (
            "compact_now",
            json!({"ref": span, "instructions": "Keep names."}),
        ),
        ("compact_now", json!({"ref": wrong})),
        ("nonsense", json!({})),
    ];
    let mut text = String::new();
    for (tool, arguments) in calls {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = house.rpc("", "tools/call", &params);
        let answer = answer.get("result").or_else(|| answer.get("error"));
        let said = pretty(answer.unwrap_or(&Value::Null));
        text.push_str(&format!("## {tool} {arguments}\n{}\n", shortened(&said)));
    }
    pins::check("tool-answers.txt", &text);
}

/// A long text, by its beginning, its length and its hash.
fn shortened(text: &str) -> String {
    if text.len() <= 4_000 {
        return text.to_owned();
    }
    let begin: String = text.chars().take(1_000).collect();
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{begin}\n({} {})", text.len(), &hash[..32])
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn summaries_are_asked_for_in_the_same_words() {
    let plain = Ask::default();
    let wishes = |configured, replaces, this_request| Ask {
        wishes: Wishes {
            configured,
            replaces,
            this_request,
        },
        refused: None,
    };
    let problems = [
        Problem::Malformed,
        Problem::EmptyFields(vec!["session_intent", "next_steps"]),
        Problem::Invented(vec!["src/none.rs".to_owned(), "4711".to_owned()]),
    ];
    let asks = [
        ("plain", plain),
        ("configured", wishes("Mind the colours.", false, None)),
        ("replaced", wishes("Only the colours.", true, None)),
        ("this request", wishes("", false, Some("Keep names."))),
        (
            "both",
            wishes("Mind the colours.", false, Some("Keep names.")),
        ),
    ];
    let second = problems.iter().map(|problem| {
        let refused = Some(problem);
        ("second attempt", Ask { refused, ..plain })
    });
    let mut text = String::new();
    let mut add = |title: &str, said: &str| text.push_str(&format!("## {title}\n{said}\n\n"));
    for (what, ask) in asks.into_iter().chain(second) {
        for (messages_after, next) in [(1, ""), (4, "Please go on.")] {
            let end = End {
                messages_after,
                next,
            };
            add(
                &format!("{what}: fork, {messages_after} after"),
                &ask.fork(&end),
            );
        }
        add(&format!("{what}: system"), &ask.system());
        add(&format!("{what}: native"), &ask.native());
        add(&format!("{what}: merge"), &ask.merge());
    }
    add("around", &around("[1] user\n Hello.", ""));
    add(
        "around, with an earlier one",
        &around("[1] user\n Hello.", "Said before."),
    );
    let narrative = Narrative {
        session_intent: "Build it.".to_owned(),
        next_steps: vec!["Test it.".to_owned()],
        ..Narrative::default()
    };
    add("parts", &parts(&[narrative.clone(), narrative]));
    for problem in &problems {
        add("repair", &repair(problem));
    }
    let tools = Telling::Tools {
        recall: "a__recall".to_owned(),
        expand: "a__expand".to_owned(),
    };
    for telling in [Telling::Archived, tools] {
        let reference = Reference::from_bytes([7; 10]);
        add("one thing", &telling.of_one(reference));
        add("messages", &telling.of_messages(reference));
    }
    pins::check("prompts.txt", &text);
}
