//! Import cycles: whether modules that stand beside each other need each other.
//!
//! A module here is a file or a folder; an import from deep inside a folder counts
//! for the folder. A module may use its parent's items and a parent its children's:
//! only siblings are compared.

use std::collections::{BTreeMap, BTreeSet};

type Path = Vec<String>;
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Cycles that still have to be undone, as folder and members. None may be added.
const LEFT: [(&str, &str); 7] = [
    ("config", "file given keys kind models nearest path"),
    (
        "engine",
        "archive candidates conversation digest facts opening overlay pinned recall stub summary",
    ),
    ("sim", "arrival compose diagnostics exchange state threads"),
    ("sim", "binding prompt round_trip"),
    (
        "sim",
        "block_types fields request roles shape thinking tools",
    ),
    ("upstream", "body http1 http2"),
    ("views", "credentials deferred prepare provisional standing"),
];

#[test]
fn modules_do_not_need_each_other() {
    let sources = super::files("src");
    let modules: BTreeMap<Path, String> = sources
        .into_iter()
        .filter_map(|(name, text)| Some((module(&name)?, text)))
        .collect();
    let mut found = Vec::new();
    for (folder, graph) in graphs(&modules) {
        for cycle in cycles(&graph) {
            found.push((folder.join("::"), cycle.join(" ")));
        }
    }
    found.sort();
    let left: Vec<_> = LEFT.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    assert_eq!(found, left, "found, and what was left to undo");
}

#[test]
fn a_cycle_is_seen() {
    let source = |name: &str, text: &str| (module(name).unwrap(), text.to_owned());
    let modules: BTreeMap<Path, String> = [
        source("src/lib.rs", ""),
        source("src/a/mod.rs", "use crate::b::{c::D, self};"),
        source("src/a/x.rs", "use super::y::Y;\nuse super::Thing;"),
        source(
            "src/a/y.rs",
            "// use super::x::X;\nfn f() { super::z::go() }",
        ),
        source("src/a/z.rs", "use crate::a::x;"),
        source("src/b.rs", "#[cfg(test)]\nmod tests { use crate::a::x; }"),
    ]
    .into();
    let found: Vec<_> = graphs(&modules)
        .into_iter()
        .flat_map(|(folder, graph)| {
            cycles(&graph)
                .into_iter()
                .map(move |it| (folder.clone(), it))
        })
        .collect();
    let expected = (
        vec!["a".to_owned()],
        ["x", "y", "z"].map(str::to_owned).to_vec(),
    );
    assert_eq!(found, [expected]);
}

/// The path of a file's module; none: it is only there for tests.
fn module(file: &str) -> Option<Path> {
    let name = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut path: Path = name.split('/').map(str::to_owned).collect();
    let last = path.last()?.clone();
    let only_tests = ["testing", "properties", "hostile", "mark_properties"];
    if last.ends_with("tests") || only_tests.contains(&last.as_str()) {
        return None;
    }
    if last == "mod" || (path.len() == 1 && matches!(last.as_str(), "lib" | "main")) {
        path.pop();
    }
    Some(path)
}

/// For each folder, which of its modules use which others.
fn graphs(modules: &BTreeMap<Path, String>) -> BTreeMap<Path, Graph> {
    let mut graphs: BTreeMap<Path, Graph> = BTreeMap::new();
    for (from, text) in modules {
        for used in paths(text) {
            let Some(to) = resolved(from, &used, modules) else {
                continue;
            };
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let graph = graphs.entry(from[..common].to_vec()).or_default();
                graph.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    graphs
}

/// The module that a path leads to, seen from another.
fn resolved(from: &Path, used: &str, modules: &BTreeMap<Path, String>) -> Option<Path> {
    let mut parts = used.split("::").map(str::trim).peekable();
    let mut base = match *parts.peek()? {
        "crate" => {
            parts.next();
            Vec::new()
        }
        _ => from.clone(),
    };
    while let Some(&part @ ("super" | "self")) = parts.peek() {
        if part == "super" {
            base.pop();
        }
        parts.next();
    }
    base.extend(parts.map(str::to_owned));
    while !base.is_empty() && !modules.contains_key(&base) {
        base.pop();
    }
    (!base.is_empty()).then_some(base)
}

/// Every path that a source uses, outside of comments and of its tests.
fn paths(text: &str) -> Vec<String> {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let code: String = text[..end]
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut import: Option<String> = None;
    for line in code.lines() {
        let begun = import
            .take()
            .map_or_else(|| imported(line), |it| Some(it + line));
        match begun {
            Some(tree) if tree.contains(';') => {
                expand("", tree.trim_end().trim_end_matches(';'), &mut found);
            }
            Some(tree) => import = Some(tree),
            None => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    for begin in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(begin) {
            let path: String = rest[at..]
                .chars()
                .take_while(|it| it.is_alphanumeric() || "_:".contains(*it))
                .collect();
            found.push(path.trim_end_matches(':').to_owned());
        }
    }
    found
}

/// What a line imports, or begins to.
fn imported(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|it| !" ".contains(it)).trim_start(),
        None => line,
    };
    line.strip_prefix("use ").map(str::to_owned)
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn expand(before: &str, tree: &str, into: &mut Vec<String>) {
    let (mut depth, mut begin) = (0, 0);
    let mut parts = Vec::new();
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[begin..]);
    for part in parts.into_iter().map(str::trim).filter(|it| !it.is_empty()) {
        if let (Some(open), Some(close)) = (part.find('{'), part.rfind('}')) {
            let before = format!("{before}{}", &part[..open]);
            expand(&before, &part[open + 1..close], into);
        } else {
            let path = part.split(" as ").next().unwrap_or(part);
            into.push(format!("{before}{path}"));
        }
    }
}

/// Groups of modules that lead to each other, each in order.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(at) = open.pop() {
            for next in graph.get(&at).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|name| (name, reach(name))).collect();
    let leads = |from: &String, to: &String| reached.get(from).is_some_and(|it| it.contains(to));
    let mut groups = BTreeSet::new();
    for name in graph.keys() {
        let group: Vec<String> = graph
            .keys()
            .filter(|other| leads(name, other) && leads(other, name))
            .cloned()
            .collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}
