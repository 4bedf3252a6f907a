//! The agent's day: so many turns of a coding session, from a seed.
//!
//! Questions, fixes and test runs in about the proportions that recordings show.
//! Files are read again after they were changed, tests are run over and over,
//! now and then an output is far too long. Between turns somebody thinks, has
//! lunch, or goes to a meeting, and the provider's cache goes cold.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::dice::Dice;
use super::text::{self, Place};
use crate::replay::session::{Session, Step};

/// A day of so many turns.
pub fn session(seed: u64, turns: usize) -> Session {
    let mut day = Day {
        dice: Dice::new(seed),
        steps: Vec::new(),
        edits: HashMap::new(),
        calls: 0,
    };
    for _ in 0..turns {
        day.turn();
    }
    Session {
        name: format!("a day of {turns} turns"),
        steps: day.steps,
        ..Session::default()
    }
}

/// The turn of each request, counted from one.
pub fn turns(session: &Session) -> Vec<usize> {
    let opens = |step: &Step| usize::from(crate::replay::recording::opens_turn(&step.asked));
    let counted = session.steps.iter().scan(0, |turn, step| {
        *turn += opens(step);
        Some(*turn)
    });
    counted.collect()
}

struct Day {
    dice: Dice,
    steps: Vec<Step>,
    /// How often each file was changed.
    edits: HashMap<u64, u64>,
    calls: usize,
}

/// A call and what comes back.
struct Call {
    name: &'static str,
    input: Value,
    result: String,
    failed: bool,
}

impl Day {
    fn turn(&mut self) {
        let at = text::place(&mut self.dice);
        let ask = text::ask(&mut self.dice, at);
        let mut asked = json!([{"type": "text", "text": ask}]);
        let mut pause = self.between_turns();
        for calls in self.work(at) {
            let remark = text::remark(&mut self.dice, at);
            let said = remark.map(|text| json!({"type": "text", "text": text}));
            let mut said: Vec<Value> = said.into_iter().collect();
            let mut results = Vec::new();
            for call in calls {
                self.calls += 1;
                let id = format!("toolu_{:05}", self.calls);
                said.push(
                    json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input}),
                );
                let mut result =
                    json!({"type": "tool_result", "tool_use_id": id, "content": call.result});
                if let (true, Some(result)) = (call.failed, result.as_object_mut()) {
                    result.insert("is_error".to_owned(), json!(true));
                }
                results.push(result);
            }
            self.step(pause, &asked, &Value::Array(said));
            asked = Value::Array(results);
            pause = Duration::from_secs(self.dice.within(5..40) as u64);
        }
        let done = text::conclusion(&mut self.dice, at);
        self.step(pause, &asked, &json!([{"type": "text", "text": done}]));
    }

    fn step(&mut self, pause: Duration, asked: &Value, said: &Value) {
        self.steps.push(Step {
            fresh: self.steps.is_empty(),
            pause,
            asked: json!({"role": "user", "content": asked}),
            answer: json!({"role": "assistant", "content": said}),
            asks: Vec::new(),
        });
    }

    fn between_turns(&mut self) -> Duration {
        let minutes = match self.dice.within(0..100) {
            0..97 => return Duration::from_secs(self.dice.within(40..230) as u64),
            97..99 => self.dice.within(7..30),
            _ => self.dice.within(90..180),
        };
        Duration::from_mins(minutes as u64)
    }

    /// The calls of a turn, those of one request together.
    fn work(&mut self, at: Place) -> Vec<Vec<Call>> {
        match self.dice.within(0..100) {
            0..12 => Vec::new(),
            12..42 => vec![vec![self.search(), self.read(at)]],
            42..80 => {
                let first = vec![self.read(at), self.search()];
                let edit = self.edit(at);
                vec![first, vec![edit, self.tests(at, false)]]
            }
            80..96 => {
                let failed = self.tests(at, true);
                let edit = self.edit(at);
                vec![
                    vec![failed],
                    vec![edit, self.read(at), self.tests(at, false)],
                ]
            }
            _ => vec![vec![self.log()]],
        }
    }

    fn read(&mut self, at: Place) -> Call {
        // The same file reads the same, until it is changed.
        let version = self.edits.get(&at.number()).copied().unwrap_or(0);
        let mut dice = Dice::new(at.number() * 1_000 + version);
        let letters = dice.within(1_200..6_000);
        Call {
            name: "Read",
            input: json!({"file_path": at.path()}),
            result: text::file(&mut dice, letters),
            failed: false,
        }
    }

    fn search(&mut self) -> Call {
        let letters = self.dice.within(200..2_000);
        let pattern = text::name(&mut self.dice);
        Call {
            name: "Grep",
            input: json!({"pattern": pattern, "path": "src"}),
            result: text::found(&mut self.dice, letters),
            failed: false,
        }
    }

    fn edit(&mut self, at: Place) -> Call {
        *self.edits.entry(at.number()).or_default() += 1;
        let path = at.path();
        let (old, new) = (text::code(&mut self.dice), text::code(&mut self.dice));
        Call {
            name: "Edit",
            input: json!({"file_path": path, "old_string": old, "new_string": new}),
            result: format!("The file {path} has been updated."),
            failed: false,
        }
    }

    fn tests(&mut self, at: Place, failed: bool) -> Call {
        let letters = self.dice.within(600..3_500);
        let test = format!("{}::test_{}", at.tests(), text::name(&mut self.dice));
        let what = failed.then_some(test.as_str());
        Call {
            name: "Bash",
            input: json!({"command": format!("pytest {}", at.tests())}),
            result: text::test_run(&mut self.dice, letters, what),
            failed,
        }
    }

    fn log(&mut self) -> Call {
        let letters = self.dice.within(20_000..60_000);
        Call {
            name: "Bash",
            input: json!({"command": "pytest -v --log-level=debug"}),
            result: text::test_run(&mut self.dice, letters, None),
            failed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::recording::{Spoken, legal};

    fn messages(session: &Session) -> Vec<Value> {
        let pairs = session.steps.iter();
        pairs
            .flat_map(|step| [step.asked.clone(), step.answer.clone()])
            .collect()
    }

    #[test]
    fn a_day_is_the_same_each_time_and_has_as_many_turns_as_asked_for() {
        let day = session(1, 40);
        assert_eq!(messages(&day), messages(&session(1, 40)));
        assert_ne!(messages(&day), messages(&session(2, 40)));
        assert_eq!(day.turns(), 40);
        let turns = turns(&day);
        assert_eq!((turns.first(), turns.last()), (Some(&1), Some(&40)));
        assert_eq!(turns.len(), day.steps.len());
    }

    #[test]
    fn a_longer_day_begins_like_a_shorter_one() {
        let (short, long) = (messages(&session(3, 10)), messages(&session(3, 20)));
        assert_eq!(long[..short.len()], short);
    }

    #[test]
    fn nothing_in_it_has_to_be_made_legal() {
        let messages = messages(&session(4, 60));
        let spoken: Vec<Spoken> = messages
            .iter()
            .map(|message| Spoken {
                message: message.clone(),
                at: None,
            })
            .collect();
        let made: Vec<Value> = legal(&spoken).into_iter().map(|it| it.message).collect();
        assert_eq!(made, messages);
    }
}
