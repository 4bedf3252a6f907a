//! Entries: appended once, found by their words, listed by their kind.

use longhaul::store::journal::{Entry, EntryKind, Listing, Scope, Stretch, Text};
use longhaul::store::{Moment, Store};

use crate::journal_support::{append, archive, entry, reference, search, texts, trace, whole};
use crate::over_every_store;
use crate::support::{blob, body, lineage};

over_every_store! {
    entries_come_back_as_they_were
    an_entry_is_appended_once
    entries_are_found_by_any_of_the_words
    the_newest_come_first_with_larger_numbers
    a_word_is_found_whole_and_as_it_is
    what_is_no_word_finds_nothing_and_breaks_nothing
    at_most_thirty_two_words_are_looked_for
    a_common_word_hides_no_rare_one
    hidden_messages_are_not_found
    entries_are_listed_newest_first
    unknown_numbers_are_left_out
    an_entry_without_words_can_be_listed
}

async fn entries_come_back_as_they_were(store: &dyn Store) {
    let mut entries = Vec::new();
    for (number, kind) in EntryKind::all().enumerate() {
        let number = u32::try_from(number).unwrap();
        let text = if number % 2 == 0 {
            Text::Inline("a\0b \u{1f600} ".repeat(number as usize * 100))
        } else {
            Text::Content {
                blob: blob(1),
                from: number,
                to: u32::MAX,
            }
        };
        entries.push(Entry {
            kind,
            message: number,
            block: number + 1,
            part: number + 2,
            turn: number + 3,
            tool: format!("tool\0 {number}"),
            path: format!("/p\0ath/'{number}\""),
            text,
            bytes: u64::from(u32::MAX) * 3,
            reference: reference(u64::from(number)),
            terms: vec![format!("word{number}")],
        });
    }
    let appended = append(store, &trace(1, None, 20), &entries, 7).await;
    assert_eq!(appended, entries.len() as u64);
    let all = Listing {
        limit: 99,
        ..Listing::default()
    };
    let rows = store
        .journal()
        .list(&whole(lineage(1)), &all)
        .await
        .unwrap();
    let told: Vec<_> = rows.iter().rev().map(|row| row.entry.clone()).collect();
    for entry in &mut entries {
        entry.terms.clear();
    }
    assert_eq!(told, entries);
    assert!(
        rows.iter()
            .all(|row| row.branch == lineage(1) && row.at == Moment(7))
    );
}

async fn an_entry_is_appended_once(store: &dyn Store) {
    let trace = trace(1, None, 9);
    assert_eq!(append(store, &trace, &[entry(1, "one")], 1).await, 1);
    assert_eq!(append(store, &trace, &[entry(1, "other")], 1).await, 0);
    assert_eq!(append(store, &trace, &[], 1).await, 0);
    let mut different = [entry(1, "block"), entry(1, "part"), entry(1, "kind")];
    different[0].block = 1;
    different[1].part = 1;
    different[2].kind = EntryKind::AssistantText;
    assert_eq!(append(store, &trace, &different, 1).await, 3);
    let twice = [entry(2, "two"), entry(2, "second")];
    assert_eq!(append(store, &trace, &twice, 1).await, 1);
    let found = texts(
        store,
        &whole(lineage(1)),
        "one other block part kind two second",
    )
    .await;
    assert_eq!(found, ["block", "kind", "one", "part", "two"]);
    assert_eq!(store.journal().extent().await.unwrap().entries, 5);
}

async fn entries_are_found_by_any_of_the_words(store: &dyn Store) {
    let entries = [
        entry(0, "red green"),
        entry(1, "green blue"),
        entry(2, "blue red"),
        entry(3, "white"),
    ];
    append(store, &trace(1, None, 9), &entries, 1).await;
    append(store, &trace(2, None, 9), &[entry(0, "red elsewhere")], 1).await;
    let found = search(store, &whole(lineage(1)), "red blue none red").await;
    let expected = [
        ("blue red", 0b1011),
        ("green blue", 0b10),
        ("red green", 0b1001),
    ];
    let expected = expected.map(|(text, bits)| (text.to_owned(), bits));
    assert_eq!(found, expected);
}

