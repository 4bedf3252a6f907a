//! A pass that an operator wishes for is made by whichever replica gets the
//! session's next request, once.

use longhaul::sim::Options;

use super::{replicas, shared};
use crate::support::simulated::Simulated;
use crate::views::cast::{all_answered, compaction};
use crate::views::wishes::{HERE, known, order, wish};

#[test]
fn a_wish_told_to_one_replica_is_fulfilled_by_another_and_once() {
    let Some((folder, file)) = shared().pop().filter(|(_, file)| !file.is_empty()) else {
        return;
    };
    let upstream = Simulated::start(Options::default());
    let file = format!("{file}store.timeout = \"20s\"\n");
    let proxies = replicas(3, &upstream, &folder, &file);
    let (mut agent, session) = known(&upstream, &proxies[0]);
    // The second replica has never seen the session.
    wish(&proxies[1], &session);
    assert_eq!(compaction(&agent.chat(&upstream, &proxies[2], "")), "clear");
    for proxy in &proxies {
        agent.user("Go on.");
        assert_eq!(compaction(&agent.chat(&upstream, proxy, "")), "none");
    }
    let nobody = order(&proxies[1], &"0".repeat(32), HERE, "");
    assert_eq!(nobody.status(), 404);
    assert!(all_answered(&upstream));
}
