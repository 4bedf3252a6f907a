//! What passes are reckoned by: the figures that a session carries from one
//! request to the next, where they could mislead.

#![allow(clippy::float_cmp, reason = "what is counted is whole")]

use longhaul::sim::Reply;
use serde_json::{Value, json};

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, NOW, OFF, all_answered, compaction, figure, json_of, last_body, response, shown,
};
use super::passes::{BUDGET, Stage};
use crate::support::{Proxy, Tap};

/// Dollars for a token of input, by the simulator's prices too.
const INPUT: f64 = 5e-6;

/// An agent whose client asks for no caching: nothing is at stake.
fn uncached(model: &str) -> Agent {
    let mut agent = Agent::new(model).with("system", "You are an agent.".into());
    agent.marks = false;
    agent
}

/// Fifty times what is shown of it, and more than the window holds.
#[test]
fn a_giant_that_is_trimmed_is_expected_again_as_it_is_shown() {
    let stage = Stage::set("[window]\nbudget = 100000\n");
    let mut agent = Agent::seasoned(FREE, 28, 4000);
    for number in 0..2 {
        let input = json!({"command": format!("cat {number}")});
        stage.call(&mut agent, "Bash", &input, 400_000);
        let answer = stage.call(&mut agent, "Bash", &json!({"command": "ls"}), 100);
        assert_eq!(compaction(&answer), "trim", "{number}");
        agent.user("Next.");
    }
    assert!(all_answered(&stage.upstream));
}

#[test]
fn a_picture_is_expected_again_as_a_picture_and_not_by_its_letters() {
    let stage = Stage::set("[window]\nbudget = 60000\n");
    let mut agent = Agent::seasoned(FREE, 30, 4000);
    let data = format!("iVBORw0KGgoAAAANSUhEUgAABQAAAAKQ{}", "A".repeat(400_000));
    for number in 0..4 {
        let input = json!({"command": format!("screenshot {number}")});
        let answer = stage.call(&mut agent, "Bash", &input, 0);
        assert_eq!(compaction(&answer), "none", "{number}");
        let source = json!({"type": "base64", "media_type": "image/png", "data": data});
        agent.history.last_mut().unwrap()["content"][0]["content"] =
            json!([{"type": "image", "source": source}]);
    }
    assert!(all_answered(&stage.upstream));
}

/// Whether or not something was trimmed while it waited.
#[test]
fn a_pass_that_waited_for_the_end_of_a_turn_is_made_there() {
    let stage = Stage::set(&format!("{BUDGET}[trim]\nmax_chars = 8000\n"));
    let mut agent = uncached(BOUND);
    agent.user("Work long.");
    for _ in 0..18 {
        agent.cycle(&stage.upstream, &stage.proxy, "");
    }
    let input = json!({"file_path": "/all"});
    stage.call(&mut agent, "Read", &input, 9_000);
    stage.upstream.sim.push_reply(Reply::text("Done."));
    let answer = agent.ask(&stage.proxy, "");
    assert_eq!(compaction(&answer), "trim");
    assert!(figure(&answer, "sent") > 12_000);
    assert_eq!(compaction(&stage.chat(&mut agent)), "clear");
}

#[test]
fn the_longest_lifetime_that_was_seen_outlasts_a_pass() {
    let stage = Stage::set(BUDGET);
    let hour = json!([{"type": "text", "text": "You are an agent. ".repeat(200),
        "cache_control": {"type": "ephemeral", "ttl": "1h"}}]);
    let mut agent = Agent::new(FREE).with("system", hour);
    stage.turn(&mut agent, 6);
    agent.fields["system"][0]["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(
        compaction(&agent.chat(&stage.upstream, &stage.proxy, NOW)),
        "clear"
    );
    stage.turn(&mut agent, 12);
    stage.pause(30);
    assert_eq!(compaction(&stage.chat(&mut agent)), "none", "still warm");
    stage.pause(62);
    assert_eq!(compaction(&stage.chat(&mut agent)), "clear");
}

/// Else it would have nothing to lose, and so never dare.
#[test]
fn a_model_without_known_prices_is_reckoned_with_at_the_usual_ones() {
    let tap = Tap::start(|request| {
        let prompt = request.body.len() / 4;
        let usage = json!({"input_tokens": 5, "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": prompt - 300, "output_tokens": 5});
        let number = json_of(request)["messages"].as_array().unwrap().len();
        let call = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash",
            "input": {"command": format!("make {number}")}});
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant",
            "model": json_of(request)["model"], "content": [call],
            "stop_reason": "tool_use", "usage": usage});
        response(200, "", body.to_string().as_bytes())
    });
    let file = "[window]\nbudget = 60000\n[clear]\nat_least = 500\n[policy]\nhorizon = 200\n";
    let proxy = Proxy::with(&tap.url(), file);
    let mut agent = Agent::new("nobody-knows-1");
    agent.user("Work long.");
    let mut passes: Vec<(u64, Value)> = Vec::new();
    for _ in 0..130 {
        let answer = agent.ask(&proxy, "");
        agent.results(2000);
        if compaction(&answer) != "none" {
            passes.push((figure(&answer, "original"), compaction(&answer).into()));
        }
    }
    let first = passes.first().expect("a pass");
    assert!(first.0 < 55_000, "before it must be: {passes:?}");
    assert!(passes.len() < 10, "{passes:?}");
}

