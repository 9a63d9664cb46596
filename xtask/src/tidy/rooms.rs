//! How large a room may be, and which rooms stand in a circle: files, functions, and modules.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// Lines of a cause's file, without its tests: its documentation, what it is to other causes, and a predicate.
const CAUSE: usize = 235;

/// Lines of a resource, without its tests.
const RESOURCE: usize = 300;

/// Lines of any other file, without its tests: from here on it most likely has a second idea in it.
const FILE: usize = 450;

/// Lines of a function.
const FUNCTION: usize = 70;

/// Rust of the product in a crate's own folder.
fn is_room(source: &Source) -> bool {
    source.is_product() && source.path.contains("/src/")
}

/// Lines that a file has beyond what is allowed for its kind.
pub fn beyond(source: &Source) -> Option<(usize, usize)> {
    if !is_room(source) {
        return None;
    }
    let most = match source.path.strip_prefix("crates/holdup-diagnose/src/") {
        Some(path) if path.strip_prefix("causes/").is_some_and(|path| path.contains('/')) => CAUSE,
        Some(path) if path.starts_with("resources/") => RESOURCE,
        _ => FILE,
    };
    let lines = source.product_lines().count();
    (lines > most).then_some((lines, most))
}

/// Functions of a file that are too long. What rustfmt wrote ends at the indentation at which it begins.
pub fn long_functions(source: &Source) -> usize {
    if !is_room(source) {
        return 0;
    }
    let lines: Vec<&str> = source.product_lines().collect();
    let begins = |line: &str| {
        let words = line.trim_start().split(' ');
        words.take(4).any(|word| word == "fn") && !line.trim_start().starts_with("//") && !line.ends_with(';')
    };
    let length = |(at, line): (usize, &&str)| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        lines[at..].iter().position(|line| *line == end).map_or(0, |lines| lines + 1)
    };
    lines.iter().enumerate().filter(|(_, line)| begins(line)).map(length).filter(|lines| *lines > FUNCTION).count()
}

/// The modules that each module imports.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// For each folder of modules how many of them stand in circles of imports: modules are its files and folders. A crate's `src`
/// goes by the crate's name. The module that a folder belongs to is left out: it may use what it consists of, and be used.
pub fn circles(sources: &[Source]) -> BTreeMap<String, usize> {
    let files = sources.iter().filter(|source| is_room(source));
    let files: Vec<_> = files.filter_map(|source| Some((module(&source.path)?, without_comments(source)))).collect();
    let mut modules: BTreeSet<(&str, &[&str])> = BTreeSet::new();
    for ((name, module), _) in &files {
        modules.extend((1..=module.len()).map(|length| (*name, &module[..length])));
    }
    let mut folders: BTreeMap<(&str, &[&str]), Imports<'_>> = BTreeMap::new();
    for ((name, module), code) in &files {
        for path in named(code, module) {
            let is_module = |length: &usize| modules.contains(&(*name, &path[..*length]));
            let Some(length) = (1..=path.len()).rev().find(is_module) else { continue };
            let other = &path[..length];
            let common = module.iter().zip(other).take_while(|(own, other)| own == other).count();
            if let (Some(from), Some(to)) = (module.get(common), other.get(common)) {
                folders.entry((name, &module[..common])).or_default().entry(from).or_default().insert(to);
            }
        }
    }
    let count = |((name, folder), modules): ((&str, &[&str]), Imports<'_>)| {
        let circling = modules.keys().filter(|module| reaches(&modules, module)).count();
        let place = if folder.is_empty() { name.to_owned() } else { format!("{name}/src/{}", folder.join("/")) };
        (circling > 0).then_some((place, circling))
    };
    folders.into_iter().filter_map(count).collect()
}

