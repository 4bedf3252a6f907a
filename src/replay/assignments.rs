//! Lines that give a name a value.

use super::lines::unnumbered;
use super::probes::bare_words;

/// The longest name and value that count.
const LONGEST: usize = 60;
/// What may stand around a name or a value.
const QUOTES: [char; 4] = ['"', '\'', '`', ' '];

/// A name and the value that it is given.
pub type Assignment = (String, String);

/// The assignments of a text, one a line at most: `name = value`, `name: value`,
/// where the value has a digit.
pub fn assignments(text: &str) -> impl Iterator<Item = Assignment> {
    text.lines().filter_map(assignment)
}

fn assignment(line: &str) -> Option<Assignment> {
    let line = unnumbered(line);
    let at = line.find('=').or_else(|| line.find(':'))?;
    let (left, right) = line.split_at_checked(at)?;
    let is_compared = left.ends_with(['!', '<', '>']) || right.starts_with("==");
    // What stands behind a colon before that is a type.
    let left = left.split(':').next()?.trim_end_matches(QUOTES);
    let right = right.trim_start_matches(['=', ':', '>']);
    let right = right.trim_start_matches(QUOTES);
    let name = bare_words(left).last().filter(|it| left.ends_with(it))?;
    let value = bare_words(right)
        .next()
        .filter(|it| right.starts_with(it))?;
    let is_name = name.len() >= 3 && name.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let fits = name.len() <= LONGEST && value.len() <= LONGEST;
    let counts = !is_compared && is_name && has_digit && fits;
    counts.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_a_name_and_a_value_with_a_digit() {
        for (line, expected) in [
            ("port = 8443", Some(("port", "8443"))),
            ("  12→  \"max_wait\": 30,", Some(("max_wait", "30"))),
            ("version=\"1.2.3\"", Some(("version", "1.2.3"))),
            ("let port: u16 = 1;", Some(("port", "1"))),
            ("if port == 8443 {", None),
            ("port <= 8443", None),
            ("name = other", None),
            ("port 8443", None),
            ("see (it): 12", None),
        ] {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(assignment(line), expected, "{line}");
        }
    }
}
