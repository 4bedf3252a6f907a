//! Reading what a model answered.
//!
//! One JSON object is asked for, and models give it in many dresses: in a code
//! fence, with a word before and after, with a text where a list was wanted, with
//! line breaks that JSON does not allow, or in tags after all. All of that is
//! read, because asking again costs more than reading. What breaks off, or has
//! not even the fields that matter, is malformed. Whatever the answer is, the
//! work grows with its length and no faster.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::check::Problem;
use super::{KEYS, Narrative};

/// Braces from which an object is tried: words around it may hold some too.
const TRIES: usize = 24;

/// The narrative in an answer.
pub fn read(answer: &str) -> Result<Narrative, Problem> {
    from_json(answer)
        .or_else(|| from_json(&mended(answer)))
        .or_else(|| from_tags(answer))
        .ok_or(Problem::Malformed)
}

fn from_json(answer: &str) -> Option<Narrative> {
    memchr::memchr_iter(b'{', answer.as_bytes())
        .take(TRIES)
        .find_map(|at| {
            let mut values = serde_json::Deserializer::from_str(answer.get(at..)?).into_iter();
            let object: Map<String, Value> = values.next()?.ok()?;
            narrative(&object).or_else(|| object.values().find_map(|v| narrative(v.as_object()?)))
        })
}

/// The narrative that an object is; `None` if it is something else.
fn narrative(object: &Map<String, Value>) -> Option<Narrative> {
    let mut narrative = Narrative::default();
    let mut found = Vec::new();
    for (name, value) in object {
        let Some(key) = KEYS.into_iter().find(|key| is_named(name, key)) else {
            continue;
        };
        found.push(key);
        match narrative.list_mut(key) {
            Some(list) => *list = items(value),
            None => narrative.session_intent = items(value).join("\n"),
        }
    }
    is_whole(&found).then_some(narrative)
}

/// Whether the fields are there without which there is no telling what an
/// answer is. The others may be left out when they are empty.
fn is_whole(found: &[&str]) -> bool {
    found.contains(&"session_intent")
        && (found.contains(&"decisions") || found.contains(&"next_steps"))
}

/// Whether a name is this key, in whatever spelling: `Session Intent`.
fn is_named(name: &str, key: &str) -> bool {
    let letters = |text: &'_ str| {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        letters
            .map(|byte| byte.to_ascii_lowercase())
            .collect::<Vec<u8>>()
    };
    name.len() < 64 && letters(name) == letters(key)
}

/// What a field says, item by item.
fn items(value: &Value) -> Vec<String> {
    let texts: Vec<String> = match value {
        Value::Array(list) => list.iter().map(|item| tidy(&text(item))).collect(),
        Value::String(text) => lines(text),
        Value::Object(object) => {
            let member = |(name, inner): (&String, &Value)| format!("{name}: {}", text(inner));
            object.iter().map(member).collect()
        }
        other => vec![text(other)],
    };
    texts
        .into_iter()
        .filter(|text| says_something(text))
        .collect()
}

/// A value as one text.
fn text(value: &Value) -> String {
    let join = |texts: Vec<String>| {
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join(": ")
    };
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(list) => join(list.iter().map(text).collect()),
        Value::Object(object) => join(object.values().map(text).collect()),
        other => other.to_string(),
    }
}

/// The items of a list that was written as a text. Without marks at its lines it
/// is one item.
fn lines(text: &str) -> Vec<String> {
    let marked = |line: &str| unmarked(line.trim()).is_some();
    if !text.lines().any(marked) {
        return vec![tidy(text)];
    }
    let mut items: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (unmarked(line), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(line);
            }
            (None, None) => items.push(line.to_owned()),
        }
    }
    items
}

/// A line without the mark of a list; `None` if it has none.
fn unmarked(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = line.get(digits..).filter(|_| (1..4).contains(&digits));
    let rest = line
        .strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .or_else(|| line.strip_prefix("• "))
        .or_else(|| numbered?.strip_prefix(". "))
        .or_else(|| numbered?.strip_prefix(") "))?;
    Some(rest.trim())
}

fn tidy(text: &str) -> String {
    let text = text.trim();
    unmarked(text).unwrap_or(text).to_owned()
}

/// Whether an item is more than a way to say that there is none.
fn says_something(text: &str) -> bool {
    let bare = text.trim().trim_matches(['.', '-', '(', ')', '[', ']']);
    let is_none = ["none", "n/a", "null"]
        .iter()
        .any(|word| bare.eq_ignore_ascii_case(word));
    !bare.is_empty() && !is_none
}

/// The text with what models often get wrong in JSON put right: control
/// characters inside strings, and a comma behind the last element.
fn mended(answer: &str) -> Cow<'_, str> {
    let Some(start) = answer.find('{') else {
        return Cow::Borrowed(answer);
    };
    let mut mended = String::with_capacity(answer.len() + 64);
    let (mut is_inside, mut is_escaped) = (false, false);
    // A comma, with the white space behind it, waits for what follows.
    let mut waiting = String::new();
    for letter in answer.get(start..).unwrap_or("").chars() {
        if is_inside {
            match letter {
                '\n' => mended.push_str("\\n"),
                '\t' => mended.push_str("\\t"),
                letter if letter.is_control() => {}
                letter => mended.push(letter),
            }
            is_inside = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        let waits = letter == ',' || (!waiting.is_empty() && letter.is_whitespace());
        if waits {
            waiting.push(letter);
            continue;
        }
        if !matches!(letter, '}' | ']') {
            mended.push_str(&waiting);
        }
        waiting.clear();
        mended.push(letter);
        is_inside = letter == '"';
    }
    Cow::Owned(mended)
}