async fn the_newest_come_first_with_larger_numbers(store: &dyn Store) {
    for message in 0..30 {
        let text = format!("word {message}");
        append(store, &trace(1, None, 40), &[entry(message, &text)], 1).await;
    }
    let words = ["word".to_owned()];
    let found = store.journal().matching(&whole(lineage(1)), &words).await;
    let numbers: Vec<_> = found.unwrap().iter().map(|found| found.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a > b), "{numbers:?}");
    let found = search(store, &whole(lineage(1)), "word").await;
    assert_eq!(found[0].0, "word 29");
}

async fn a_word_is_found_whole_and_as_it_is(store: &dyn Store) {
    let words = "get_user_by_id 1_2_3 \u{e9}t\u{e9} \u{4e2d}\u{6587} _ a0 near not or and";
    append(store, &trace(1, None, 9), &[entry(0, words)], 1).await;
    let scope = whole(lineage(1));
    for word in words.split(' ') {
        assert_eq!(search(store, &scope, word).await.len(), 1, "{word}");
    }
    for other in [
        "get", "user", "1_2", "\u{e9}t", "\u{4e2d}", "ete", "a", "nea", "x_",
    ] {
        assert_eq!(search(store, &scope, other).await, [], "{other}");
    }
}

async fn what_is_no_word_finds_nothing_and_breaks_nothing(store: &dyn Store) {
    let reserved = format!("zz{}", lineage(1));
    let mut hostile = entry(0, "good");
    let none = [
        "",
        "two words",
        "GOOD",
        "a\"b",
        "a'b",
        "\0",
        "a\0b",
        "good*",
        "line:good",
        "^good",
        "-good",
        "good AND good",
        "(good",
        &reserved,
        &"long".repeat(50),
    ]
    .map(str::to_owned);
    hostile.terms.extend(none.iter().cloned());
    append(store, &trace(1, None, 9), &[hostile], 1).await;
    let scope = whole(lineage(1));
    let journal = store.journal();
    for word in &none {
        let found = journal.matching(&scope, std::slice::from_ref(word)).await;
        assert_eq!(found.unwrap(), [], "{word}");
    }
    for word in ["two", "words", "a", "b"] {
        assert_eq!(search(store, &scope, word).await, [], "{word}");
    }
    assert_eq!(search(store, &scope, "good").await.len(), 1);
    assert_eq!(journal.matching(&scope, &[]).await.unwrap(), []);
}

async fn at_most_thirty_two_words_are_looked_for(store: &dyn Store) {
    append(store, &trace(1, None, 9), &[entry(0, "word last")], 1).await;
    let scope = whole(lineage(1));
    let mut words = vec!["word"; 32].join(" ");
    assert_eq!(search(store, &scope, &words).await[0].1, u32::MAX);
    words.push_str(" last");
    assert_eq!(search(store, &scope, &words).await[0].1, u32::MAX);
    let others = vec!["none"; 32].join(" ");
    assert_eq!(search(store, &scope, &format!("{others} last")).await, []);
}

async fn a_common_word_hides_no_rare_one(store: &dyn Store) {
    let mut entries = vec![entry(0, "rare common")];
    entries.extend((1..3_000).map(|message| entry(message, "common")));
    append(store, &trace(1, None, 4_000), &entries, 1).await;
    let words = ["common".to_owned(), "rare".to_owned()];
    let found = store.journal().matching(&whole(lineage(1)), &words).await;
    let found = found.unwrap();
    assert_eq!(found.len(), 2_049);
    assert_eq!(found.last().unwrap().terms, 0b10, "found by the rare word");
    let numbers: Vec<_> = found.iter().map(|found| found.number).collect();
    assert_eq!(
        store.journal().entries(&numbers).await.unwrap().len(),
        2_049
    );
    let part = Stretch {
        branch: lineage(1),
        before: 2_500,
    };
    let found = store.journal().matching(&Scope(vec![part]), &words).await;
    assert_eq!(found.unwrap().len(), 2_049);
}