fn without_comments(source: &Source) -> String {
    let lines = source.product_lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The crate of a file, and the path of its module there; none for a program of its own.
fn module(path: &str) -> Option<(&str, Vec<&str>)> {
    let (name, within) = path.split_once("/src/")?;
    let mut parts: Vec<&str> = within.strip_suffix(".rs")?.split('/').collect();
    if parts[0] == "bin" {
        return None;
    }
    if parts.last() == Some(&"mod") || matches!(parts[..], ["lib" | "main"]) {
        parts.pop();
    }
    Some((name, parts))
}

/// The paths that the code of `module` names from the root of its crate or from itself, each from the root.
fn named<'a>(code: &'a str, module: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut all = Vec::new();
    let mut rest = code;
    while let Some(at) = ["crate::", "super::", "self::"].iter().filter_map(|start| rest.find(start)).min() {
        let is_path = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c));
        rest = &rest[at..];
        let mut base = if rest.starts_with("crate::") { Vec::new() } else { module.to_vec() };
        while let Some(above) = rest.strip_prefix("super::") {
            base.pop();
            rest = above;
        }
        rest = rest.strip_prefix("crate::").or_else(|| rest.strip_prefix("self::")).unwrap_or(rest);
        if is_path {
            all.extend(tree(&mut rest).into_iter().map(|path| [base.as_slice(), &path].concat()));
        }
    }
    all
}

/// The paths of the tree of imports that `rest` begins with, which it then is behind: `a::{b, c::d}` are two.
fn tree<'a>(rest: &mut &'a str) -> Vec<Vec<&'a str>> {
    let mut all = Vec::new();
    if let Some(list) = rest.strip_prefix('{') {
        *rest = list;
        while !rest.is_empty() {
            *rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if let Some(after) = rest.strip_prefix('}') {
                *rest = after;
                break;
            }
            let before = rest.len();
            all.extend(tree(rest));
            // Another name for it, or what is not a path.
            let end = rest.find([',', '}', '{']).unwrap_or(rest.len());
            *rest = &rest[if before == rest.len() { end.max(1) } else { end }..];
        }
        return all;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    *rest = after;
    let Some(below) = after.strip_prefix("::").filter(|_| end > 0) else { return vec![vec![name]] };
    *rest = below;
    tree(rest).into_iter().map(|path| [&[name], path.as_slice()].concat()).collect()
}

