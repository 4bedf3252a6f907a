//! How the requests of a command ended, where no conversation came of them.
//!
//! A wrong key, an upstream that is not there, a client that only asked for
//! models: each looks the same in the sums of conversations, which have nothing,
//! and each needs another remedy. The counters that operators watch know it, so
//! they are read here as operators read them.

use std::collections::BTreeMap;

use super::counted::counted;

/// The series of requests, by route and status.
const REQUESTS: &str = "longhaul_requests_total{";
/// The number of answers whose head came from upstream.
const FROM_UPSTREAM: &str = "longhaul_upstream_seconds_count{phase=\"first_byte\"} ";
/// The routes that lead upstream; what a command asks the proxy itself is no request.
const FORWARDED: [&str; 3] = ["messages", "count_tokens", "other"];
/// The status by which a client is counted that did not wait.
const LEFT: &str = "499";

/// Requests that led upstream and how they were answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// How many, by route and status.
    by: BTreeMap<(String, String), u64>,
    /// How many were answered by upstream.
    from_upstream: u64,
}

impl Answers {
    /// Reads them out of the exposition text.
    pub fn read(metrics: &str) -> Self {
        let mut answers = Self::default();
        for line in metrics.lines() {
            if let Some(count) = line.strip_prefix(FROM_UPSTREAM) {
                answers.from_upstream = count.trim().parse().unwrap_or(0);
            }
            let Some(labels) = line.strip_prefix(REQUESTS) else {
                continue;
            };
            let mut parts = labels.split('"');
            let (_, route, _, status) = (parts.next(), parts.next(), parts.next(), parts.next());
            let count = parts.next().and_then(|rest| rest.strip_prefix("} "));
            let count = count.and_then(|count| count.trim().parse().ok());
            let (Some(route), Some(status), Some(count)) = (route, status, count) else {
                continue;
            };
            if FORWARDED.contains(&route) && count > 0 {
                let at = (route.to_owned(), status.to_owned());
                answers.by.insert(at, count);
            }
        }
        answers
    }

    /// What they came to; nothing if there were none.
    pub fn told(&self) -> Option<String> {
        let all: u64 = self.by.values().sum();
        if all == 0 {
            return None;
        }
        let requests = counted(all, "request");
        let answered = self.by.keys().any(|(_, status)| status.starts_with('2'));
        Some(if answered {
            format!("{requests}, no conversation among them: {}", self.routes())
        } else {
            format!("{requests}, none answered: {}", self.failures(all))
        })
    }

    fn routes(&self) -> String {
        let each = self.by.iter().map(|((route, status), count)| {
            let times = times(*count);
            format!("{route} {status}{times}")
        });
        each.collect::<Vec<_>>().join(", ")
    }

    fn failures(&self, all: u64) -> String {
        let mut by_status: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, status), count) in &self.by {
            *by_status.entry(status).or_default() += count;
        }
        let left = by_status.remove(LEFT);
        let waited = all - left.unwrap_or(0);
        let whose = match self.from_upstream {
            0 => " from longhaul itself",
            answered if answered == waited => " from upstream",
            _ => "",
        };
        let several = by_status.len() > 1;
        let mut each: Vec<String> = by_status
            .iter()
            .map(|(status, count)| {
                let times = if several {
                    times(*count)
                } else {
                    String::new()
                };
                format!("{status}{times}")
            })
            .collect();
        if let Some(last) = each.last_mut() {
            last.push_str(whose);
        }
        if let Some(count) = left {
            let times = times(count);
            each.push(format!("the command did not wait{times}"));
        }
        each.join(", ")
    }
}

/// How often, if more than once.
fn times(count: u64) -> String {
    match count {
        1 => String::new(),
        count => format!(" ({count} times)"),
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use std::time::Duration;

    use super::*;
    use crate::metrics::{Metrics, Phase};

    /// Requests by route and status, and how many of them upstream answered.
    fn told(requests: &[(&'static str, u16)], from_upstream: usize) -> Option<String> {
        let metrics = Metrics::new().unwrap();
        for (route, status) in requests {
            metrics.answered(route, StatusCode::from_u16(*status).unwrap());
        }
        for _ in 0..from_upstream {
            metrics.upstream(Phase::FirstByte, Duration::from_millis(3));
        }
        Answers::read(&metrics.render().unwrap()).told()
    }

    #[test]
    fn requests_without_a_conversation_are_told_by_how_they_ended() {
        let message = |status| ("messages", status);
        let rows: [(&[_], usize, Option<&str>); 9] = [
            (&[], 0, None),
            (&[("admin", 200), ("mcp", 200)], 0, None),
            (
                &[message(401), message(401), message(401)],
                3,
                Some("3 requests, none answered: 401 from upstream"),
            ),
            (
                &[message(502)],
                0,
                Some("1 request, none answered: 502 from longhaul itself"),
            ),
            (
                &[message(401), message(529), message(529)],
                3,
                Some("3 requests, none answered: 401, 529 (2 times) from upstream"),
            ),
            (
                &[message(401), message(502)],
                1,
                Some("2 requests, none answered: 401, 502"),
            ),
            (
                &[message(499), message(499), message(401)],
                1,
                Some(
                    "3 requests, none answered: 401 from upstream, the command did not wait (2 times)",
                ),
            ),
            (
                &[message(499)],
                0,
                Some("1 request, none answered: the command did not wait"),
            ),
            (
                &[
                    ("other", 200),
                    ("count_tokens", 200),
                    ("count_tokens", 200),
                    message(401),
                ],
                4,
                Some(
                    "4 requests, no conversation among them: count_tokens 200 (2 times), \
                     messages 401, other 200",
                ),
            ),
        ];
        for (requests, from_upstream, expected) in rows {
            assert_eq!(told(requests, from_upstream).as_deref(), expected);
        }
    }
}