async fn hidden_messages_are_not_found(store: &dyn Store) {
    let entries: Vec<_> = (0..10).map(|message| entry(message, "word")).collect();
    append(store, &trace(1, None, 10), &entries, 1).await;
    let branch = lineage(1);
    for (before, count) in [(0, 0), (1, 1), (9, 9), (u32::MAX, 10)] {
        let scope = Scope(vec![Stretch { branch, before }]);
        assert_eq!(search(store, &scope, "word").await.len(), count);
        let all = Listing {
            limit: 99,
            ..Listing::default()
        };
        let listed = store.journal().list(&scope, &all).await.unwrap();
        assert_eq!(listed.len(), count);
    }
}

async fn entries_are_listed_newest_first(store: &dyn Store) {
    let kinds = [
        EntryKind::UserWords,
        EntryKind::AssistantText,
        EntryKind::ToolCall,
    ];
    for message in 0..12_u32 {
        for story in [1, 2] {
            let mut entry = entry(message, "word");
            entry.kind = kinds[message as usize % 3];
            entry.turn = message;
            append(store, &trace(story, None, 20), &[entry], 1).await;
        }
    }
    let scope = Scope([1, 2].map(|story| whole(lineage(story)).0[0]).to_vec());
    let turns = async |kinds: &[EntryKind], before, limit| {
        let listing = Listing {
            kinds: kinds.to_vec(),
            before,
            limit,
        };
        let rows = store.journal().list(&scope, &listing).await.unwrap();
        let last = rows.last().map(|row| row.number);
        let turns: Vec<_> = rows.iter().map(|row| row.entry.turn).collect();
        (turns, last)
    };
    let (all, _) = turns(&[], None, 99).await;
    assert_eq!(all.len(), 24);
    assert!(all.is_sorted_by(|a, b| a >= b));
    let (first, last) = turns(&[], None, 5).await;
    assert_eq!(first, [11, 11, 10, 10, 9]);
    assert_eq!(turns(&[], last, 3).await.0, [9, 8, 8]);
    assert_eq!(
        turns(&[EntryKind::AssistantText], None, 3).await.0,
        [10, 10, 7]
    );
    let two = [EntryKind::AssistantText, EntryKind::ToolCall];
    assert_eq!(turns(&two, None, 5).await.0, [11, 11, 10, 10, 8]);
    assert_eq!(turns(&[EntryKind::Summary], None, 5).await.0, [0; 0]);
    assert_eq!(turns(&[], None, 0).await.0, [0; 0]);
}

async fn unknown_numbers_are_left_out(store: &dyn Store) {
    append(store, &trace(1, None, 9), &[entry(0, "word")], 1).await;
    let found = store
        .journal()
        .matching(&whole(lineage(1)), &["word".to_owned()])
        .await;
    let number = found.unwrap()[0].number;
    let asked = [number, number, -1, i64::MAX, 0];
    assert_eq!(store.journal().entries(&asked).await.unwrap().len(), 1);
    assert_eq!(store.journal().entries(&[]).await.unwrap(), []);
}

async fn an_entry_without_words_can_be_listed(store: &dyn Store) {
    let mut silent = entry(0, "word");
    silent.terms.clear();
    silent.text = Text::Content {
        blob: blob(3),
        from: 0,
        to: 5,
    };
    let here = trace(1, None, 9);
    let content = archive(&[(0, "a", 3)]);
    let put = store.journal().archive(&here, &content, Moment(1));
    put.await.unwrap();
    append(store, &here, &[silent], 1).await;
    let listing = Listing {
        limit: 1,
        ..Listing::default()
    };
    let rows = store.journal().list(&whole(lineage(1)), &listing).await;
    assert_eq!(rows.unwrap().len(), 1);
    assert_eq!(store.blob(blob(3)).await.unwrap(), Some(body(3)));
}
