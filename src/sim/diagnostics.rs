//! Cache diagnostics: why a request did not read what the previous one wrote.
//!
//! A client that names its previous message is told which layer changed since.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::canonical::Digest;
use super::exchange::Judged;
use super::marks::Place;

/// Prompts by workspace and the id of the message that answered them.
pub(super) type Sent = HashMap<(String, String), (String, Vec<Digest>)>;

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
    let reason = match sent.get(&(judged.account.workspace.clone(), id.to_owned())) {
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
    sent.insert(key, (judged.request.model.id.to_owned(), digests));
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
