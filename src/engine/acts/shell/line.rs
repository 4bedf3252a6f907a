//! A command line, taken apart where that needs no shell.
//!
//! Words are split as a shell would, but only as long as nothing in the line
//! has a meaning beyond its letters: no variable, no pattern, no substitution.
//! What does is not guessed at.

/// What may stand behind a command without changing what it shows of a file.
const SILENCE: [&str; 2] = ["2>/dev/null", "2>&1"];

/// The words of a command that stands alone in its line.
pub(super) fn alone(line: &str) -> Option<Vec<String>> {
    let mut line = line.trim();
    for silence in SILENCE {
        line = line.strip_suffix(silence).map_or(line, str::trim_end);
    }
    words(line)
}

/// The words of a line in which every letter means itself.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, behind) = word(rest)?;
        words.push(word);
        let next = behind.trim_start_matches([' ', '\t']);
        if next.len() == behind.len() && !next.is_empty() {
            return None;
        }
        rest = next;
    }
    Some(words)
}

/// The first word of a line, and what stands behind it. It ends before white
/// space or before what ends a command.
fn word(line: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (Some('"'), '$' | '`' | '\\' | '!') => return None,
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|') => {
                return Some((word, line.get(at..)?));
            }
            (
                None,
                '$' | '`' | '\\' | '*' | '?' | '[' | '{' | '(' | ')' | '<' | '>' | '#' | '!',
            ) => {
                return None;
            }
            _ => word.push(letter),
        }
    }
    quote.is_none().then_some((word, ""))
}

/// The folder that a line enters before anything else, and the rest of it, if
/// the rest runs only when that succeeds.
pub(super) fn entered(line: &str) -> Option<(String, &str)> {
    let (folder, behind) = word(line.strip_prefix("cd ")?.trim_start())?;
    let behind = behind.trim_start_matches([' ', '\t']);
    let rest = if behind.is_empty() {
        behind
    } else {
        behind.strip_prefix("&&")?.trim_start()
    };
    let certain = !folder.is_empty() && !folder.starts_with('-');
    certain.then_some((folder, rest))
}

/// Words that, as commands, may leave the shell somewhere else or as another.
const MOVES: [&str; 7] = ["cd", "pushd", "popd", "source", "eval", "exec", "."];

/// Whether a line may leave the shell somewhere else.
pub(super) fn moves(line: &str) -> bool {
    let known = |word: &str| MOVES.contains(&word);
    if !line
        .split([' ', '\t', '\n', ';', '&', '|', '(', '{'])
        .any(known)
    {
        return false;
    }
    if let Some(commands) = simple(line) {
        return commands
            .iter()
            .filter_map(|words| words.first())
            .any(|first| known(first));
    }
    let apart = |letter: char| !letter.is_alphanumeric() && !"-_./".contains(letter);
    line.split(apart).any(|word| known(word) && word != ".")
}

/// The commands of a line, without their quotes, if none of them writes to a
/// file by redirection or is made up on the way.
pub(super) fn simple(line: &str) -> Option<Vec<Vec<String>>> {
    let mut line = line.to_owned();
    for silence in [
        "2>/dev/null",
        "2>&1",
        ">/dev/null",
        "> /dev/null",
        "2> /dev/null",
    ] {
        line = line.replace(silence, " ");
    }
    let mut commands = vec![Vec::new()];
    let mut rest = line.trim();
    while !rest.is_empty() {
        let parted = rest.trim_start_matches(['&', '|', ';', '\n']);
        if parted.len() < rest.len() {
            commands.push(Vec::new());
            rest = parted.trim_start();
            continue;
        }
        let (word, behind) = loose_word(rest)?;
        if let Some(command) = commands.last_mut() {
            command.push(word);
        }
        rest = behind.trim_start_matches([' ', '\t']);
    }
    commands.retain(|command| !command.is_empty());
    Some(commands)
}

/// As `word`, but variables and patterns may stand in it as they are: they do
/// not change what program is run, unless they are its name.
fn loose_word(line: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut quote = None;
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        match (quote, letter) {
            (None | Some('"'), '`') | (None, '<' | '>' | '(' | ')' | '#') => return None,
            (None | Some('"'), '$') if next == Some('(') => return None,
            (None | Some('"'), '\\') => {
                word.extend(next);
                letters.next();
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|') => return Some((word, line.get(at..)?)),
            _ => word.push(letter),
        }
    }
    quote.is_none().then_some((word, ""))
}
