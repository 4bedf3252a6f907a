//! Sessions of coding agents, made from seeds.
//!
//! Cycles of one kind of work after another, in the proportions that recordings
//! show: files are read, some again, some after they were changed; searches;
//! the same tests over and over; now and then an output of tens of kilobytes;
//! calls side by side; failures. Every five to forty cycles the user speaks. In
//! wordy ones the agent says so much of what it does that clearing results is
//! not enough to keep them small.

use std::ops::Range;

use fastrand::Rng;
use serde_json::{Value, json};

use super::text::{file, matches, path, prose, test_run};

/// Tokens of a cycle with outputs of the usual length.
const USUAL: usize = 2_400;
/// Tokens of what a wordy agent says in a cycle.
const WORDS: usize = 350;

/// One agent at work.
struct Coding {
    rng: Rng,
    messages: Vec<Value>,
    /// Files that were read, and how long each is.
    read: Vec<(usize, usize)>,
    calls: usize,
    /// How long outputs are, compared to the usual.
    percent: usize,
    /// The agent says at length what it does.
    wordy: bool,
}

/// A call and what comes back.
struct Call {
    name: &'static str,
    input: Value,
    result: String,
    failed: bool,
}

/// A session of so many cycles that grows to about so many tokens.
pub fn session(seed: u64, cycles: usize, tokens: usize) -> Vec<Value> {
    played(Coding::new(seed, tokens / cycles, false), cycles)
}

/// The same of an agent that says at length what it does.
pub fn wordy(seed: u64, cycles: usize, tokens: usize) -> Vec<Value> {
    played(Coding::new(seed, tokens / cycles, true), cycles)
}

fn played(mut coding: Coding, cycles: usize) -> Vec<Value> {
    let mut turn = 0;
    for _ in 0..cycles {
        if turn == 0 {
            coding.ask();
            turn = coding.rng.usize(5..=40);
        }
        turn -= 1;
        coding.cycle();
        if turn == 0 {
            coding.conclude();
        }
    }
    if turn > 0 {
        coding.conclude();
    }
    coding.messages
}

impl Coding {
    /// An agent whose cycles take about so many tokens.
    fn new(seed: u64, each: usize, wordy: bool) -> Self {
        let said = if wordy { WORDS } else { 0 };
        Self {
            rng: Rng::with_seed(seed),
            messages: Vec::new(),
            read: Vec::new(),
            calls: 0,
            percent: each.saturating_sub(said) * 100 / USUAL,
            wordy,
        }
    }

    fn ask(&mut self) {
        let letters = self.rng.usize(60..1_500);
        let text = prose(&mut self.rng, letters);
        self.say("user", vec![json!({"type": "text", "text": text})]);
    }

    fn conclude(&mut self) {
        let letters = self.rng.usize(200..1_800);
        let text = prose(&mut self.rng, letters);
        let thought = self.thought();
        let text = json!({"type": "text", "text": text});
        self.say("assistant", thought.into_iter().chain([text]).collect());
    }

    fn say(&mut self, role: &str, content: Vec<Value>) {
        let content = Value::Array(content);
        self.messages
            .push(json!({"role": role, "content": content}));
    }

    fn letters(&mut self, usual: Range<usize>) -> usize {
        self.rng.usize(usual) * self.percent / 100
    }

    fn thought(&mut self) -> Option<Value> {
        (self.rng.u8(0..5) < 2).then(|| {
            let letters = self.rng.usize(80..900);
            json!({"type": "thinking", "thinking": prose(&mut self.rng, letters)})
        })
    }

