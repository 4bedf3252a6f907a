//! Cache diagnostics: why a request did not read what the previous one wrote.
//!
//! A client that names its previous message is told which layer changed since.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use super::canonical::Digest;
use super::exchange::Judged;
use super::marks::Place;

/// Prompts that are remembered: a client asks about its previous one, and all of
/// a long session would grow with the square of its length.
const REMEMBERED: usize = 256;

/// A workspace and the id of the message that answered a prompt.
type Key = (String, String);

/// The newest prompts.
#[derive(Debug, Default)]
pub(super) struct Sent {
    prompts: HashMap<Key, (String, Vec<Digest>)>,
    order: VecDeque<Key>,
}

impl Sent {
    fn insert(&mut self, key: Key, model: String, prompt: Vec<Digest>) {
        self.order.push_back(key.clone());
        self.prompts.insert(key, (model, prompt));
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.prompts.remove(&oldest);
        }
    }
}

/// What `diagnostics` of the answer says; `None` if it was not asked for.
pub(super) fn report(judged: &Judged, sent: &Sent) -> Option<Value> {
    let asked = judged
        .request
        .fields
        .get("diagnostics")
        .filter(|value| !value.is_null())?;
    let Some(id) = asked.get("previous_message_id").and_then(Value::as_str) else {
        return Some(Value::Null);
    };
    let key = (judged.account.workspace.clone(), id.to_owned());
    let reason = match sent.prompts.get(&key) {
        None => Some("previous_message_not_found"),
        Some((model, _)) if model != judged.request.model.id => Some("model_changed"),
        Some((_, digests)) => changed(judged, digests),
    };
    Some(reason.map_or(
        Value::Null,
        |reason| json!({"cache_miss_reason": {"type": reason}}),
    ))
}

/// Remembers a prompt under the message that answered it.
pub(super) fn remember(judged: &Judged, id: &str, sent: &mut Sent) {
    if judged
        .request
        .fields
        .get("diagnostics")
        .is_none_or(Value::is_null)
    {
        return;
    }
    let digests = judged
        .prompt
        .positions
        .iter()
        .map(|position| position.digest)
        .collect();
    let key = (judged.account.workspace.clone(), id.to_owned());
    sent.insert(key, judged.request.model.id.to_owned(), digests);
}

fn changed(judged: &Judged, previous: &[Digest]) -> Option<&'static str> {
    let positions = &judged.prompt.positions;
    let common = positions
        .iter()
        .zip(previous)
        .take_while(|(now, then)| now.digest == **then)
        .count();
    if common >= previous.len() {
        return None;
    }
    match positions.get(common).map(|position| position.place) {
        Some(Place::Tool(_)) => Some("tools_changed"),
        Some(Place::System(_)) => Some("system_changed"),
        Some(Place::Message(..)) | None => Some("messages_changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_prompts_are_remembered() {
        let mut sent = Sent::default();
        let key = |number: usize| ("w".to_owned(), number.to_string());
        for number in 0..=REMEMBERED {
            sent.insert(key(number), "m".to_owned(), vec![Digest::of("x")]);
        }
        assert_eq!(sent.prompts.len(), REMEMBERED);
        assert!(!sent.prompts.contains_key(&key(0)));
        assert!(sent.prompts.contains_key(&key(REMEMBERED)));
    }
}
