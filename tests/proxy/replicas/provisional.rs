//! A view that was made for a refusal, while nobody knows yet whether it helps:
//! others do not take it, and neither does the same process after a crash.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::shared;
use crate::support::{Gate, Proxy, Step, Tap};
use crate::views::agent::Agent;
use crate::views::cast::{FREE, compaction, error, figure, fine, response, same};

#[test]
fn a_view_made_for_a_refusal_counts_only_once_it_is_answered() {
    for (folder, file) in shared() {
        let gate = Gate::new();
        let (number, waits) = (AtomicUsize::new(0), gate.clone());
        let tap = Tap::start(move |request| match number.fetch_add(1, Ordering::SeqCst) {
            1 => response(400, "", error("prompt is too long").as_bytes()),
            // The smaller one, which is not answered for now.
            2 => {
                let mut steps = vec![Step::Wait(waits.clone())];
                steps.extend(fine(request));
                steps
            }
            _ => fine(request),
        });
        let proxy = |_| Proxy::keeping(&tap.url(), &file, folder.path());
        let [first, second] = [0, 1].map(proxy);
        let mut agent = Agent::seasoned(FREE, 60, 2000);
        agent.ask(&first, "");
        let answered = tap.seen();
        agent.user("On.");
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| agent.send(&first, ""));
            same(&tap.seen().body, &agent.body(), "refused");
            let smaller = tap.seen().body.len();
            assert!(smaller < answered.body.len());
            // It is committed now, and its answer is not there.
            for proxy in [&second, &first] {
                let answer = agent.send(proxy, "");
                assert_eq!(compaction(&answer), "none", "{file}");
                assert_eq!(figure(&answer, "sent"), figure(&answer, "original"));
                same(&tap.seen().body, &agent.body(), "whole");
            }
            gate.open();
            assert_eq!(asking.join().unwrap().status(), 200);
        });
    }
}

/// Once it is answered it holds for all.
#[test]
fn a_view_made_for_a_refusal_holds_for_all_once_it_is_answered() {
    for (folder, file) in shared() {
        let tap = Tap::start(|request| {
            if request.body.len() > 100_000 {
                return response(400, "", error("prompt is too long").as_bytes());
            }
            fine(request)
        });
        let proxy = |_| Proxy::keeping(&tap.url(), &file, folder.path());
        let mut proxies = [0, 1].map(proxy);
        let mut agent = Agent::seasoned(FREE, 60, 2000);
        assert_ne!(compaction(&agent.ask(&proxies[0], "")), "none");
        proxies[0].settle();
        let tries = [tap.seen(), tap.seen()];
        for (at, number) in [(1, 0), (0, 1)] {
            agent.user("On.");
            assert_eq!(compaction(&agent.ask(&proxies[at], "")), "none", "{number}");
            assert!(tap.seen().body.len() < tries[0].body.len());
            assert!(tap.saw_nothing(), "at once");
            proxies[at].join();
        }
    }
}
