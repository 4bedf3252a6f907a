//! What counts as a decision, a rule and a question.

use super::*;

#[test]
fn a_decision_is_known_by_its_words() {
    let rows = [
        ("I'll use SQLite instead of a flat file.", true),
        (
            "I’m adding `max_concurrency` there rather than touching unrelated blocks.",
            true,
        ),
        ("We decided to keep the old names.", true),
        (
            "**Root cause:** the branch predates the settings file.",
            true,
        ),
        ("The fix is to make `invalidate()` clear the cache.", true),
        ("We will not support Windows in this release.", true),
        ("Let's go with the second layout.", true),
        (
            "The test failed because the default branch is master.",
            true,
        ),
        // Nothing is settled yet.
        ("Maybe the issue is that the cache isn't cleared?", false),
        ("The issue is likely that the tree holds all files.", false),
        (
            "If it fails, I'll use the old path instead of the new one.",
            false,
        ),
        ("I'd go with the first one.", false),
        // Nothing is said.
        ("Found it!", false),
        ("The problem is clear.", false),
        ("The issue is fixed.", false),
        ("The fix is:", false),
        ("I'll keep going through the list.", false),
        ("I'm checking the syntax rather than guessing.", false),
        // Somebody else says it.
        ("The log says \"decided to retry the call\" again.", false),
        ("It prints `the fix is to reboot` twice.", false),
    ];
    for (sentence, expected) in rows {
        assert_eq!(states_decision(sentence), expected, "{sentence}");
    }
}

#[test]
fn a_rule_is_known_by_its_words() {
    let rows = [
        ("Never push to main.", true),
        ("never push", true),
        ("no tests, never mind", false),
        ("never store the key in local storage", true),
        ("Please do not touch the tests.", true),
        ("just look at it, don't fix anything", true),
        ("Invalid themes must NEVER explode.", true),
        ("The output must not be wider than the screen.", true),
        ("Always run the linter first.", true),
        ("Only use the standard library.", true),
        ("I prefer tabs over spaces.", true),
        ("You should never log a key.", true),
        // No rule.
        ("I don't think so, really.", false),
        ("so we don't need to update it", false),
        ("It works when you don't use the new syntax.", false),
        ("It's always appreciated to hear from you.", false),
        ("The recovery walks the tree, which never fails.", false),
        ("do you never sleep at all?", false),
        ("It must have been the cache.", false),
        ("There is only one file left.", false),
        ("don't worry about it too much", false),
    ];
    for (sentence, expected) in rows {
        assert_eq!(sets_rule(sentence), expected, "{sentence}");
    }
}