    /// Calls and their results.
    fn cycle(&mut self) {
        let mut said: Vec<Value> = self.thought().into_iter().collect();
        if self.wordy || self.rng.u8(0..3) == 0 {
            let most = if self.wordy { 2_800 } else { 300 };
            let letters = self.rng.usize(40..most);
            said.push(json!({"type": "text", "text": prose(&mut self.rng, letters)}));
        }
        let calls = [1, 1, 1, 1, 1, 1, 2, 2, 3, 5][self.rng.usize(0..10)];
        let mut results = Vec::new();
        for _ in 0..calls {
            let call = self.call();
            self.calls += 1;
            let id = format!("toolu_{:05}", self.calls);
            said.push(
                json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input}),
            );
            let mut result =
                json!({"tool_use_id": id, "type": "tool_result", "content": call.result});
            if call.failed {
                result["is_error"] = json!(true);
            }
            results.push(result);
        }
        self.say("assistant", said);
        self.say("user", results);
    }

    fn call(&mut self) -> Call {
        match self.rng.u8(0..100) {
            0..35 => self.reading(),
            35..52 => self.search(),
            52..70 => self.tests(),
            70..90 => self.edit(),
            90..93 => self.giant(),
            93..96 => self.failure(),
            _ => self.listing(),
        }
    }

    fn reading(&mut self) -> Call {
        let rng = &mut self.rng;
        let again = !self.read.is_empty() && rng.u8(0..3) == 0;
        let (number, letters) = if again {
            self.read[rng.usize(0..self.read.len())]
        } else {
            let letters = rng.usize(1_000..8_000) * self.percent / 100;
            let fresh = (rng.usize(0..400), letters);
            self.read.push(fresh);
            fresh
        };
        // The same file reads the same, until it is changed.
        let mut content = Rng::with_seed((number * 1_000_003 + letters) as u64);
        Call {
            name: "Read",
            input: json!({"file_path": path(number)}),
            result: file(&mut content, letters),
            failed: false,
        }
    }

    fn edit(&mut self) -> Call {
        let rng = &mut self.rng;
        if self.read.is_empty() {
            self.read.push((rng.usize(0..400), 40 * self.percent));
        }
        let at = rng.usize(0..self.read.len());
        let (old, new) = (rng.usize(40..600), rng.usize(40..1_200));
        self.read[at].1 += 1;
        let path = path(self.read[at].0);
        let input =
            json!({"file_path": path, "old_string": file(rng, old), "new_string": file(rng, new)});
        Call {
            name: "Edit",
            input,
            result: format!("The file {path} has been updated."),
            failed: false,
        }
    }

    fn search(&mut self) -> Call {
        let letters = self.letters(100..4_000);
        Call {
            name: "Grep",
            input: json!({"pattern": super::text::word(&mut self.rng), "path": "src"}),
            result: matches(&mut self.rng, letters),
            failed: false,
        }
    }

    fn tests(&mut self) -> Call {
        let letters = self.letters(600..6_000);
        let failed = self.rng.u8(0..4) == 0;
        let which = ["", " --lib", " --test proxy"][self.rng.usize(0..3)];
        Call {
            name: "Bash",
            input: json!({"command": format!("cargo test{which}")}),
            result: test_run(&mut self.rng, letters),
            failed,
        }
    }

    fn giant(&mut self) -> Call {
        let letters = self.letters(20_000..60_000).min(60_000);
        let command = format!("cat build/log-{}.txt", self.calls);
        Call {
            name: "Bash",
            input: json!({"command": command}),
            result: test_run(&mut self.rng, letters),
            failed: false,
        }
    }

    fn failure(&mut self) -> Call {
        let path = path(self.rng.usize(400..500));
        Call {
            name: "Read",
            input: json!({"file_path": path}),
            result: format!("File does not exist: {path}"),
            failed: true,
        }
    }

    fn listing(&mut self) -> Call {
        let count = self.rng.usize(5..80);
        let files = (0..count).map(|_| path(self.rng.usize(0..400)));
        let result = files.collect::<Vec<_>>().join("\n");
        Call {
            name: "Glob",
            input: json!({"pattern": "src/**/*.rs"}),
            result,
            failed: false,
        }
    }
}
