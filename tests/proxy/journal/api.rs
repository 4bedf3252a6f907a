//! What an operator sees of sessions, and takes away from them.

use serde_json::Value;

use super::stock::{House, TOKEN, house, put, wait, work};
use crate::support::{Client, text};

fn names(listed: &Value) -> Vec<&str> {
    let sessions = listed["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|session| session["id"].as_str().unwrap())
        .collect()
}

#[test]
fn sessions_are_listed_newest_first_and_page_by_page() {
    let house = house();
    let (own, foreign) = (house.own.id.to_string(), house.foreign.id.to_string());
    let all = house.json("/longhaul/sessions");
    assert_eq!(names(&all), [&foreign, &own]);
    assert_eq!(all["next"], Value::Null);
    let first = house.json("/longhaul/sessions?limit=1");
    assert_eq!(names(&first), [&foreign]);
    let next = first["next"].as_str().unwrap();
    let second = house.json(&format!("/longhaul/sessions?limit=1&before={next}"));
    assert_eq!(names(&second), [&own]);
    let shown = &all["sessions"][1];
    for (name, expected) in [
        ("label", "label-1000".into()),
        ("model", "claude-opus-5-5".into()),
        ("messages", 9.into()),
        ("turns", 2.into()),
        ("requests", 4.into()),
        ("original_tokens", 5_000.into()),
        ("sent_tokens", 2_000.into()),
        ("segments", 0.into()),
        ("stubs", 0.into()),
        ("breaker", "closed".into()),
        ("seen_at", "1970-01-01T00:00:01.000Z".into()),
    ] {
        let expected: Value = expected;
        assert_eq!(shown[name], expected, "{name}: {shown}");
    }
}

#[test]
fn a_session_is_shown_with_how_it_went_and_without_its_words() {
    let house = house();
    let answer = house.ask("GET", &format!("/longhaul/sessions/{}", house.own.id));
    let text = String::from_utf8(answer.body).unwrap();
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["timeline"].as_array().map(Vec::len), Some(1));
    assert_eq!(shown["timeline"][0]["sent_tokens"], 2_000);
    assert!(
        !text.contains("alpha") && !text.contains("scheduler"),
        "{text}"
    );
}

#[test]
fn the_journal_is_searched_and_listed_and_words_come_only_when_asked_for() {
    let house = house();
    let base = format!("/longhaul/sessions/{}/journal", house.own.id);
    let found = house.json(&format!("{base}?q=QUUX_RETRY_BUDGET&limit=3"));
    let best = &found["entries"][0];
    assert_eq!(best["ref"], house.own.block(2, 0));
    assert!(best["text"].as_str().unwrap().contains("u32 = 17"));
    let listed = house.json(&format!("{base}?limit=5"));
    let entries = listed["entries"].as_array().unwrap();
    assert!(entries.len() == 5 && entries.iter().all(|entry| entry.get("text").is_none()));
    let rest = house.json(&format!("{base}?limit=5&before={}", listed["next"]));
    assert!(rest["entries"][0]["number"].as_i64() < entries[4]["number"].as_i64());
    let decided = house.json(&format!("{base}?kind=decision&content=true"));
    let text = decided["entries"][0]["text"].as_str().unwrap();
    assert!(text.contains("token bucket"), "{decided}");
    let page = house.json(&format!("{base}/{}?page=2", house.own.block(2, 0)));
    assert!(
        page["text"].as_str().unwrap().contains("page 2 of"),
        "{page}"
    );
}

#[test]
fn an_export_has_the_very_bytes_that_the_client_sent() {
    let house = house();
    let answer = house.ask(
        "GET",
        &format!("/longhaul/sessions/{}/export", house.own.id),
    );
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("x-longhaul-messages"), Some("9 of 9"));
    assert!(answer.body == house.own.messages, "not the same bytes");
}

#[test]
fn a_hand_off_says_what_was_asked_forbidden_decided_and_left_open() {
    let house = house();
    let answer = house.ask(
        "GET",
        &format!("/longhaul/sessions/{}/handoff", house.own.id),
    );
    assert_eq!(
        answer.header("content-type"),
        Some("text/markdown; charset=utf-8")
    );
    let text = String::from_utf8(answer.body).unwrap();
    for part in [
        "Port the scheduler of alpha",
        "Never touch config/legacy.yml",
        "token bucket",
        "/src/retry.rs",
        "E0308",
        "lh-",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("omega"));
}

#[test]
fn a_forgotten_session_is_gone_with_its_content_and_nobody_elses() {
    let house = house();
    let again = wait(put(&*house.store, "a", &work("alpha2"), 3_000));
    let path = format!("/longhaul/sessions/{}", house.own.id);
    let gone = house.ask("DELETE", &path);
    let gone: Value = serde_json::from_slice(&gone.body).unwrap();
    assert_eq!(
        (&gone["marks"], &gone["branches"]),
        (&1.into(), &1.into()),
        "{gone}"
    );
    house.wrong("GET", &path, 404);
    house.wrong("DELETE", &path, 404);
    house.wrong("GET", &format!("{path}/export"), 404);
    let nothing = house.told("expand", &serde_json::json!({"ref": house.own.span}));
    assert!(nothing.starts_with("nothing is known"), "{nothing}");
    // The listing is the same content, and the other session still has it.
    for left in [&again, &house.foreign] {
        let export = house.ask("GET", &format!("/longhaul/sessions/{}/export", left.id));
        assert!(export.body == left.messages);
    }
}

#[test]
fn the_admin_api_is_guarded_on_every_path() {
    let house = house();
    let id = house.own.id;
    let paths = ["", "/journal", "/journal?q=alpha", "/export", "/handoff"];
    let paths = paths.map(|path| format!("/longhaul/sessions/{id}{path}"));
    let ask = |house: &House, method: &str, path: &str, headers: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\n{headers}\r\n");
        Client::connect(house.proxy.address).send(request).answer()
    };
    for path in paths
        .iter()
        .map(String::as_str)
        .chain(["/longhaul/sessions"])
    {
        // Also from this machine: behind a reverse proxy on it, everybody is there.
        for host in [
            "host: evil.example\r\n",
            "host: localhost\r\n",
            "host: 127.0.0.1\r\n",
        ] {
            let answer = ask(&house, "GET", path, host);
            assert_eq!(answer.status(), 401, "{path} {host}");
            assert!(!text(&answer.body).contains("alpha"), "{path} {host}");
        }
        let wrong = "host: localhost\r\nauthorization: Bearer of-the-operato\r\n";
        if path == "/longhaul/sessions" {
            assert_eq!(ask(&house, "GET", path, wrong).status(), 401, "{path}");
        }
        let token = format!("host: proxy.example\r\nauthorization: Bearer {TOKEN}\r\n");
        assert_eq!(ask(&house, "GET", path, &token).status(), 200, "{path}");
        let page = format!("{token}origin: http://evil.example\r\n");
        assert_eq!(ask(&house, "GET", path, &page).status(), 403, "{path}");
    }
    let path = format!("/longhaul/sessions/{id}");
    assert_eq!(
        ask(&house, "DELETE", &path, "host: localhost\r\n").status(),
        401
    );
    let compact = format!("{path}/compact");
    assert_eq!(
        ask(&house, "POST", &compact, "host: localhost\r\n").status(),
        401
    );
    assert_eq!(house.ask("GET", &path).status(), 200, "still there");
}
