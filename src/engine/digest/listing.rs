//! Lists of paths, folded: what lies in one directory stands on one line.
//!
//! A list of files says the same directory again and again. Folded, as a shell
//! would write it (`src/{main.rs,lib.rs}`), the same room shows several times as
//! many names, and every path can still be read off.

/// Lists with fewer paths than this are not folded.
const LEAST: usize = 8;
/// A list may have one other line for this many paths.
const ODD: usize = 10;
/// Bytes of a folded line, at the most.
const LONG: usize = 190;

/// Folds a list of paths: neighbours in the same directory share a line. Returns
/// `None` if the text is not a list of paths. Reads at most the first `look` bytes,
/// and no line that these cut off: half a path would look like a whole one.
pub(super) fn folded(text: &str, look: usize) -> Option<String> {
    let start = text.get(..text.floor_char_boundary(look.min(text.len())))?;
    let start = match start.rfind('\n') {
        Some(end) if start.len() < text.len() => start.get(..end)?,
        _ => start,
    };
    let lines = || start.lines().map(str::trim);
    let paths = lines().filter(|line| is_path(line)).count();
    let others = lines()
        .filter(|line| !line.is_empty() && !is_path(line))
        .count();
    if paths < LEAST || others * ODD > paths {
        return None;
    }
    let mut folded = String::with_capacity(start.len());
    let mut group: Option<Group<'_>> = None;
    for line in lines().filter(|line| !line.is_empty()) {
        let grown = group.as_mut().is_some_and(|group| group.takes(line));
        if grown {
            continue;
        }
        if let Some(group) = group.take() {
            group.write(&mut folded);
        }
        match Group::new(line) {
            Some(new) => group = Some(new),
            None => push_line(&mut folded, line),
        }
    }
    if let Some(group) = group {
        group.write(&mut folded);
    }
    Some(folded)
}

/// Whether a line is a path with a directory and nothing else.
fn is_path(line: &str) -> bool {
    let is_odd = |byte: u8| byte.is_ascii_whitespace() || b"{},:;()<>|\"'=".contains(&byte);
    (4..LONG).contains(&line.len())
        && line
            .rfind('/')
            .is_some_and(|at| at > 0 && at + 1 < line.len())
        && !line.bytes().any(is_odd)
}

fn push_line(into: &mut String, line: &str) {
    if !into.is_empty() {
        into.push('\n');
    }
    into.push_str(line);
}

/// Names of one directory, in a row.
struct Group<'t> {
    /// With the slash at its end.
    directory: &'t str,
    names: Vec<&'t str>,
    bytes: usize,
}

impl<'t> Group<'t> {
    fn new(line: &'t str) -> Option<Self> {
        let (directory, name) = parted(line)?;
        Some(Self {
            directory,
            names: vec![name],
            bytes: line.len() + 2,
        })
    }

    /// Takes another path if it lies in the same directory and there is room.
    fn takes(&mut self, line: &'t str) -> bool {
        let Some((directory, name)) = parted(line) else {
            return false;
        };
        let bytes = self.bytes + name.len() + 1;
        if directory != self.directory || bytes > LONG {
            return false;
        }
        self.names.push(name);
        self.bytes = bytes;
        true
    }

    fn write(&self, into: &mut String) {
        let names = self.names.join(",");
        match self.names.len() {
            1 => push_line(into, &format!("{}{names}", self.directory)),
            _ => push_line(into, &format!("{}{{{names}}}", self.directory)),
        }
    }
}

/// A path's directory and name.
fn parted(line: &str) -> Option<(&str, &str)> {
    let at = line.rfind('/').filter(|_| is_path(line))?;
    line.split_at_checked(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
src/main.rs
src/lib.rs
src/engine/chain.rs
src/engine/view.rs
src/engine/digest.rs
tests/tidy.rs
Cargo.toml is here
tests/sim.rs
docs/a.md
docs/b.md
README/x
src/engine/late.rs
";

    #[test]
    fn a_directory_has_one_line_as_long_as_it_is_not_left() {
        let folded = folded(LIST, usize::MAX).unwrap();
        let lines: Vec<&str> = folded.lines().collect();
        assert_eq!(
            lines,
            [
                "src/{main.rs,lib.rs}",
                "src/engine/{chain.rs,view.rs,digest.rs}",
                "tests/tidy.rs",
                "Cargo.toml is here",
                "tests/sim.rs",
                "docs/{a.md,b.md}",
                "README/x",
                "src/engine/late.rs",
            ]
        );
    }

    #[test]
    fn it_is_never_longer_and_every_path_can_be_read_off() {
        let path = |at: usize| format!("some/directory/{}/file_{at}.rs", at / 40);
        let list: Vec<String> = (0..400).map(path).collect();
        let text = list.join("\n");
        let folded = folded(&text, usize::MAX).unwrap();
        assert!(folded.len() * 2 < text.len(), "{}", folded.len());
        assert!(folded.lines().all(|line| line.len() <= LONG));
        let unfolded: Vec<String> = folded
            .lines()
            .flat_map(|line| {
                let (directory, names) = line.split_once('{').unwrap();
                let names = names.strip_suffix('}').unwrap().split(',');
                names.map(move |name| format!("{directory}{name}"))
            })
            .collect();
        assert_eq!(unfolded, list);
    }

    #[test]
    fn a_path_that_is_cut_off_is_left_out() {
        let path = |at: usize| format!("src/part/file_{at:03}.rs");
        let text: Vec<String> = (0..50).map(path).collect();
        let text = text.join("\n");
        for look in 400..450 {
            let folded = folded(&text, look).unwrap();
            let names = folded.matches("file_").count();
            assert_eq!(folded.matches(".rs").count(), names, "{look}: {folded}");
            assert!(names * 21 <= look, "{look}: {folded}");
        }
    }

    #[test]
    fn what_is_no_list_of_paths_stays_as_it_is() {
        assert_eq!(folded("src/a.rs\nsrc/b.rs\n", usize::MAX), None, "short");
        let found = "src/a.rs:12: let a = 1;\n".repeat(20);
        assert_eq!(folded(&found, usize::MAX), None);
        assert_eq!(folded(&"a word\n".repeat(20), usize::MAX), None);
        assert_eq!(folded(&LIST[..30], usize::MAX), None, "cut");
    }
}
