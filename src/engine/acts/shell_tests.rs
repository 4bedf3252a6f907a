//! What command lines are taken for.

use super::*;
use crate::engine::acts::tests::told;
use crate::engine::acts::{Act, act};

#[test]
fn a_command_is_a_read_only_if_it_is_nothing_else() {
    let rows = [
        ("cat a.txt", "reads shell:a.txt"),
        ("cat 'a b.txt' 2>/dev/null", "reads shell:a b.txt"),
        ("cat ./x/../a.txt", "reads shell:a.txt"),
        ("cat -n /a", "reads /a"),
        ("nl -ba /a", "reads /a"),
        ("head /a", "reads /a 1-10"),
        ("head -20 /a", "reads /a 1-20"),
        ("head -n 20 /a", "reads /a 1-20"),
        ("tail -n +5 /a", "reads /a 5-"),
        ("tail -n 5 /a", "reads /a tail 5"),
        ("sed -n '5,9p' /a", "reads /a 5-9"),
        ("sed -n 5p /a", "reads /a 5-5"),
        ("sed -n '5,$p' /a", "reads /a 5-"),
        ("cd /w && cat a", "reads /w/a"),
        ("cd sub && cat a", "reads shell:sub/a"),
        ("bash -lc 'cat /a'", "reads /a"),
        ("cat ~/a", "reads ~/a"),
        ("cat /a /b", "runs cat /a /b"),
        ("cat /a | grep x", "runs cat /a | grep x"),
        ("cat /a > /b", "runs cat /a > /b"),
        ("cat /a; rm /a", "runs cat /a; rm /a"),
        ("cat /a && ls", "runs cat /a && ls"),
        ("cat $FILE", "runs cat $FILE"),
        ("cat \"$FILE\"", "runs cat \"$FILE\""),
        ("cat `x`", "runs cat `x`"),
        ("cat *.rs", "runs cat *.rs"),
        ("cat a\\ b", "runs cat a\\ b"),
        ("cat <<EOF\nx\nEOF", "runs cat <<EOF\nx\nEOF"),
        ("cat /a\ncat /b", "runs cat /a\ncat /b"),
        ("cat -", "runs cat -"),
        ("cat", "runs cat"),
        ("sed -i 's/a/b/' /a", "runs sed -i 's/a/b/' /a"),
        ("sed -n '/x/p' /a", "runs sed -n '/x/p' /a"),
        ("head -c 100 /a", "runs head -c 100 /a"),
        ("tail -f /a", "runs tail -f /a"),
        ("cd /w; cat a", "runs cd /w; cat a"),
        ("cd /w && make", "runs cd /w && make in /w"),
        ("cd /w", "runs cd /w in /w"),
    ];
    for (line, expected) in rows {
        let input = serde_json::json!({ "command": line }).to_string();
        assert_eq!(told("Bash", &input), expected);
    }
}

#[test]
fn where_a_command_leaves_the_shell_is_known_or_said_to_be_lost() {
    let rows = [
        ("ls .", Move::Stays),
        ("echo cd", Move::Stays),
        ("cd /w && ls", Move::Enters("/w".to_owned())),
        ("cd a/b", Move::Enters("a/b".to_owned())),
        ("cd a; ls", Move::Lost),
        ("cd $HOME && ls", Move::Lost),
        ("cd -", Move::Lost),
        ("ls && cd a", Move::Lost),
        ("cd a && cd b && ls", Move::Lost),
        ("(cd a && ls)", Move::Lost),
        (". ./env.sh", Move::Lost),
        ("source env.sh && ls", Move::Lost),
        ("pushd a", Move::Lost),
    ];
    for (line, expected) in rows {
        let input = serde_json::json!({ "command": line }).to_string();
        let Act::Runs(command) = act("Bash", input.as_bytes()) else {
            panic!("{line} is a command");
        };
        assert_eq!(command.moves, expected, "{line}");
    }
}

fn command(line: &str) -> Command {
    let input = serde_json::json!({ "command": line }).to_string();
    match act("Bash", input.as_bytes()) {
        Act::Runs(command) => command,
        other => panic!("{line} is {other:?}"),
    }
}

#[test]
fn only_programs_that_are_known_to_look_only_look() {
    for line in [
        "ls -la && pwd",
        "git status --short",
        "rg 'a > b' src | head -5",
        "grep -rn \"x|y\" . 2>/dev/null | wc -l",
        "find . -name '*.rs'",
        "sort a | uniq -c",
        "cd x && ls",
        "cat a b",
    ] {
        assert!(command(line).only_looks(), "{line}");
    }
    for line in [
        "ls > out",
        "git commit -m x",
        "find . -delete",
        "find . -exec rm {} +",
        "sed -i s/a/b/ f",
        "echo $(rm x)",
        "cat `x`",
        "make",
        "ls | xargs rm",
        "tee x",
        "FOO=1 ls",
        "cat <(x)",
        "$EDITOR x",
    ] {
        assert!(!command(line).only_looks(), "{line}");
    }
}

#[test]
fn records_are_told_from_what_can_be_seen_again() {
    for line in [
        "git commit -m x",
        "cd /a && git push",
        "cargo bench",
        "time make",
        "tmux capture-pane -p",
        "docker logs web",
        "sleep 5; tail -20 x.log | grep e",
        "curl -X POST http://a",
        "gh pr create",
    ] {
        assert!(command(line).is_record(), "{line}");
    }
    for line in ["cargo test", "git log", "make 2>&1 | tail -5", "git status"] {
        assert!(!command(line).is_record(), "{line}");
    }
    assert!(command("git checkout main").switches());
    assert!(command("cd /a && git stash").switches());
    assert!(!command("git status").switches());
}
