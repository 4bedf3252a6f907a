//! How bodies are taken apart.

use super::*;

fn outcome(messages: &str) -> Result<usize, Unclear> {
    let source = format!(r#"{{"messages":[{messages}]}}"#);
    Body::split(source.as_bytes()).map(|body| body.blocks.len())
}

fn repeated(piece: &str, count: usize) -> String {
    let mut all = format!("{piece},").repeat(count);
    all.pop();
    all
}

/// What is not taken apart is passed on as it came.
#[test]
fn a_body_of_too_many_pieces_is_not_taken_apart() {
    let message = |count| repeated(r#"{"role":"user","content":""}"#, count);
    let blocks = |count| format!(r#"{{"role":"user","content":[{}]}}"#, repeated("{}", count));
    let marks = |count| {
        let marked = repeated(r#"{"cache_control":{}}"#, count);
        format!(r#"{{"role":"user","content":[{{"content":[{marked}]}}]}}"#)
    };
    assert_eq!(outcome(&message(MESSAGES)), Ok(0));
    assert_eq!(outcome(&blocks(BLOCKS)), Ok(BLOCKS));
    assert_eq!(outcome(&marks(MARKS)), Ok(1));
    for source in [message(MESSAGES + 1), blocks(BLOCKS + 1), marks(MARKS + 1)] {
        assert!(matches!(outcome(&source), Err(Unclear::TooMany(_))));
    }
    let fields: Vec<String> = (0..=FIELDS).map(|at| format!(r#""{at}":1"#)).collect();
    let fields = format!("{{{}}}", fields.join(","));
    assert!(matches!(
        Body::split(fields.as_bytes()),
        Err(Unclear::TooMany(_))
    ));
}

#[test]
fn spans_never_cost_more_than_their_bound() {
    let most =
        MESSAGES * size_of::<Message>() + BLOCKS * size_of::<Block>() + MARKS * size_of::<Mark>();
    assert!(most < 32 << 20, "{most}");
}

/// As deep as the API knows marks, and nowhere else.
#[test]
fn marks_are_found_wherever_blocks_stand_in_blocks_and_nowhere_else() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let text = format!(r#"{{"type":"text","text":"x",{mark}}}"#);
    let document =
        format!(r#"{{"type":"document","source":{{"type":"content","content":[{text}]}}}}"#);
    let search =
        format!(r#"{{"type":"search_result","source":"s","title":"t","content":[{text}]}}"#);
    let result =
        |inner: &str| format!(r#"{{"type":"tool_result","tool_use_id":"t","content":[{inner}]}}"#);
    let fetched = format!(
        r#"{{"type":"web_fetch_tool_result","content":{{"type":"web_fetch_result","content":{document}}}}}"#
    );
    let source = format!(r#"{{"type":"image","source":{{"type":"url","url":"u",{mark}}}}}"#);
    let call = format!(
        r#"{{"type":"tool_use","id":"t","name":"n","input":{{{mark},"content":[{text}]}}}}"#
    );
    let deep = (0..600).fold(text.clone(), |inner, _| result(&inner));
    let rows = [
        (document.clone(), 1),
        (search.clone(), 1),
        (result(&search), 1),
        (result(&document), 1),
        (result(&format!("{search},{document},{text}")), 3),
        (fetched, 1),
        (source, 0),
        (call.clone(), 0),
        (result(&call), 0),
    ];
    for (block, marks) in rows {
        let message = |block: &str| format!(r#"{{"role":"user","content":[{block}]}}"#);
        let body = |block: &str| format!(r#"{{"messages":[{}]}}"#, message(block));
        let source = body(&block);
        let split_up = Body::split(source.as_bytes()).unwrap();
        assert_eq!(split_up.marks.len(), marks, "{block}");
        // Without its marks it is the same message.
        let bare = block.replace(&format!(",{mark}"), "");
        let form = |source: &str| {
            let mut form = Vec::new();
            let body = Body::split(source.as_bytes()).unwrap();
            let message = body.messages.first().unwrap();
            crate::wire::canonical::canonical(source.as_bytes(), &body, message, |piece| {
                form.extend_from_slice(piece);
            });
            form
        };
        assert_eq!(form(&source) == form(&body(&bare)), marks > 0, "{block}");
    }
    assert!(matches!(
        outcome(&format!(r#"{{"role":"user","content":[{deep}]}}"#)),
        Err(Unclear::TooDeep(_))
    ));
}

/// Guards against comparing every long name with every other, spelled out
/// anew each time.
#[test]
fn long_names_are_compared_by_their_order() {
    let name = "\\u0061".repeat(10_000);
    let field = |at: usize| format!(r#""{name}{at:03}":1"#);
    let fields: Vec<String> = (0..FIELDS).map(field).collect();
    let source = format!("{{{}}}", fields.join(","));
    let body = Body::split(source.as_bytes()).unwrap();
    for _ in 0..1_000 {
        assert_eq!(body.field(source.as_bytes(), "messages"), None);
    }
    let twice = format!(r#"{{{},"{}000":1}}"#, field(0), "a".repeat(10_000));
    assert!(matches!(
        Body::split(twice.as_bytes()),
        Err(Unclear::DuplicateKey(_))
    ));
}
