//! What a played session looks like on the page.

use longhaul::sim::Options;
use serde_json::Value;

use super::visitor::Visitor;
use crate::support::{Client, Proxy, eventually, simulated::Simulated, text};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, compacted, compaction, session};

fn world() -> (Simulated, Proxy, Agent, String) {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = compacted(&upstream, &proxy, FREE);
    let answer = agent.chat(&upstream, &proxy, "");
    let id = session(&answer);
    (upstream, proxy, agent, id)
}

#[test]
fn a_pass_is_told_with_its_reason_and_its_numbers() {
    let (_upstream, proxy, _, id) = world();
    let answer = Client::connect(proxy.address)
        .send(format!(
            "GET /longhaul/sessions/{id} HTTP/1.1\r\nhost: localhost\r\n\r\n"
        ))
        .answer();
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    let steps = told["timeline"].as_array().unwrap();
    let passes: Vec<&Value> = steps
        .iter()
        .map(|step| &step["pass"])
        .filter(|pass| !pass.is_null())
        .collect();
    let [pass] = passes[..] else {
        panic!("{passes:?}")
    };
    assert_eq!(pass["trigger"], "manual");
    assert_eq!(pass["kinds"][0]["kind"], "clear");
    let (before, after) = (
        pass["before_tokens"].as_u64().unwrap(),
        pass["after_tokens"].as_u64().unwrap(),
    );
    assert!(after < before);
    let visitor = Visitor::of(&proxy);
    let path = format!("/longhaul/page/{id}");
    // What upstream said of a request is written down a little later.
    eventually("the pass is not drawn", || {
        visitor.open(&path).matches("<circle").count() == 1
    });
    let page = visitor.open(&path);
    assert!(page.contains("somebody asked for it"), "{page}");
    assert!(!page.contains("Do step"), "no words of the conversation");
}

#[test]
fn the_view_stands_beside_the_original_and_what_was_removed_can_be_opened() {
    let (upstream, proxy, _, id) = world();
    let visitor = Visitor::of(&proxy);
    let page = visitor.open(&format!("/longhaul/page/{id}/view"));
    // Each stub on the page is one that upstream was sent.
    let sent = text(&upstream.last().body.unwrap());
    let stubs = sent.matches("was cleared").count();
    assert!(stubs > 0);
    assert_eq!(
        page.matches("<span class=\"chip clear\">cleared</span>")
            .count(),
        stubs
    );
    let reference = page
        .split("/ref/")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(sent.contains(reference));
    let opened = visitor.open(&format!("/longhaul/page/{id}/ref/{reference}"));
    assert!(opened.contains("of output"), "{opened}");
    let foreign = format!("/longhaul/page/{}/ref/{reference}", "0".repeat(32));
    let answer = visitor.ask("GET", &foreign, "host: localhost\r\n", "");
    assert_eq!(answer.status(), 404);
}

#[test]
fn what_was_left_out_is_found() {
    let (_upstream, proxy, _, id) = world();
    let visitor = Visitor::of(&proxy);
    eventually("nothing is found", || {
        let page = visitor.open(&format!("/longhaul/page/{id}/search?q=output"));
        page.contains("of output")
    });
    let listed = visitor.open(&format!("/longhaul/page/{id}/search"));
    assert!(listed.contains("/ref/lh-") && !listed.contains("of output"));
}

#[test]
fn the_button_makes_the_next_request_smaller() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let mut agent = crate::views::cast::worked(&upstream, &proxy, FREE);
    let id = session(&agent.chat(&upstream, &proxy, ""));
    let visitor = Visitor::of(&proxy);
    let path = format!("/longhaul/page/{id}");
    assert!(visitor.open(&path).contains("Compact now"));
    let long = "x".repeat(17_000);
    let refused = visitor.press(&format!("{path}/compact"), &format!("instructions={long}"));
    assert_eq!(refused.status(), 400);
    let noted = visitor.press(&format!("{path}/compact"), "instructions=keep+the+names");
    assert_eq!(
        (noted.status(), noted.header("location")),
        (303, Some(path.as_str()))
    );
    let page = visitor.open(&path);
    assert!(page.contains("A pass is asked for") && !page.contains("Compact now"));
    assert_eq!(compaction(&agent.chat(&upstream, &proxy, "")), "clear");
    assert!(visitor.open(&path).contains("Compact now"));
    let unknown = visitor.press("/longhaul/page/x/compact", "");
    assert_eq!(unknown.status(), 404);
}

#[test]
fn nothing_is_offered_where_no_pass_is_ever_made() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::with(&upstream.sim.url(), "policy.mode = \"off\"");
    let mut agent = Agent::new(FREE);
    let id = session(&agent.chat(&upstream, &proxy, NOW));
    let visitor = Visitor::of(&proxy);
    let path = format!("/longhaul/page/{id}");
    eventually("the session is not listed", || {
        visitor.open("/longhaul/").contains(&path)
    });
    assert!(!visitor.open(&path).contains("Compact now"));
    assert_eq!(visitor.press(&format!("{path}/compact"), "").status(), 409);
    let view = visitor.open(&format!("{path}/view"));
    assert!(view.contains("nothing of its"), "{view}");
}
