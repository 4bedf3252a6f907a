//! Histories to measure with: what a coding agent sends, made up but not random
//! from run to run. Most bytes are tool results full of code, so most strings
//! are long and thick with `\n` and `\"`; between them stand short calls, some
//! prose, some thinking, and tool definitions before it all.

use serde_json::{Value, json};

const LINES: [&str; 10] = [
    "    let outcome = self.inner.poll(&mut context, \"ready\");",
    "    if let Some(found) = table.get(\"content-type\") {",
    "        return Err(Error::new(\"expected `}` but found \\\"{\\\" instead\"));",
    "    }",
    "",
    "// The order matters here: the lock is taken before the file is opened.",
    "\tprintf(\"%s: %d\\n\", name, count);",
    "<div class=\"row\" id=\"main\"><a href=\"/index.html\">über uns</a></div>",
    "pub fn measure(bytes: &[u8], limit: usize) -> Result<Vec<Span>, Unclear> {",
    "{\"level\":\"info\",\"path\":\"C:\\\\work\\\\a.txt\",\"took\":12.5}",
];

const WORDS: [&str; 12] = [
    "the", "request", "is", "read", "once", "and", "its", "messages", "are", "kept,", "so", "that",
];

fn code(rng: &mut fastrand::Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 100);
    let mut number = 1;
    while text.len() < size {
        let line = LINES[rng.usize(..LINES.len())];
        text += &format!("{number:>6}\t{line}\n");
        number += 1;
    }
    text
}

fn prose(rng: &mut fastrand::Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 20);
    while text.len() < size {
        text += WORDS[rng.usize(..WORDS.len())];
        text += if rng.u8(..) < 12 { ".\n\n" } else { " " };
    }
    text
}

fn signature(rng: &mut fastrand::Rng) -> String {
    std::iter::repeat_with(|| rng.alphanumeric())
        .take(340)
        .collect()
}

fn tools(count: usize, rng: &mut fastrand::Rng) -> Value {
    let tool = |index: usize, rng: &mut fastrand::Rng| {
        json!({"name": format!("tool_{index}"), "description": prose(rng, 500), "input_schema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The absolute path"},
                "limit": {"type": "number", "description": "How many lines", "minimum": 1},
                "mode": {"type": "string", "enum": ["content", "files", "count"]}},
            "required": ["path"], "additionalProperties": false}})
    };
    (0..count).map(|index| tool(index, rng)).collect()
}

/// The assistant's call and the user's answer to it.
fn cycle(index: usize, result: usize, rng: &mut fastrand::Rng) -> [Value; 2] {
    let id = format!("toolu_01{index:022}");
    let mut blocks = Vec::new();
    if index.is_multiple_of(4) {
        blocks.push(json!({"type": "thinking", "thinking": prose(rng, result / 8), "signature": signature(rng)}));
    }
    if index.is_multiple_of(3) {
        blocks.push(json!({"type": "text", "text": prose(rng, result / 20)}));
    }
    let path = format!("/home/user/project/src/part_{}.rs", index % 40);
    blocks.push(if index.is_multiple_of(5) {
        json!({"type": "tool_use", "id": id, "name": "Edit", "input": {
            "file_path": path, "old_string": code(rng, result / 10), "new_string": code(rng, result / 8), "replace_all": false}})
    } else {
        json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": path, "offset": index, "limit": 200}})
    });
    let size = result - result / 4 + rng.usize(..=result / 2);
    let text = code(rng, size);
    let content = if index.is_multiple_of(2) {
        json!(text)
    } else {
        json!([{"type": "text", "text": text}])
    };
    [
        json!({"role": "assistant", "content": blocks}),
        json!({"role": "user", "content": [{"tool_use_id": id, "type": "tool_result", "content": content, "is_error": false}]}),
    ]
}

/// A request of `messages` messages, `size` bytes or a little more or less.
pub fn history(size: usize, messages: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(size as u64);
    let mark = json!({"type": "ephemeral"});
    let tools = tools(if size > 100_000 { 20 } else { 4 }, &mut rng);
    let mut list = vec![json!({"role": "user", "content": prose(&mut rng, 300)})];
    // Escapes, calls and prose take their share of a cycle's bytes.
    let result = (size / messages * 2).saturating_sub(400) * 3 / 4;
    for index in 0..messages / 2 {
        list.extend(cycle(index, result, &mut rng));
    }
    if let Some(blocks) = list
        .last_mut()
        .and_then(|last| last["content"].as_array_mut())
    {
        blocks.push(json!({"type": "text", "text": "<system-reminder>go on</system-reminder>", "cache_control": mark}));
    }
    let system = json!([{"type": "text", "text": prose(&mut rng, size.min(200_000) / 20), "cache_control": mark}]);
    serde_json::to_vec(
        &json!({"model": "claude-sonnet-4-5", "max_tokens": 32000, "stream": true,
        "system": system, "tools": tools, "messages": list, "metadata": {"user_id": "user_1"}}),
    )
    .unwrap()
}
