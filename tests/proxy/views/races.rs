//! The same history twice: after a cut reply, at the same time, and on another
//! replica. Upstream must see one view of it.

use longhaul::sim::{Fault, Options, Reply};
use serde_json::json;

use super::agent::Agent;
use super::cast::{
    BOUND, FREE, NOW, OFF, all_answered, continues, fine, messages, same, shown, stubs, worked,
};
use crate::support::{Proxy, Tap, simulated::Simulated};

/// Some of the reply has reached the client: its plan stands for ever.
#[test]
fn a_request_whose_reply_was_cut_is_sent_again_as_it_was() {
    for wish in ["", NOW, OFF] {
        let upstream = Simulated::start(Options::default());
        let folder = tempfile::tempdir().unwrap();
        let mut proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
        let mut agent = worked(&upstream, &proxy, BOUND).with("stream", json!(true));
        agent.user("Make it smaller.");
        upstream
            .sim
            .push_reply(Reply::text("A reply of some words, soon cut off."));
        upstream.sim.push_fault(Fault::CutAfter { events: 3 });
        assert!(!agent.send(&proxy, NOW).complete);
        let first = upstream.last();
        assert!(stubs(&messages(&first)) > 0);
        for _ in 0..2 {
            assert!(agent.send(&proxy, wish).complete);
            same(
                &upstream.last().body.unwrap(),
                first.body.as_ref().unwrap(),
                wish,
            );
            proxy.join();
            proxy = Proxy::keeping(&upstream.sim.url(), "", folder.path());
        }
    }
}

#[test]
fn the_same_request_at_the_same_time_is_one_view() {
    let tap = Tap::start(fine);
    let proxy = Proxy::before(&tap.url());
    for cycles in 6..14 {
        let agent = Agent::seasoned(FREE, cycles, 2000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(agent.send(&proxy, NOW).status(), 200));
            }
        });
        let first = tap.seen().body;
        for _ in 1..4 {
            same(&tap.seen().body, &first, "at the same time");
        }
    }
}

/// Two processes with one store, and requests that land on either.
#[test]
fn replicas_show_one_view() {
    for model in [FREE, BOUND] {
        let upstream = Simulated::start(Options::default());
        let folder = tempfile::tempdir().unwrap();
        let replicas = [(); 2].map(|()| Proxy::keeping(&upstream.sim.url(), "", folder.path()));
        let mut random = fastrand::Rng::with_seed(3);
        let mut agent = worked(&upstream, &replicas[0], model);
        let mut view = shown(&upstream);
        for step in 0..16 {
            let replica = &replicas[random.usize(..2)];
            // Only between two turns, where nothing has to be asked of upstream.
            let wish = if step % 5 == 1 { NOW } else { "" };
            agent.chat(&upstream, replica, wish);
            let sent = shown(&upstream);
            assert!(wish == NOW || continues(&sent, &view), "{model} {step}");
            view = sent;
            let replica = &replicas[random.usize(..2)];
            agent.turn(&upstream, replica, 1);
            assert!(continues(&shown(&upstream), &view), "{model} {step}");
            view = shown(&upstream);
        }
        assert!(stubs(&view) > 4 && all_answered(&upstream));
    }
}
