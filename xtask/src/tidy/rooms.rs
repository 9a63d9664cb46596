//! How large a room may be, and which rooms stand in a circle: files, functions, and the modules of one crate.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

/// Lines of a rule, without its tests: its documentation and a predicate.
const RULE: usize = 200;

/// Lines of a resource, without its tests.
const RESOURCE: usize = 300;

/// Lines of any other file, without its tests: from here on it most likely has a second idea in it.
const FILE: usize = 450;

/// Lines of a function.
const FUNCTION: usize = 70;

/// What a file's tests begin with, where they stand in the file itself.
pub const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// Rust of the product: neither tests nor what only they use.
fn is_product(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/testing");
    path.ends_with(".rs") && path.contains("/src/") && !is_test
}

fn without_tests(source: &Source) -> &str {
    source.text.split(TESTS).next().unwrap_or_default()
}

/// Lines that a file has beyond what is allowed for its kind.
pub fn beyond(source: &Source) -> Option<(usize, usize)> {
    if !is_product(&source.path) {
        return None;
    }
    let most = match source.path.strip_prefix("crates/holdup-diagnose/src/") {
        Some(path) if path.starts_with("rules/") && path != "rules/mod.rs" => RULE,
        Some(path) if path.starts_with("resources/") => RESOURCE,
        _ => FILE,
    };
    let lines = without_tests(source).lines().count();
    (lines > most).then_some((lines, most))
}

/// Functions of a file that are too long. What rustfmt wrote ends at the indentation at which it begins.
pub fn long_functions(source: &Source) -> usize {
    if !is_product(&source.path) {
        return 0;
    }
    let lines: Vec<&str> = without_tests(source).lines().collect();
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

/// For each crate how many of its modules stand in circles of imports: modules are the files and folders right in `src`.
pub fn circles(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut crates: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_product(&source.path)) {
        let Some((name, path)) = source.path.split_once("/src/") else { continue };
        let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if ["lib", "main", "bin"].contains(&module) {
            continue;
        }
        let code = without_tests(source).lines().filter(|line| !line.trim_start().starts_with("//"));
        let imports = crates.entry(name).or_default().entry(module).or_default();
        imports.extend(code.flat_map(imported).filter(|other| *other != module));
    }
    let count = |(name, modules): (&str, BTreeMap<&str, BTreeSet<&str>>)| {
        let circling = modules.keys().filter(|module| reaches(&modules, module)).count();
        (circling > 0).then(|| (name.to_owned(), circling))
    };
    crates.into_iter().filter_map(count).collect()
}

/// The modules of its own crate that a line names.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    line.split("crate::").skip(1).flat_map(move |rest| match rest.strip_prefix('{') {
        Some(list) => list.split(',').map(str::trim).map(|name| &name[..word(name)]).collect::<Vec<_>>(),
        None => vec![&rest[..word(rest)]],
    })
}

/// Whether a module imports itself by way of others.
fn reaches(modules: &BTreeMap<&str, BTreeSet<&str>>, module: &str) -> bool {
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

/// Rules that import rules, and resources that know one. A rule is a file that has a `RULE`.
pub fn knots(sources: &[Source]) -> Vec<String> {
    let judge = "crates/holdup-diagnose/src/";
    let within = |source: &Source| source.path.strip_prefix(judge).map(str::to_owned);
    let rules: Vec<String> = sources
        .iter()
        .filter(|source| source.text.contains("\npub const RULE: Rule"))
        .filter_map(|source| Some(within(source)?.strip_prefix("rules/")?.strip_suffix(".rs")?.to_owned()))
        .collect();
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| is_product(&source.path)) {
        let Some(path) = within(source) else { continue };
        let is_rule = path.starts_with("rules/") && path != "rules/mod.rs";
        let is_below = ["rules/parts", "resources/", "case"].iter().any(|place| path.starts_with(place));
        let own = path.strip_prefix("rules/").and_then(|rest| rest.split(['/', '.']).next()).unwrap_or_default();
        for (line, n) in without_tests(source).lines().zip(1..) {
            let names = |rule: &String| {
                let is_path =
                    |part: &str| line.contains(&format!("{part}{rule}::")) || line.contains(&format!("{part}{rule};"));
                ["", "super::", "rules::"].iter().any(|part| is_path(part))
                    && *rule != own
                    && !line.trim_start().starts_with("//")
            };
            if (is_rule || is_below) && rules.iter().any(names) {
                problems.push(format!("{}:{n}: imports a rule; what both need is a resource", source.path));
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
        assert_eq!(lines("crates/holdup-diagnose/src/rules/a.rs", RULE), None);
        assert_eq!(lines("crates/holdup-diagnose/src/rules/a.rs", RULE + 1), Some((RULE + 1, RULE)));
        assert_eq!(lines("crates/holdup-diagnose/src/resources/a.rs", RULE + 1), None);
        assert_eq!(lines("crates/a/src/b.rs", FILE + 1), Some((FILE + 1, FILE)));
        assert_eq!(lines("crates/a/tests/b.rs", FILE + 1), None);
        let tested = format!("x\n{TESTS}\n{}", "x\n".repeat(FILE));
        assert_eq!(beyond(&source("crates/a/src/b.rs", &tested)), None);
    }

    #[test]
    fn a_function_ends_where_it_is_indented() {
        let function =
            |lines: usize| format!("impl A {{\n    pub fn a() {{\n{}    }}\n}}\n", "        b();\n".repeat(lines));
        let count = |lines: usize| long_functions(&source("crates/a/src/b.rs", &function(lines)));
        assert_eq!((count(FUNCTION - 2), count(FUNCTION - 1)), (0, 1));
    }

    #[test]
    fn modules_in_a_circle_are_counted() {
        let house = |last: &str| {
            let files = [
                source("crates/a/src/one.rs", "use crate::{two, three::Three};\n"),
                source("crates/a/src/two/deep.rs", "// crate::one\nuse crate::three::Three;\n"),
                source("crates/a/src/three.rs", last),
            ];
            circles(&files)
        };
        assert!(house("#[cfg(test)]\nmod tests {\n    use crate::one;\n}\n").is_empty());
        assert_eq!(house("use crate::two;\n"), BTreeMap::from([("crates/a".to_owned(), 2)]));
    }

    #[test]
    fn a_rule_that_imports_a_rule_is_named() {
        let judge = |text: &str| {
            let rule = |name: &str, text: &str| {
                source(
                    &format!("crates/holdup-diagnose/src/rules/{name}.rs"),
                    &format!("{text}\npub const RULE: Rule = 1;\n"),
                )
            };
            knots(&[rule("disk", ""), rule("cpu", text)])
        };
        assert!(judge("use super::cpu::own;").is_empty());
        assert_eq!(judge("use super::disk::who;").len(), 1);
        assert_eq!(judge("    let a = disk::RULE.judge;").len(), 1);
    }
}
