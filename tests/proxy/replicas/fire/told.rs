//! What the replicas themselves tell in their logs.
//!
//! Only a replica knows how large a view was about to be when it made a pass,
//! when it asked a model, and from when to when it knew that its database was
//! away: neither an answer nor what upstream gets tells that.

use serde_json::Value;

/// A pass that a replica was about to commit.
#[derive(Debug)]
pub struct Pass {
    /// When, in milliseconds.
    pub at: u64,
    /// Tokens that the conversation was about to have.
    pub projected: u64,
    /// Tokens from which on it must become smaller.
    pub hard_at: u64,
    /// The replica knew that its database was away.
    pub away: bool,
}

/// What one replica told.
#[derive(Debug, Default)]
pub struct Told {
    pub passes: Vec<Pass>,
    /// When it asked a model for a summary, or for a part of one.
    pub asked: Vec<u64>,
    /// When it knew that its database was away: since when, and until when.
    pub away: Vec<(u64, u64)>,
    /// Summaries that it began to ask for, by their ids, and when.
    pub begun: Vec<(String, u64)>,
    /// Summaries that came to an end.
    pub ended: Vec<Ended>,
    /// It was killed.
    pub killed: bool,
}

/// How a replica's work on a summary ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub segment: String,
    pub at: u64,
    /// There is a summary: else it failed.
    pub finished: bool,
    /// Its lease may have run out before, so that another replica may have begun.
    pub lapsed: bool,
}

impl Told {
    /// Reads a log.
    pub fn read(log: &str) -> Self {
        let mut told = Self::default();
        // The last line of one that was killed may be broken off.
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        for line in lines {
            told.hear(&line);
        }
        told
    }

    fn hear(&mut self, line: &Value) {
        let number = |name: &str| line[name].as_u64().unwrap();
        let segment = || line["segment"].as_str().unwrap().to_owned();
        let at = moment(line["timestamp"].as_str().unwrap());
        match line["message"].as_str().unwrap() {
            "a pass" => self.passes.push(Pass {
                at,
                projected: number("projected"),
                hard_at: number("hard_at"),
                away: line["store_is_away"].as_bool().unwrap(),
            }),
            "a model is asked for a summary" => self.asked.push(at),
            "a summary is begun" => self.begun.push((segment(), at)),
            "a summary has ended" => self.ended.push(Ended {
                segment: segment(),
                at,
                finished: line["finished"].as_bool().unwrap(),
                lapsed: line["lapsed"].as_bool().unwrap(),
            }),
            said if said.starts_with("the store is away") => self.away.push((at, u64::MAX)),
            said if said.starts_with("the store is back") => self.away.last_mut().unwrap().1 = at,
            _ => {}
        }
    }
}

/// A moment as logs write it, such as `2026-11-17T10:15:16.123456Z`, in
/// milliseconds since 1970.
fn moment(text: &str) -> u64 {
    let number = |from: usize, to: usize| text[from..to].parse::<u64>().unwrap();
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    // Years begin in March here, so that the day that is not always there is
    // the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let days = days - 719_469;
    let seconds = number(11, 13) * 3_600 + number(14, 16) * 60 + number(17, 19);
    (days * 86_400 + seconds) * 1_000 + number(20, 23)
}

#[test]
fn a_moment_in_a_log_is_read() {
    assert_eq!(moment("1970-01-01T00:00:00.000000Z"), 0);
    assert_eq!(moment("2001-09-09T01:46:40.123456Z"), 1_000_000_000_123);
    assert_eq!(moment("2024-02-29T23:59:59.999999Z"), 1_709_251_199_999);
    assert_eq!(moment("2026-11-17T10:15:16.500000Z"), 1_794_910_516_500);
}
