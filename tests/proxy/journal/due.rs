//! A session that had better be handed on says so, and can be.

use longhaul::sim::Options;

use crate::summaries::stage::{Stage, settings};
use crate::support::{Client, text};
use crate::views::cast::{FREE, session};

/// What the user lays down on the way, in the user's own words.
const RULES: [&str; 3] = [
    "Never modify files under legacy/, not even their comments.",
    "Always run `make check` before you say that something is done.",
    "Do not use the table audit_1046: it belongs to finance.",
];

#[test]
fn at_the_last_segment_a_hand_off_is_due_and_holds_the_user_s_rules() {
    let file = settings(10_000, "mode = \"model\"\n[policy]\nmax_segments = 2");
    let mut stage = Stage::set(FREE, Options::default(), &file);
    stage.agent.user("Port it to the new API.");
    let due = |stage: &Stage| stage.number("handoffs_due_total");
    let mut rules = RULES.into_iter();
    for turn in 0..120 {
        let said = match turn % 5 {
            2 => rules.next().unwrap_or("Go on with the next part, please."),
            _ => "Go on with the next part, please.",
        };
        let before = due(&stage);
        let answer = stage.talk(said, 300);
        let notice = answer.header("x-longhaul-notice");
        if due(&stage) == before {
            assert_eq!(notice, None, "nothing is due yet: {:?}", stage.passes);
            continue;
        }
        assert_eq!(notice, Some("handoff"));
        assert!(stage.count("summary") >= 2, "{:?}", stage.passes);
        assert!(rules.next().is_none(), "all rules are laid down");
        // It goes on being due, and is counted once.
        let next = stage.talk("And the next one.", 100);
        assert_eq!(next.header("x-longhaul-notice"), Some("handoff"));
        assert_eq!(due(&stage), 1);
        return hands_on(&stage, &session(&answer));
    }
    panic!("never due: {:?}", stage.passes);
}

fn hands_on(stage: &Stage, session: &str) {
    let path = format!("/longhaul/sessions/{session}/handoff");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // The last words are told in the background.
    let answer = Client::connect(stage.proxy.address).send(request).answer();
    let told = text(&answer.body);
    assert_eq!(answer.status(), 200, "{told}");
    assert!(told.contains("> Port it to the new API."), "{told}");
    let rules = told.split("## Constraints").nth(1).unwrap();
    for rule in RULES {
        assert!(rules.contains(rule), "{rule}: {told}");
    }
}
