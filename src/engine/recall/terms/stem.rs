//! Plain English words without the endings that only bend them.
//!
//! A question says "caching errors" where the text said "cache error". Only
//! plurals, `-ing` and `-ed` are taken off, because whatever is taken off a word
//! makes it one with others, and code is full of words that look English. It does
//! not matter what comes out, as long as it is the same for forms of one word.

/// Shorter words stay as they are.
const SHORT: usize = 4;

/// A word of lower-case letters without its ending.
pub(super) fn stem(word: &mut String) {
    if word.len() < SHORT {
        return;
    }
    singular(word);
    infinitive(word);
    // "store" and "storing" meet without the last letter; in four letters it is
    // what tells "note" from "not".
    if word.len() > SHORT && word.ends_with('e') && !word.ends_with("ee") {
        word.pop();
    }
}

fn singular(word: &mut String) {
    let length = word.len();
    let sibilant = |rest: &str| {
        rest.len() >= 3
            && ["s", "x", "z", "ch", "sh"]
                .iter()
                .any(|end| rest.ends_with(end))
    };
    if word.ends_with("ies") && length > SHORT {
        word.truncate(length - 3);
        word.push('y');
    } else if word.strip_suffix("es").is_some_and(sibilant) {
        word.truncate(length - 2);
        mute(word);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
}

fn infinitive(word: &mut String) {
    let length = word.len();
    if word.ends_with("ied") && length > SHORT {
        word.truncate(length - 3);
        word.push('y');
        return;
    }
    let rest = match word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")) {
        Some(rest) if rest.len() >= 3 && !word.ends_with("eed") => rest,
        _ => return,
    };
    if !rest.bytes().any(is_vowel) {
        return;
    }
    word.truncate(rest.len());
    let doubled =
        matches!(word.as_bytes(), [.., a, b] if a == b && !is_vowel(*b) && !b"lsz".contains(b));
    if doubled && word.len() >= SHORT {
        word.pop();
    } else {
        mute(word);
    }
}

/// Three letters such as "mak" have lost a mute one at their end.
fn mute(word: &mut String) {
    if let [first, second, third] = word.as_bytes()
        && !is_vowel(*first)
        && is_vowel(*second)
        && !is_vowel(*third)
        && !b"wx".contains(third)
    {
        word.push('e');
    }
}

fn is_vowel(letter: u8) -> bool {
    b"aeiouy".contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stemmed(word: &str) -> String {
        let mut word = word.to_owned();
        stem(&mut word);
        word
    }

    #[test]
    fn forms_of_one_word_meet() {
        let rows = [
            "error errors",
            "cache caches cached caching",
            "query queries queried querying",
            "try tries tried trying",
            "process processes processed processing",
            "match matches matched matching",
            "case cases",
            "size sizes sized sizing",
            "make makes making",
            "name names named naming",
            "run runs running",
            "stop stops stopped stopping",
            "add adds added adding",
            "fix fixes fixed fixing",
            "setting settings set",
            "store stores stored storing",
            "release releases released releasing",
            "commit commits committed committing",
            "index indexes indexed indexing",
            "copy copies copied copying",
            "fail fails failed failing",
            "miss misses missed missing",
            "type types typed typing",
            "call calls called calling",
            "class classes",
            "string strings",
            "module modules",
        ];
        for row in rows {
            let stems: Vec<String> = row.split(' ').map(stemmed).collect();
            assert!(
                stems.iter().all(|stem| *stem == stems[0]),
                "{row}: {stems:?}"
            );
        }
    }

    #[test]
    fn other_words_stay_apart() {
        let rows = [
            "note not",
            "file fill",
            "mode mod",
            "status stat",
            "this thi",
            "string str",
            "need ne",
            "hope hop",
            "thing th",
            "analysis analysi",
            "pass past",
            "bus buse",
        ];
        for row in rows {
            let (one, other) = row.split_once(' ').unwrap();
            assert_ne!(stemmed(one), stemmed(other), "{row}");
        }
    }
}
