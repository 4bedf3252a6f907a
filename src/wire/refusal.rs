//! Why upstream refused a request, read from the error it sent.
//!
//! APIs say in words what they mean, and every cloud and gateway in other
//! words. Those that can be acted on are told apart here: a prompt that is too
//! long, thinking that does not fit its conversation, a mark, a beta or a field
//! that we may have added. The numbers in them are the only true word on a
//! model's window, but they come from outside, so they must make sense together.
//! Whatever is not recognised is [`Refusal::Other`] and is the client's to read.

use serde_json::Value;

/// Windows that can be believed.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=100_000_000;
/// The largest error body that is read, and the longest name taken from it.
const BODY_LIMIT: usize = 64 * 1024;
const NAME_LIMIT: usize = 256;

/// A content block of a request, by the numbers in its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which message.
    pub message: usize,
    /// Which block of it.
    pub block: usize,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The prompt alone is longer than the window.
    ContextExceeded {
        /// How long it is.
        tokens: Option<u64>,
        /// How long it may be.
        window: Option<u64>,
    },
    /// The prompt fits, but not together with `max_tokens`.
    OutputExceedsWindow {
        /// The prompt.
        tokens: Option<u64>,
        /// What was asked for.
        output: Option<u64>,
        /// How long both may be.
        window: Option<u64>,
    },
    /// `max_tokens` is more than the model gives.
    MaxTokensTooLarge {
        /// The most it gives.
        most: Option<u64>,
    },
    /// Thinking does not belong to this conversation.
    BoundThinking(Option<Place>),
    /// Thinking is not genuine, or, in fewer words, does not belong here.
    InvalidThinking(Option<Place>),
    /// Thinking of the latest assistant message is not as it was given.
    LatestThinkingModified(Option<Place>),
    /// More cache marks than allowed.
    TooManyMarks,
    /// A mark with a longer life after one with a shorter.
    TtlOrder,
    /// Beta names that upstream does not know.
    UnknownBeta(Vec<String>),
    /// A field that upstream does not know, or not without its beta.
    ExtraField(String),
    /// The body has too many bytes, as an API says.
    RequestTooLarge,
    /// 413 without an API's error. It may come from any machine on the way and
    /// is no proof that the request has too many tokens, or even bytes.
    BodyRejected,
    /// Anything else.
    Other,
}

impl Refusal {
    /// Reads an answer of upstream.
    pub fn read(status: u16, body: &[u8]) -> Self {
        // Credentials, limits and outages say nothing about the request.
        if !(400..500).contains(&status) || matches!(status, 401..=404 | 408 | 409 | 429) {
            return Self::Other;
        }
        let said = Said::read(body.get(..BODY_LIMIT).unwrap_or(body));
        let Said { text, code, form } = said;
        if form == Form::Page {
            return if status == 413 {
                Self::BodyRejected
            } else {
                Self::Other
            };
        }
        let recognised = context(&text, &code)
            .or_else(|| thinking(&text))
            .or_else(|| ours(&text));
        match recognised {
            Some(refusal) => refusal,
            None if code == "request_too_large" => Self::RequestTooLarge,
            None if status == 413 && form == Form::Error => Self::RequestTooLarge,
            None if status == 413 => Self::BodyRejected,
            None => Self::Other,
        }
    }
}

/// The words of an error, whoever wrapped them.
struct Said {
    text: String,
    code: String,
    form: Form,
}

/// What the body of an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An error as APIs write it.
    Error,
    /// Words, or nothing.
    Words,
    /// A page for a browser.
    Page,
}

impl Said {
    fn read(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let page = body.trim_ascii_start().starts_with(b"<");
            return Self {
                text: String::from_utf8_lossy(body).into_owned(),
                code: String::new(),
                form: if page { Form::Page } else { Form::Words },
            };
        };
        let first = |places: &[&str]| {
            let mut found = places.iter().filter_map(|place| value.pointer(place));
            found.find_map(Value::as_str).unwrap_or("").to_owned()
        };
        Self {
            form: if value.is_object() {
                Form::Error
            } else {
                Form::Words
            },
            text: first(&[
                "/error/message",
                "/message",
                "/Message",
                "/detail",
                "/error",
                "",
            ]),
            code: first(&[
                "/error/code",
                "/error/details/code",
                "/error/type",
                "/code",
                "/type",
            ]),
        }
    }
}

