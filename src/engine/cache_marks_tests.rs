//! How cache marks are read and counted.

use super::*;

#[test]
fn every_mark_counts_wherever_it_stands_and_null_is_none() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let text = format!(r#"{{"type":"text","text":"x",{mark}}}"#);
    let source = format!(
        r#"{{"tools":[{{"name":"a","cache_control":null}},{{"name":"b",{mark}}}],"system":[{text}],{mark},
        "messages":[{{"role":"user","content":[{text},{{"type":"tool_result","tool_use_id":"t","content":[
        {{"type":"search_result","content":[{text}]}}],"cache_control":null}}]}}]}}"#
    );
    let body = Body::split(source.as_bytes()).unwrap();
    assert_eq!(count(source.as_bytes(), &body), 5);
}

#[test]
fn what_is_too_long_for_a_mark_is_not_read() {
    let mark = |more: usize| {
        let more = "0,".repeat(more);
        format!(r#"{{"type":"ephemeral","ttl":"1h","x":[{more}0]}}"#)
    };
    assert_eq!(Lifetime::of(mark(0).as_bytes()), Lifetime::Long);
    assert_eq!(Lifetime::of(mark(1 << 20).as_bytes()), Lifetime::Short);
}
