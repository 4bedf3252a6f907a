//! A client's history and how it is written into requests.
//!
//! Messages are written down once and joined for each request: a session of
//! hundreds of requests writes its history hundreds of times. Only messages
//! with a cache mark are written for the request at hand.

use serde_json::Value;

/// The messages so far.
#[derive(Debug, Default)]
pub struct History {
    messages: Vec<Value>,
    /// Each as it is written.
    written: Vec<String>,
    mark: Value,
    /// How many marks there is room for.
    marks: usize,
}

impl History {
    /// An empty one, of a client with this cache mark, which has set all but so
    /// many of its marks elsewhere.
    pub fn new(mark: Value, marks: usize) -> Self {
        Self {
            mark,
            marks,
            ..Self::default()
        }
    }

    /// Adds a message.
    pub fn push(&mut self, message: Value) {
        self.written.push(message.to_string());
        self.messages.push(message);
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.mark), self.marks);
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// A message, as it is written where it has no mark.
    pub fn written(&self, at: usize) -> Option<&str> {
        self.written.get(at).map(String::as_str)
    }

    /// A message, as it is written where it has one.
    pub fn marked(&self, at: usize) -> Option<String> {
        let message = self.messages.get(at)?;
        Some(marked(message, &self.mark).to_string())
    }

    /// A block of a message.
    pub fn block(&self, at: usize, block: usize) -> Option<&Value> {
        self.messages.get(at)?.get("content")?.get(block)
    }

    /// The messages of the next request. Marks stand on the last block of the
    /// last two messages of the user, as far as there is room for them.
    pub fn write(&self) -> String {
        let last = self.messages.len().saturating_sub(1);
        let room: usize = self.written.iter().map(|it| it.len() + 1).sum();
        let mut text = String::with_capacity(room + 200);
        for (at, (message, written)) in self.messages.iter().zip(&self.written).enumerate() {
            if at > 0 {
                text.push(',');
            }
            if (at == last && self.marks > 0) || (at + 2 == last && self.marks > 1) {
                text.push_str(&marked(message, &self.mark).to_string());
            } else {
                text.push_str(written);
            }
        }
        text
    }
}

fn marked(message: &Value, mark: &Value) -> Value {
    let mut message = message.clone();
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    let last = blocks.and_then(|blocks| blocks.last_mut());
    if let Some(last) = last.and_then(Value::as_object_mut) {
        last.insert("cache_control".to_owned(), mark.clone());
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_two_messages_of_the_user_are_marked_where_there_is_room() {
        let marked = |room: usize| {
            let mut history = History::new(json!("here"), room);
            history.push(json!({"role": "user", "content": "gone"}));
            history.clear();
            for at in 0..5 {
                let role = if at % 2 == 0 { "user" } else { "assistant" };
                let block = json!({"type": "text", "text": at.to_string()});
                history.push(json!({"role": role, "content": [block]}));
            }
            let text = format!("[{}]", history.write());
            let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(history.written(0), Some(&*messages[0].to_string()));
            let places = messages.iter().enumerate();
            let places = places.filter(|(_, it)| it["content"][0]["cache_control"] == "here");
            places.map(|(at, _)| at).collect::<Vec<_>>()
        };
        for (room, expected) in [(0, &[][..]), (1, &[4]), (2, &[2, 4]), (4, &[2, 4])] {
            assert_eq!(marked(room), expected, "{room}");
        }
    }
}