/// The prompt is too long, in the words of several APIs.
fn context(text: &str, code: &str) -> Option<Refusal> {
    let after = |phrase| after(text, phrase);
    if let Some(rest) = after("prompt is too long") {
        let [tokens, window] = numbers(rest);
        return Some(exceeded(tokens, window));
    }
    if let Some(rest) = after("exceed context limit") {
        let [tokens, output, window] = numbers(rest);
        return Some(with_output(tokens, output, window));
    }
    if let Some(rest) = after("maximum context length") {
        let [window, tokens, prompt, output] = numbers(rest);
        return Some(match (prompt, output) {
            (Some(_), Some(_)) if prompt < window => with_output(prompt, output, window),
            _ => exceeded(tokens, window),
        });
    }
    if let Some(rest) = after("configured limit of") {
        let [window, tokens] = numbers(rest);
        return Some(exceeded(tokens, window));
    }
    if let Some(rest) = after("input token count") {
        let [tokens, window] = numbers(rest);
        return Some(exceeded(tokens, window));
    }
    if let Some(rest) =
        after("max_tokens: ").filter(|rest| rest.contains("number of output tokens"))
    {
        let [_, most] = numbers(rest);
        return Some(Refusal::MaxTokensTooLarge { most });
    }
    let unnumbered = [
        "Input is too long for requested model",
        "exceeds the context window",
        "exceeds the available context size",
        "prompt_too_long",
    ];
    let said = unnumbered.iter().any(|phrase| after(phrase).is_some());
    (said || code == "context_length_exceeded" || code.contains("prompt_too_long"))
        .then_some(exceeded(None, None))
}

fn exceeded(tokens: Option<u64>, window: Option<u64>) -> Refusal {
    let believed = window.filter(|window| WINDOWS.contains(window));
    match (tokens, believed) {
        // A prompt that fits was not refused for its length.
        (Some(tokens), Some(window)) if tokens <= window => exceeded(None, None),
        (tokens, window) => Refusal::ContextExceeded { tokens, window },
    }
}

fn with_output(tokens: Option<u64>, output: Option<u64>, window: Option<u64>) -> Refusal {
    let window = window.filter(|window| WINDOWS.contains(window));
    if tokens.is_some() && window.is_some() && tokens > window {
        return exceeded(tokens, window);
    }
    Refusal::OutputExceedsWindow {
        tokens,
        output,
        window,
    }
}

fn thinking(text: &str) -> Option<Refusal> {
    if text.contains("in the latest assistant message cannot be modified") {
        return Some(Refusal::LatestThinkingModified(place(text)));
    }
    let said = |phrases: [&str; 2]| phrases.iter().any(|phrase| text.contains(phrase));
    let bound = [
        "bound to a different conversation",
        "not created in this conversation",
    ];
    let invalid = [
        "Invalid `signature` in `thinking` block",
        "Invalid `data` in `redacted_thinking` block",
    ];
    if said(bound) {
        return Some(Refusal::BoundThinking(place(text)));
    }
    said(invalid).then(|| Refusal::InvalidThinking(place(text)))
}

/// What we ourselves may have added.
fn ours(text: &str) -> Option<Refusal> {
    if text.contains("blocks with cache_control may be provided") {
        return Some(Refusal::TooManyMarks);
    }
    if text.contains("cache_control block must not come after a ttl=") {
        return Some(Refusal::TtlOrder);
    }
    if let Some((names, _)) = text.split_once("for the `anthropic-beta` header") {
        let names = names.split('`').skip(1).step_by(2);
        return Some(Refusal::UnknownBeta(names.map(short).collect()));
    }
    let (path, _) = text.split_once(": Extra inputs are not permitted")?;
    let path = path.rsplit([' ', '\n', '"']).next().unwrap_or(path);
    Some(Refusal::ExtraField(short(path)))
}

fn short(name: &str) -> String {
    name.chars().take(NAME_LIMIT).collect()
}

/// What follows a phrase, whatever its case.
fn after<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase();
    let at = lower.find(&phrase.to_ascii_lowercase())?;
    text.get(at + phrase.len()..)
}

/// The first numbers of a text; `212,345` is one.
fn numbers<const COUNT: usize>(text: &str) -> [Option<u64>; COUNT] {
    let mut found = text
        .split(|character: char| !character.is_ascii_digit() && character != ',')
        .map(|word| word.replace(',', ""))
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok());
    std::array::from_fn(|_| found.next().flatten())
}

/// The place that a path such as `messages.1.content.0` names.
fn place(text: &str) -> Option<Place> {
    let rest = after(text, "messages.")?;
    let (message, rest) = rest.split_once(".content.")?;
    let end = rest.find(|character: char| !character.is_ascii_digit());
    let block = rest.get(..end.unwrap_or(rest.len()))?;
    Some(Place {
        message: message.parse().ok()?,
        block: block.parse().ok()?,
    })
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
