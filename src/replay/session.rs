//! A recording as a list of requests, each with the pause before it.

use std::time::Duration;

use serde_json::Value;

use super::recording::{NotPlayed, Recording, Spoken, legal, opens_turn};

/// One request: what is waited for, sent and answered.
#[derive(Debug, Clone)]
pub struct Step {
    /// A history begins here, and what was said before is no part of it.
    pub fresh: bool,
    /// How long nothing happens before it.
    pub pause: Duration,
    /// The message that is new in the request.
    pub asked: Value,
    /// The message that answers it.
    pub answer: Value,
    /// Specific words that the answer needs; only sessions that are made up say so.
    pub asks: Vec<String>,
}

/// A recording that can be played.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// What it is called.
    pub name: String,
    /// Its requests.
    pub steps: Vec<Step>,
    /// The system prompt, where it was recorded.
    pub system: Option<Value>,
    /// The tools, where they were recorded.
    pub tools: Option<Value>,
    /// Requests that were recorded and are not among the steps.
    pub not_played: Vec<NotPlayed>,
}

/// Why a request at the end of a history is not played.
const UNANSWERED: &str = "no answer was recorded";

impl Session {
    /// The requests of a recording. Where no times were recorded, this long
    /// passes between two of them.
    pub fn new(recording: &Recording, pause: Duration) -> Self {
        let mut steps = Vec::new();
        let mut last: Option<u64> = None;
        let mut unanswered = 0;
        for stretch in &recording.stretches {
            let messages = legal(stretch);
            let (pairs, rest) = messages.as_chunks::<2>();
            unanswered += rest.len();
            for (at, [asked, answer]) in pairs.iter().enumerate() {
                let recorded = match (last, asked.at) {
                    (Some(before), Some(now)) => {
                        Some(Duration::from_millis(now.saturating_sub(before)))
                    }
                    _ => None,
                };
                steps.push(Step {
                    fresh: at == 0,
                    pause: recorded.unwrap_or(pause),
                    asked: asked.message.clone(),
                    answer: answer.message.clone(),
                    asks: Vec::new(),
                });
                last = asked.at.or(last);
            }
        }
        let left_out = recording.not_played.iter().copied();
        let left_out = left_out.chain(NotPlayed::some(unanswered, UNANSWERED));
        Self {
            name: recording.name.clone(),
            steps,
            system: recording.system.clone(),
            tools: recording.tools.clone(),
            not_played: left_out.collect(),
        }
    }

    /// A session of messages that are legal as they are, in one stretch.
    pub fn of(name: &str, messages: &[Value], pause: Duration) -> Self {
        let spoken = messages.iter().map(|message| Spoken {
            message: message.clone(),
            at: None,
        });
        let recording = Recording {
            name: name.to_owned(),
            stretches: vec![spoken.collect()],
            ..Recording::default()
        };
        Self::new(&recording, pause)
    }

    /// How many messages it has.
    pub fn messages(&self) -> usize {
        self.steps.len() * 2
    }

    /// How many turns it has.
    pub fn turns(&self) -> usize {
        let opens = |step: &&Step| opens_turn(&step.asked);
        self.steps.iter().filter(opens).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recorded_pauses_are_kept_and_others_are_the_usual_one() {
        let say = |role: &str, at: Option<u64>| Spoken {
            message: json!({"role": role, "content": role}),
            at,
        };
        let stretch = |times: [Option<u64>; 2]| {
            let pairs = times.map(|at| [say("user", at), say("assistant", at)]);
            pairs.concat()
        };
        let recording = Recording {
            stretches: vec![
                stretch([Some(1_000), Some(61_000)]),
                stretch([Some(121_000), None]),
            ],
            ..Recording::default()
        };
        let session = Session::new(&recording, Duration::from_secs(5));
        let pauses: Vec<u64> = session.steps.iter().map(|s| s.pause.as_secs()).collect();
        assert_eq!(pauses, [5, 60, 60, 5]);
        let fresh: Vec<bool> = session.steps.iter().map(|step| step.fresh).collect();
        assert_eq!(fresh, [true, false, true, false]);
        assert_eq!((session.messages(), session.turns()), (8, 4));
        assert_eq!(session.not_played, []);
    }

    #[test]
    fn requests_that_are_not_played_are_counted_with_the_reason() {
        let say = |role: &str| Spoken {
            message: json!({"role": role, "content": role}),
            at: None,
        };
        let others = NotPlayed {
            requests: 3,
            why: "others",
        };
        let open = vec![say("user"), say("assistant"), say("user")];
        let recording = Recording {
            stretches: vec![open.clone(), open],
            not_played: vec![others],
            ..Recording::default()
        };
        let session = Session::new(&recording, Duration::ZERO);
        let unanswered = NotPlayed {
            requests: 2,
            why: UNANSWERED,
        };
        assert_eq!(session.steps.len(), 2);
        assert_eq!(session.not_played, [others, unanswered]);
    }
}
