//! The words by which a statement is known.
//!
//! All are tables of phrases in lower case, words and punctuation a space apart.
//! They are few and plain, because a statement that is missed can still be found
//! where it stands, while a wrong one is read as something that was settled.

/// Something was found out.
pub(super) const FINDS: &[&str] = &[
    "root cause is",
    "root cause was",
    "root cause :",
    "the fix is",
    "the fix was",
    "the solution is",
    "the right fix is",
    "the problem is",
    "the problem was",
    "the real problem is",
    "the actual problem is",
    "the issue is",
    "the issue was",
    "the real issue is",
    "the actual issue is",
    "the bug is",
    "the bug was",
    "the cause is",
    "the cause was",
    "the reason is",
    "the reason was",
    "the culprit is",
    "the culprit was",
    "turns out",
    "turned out",
    "fails because",
    "failed because",
    "failing because",
    "are failing because",
    "is because",
    "was because",
    "occurred because",
    "happens because",
    "happened because",
    "didn't work because",
    "doesn't work because",
    "did not work because",
    "does not work because",
    "didn't match because",
    "breaks because",
    "broke because",
    "crashes because",
    "crashed because",
    "rejected because",
    "skipped because",
    "caused by",
];

/// What may follow these without anything being said.
pub(super) const EMPTY: &[&str] = &[
    "clear", "fixed", "gone", "here", "now", "resolved", "simple", "solved", "there", "this", "in",
    "still",
];

/// Something was settled.
pub(super) const SETTLES: &[&str] = &[
    "decided to",
    "decided on",
    "decided against",
    "decided not",
    "i've decided",
    "we decided",
    "the decision is",
    "decision :",
    "opted for",
    "opted to",
    "i chose",
    "we chose",
    "chose to",
    "let's go with",
    "i'll go with",
    "i'm going with",
    "we'll go with",
    "going with",
    "i'll stick with",
    "i'm sticking with",
    "we'll stick with",
    "we will not",
    "i will not",
    "we won't",
    "i won't",
    "i'm not going to",
    "we're not going to",
    "i'm treating",
    "i'll treat",
    "we'll treat",
    "i'll keep",
    "i'm keeping",
    "we'll keep",
    "i'll leave",
    "i'm leaving",
    "we'll leave",
    "we'll use",
    "we will use",
    "let's use",
    "i'll skip",
    "i'm skipping",
    "i did not",
];

/// One thing is put in the place of another.
pub(super) const CONTRASTS: &[&str] = &["instead of", "rather than"];

/// Who settles it.
pub(super) const FIRST_PERSON: &[&str] = &[
    "i'll", "i'm", "i will", "i am", "we'll", "we're", "we will", "let's", "i've",
];

/// Work that is told while it is done: nothing is settled by it.
pub(super) const LOOKS: &[&str] = &[
    "ask", "check", "confirm", "find", "inspect", "load", "look", "point", "quer", "read",
    "report", "review", "run", "search", "see", "test", "trac", "try", "verif", "view", "wait",
    "go",
];

/// How a change is told that was made, or is being made.
pub(super) const CHANGES: &[&str] = &[
    "use", "used", "uses", "update", "updated", "switch", "switched", "replace", "replaced",
    "change", "changed", "keep", "kept", "move", "moved",
];

/// The speaker is not sure, or weighs what could be.
pub(super) const DOUBTS: &[&str] = &[
    "maybe",
    "might",
    "may",
    "likely",
    "probably",
    "perhaps",
    "possibly",
    "could",
    "would",
    "seems",
    "seem",
    "i bet",
    "i think",
    "i suspect",
    "i'd",
    "whether",
    "either",
    "options",
    "option",
];

/// What stands before a word that gives an order, where it is not the first.
pub(super) const BEFORE_ORDERS: &[&str] = &[
    ",", ";", ":", "-", "–", "—", "(", ".", "!", "and", "but", "or", "so", "also", "just", "then",
    "please", "ok", "okay", "however", "again",
];

/// What stands before `never` and `always` in a rule.
pub(super) const BEFORE_RULES: &[&str] = &["must", "should", "may", "shall"];

/// Words behind `don't` by which it forbids nothing.
pub(super) const NO_ORDER: &[&str] = &[
    "think",
    "tink",
    "know",
    "understand",
    "see",
    "have",
    "need",
    "want",
    "worry",
    "like",
    "get",
    "care",
    "believe",
    "mind",
    "forget",
    "hesitate",
    "we",
    "you",
    "i",
    "they",
    "it",
];

/// What is allowed alone: words behind `only`.
pub(super) const ONLY: &[&str] = &[
    "use", "edit", "change", "touch", "modify", "write", "read", "add", "run", "do", "commit",
    "work", "fix", "update", "test", "import", "call", "allow", "ever",
];

/// How a question begins, be it without its mark.
pub(super) const ASKING: &[&str] = &[
    "are", "can", "could", "did", "does", "how", "is", "what", "which", "who", "why", "would",
];

/// Who may prefer or avoid something.
pub(super) const WISHERS: &[&str] = &["i", "i'd", "we", "we'd"];
