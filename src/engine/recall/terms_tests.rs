//! What words come out of which texts.

use super::*;
use proptest::prelude::*;

#[test]
fn words_identifiers_paths_and_numbers_are_found_by_what_they_are() {
    let rows = [
        ("", ""),
        (" \0\u{7} -- __ ", ""),
        ("The quick, brown foxes!", "the quick brown fox"),
        ("get_user_by_id", "get_user_by_id get user by id"),
        ("getUserById", "getuserbyid get user by id"),
        ("src/engine/reduce.rs", "src engin reduc rs"),
        ("HTTPServer2", "httpserver2 http server2 server 2"),
        ("__init__", "__init__ init"),
        ("MAX_ENTRIES", "max_entries max entry"),
        ("utf8 h2", "utf8 utf 8 h2 2"),
        ("1.2.3", "1_2_3 1 2 3"),
        ("v1.20.0-beta", "1_20_0 v1 1 20 0 beta"),
        ("127.0.0.1:8080", "127_0_0_1 127 0 1 8080"),
        ("3. next", "3 next"),
        ("deadbeef1", "deadbeef1 deadbee"),
        ("4970f26 1d42ee4a", "4970f26 1d42ee4a 1d42ee4"),
        ("E0308", "e0308 0308"),
        ("user's e-mail", "user s e mail"),
        ("Straße ÉTÉ", "straße été"),
        ("cache caches caching", "cach"),
    ];
    for (text, expected) in rows {
        assert_eq!(terms(text).join(" "), expected, "{text:?}");
    }
}

#[test]
fn writing_without_spaces_is_found_in_pairs() {
    let rows = [
        ("漢字", "漢字"),
        ("数据库连接", "数据 据库 库连 连接"),
        ("猫", "猫"),
        ("使用Rust编写", "使用 rust 编写"),
        ("データ、保存", "デー ータ 保存"),
        ("ข้อมูล", "ข้ ้อ อม มู ูล"),
        ("한국어 text", "한국어 text"),
    ];
    for (text, expected) in rows {
        assert_eq!(terms(text).join(" "), expected, "{text:?}");
    }
}

#[test]
fn what_the_store_keeps_for_itself_never_comes_out() {
    let scope = format!("zz{}", "0af9".repeat(8));
    for text in [&scope, &scope.to_uppercase(), &format!("{scope}_more")] {
        let all = terms(text);
        assert!(all.iter().all(|term| !term.starts_with(&scope)), "{all:?}");
    }
    assert_eq!(terms("zz0 zzz"), ["zz0", "zz", "0", "zzz"]);
}

#[test]
fn a_question_is_its_telling_words_the_most_telling_first() {
    let rows = [
        ("what was get_user about", "get_user user get getuser"),
        ("What was it about?", "about what was it"),
        (
            "the error, in src/lib.rs",
            "error src lib rs theerror the_error insrc in_src",
        ),
        ("which one: 1.2.3?", "1_2_3"),
        ("the retry budget", "budget retry retrybudget retry_budget"),
        ("x", "x"),
        ("", ""),
    ];
    for (text, expected) in rows {
        let asked = query(text).join(" ");
        assert!(asked.starts_with(expected), "{text:?}: {asked}");
    }
    let long: Vec<String> = (0..200).map(|n| format!("word_{n}")).collect();
    assert_eq!(query(&long.join(" ")).len(), ASKED);
}

#[test]
fn words_of_no_interest_are_in_order_so_that_they_can_be_looked_up() {
    assert!(STOP.is_sorted());
    assert!(is_stop("about") && !is_stop("reduce"));
}

#[test]
fn a_passage_has_no_more_terms_than_a_store_takes() {
    let words: Vec<String> = (0..9_000).map(|n| format!("w{n}x")).collect();
    assert_eq!(terms(&words.join(" ")).len(), MOST);
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,80}",
        "(zz[0-9a-f]{30,40}|[A-Z][a-z0-9]{0,3}|_|\\.|[0-9]|漢|ก|็|İ|ß|é|\u{0}|\u{200d}| ){0,60}",
        "[a-zA-Z0-9_]{60,200}",
    ]
}

proptest! {
    #[test]
    fn every_term_is_fit_to_be_stored(text in hostile()) {
        let all = terms(&text);
        let distinct: HashSet<&String> = all.iter().collect();
        prop_assert_eq!(distinct.len(), all.len());
        for term in &all {
            prop_assert!(!term.is_empty() && term.len() <= 64);
            prop_assert!(!term.chars().any(|c| c.is_control() || c.is_ascii_uppercase()), "{:?}", term);
            prop_assert!(term.chars().all(|c| !c.is_ascii() || c == '_' || c.is_ascii_alphanumeric()), "{:?}", term);
            let reserved = term.strip_prefix("zz").and_then(|rest| rest.get(..32));
            prop_assert!(!reserved.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit())));
        }
    }

    /// What is asked in the words of a text is found in it.
    #[test]
    fn every_word_of_a_question_is_a_term_of_the_same_text(text in hostile()) {
        let (all, joined) = (terms(&text), joined::joined(&text));
        for term in query(&text) {
            prop_assert!(all.contains(&term) || joined.contains(&term), "{}", term);
        }
        for term in joined {
            prop_assert!(term.len() <= 64 && !words::is_reserved(&term), "{}", term);
        }
    }

    #[test]
    fn terms_stand_where_they_are_said_to(text in hostile()) {
        let mut last = 0;
        each(&text, |found| {
            assert!(text.get(found.at.clone()).is_some_and(|word| !word.is_empty()));
            assert!(found.ordinal >= last && found.ordinal > 0);
            last = found.ordinal;
        });
    }
}
