//! Recognising a history at the speed of memory.
//!
//! The chain of [`super::chain`] is too dear to compute over a whole body for
//! every request. This is its quick shadow, over the same canonical messages: it
//! finds, within this process, the chain hash that was computed when a message
//! was new, is never stored and never leaves. A wrong hit would show another
//! conversation's summary, so collisions must be out of reach for someone who
//! chooses the messages: the hash has a secret key and was built to be
//! unpredictable without it. That is `HighwayHash`. XXH3 takes about half its
//! time, but its seed only varies it and keeps no secret; the difference is a
//! twentieth of a millisecond per megabyte.

use highway::{HighwayHash, HighwayHasher};

use crate::wire::body::Body;
use crate::wire::canonical::canonical;

/// The secret under which a process recognises histories.
#[derive(Clone)]
pub struct Key(highway::Key);

impl Key {
    /// From bytes that nobody else can know: random ones, drawn once a process.
    pub fn new(secret: [u8; 32]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(secret.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self(highway::Key(words))
    }
}

/// A conversation up to some message, as this process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Swift(u128);

impl Swift {
    /// One of so many buckets.
    pub fn bucket(self, buckets: usize) -> usize {
        usize::try_from(self.0 % buckets.max(1) as u128).unwrap_or(0)
    }

    /// Whether it is one of the few, one in so many, that are picked out.
    pub fn is_one_in(self, many: u64) -> bool {
        (self.0 >> 64).is_multiple_of(u128::from(many.max(1)))
    }
}

/// One for each message, the n-th covering the tenant and the first n + 1
/// messages.
pub fn swift(key: &Key, tenant: &str, bytes: &[u8], body: &Body) -> Vec<Swift> {
    let empty = HighwayHasher::new(key.0);
    let mut last = after(&empty, Swift(0), |sink| sink(tenant.as_bytes()));
    let next = |message| {
        last = after(&empty, last, |sink| canonical(bytes, body, message, sink));
        last
    };
    body.messages().iter().map(next).collect()
}

/// The previous one is of fixed size and stands for everything before, so no
/// message can run into another. (To let one state run on through all messages,
/// with their lengths between them, was a twentieth quicker on long histories.)
fn after(
    empty: &HighwayHasher,
    previous: Swift,
    message: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> Swift {
    let mut hasher = empty.clone();
    hasher.append(&previous.0.to_le_bytes());
    message(&mut |piece| hasher.append(piece));
    let [low, high] = hasher.finalize128();
    Swift(u128::from(high) << 64 | u128::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::chain::chain;
    use serde_json::{Value, json};

    fn under(key: u8, tenant: &str, messages: &Value) -> Vec<Swift> {
        let source = serde_json::to_vec(&json!({"model": "m", "messages": messages})).unwrap();
        let body = Body::split(&source).unwrap();
        swift(&Key::new([key; 32]), tenant, &source, &body)
    }

    fn of(tenant: &str, messages: &Value) -> Vec<Swift> {
        under(7, tenant, messages)
    }

    fn turn(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    /// Two forms of a message are one here exactly where they are one there.
    #[test]
    fn it_tells_apart_what_the_chain_tells_apart_and_nothing_else() {
        let mark = json!({"type": "ephemeral"});
        let call =
            json!({"type": "tool_use", "id": "t", "name": "n", "input": {"cache_control": 1}});
        let mut marked_call = call.clone();
        marked_call["cache_control"] = mark.clone();
        let forms = [
            turn("x"),
            turn("x "),
            json!({"content": "x", "role": "user"}),
            json!({"role": "user", "content": [{"type": "text", "text": "x"}]}),
            json!({"role": "user", "content": [{"text": "x", "cache_control": mark, "type": "text"}]}),
            json!({"role": "user", "content": [{"type": "text", "text": "x", "citations": []}]}),
            json!({"role": "user", "content": []}),
            json!({"role": "user", "content": "x", "key": 1}),
            json!({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": mark}], "key": 1}),
            json!({"role": "assistant", "content": "x"}),
            json!({"role": "system", "content": "x"}),
            json!({"role": "narrator", "content": "x"}),
            json!({"role": "assistant", "content": [call]}),
            json!({"role": "assistant", "content": [marked_call]}),
        ];
        let slow = |form: &Value| {
            let source = serde_json::to_vec(&json!({"messages": [form]})).unwrap();
            chain("t", &source, &Body::split(&source).unwrap())
        };
        let mut equal = 0;
        for one in &forms {
            for other in &forms {
                let same = of("t", &json!([one])) == of("t", &json!([other]));
                assert_eq!(same, slow(one) == slow(other), "{one} {other}");
                equal += usize::from(same);
            }
        }
        // Four spellings of one message, two each of two others, six alone.
        assert_eq!(equal, 4 * 4 + 2 * (2 * 2) + 6);
    }

    #[test]
    fn a_longer_history_begins_as_the_shorter_and_forks_part() {
        let short = of("t", &json!([turn("a"), turn("b")]));
        let long = of("t", &json!([turn("a"), turn("b"), turn("c")]));
        let fork = of("t", &json!([turn("a"), turn("x"), turn("c")]));
        assert_eq!(long[..2], short[..]);
        assert_eq!(fork[0], long[0]);
        assert!(fork[1..].iter().all(|swift| !long.contains(swift)));
    }

    #[test]
    fn order_counts_and_messages_do_not_run_into_each_other() {
        let rows = [
            ["a", "b"],
            ["b", "a"],
            ["ab", ""],
            ["", "ab"],
            ["a", "bc"],
            ["ab", "c"],
        ];
        let ends = rows.map(|[one, other]| of("t", &json!([turn(one), turn(other)]))[1]);
        for (index, end) in ends.iter().enumerate() {
            assert!(!ends[index + 1..].contains(end), "{index}");
        }
    }

    /// Invariant 9: equal histories of two tenants have nothing in common.
    #[test]
    fn tenants_and_processes_share_nothing() {
        let history = json!([turn("a"), turn("b")]);
        let one = of("one", &history);
        for other in [
            of("other", &history),
            of("", &history),
            under(8, "one", &history),
        ] {
            assert!(one.iter().all(|swift| !other.contains(swift)));
        }
    }
}