/// The narrative of an answer in tags, one for each field.
fn from_tags(answer: &str) -> Option<Narrative> {
    let mut narrative = Narrative::default();
    let mut found = Vec::new();
    for key in KEYS {
        let Some((_, behind)) = answer.split_once(&format!("<{key}>")) else {
            continue;
        };
        let (inside, _) = behind.split_once(&format!("</{key}>"))?;
        found.push(key);
        match narrative.list_mut(key) {
            Some(list) => *list = items(&Value::from(inside)),
            None => narrative.session_intent = items(&Value::from(inside)).join("\n"),
        }
    }
    is_whole(&found).then_some(narrative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn example() -> Narrative {
        Narrative {
            session_intent: "port it".to_owned(),
            decisions: vec!["keep names".to_owned(), "because: \"x\"".to_owned()],
            errors: vec!["E0308".to_owned()],
            next_steps: vec!["test".to_owned()],
            ..Narrative::default()
        }
    }

    #[test]
    fn an_object_is_read_in_whatever_dress() {
        let json = example().json();
        let pretty = serde_json::to_string_pretty(&example()).unwrap();
        for answer in [
            json.clone(),
            pretty.clone(),
            format!("```json\n{pretty}\n```"),
            format!("Sure, here {{it}} is {{:\n\n{json}\n\nAnything else? {{}}"),
            format!(r#"{{"summary": {json}}}"#),
            format!("[{json}]"),
            format!("{{}} {json} {{\"session_intent\": \"other\"}}"),
            json.replace("\"errors\"", "\"mood\": [1, {}], \"Errors\""),
            json.replace("session_intent", "Session Intent")
                .replace("next_steps", "nextSteps"),
            pretty.replace("\"\n  ]", "\",\n  ]"),
        ] {
            assert_eq!(read(&answer), Ok(example()), "{answer}");
        }
    }

    #[test]
    fn fields_of_the_wrong_kind_say_what_they_can() {
        let answer = json!({
            "session_intent": ["port it", "and test"],
            "constraints": "- never push\n- ask\n  first\n* 3",
            "decisions": [{"what": "keep names", "why": "callers"}, 5, null, "- b", ["x", "y"]],
            "files_touched": {"a.rs": "new", "b.rs": "gone"},
            "errors": "None.",
            "pending_questions": null,
            "next_steps": ["N/A", "", "1. go"],
        });
        let narrative = read(&answer.to_string()).unwrap();
        assert_eq!(narrative.session_intent, "port it\nand test");
        assert_eq!(narrative.constraints, ["never push", "ask\nfirst", "3"]);
        assert_eq!(
            narrative.decisions,
            ["keep names: callers", "5", "b", "x: y"]
        );
        assert_eq!(narrative.files_touched, ["a.rs: new", "b.rs: gone"]);
        assert!(narrative.errors.is_empty() && narrative.pending_questions.is_empty());
        assert_eq!(narrative.next_steps, ["go"]);
    }

    #[test]
    fn line_breaks_in_strings_are_mended() {
        let answer = "{\"session_intent\": \"a\nb\t\\\"c\u{1}\", \"decisions\": [\"x, ]\",], }";
        let narrative = read(answer).unwrap();
        assert_eq!(narrative.session_intent, "a\nb\t\"c");
        assert_eq!(narrative.decisions, ["x, ]"]);
    }

    #[test]
    fn tags_are_read_too() {
        let answer = "<session_intent>\nport it\n</session_intent>\n<decisions>\n- keep names\n- \
                      because: \"x\"\n</decisions><errors>E0308</errors><next_steps>\n1. \
                      test\n</next_steps>";
        assert_eq!(read(answer), Ok(example()));
        assert_eq!(
            read(&answer.replace("</next_steps>", "")),
            Err(Problem::Malformed)
        );
    }

    #[test]
    fn what_breaks_off_or_is_something_else_is_malformed() {
        let json = example().json();
        let half = &json[..json.len() - 5];
        for answer in [
            "",
            "Sure! Here is { what, I remember: [",
            half,
            "null",
            "{}",
            "[]",
            "I cannot do that.",
            r#"{"session_intent": "x"}"#,
            r#"{"decisions": [], "next_steps": []}"#,
        ] {
            assert_eq!(read(answer), Err(Problem::Malformed), "{answer}");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(100_000), "[".repeat(100_000));
        assert_eq!(read(&deep), Err(Problem::Malformed));
    }

    proptest! {
        #[test]
        fn any_answer_can_be_read(answer in any::<String>(), odd in "[{}\\[\\]\":,a-z<>/\\\\\n_]{0,200}") {
            let _ = read(&answer);
            let _ = read(&odd);
            let _ = read(&format!("{{\"session_intent\": \"{odd}\", \"decisions\": [{answer}]}}"));
        }

        #[test]
        fn what_was_written_is_read(
            intent in "[a-z]{1,9}", items in prop::collection::vec("[b-z\"\\\\{}<>,é]{1,12}x", 0..5),
            before in "[a-z{ \n]{0,12}", after in "[a-z{}\" \n]{0,30}",
        ) {
            let narrative = Narrative {
                session_intent: intent,
                decisions: items.clone(),
                errors: items,
                ..Narrative::default()
            };
            prop_assume!(narrative.session_intent != "none" && narrative.session_intent != "null");
            let answer = format!("{before}\n```\n{}\n``` {after}", narrative.json());
            prop_assert_eq!(read(&answer), Ok(narrative));
        }
    }
}