/// Few tokens can be many bytes, and a view must fit in both.
#[test]
fn a_view_of_too_many_bytes_becomes_smaller_however_few_its_tokens() {
    let stage = Stage::set("[window]\nbytes = \"100KiB\"\n");
    let mut agent = Agent::seasoned(FREE, 40, 4000);
    stage.upstream.sim.push_reply(Reply::text("Yes."));
    let answer = agent.ask(&stage.proxy, "");
    assert_eq!(compaction(&answer), "clear");
    let size = last_body(&stage.upstream).len();
    assert!((20_000..100 * 1024).contains(&size), "{size}");
    assert_eq!(compaction(&stage.chat(&mut agent)), "none");
}

/// The thought before a call does not depend on what was called.
#[test]
fn thinking_before_a_cleared_input_stays() {
    let stage = Stage::set(&format!("{BUDGET}clear_inputs = true\n"));
    let mut agent = Agent::new(BOUND);
    agent.user("Write it.");
    for number in 0..14 {
        let input = json!({"file_path": format!("/{number}"), "content": "text\n".repeat(400)});
        let call = Reply::call("Read", &input).after_thinking("What next?");
        stage.upstream.sim.push_reply(call);
        agent.ask(&stage.proxy, "");
        agent.results(1000);
    }
    stage.upstream.sim.push_reply(Reply::text("Done."));
    agent.ask(&stage.proxy, "");
    assert_eq!(
        compaction(&agent.chat(&stage.upstream, &stage.proxy, NOW)),
        "clear"
    );
    let view = shown(&stage.upstream);
    let first = view
        .iter()
        .position(|message| message.to_string().contains("was cleared"))
        .unwrap();
    let thinks = |message: &Value| message.to_string().contains("signature");
    assert_eq!(view[first]["role"], "assistant");
    assert!(thinks(&view[first]));
    assert!(!view[first + 1..].iter().any(thinks));
    stage.chat(&mut agent);
    assert!(all_answered(&stage.upstream));
}

/// Neither the operator's nor the client's, whoever clears.
#[test]
fn tools_that_anybody_excludes_are_left_alone_by_every_pass() {
    let asks = |tools: &[&str]| {
        json!({"edits": [{"type": "clear_tool_uses_20250919",
            "trigger": {"type": "tool_uses", "value": 4}, "exclude_tools": tools}]})
    };
    let rows = [
        ("", &["Bash"][..], NOW),
        ("upstream_features = []\n", &["Bash"][..], ""),
        (
            "upstream_features = []\n[clear]\nexclude_tools = [\"Bash\"]\n",
            &[][..],
            "",
        ),
    ];
    for (file, theirs, headers) in rows {
        let stage = Stage::set(file);
        let agent = Agent::seasoned(FREE, 8, 4000).with("context_management", asks(theirs));
        let mut agent = agent.saying("anthropic-beta: context-management-2025-06-27\r\n");
        stage.upstream.sim.push_reply(Reply::text("Yes."));
        assert_eq!(
            compaction(&agent.ask(&stage.proxy, headers)),
            "none",
            "{file}"
        );
    }
}

/// It is the client that asked for it.
#[test]
fn a_prefix_that_upstream_clears_by_the_client_s_wish_is_the_client_s_edit() {
    let stage = Stage::set("");
    let clear = json!({"edits": [{"type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": 6}}]});
    let agent = Agent::new(FREE).with("context_management", clear);
    let mut agent = agent.saying("anthropic-beta: context-management-2025-06-27\r\n");
    stage.turn(&mut agent, 10);
    let breaks = |cause: &str| stage.metric(&format!("prefix_breaks_total{{cause=\"{cause}\"}}"));
    assert!(breaks("client_edit") > 0.0);
    assert_eq!(breaks("unexplained"), 0.0);
}

/// The cache of system and tools says nothing of messages: what is left out of
/// them would have been paid for in full.
#[test]
fn where_only_the_system_is_cached_messages_that_are_left_out_save_their_whole_price() {
    let stage = Stage::set(BUDGET);
    let system = json!([{"type": "text", "text": "You are an agent. ".repeat(800),
        "cache_control": {"type": "ephemeral"}}]);
    let mut agent = Agent::new(FREE).with("system", system);
    agent.marks = false;
    agent.user("Work long.");
    let mut left_out = 0;
    for _ in 0..40 {
        let answer = agent.cycle(&stage.upstream, &stage.proxy, "");
        left_out += figure(&answer, "original") - figure(&answer, "sent");
    }
    assert!(left_out > 50_000, "{left_out}");
    #[allow(clippy::cast_precision_loss, reason = "a share needs no more")]
    let whole = left_out as f64 * INPUT;
    let saved = stage.metric(&format!("saved_usd{{model=\"{FREE}\"}}"));
    assert!(
        saved > whole * 0.8 && saved < whole * 1.1,
        "{saved} of {whole}"
    );
}

/// Who asks for the history as it is wants another prefix.
#[test]
fn a_request_that_is_to_be_sent_as_it_is_breaks_the_prefix_by_the_client_s_wish() {
    let stage = Stage::set(BUDGET);
    let mut agent = Agent::new(FREE);
    stage.turn(&mut agent, 6);
    let passed = agent.chat(&stage.upstream, &stage.proxy, NOW);
    assert_eq!(compaction(&passed), "clear");
    // Longer than what the cache still has of the history before the pass.
    stage.turn(&mut agent, 14);
    agent.chat(&stage.upstream, &stage.proxy, OFF);
    let breaks = |cause: &str| stage.metric(&format!("prefix_breaks_total{{cause=\"{cause}\"}}"));
    assert_eq!((breaks("client_edit"), breaks("unexplained")), (1.0, 0.0));
}
