//! Invariants 5 and 10: every request is answered, and with what upstream gave.
//!
//! What a client got is compared with what went over the wire on the other side
//! of the proxy. Only a fault that the request asked for, or a break of a
//! connection that carried it, excuses that it is not there or not whole.

use longhaul::sim::{Entry, Fault};
use memchr::memmem;

use crate::attempt::{Attempt, Manner, PATIENCE};
use crate::invariants::Judge;
use crate::support::http::Message;

impl Judge<'_> {
    /// Invariants 5 and 10: what the client saw is what upstream did.
    pub fn outcome(&mut self, attempt: &Attempt, entries: &[&Entry]) {
        if attempt.took >= PATIENCE {
            return self.wrong(attempt, "invariant 5: it hangs");
        }
        if attempt.manner != Manner::Waits {
            return;
        }
        let broken = self.is_broken(attempt);
        let silent = matches!(
            attempt.fault,
            Some(Fault::Hang | Fault::StallAfter { .. } | Fault::Reset)
        );
        let Some(answer) = attempt.answer() else {
            if !broken && !silent {
                self.wrong(attempt, "invariant 5: no answer");
            }
            return;
        };
        let status = answer.status();
        let expected = match &attempt.fault {
            Some(Fault::Status { status, .. }) => *status,
            Some(Fault::Reset) => 502,
            _ => 200,
        };
        let text = || String::from_utf8_lossy(&answer.body).into_owned();
        // A break before the answer is told as one.
        let excused = broken && status == 502
            || matches!(attempt.fault, Some(Fault::ResetAfter { .. } | Fault::CutAfter { .. }) if status == 502);
        if status != expected && !excused {
            let seen: Vec<String> = entries
                .iter()
                .map(|entry| {
                    let body = entry.body.as_deref().unwrap_or_default();
                    let is_own = if body == attempt.own { "own" } else { "view" };
                    format!("{is_own} of {} bytes: {:?}", body.len(), entry.outcome)
                })
                .collect();
            let what = format!(
                "invariant 5: {status} instead of {expected} for {} bytes, broken: {broken}, upstream saw {seen:?}: {}",
                attempt.own.len(),
                text()
            );
            return self.wrong(attempt, &what);
        }
        let cut = matches!(
            attempt.fault,
            Some(Fault::ResetAfter { .. } | Fault::CutAfter { .. })
        );
        if !answer.complete && !cut && !silent && !broken {
            return self.wrong(attempt, "invariant 10: the answer broke off by itself");
        }
        if let Err(what) = self.is_honest(attempt, answer) {
            self.wrong(attempt, &format!("invariant 10: {what}"));
        }
    }

    /// Whether an answer is what upstream gave, byte for byte and to the same end.
    fn is_honest(&self, attempt: &Attempt, answer: &Message) -> Result<(), String> {
        let Some(id) = answer.header("request-id") else {
            // The proxy's own words: that there is no answer.
            return match answer.status() {
                502 => Ok(()),
                status => Err(format!("{status} comes from nowhere")),
            };
        };
        let given = self.answers.get(&attempt.tag).into_iter().flatten();
        let mut given = given.filter(|given| given.header("request-id") == Some(id));
        let Some(given) = given.next() else {
            return Err(format!("{id} is no answer upstream gave"));
        };
        let differs = |what: &str| {
            let (given, got) = (&given.body, &answer.body);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Err(format!("{what}:\n{}\n{}", text(given), text(got)))
        };
        if given.status() != answer.status() {
            return differs("upstream gave another status");
        }
        for (name, value) in &given.headers {
            let framing = ["connection", "keep-alive", "transfer-encoding"];
            let is_framing = framing.iter().any(|other| name.eq_ignore_ascii_case(other));
            if !is_framing && !answer.all(name).contains(&value.as_slice()) {
                return differs(&format!("the header {name} is not as upstream gave it"));
            }
        }
        if !given.body.starts_with(&answer.body) {
            return differs("not the bytes upstream gave");
        }
        // What is broken off behind its last event lacks nothing.
        let whole = if attempt.streams && !attempt.counts {
            memmem::find(&answer.body, b"event: message_stop").is_some()
        } else {
            serde_json::from_slice::<serde_json::Value>(&answer.body).is_ok()
        };
        if answer.complete && !given.complete && !whole {
            return differs("a cut answer looks whole");
        }
        if answer.complete && given.complete && answer.body != given.body {
            return differs("not all that upstream gave");
        }
        Ok(())
    }
}
