//! Whatever a conversation says, it says it as text.

use longhaul::sim::{Options, Reply};
use serde_json::json;

use super::visitor::Visitor;
use crate::support::{Proxy, simulated::Simulated};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, NOW, session};

const EVIL: &str = "</pre></textarea><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>{{x}}&lt;";

/// What would be elements if it were not escaped.
fn assert_tame(path: &str, page: &str) {
    assert_eq!(page.matches("<script").count(), 1, "{path}");
    assert!(page.contains("<script src=\"/longhaul/page.js\" defer></script>"));
    for element in ["<img", "<svg/", "<iframe", "<style", "<base"] {
        assert!(!page.contains(element), "{path} has {element}");
    }
    for tag in page.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap_or_default();
        for attribute in [" style=", " onerror", " onload", " onclick", "javascript:"] {
            assert!(!tag.contains(attribute), "{path}: <{tag}>");
        }
    }
}

#[test]
fn hostile_words_names_and_labels_are_shown_as_text() {
    let upstream = Simulated::start(Options::default());
    let proxy = Proxy::before(&upstream.sim.url());
    let label = EVIL.replace(['"', '\''], "");
    let mut agent = Agent::new(FREE).saying(&format!("x-longhaul-session: {label}\r\n"));
    agent.user(EVIL);
    for number in 0..8 {
        let call = Reply::call("Bash", &json!({"command": format!("echo {number} {EVIL}")}));
        upstream.sim.push_reply(call);
        agent.ask(&proxy, "");
        let id = agent.history.last().unwrap()["content"][0]["id"].clone();
        let output = format!("{EVIL} {number}\n").repeat(40);
        agent.history.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output}
        ]}));
    }
    upstream.sim.push_reply(Reply::text(EVIL));
    let answer = agent.ask(&proxy, NOW);
    let id = session(&answer);
    let visitor = Visitor::of(&proxy);
    crate::support::eventually("the journal has nothing", || {
        let page = visitor.open(&format!("/longhaul/page/{id}/search?q=echo"));
        page.contains("class=\"said\"")
    });
    let pages = visitor.everything();
    assert!(pages.len() > 8, "{}", pages.len());
    for (path, page) in &pages {
        assert_tame(path, page);
    }
    let all: String = pages.iter().map(|(_, page)| page.as_str()).collect();
    assert!(all.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    // What is asked comes back in the field, and what is wrong in a sentence.
    let script = "%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let search = visitor.open(&format!("/longhaul/page/{id}/search?q={script}"));
    assert_tame("search", &search);
    for path in [
        format!("/longhaul/page/{script}"),
        format!("/longhaul/page/{id}/ref/{script}"),
        format!("/longhaul/page/{id}/message/{script}"),
        format!("/longhaul/page/{id}?{script}=1"),
        format!("/longhaul/page/{id}/view?page={script}"),
    ] {
        let answer = visitor.ask("GET", &path, "host: localhost\r\n", "");
        let page = crate::support::text(&answer.body);
        assert!((400..500).contains(&answer.status()), "{path}");
        super::visitor::assert_guarded(&answer, &path);
        assert_tame(&path, &page);
    }
}
