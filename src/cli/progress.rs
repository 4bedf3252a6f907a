//! A line on a terminal that says how far something has come; nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often the line is drawn anew.
const OFTEN: Duration = Duration::from_millis(100);
/// Letters of the bar.
const BAR: usize = 32;

/// How far something has come.
pub struct Progress {
    all: usize,
    state: Option<Mutex<State>>,
}

struct State {
    done: usize,
    drawn: Option<Instant>,
    begun: Instant,
}

impl Progress {
    /// Of so many steps, if standard error is a terminal.
    pub fn new(all: usize) -> Self {
        let state = std::io::stderr().is_terminal().then(|| {
            Mutex::new(State {
                done: 0,
                drawn: None,
                begun: Instant::now(),
            })
        });
        Self { all, state }
    }

    /// One step further.
    pub fn step(&self) {
        let Some(state) = &self.state else {
            return;
        };
        let Ok(mut state) = state.lock() else {
            return;
        };
        state.done += 1;
        if state.drawn.is_some_and(|drawn| drawn.elapsed() < OFTEN) {
            return;
        }
        state.drawn = Some(Instant::now());
        let line = line(state.done, self.all, state.begun.elapsed());
        // A terminal that has gone needs no line.
        let _ = write!(std::io::stderr(), "\r\x1b[2K{line}");
        let _ = std::io::stderr().flush();
    }

    /// Wipes the line away.
    pub fn end(&self) {
        if self.state.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
    }
}

fn line(done: usize, all: usize, time: Duration) -> String {
    let all = all.max(1);
    let full = (done * BAR / all).min(BAR);
    let (full_bar, rest) = ("█".repeat(full), "░".repeat(BAR - full));
    let percent = done * 100 / all;
    format!(
        "{full_bar}{rest} {percent:>3}%  {done} of {all} requests, {} s",
        time.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_from_left_to_right() {
        let shown = line(1, 4, Duration::from_secs(3));
        assert_eq!(shown.matches('█').count(), BAR / 4);
        assert_eq!(shown.matches('░').count(), BAR - BAR / 4);
        assert!(shown.ends_with(" 25%  1 of 4 requests, 3 s"), "{shown}");
        assert_eq!(line(9, 4, Duration::ZERO).matches('█').count(), BAR);
        assert_eq!(line(0, 0, Duration::ZERO).matches('█').count(), 0);
    }
}