/// Whether a module imports itself by way of others.
fn reaches(modules: &Imports<'_>, module: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![module];
    while let Some(at) = open.pop() {
        for next in modules.get(at).into_iter().flatten() {
            if *next == module {
                return true;
            }
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    false
}

/// Causes that import causes, and what is below them that knows one. A cause is a folder of `causes/` with a `DEFINITION`.
pub fn knots(sources: &[Source]) -> Vec<String> {
    let files = sources.iter().filter(|source| is_room(source) && source.path.starts_with("crates/holdup-diagnose/"));
    let files: Vec<_> = files.filter_map(|source| Some((source, module(&source.path)?.1))).collect();
    let defined = files.iter().filter(|(source, _)| source.text.contains("\npub const DEFINITION: Definition"));
    let causes: BTreeSet<&str> =
        defined.filter_map(|(_, module)| if let ["causes", cause] = module[..] { Some(cause) } else { None }).collect();
    let mut problems = Vec::new();
    for (source, module) in &files {
        let own = match module[..] {
            ["causes", own, ..] if causes.contains(own) => own,
            ["causes", "parts", ..] | ["resources" | "case", ..] => "",
            _ => continue,
        };
        let code = without_comments(source);
        for path in named(&code, module) {
            if let ["causes", cause, ..] = path[..]
                && causes.contains(cause)
                && cause != own
            {
                problems.push(format!("{}: imports {cause}; what both need is a resource", source.path));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_room_is_as_large_as_its_kind_allows() {
        let lines = |path: &str, count: usize| beyond(&source(path, &"x\n".repeat(count)));
        assert_eq!(lines("crates/holdup-diagnose/src/causes/a/mod.rs", CAUSE), None);
        assert_eq!(lines("crates/holdup-diagnose/src/causes/a/b.rs", CAUSE + 1), Some((CAUSE + 1, CAUSE)));
        assert_eq!(lines("crates/holdup-diagnose/src/resources/a.rs", CAUSE + 1), None);
        assert_eq!(lines("crates/a/src/b.rs", FILE + 1), Some((FILE + 1, FILE)));
        assert_eq!(lines("crates/a/tests/b.rs", FILE + 1), None);
        let tested = format!("x\n#[cfg(test)]\nmod tests {{\n{}", "x\n".repeat(FILE));
        assert_eq!(beyond(&source("crates/a/src/b.rs", &tested)), None);
    }

    #[test]
    fn a_function_ends_where_it_is_indented() {
        let function =
            |lines: usize| format!("impl A {{\n    pub fn a() {{\n{}    }}\n}}\n", "        b();\n".repeat(lines));
        let count = |lines: usize| long_functions(&source("crates/a/src/b.rs", &function(lines)));
        assert_eq!((count(FUNCTION - 2), count(FUNCTION - 1)), (0, 1));
    }

    fn circling(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<Source> = files.iter().map(|(path, text)| source(path, text)).collect();
        circles(&files).into_iter().collect()
    }

    #[test]
    fn modules_in_a_circle_are_counted() {
        let house = |last: &str| {
            circling(&[
                ("crates/a/src/one.rs", "use crate::{two, three::Three};\n"),
                ("crates/a/src/two/deep.rs", "// crate::one\nuse crate::three::Three;\n"),
                ("crates/a/src/three.rs", last),
            ])
        };
        assert!(house("#[cfg(test)]\nmod tests {\n    use crate::one;\n}\n").is_empty());
        assert!(house("use crate::Two;\nfn f() { $crate::two::x(); other_crate::two::x() }\n").is_empty());
        let circle = [("crates/a".to_owned(), 2)];
        assert_eq!(house("use crate::two;\n"), circle);
        assert_eq!(house("fn f() { crate::two::deep::g() }\n"), circle);
        assert_eq!(house("use super::two::Two;\n"), circle);
        assert_eq!(
            house("use crate::{\n    one as uno,\n    four::{x, y},\n    Two as T,\n};\n")[0].1,
            3,
            "all of them"
        );
        assert_eq!(house("use crate::{\n    four::{x, y as z},\n    two::Two,\n};\n"), circle);
    }

    #[test]
    fn modules_of_a_folder_in_a_circle_are_counted_there() {
        let house = |deep: &str, child: &str| {
            circling(&[
                ("crates/a/src/two.rs", "use crate::two::deep::Deep;\n"),
                ("crates/a/src/two/deep.rs", deep),
                ("crates/a/src/two/other/mod.rs", "use super::deep;\n"),
                ("crates/a/src/two/other/child.rs", child),
            ])
        };
        assert!(house("use super::Two;\n", "use super::Other;\n").is_empty());
        let circle = [("crates/a/src/two".to_owned(), 2)];
        assert_eq!(house("use super::other;\n", ""), circle);
        assert_eq!(house("use self::x;\nuse crate::two::other::child::Child;\n", "use super::super::deep;\n"), circle);
    }

    #[test]
    fn a_cause_that_imports_a_cause_is_named() {
        let judge = |text: &str| {
            let cause = |name: &str, text: &str| {
                source(
                    &format!("crates/holdup-diagnose/src/causes/{name}/mod.rs"),
                    &format!("{text}\npub const DEFINITION: Definition = 1;\n"),
                )
            };
            knots(&[cause("disk", ""), cause("cpu", text)])
        };
        assert!(judge("use super::cpu::own;\nuse super::{Cause, Outcome};").is_empty());
        assert_eq!(judge("use super::disk::who;").len(), 1);
        assert_eq!(judge("    let a = crate::causes::disk::DEFINITION.judge;").len(), 1);
    }
}
