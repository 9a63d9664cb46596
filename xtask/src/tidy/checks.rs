//! Checks of one file by itself. Each is a function of path and text that names what is wrong and where.

use super::Source;

/// Words for work that was not done; of macros that say so clippy's lints are. In two halves, so that this file may be looked at as
/// well.
const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// How paths of one machine or one person begin.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["utils", "util", "helpers", "helper", "common", "manager", "misc", "shared"];

/// Everything wrong with one file.
pub fn all(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(markers(source));
    problems.extend(machine_paths(source));
    problems.extend(module_header(source));
    problems.extend(name(source));
    problems
}

fn markers(source: &Source) -> Vec<String> {
    let has = |line: &str, marker: &str| {
        line.match_indices(marker).any(|(at, _)| {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let before = line[..at].chars().next_back().is_some_and(word);
            let after = line[at + marker.len()..].chars().next().is_some_and(word);
            !before && !after
        })
    };
    // A data file may hold such a word as a value; code and prose may not.
    if source.path.ends_with(".json") {
        return Vec::new();
    }
    each_line(source, |line| {
        MARKERS.iter().find(|m| has(line, m)).map(|m| format!("{m} is left over: do it or drop it"))
    })
}

fn machine_paths(source: &Source) -> Vec<String> {
    each_line(source, |line| {
        MACHINE_PATHS.iter().find(|p| line.contains(**p)).map(|p| format!("{p}… exists on one machine only"))
    })
}

fn each_line(source: &Source, wrong: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let numbered = source.text.lines().zip(1..);
    numbered.filter_map(|(line, n)| wrong(line).map(|what| format!("{}:{n}: {what}", source.path))).collect()
}

fn module_header(source: &Source) -> Option<String> {
    let missing = source.path.ends_with(".rs") && !source.text.starts_with("//! ");
    missing.then(|| format!("{}: open with a //! paragraph: what it answers for, what it doesn't do", source.path))
}

fn name(source: &Source) -> Option<String> {
    let file = source.path.rsplit('/').next().unwrap_or_default();
    let stem = file.split('.').next().unwrap_or_default();
    let folders = source.path.split('/').rev().skip(1);
    let empty = std::iter::once(stem).chain(folders).find(|part| EMPTY_NAMES.contains(part))?;
    Some(format!("{}: \"{empty}\" says nothing about what is inside", source.path))
}

/// Verdicts that are known to be wrong.
pub fn known_wrong(source: &Source) -> usize {
    let is_list = source.path.ends_with("known_wrong.txt");
    source.text.lines().filter(|line| is_list && !line.starts_with('#') && !line.is_empty()).count()
}

/// Places outside tests that panic by design: a panic is a bug of ours.
pub fn unwraps(source: &Source) -> usize {
    // What a fuzzer finds, it is told of by a panic.
    let is_told = source.path.contains("/fuzz_targets/");
    if !source.is_product() || is_told || source.text.lines().any(|line| line == "#![cfg(test)]") {
        return 0;
    }
    let calls = [concat!(".unw", "rap()"), concat!(".exp", "ect("), concat!("pan", "ic!(")];
    source
        .product_lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| calls.iter().map(|call| line.matches(call).count()).sum::<usize>())
        .sum()
}

/// Tests that only `cargo xtask ci --full` runs, or a person.
pub fn ignored(source: &Source) -> usize {
    lines_with(source, ".rs", concat!("#[ig", "nore"))
}

/// Tests, or parts of them, that a machine which stalls excuses.
pub fn witnesses(source: &Source) -> usize {
    // The witness's own tests are about it.
    if source.path.starts_with("xtask/witness") {
        return 0;
    }
    let [attribute, call] = [concat!("holdup_witness::jud", "ged"), concat!("Patience ", "{ limits")];
    lines_with(source, ".rs", attribute) + lines_with(source, ".rs", call)
}

/// Tests that the runner runs again: the line that says so for all does not count.
pub fn retries(source: &Source) -> usize {
    lines_with(source, "nextest.toml", "retries = ") - lines_with(source, "nextest.toml", "retries = 0")
}

fn lines_with(source: &Source, kind: &str, words: &str) -> usize {
    if !source.path.ends_with(kind) {
        return 0;
    }
    let is_one = |line: &&str| line.contains(words) && !line.trim_start().starts_with("//");
    source.text.lines().filter(is_one).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn leftovers_are_found_as_words() {
        for marker in MARKERS {
            let found = markers(&source("a.rs", &format!("fine\n// {marker}: later\n")));
            assert_eq!(found.len(), 1, "{marker}");
            assert!(found[0].starts_with("a.rs:2: "), "{}", found[0]);
        }
        assert!(markers(&source("a.sh", &format!("mktemp -d x.{0}{0}; my_{1}s", MARKERS[2], MARKERS[0]))).is_empty());
    }

    #[test]
    fn machine_paths_are_found_anywhere() {
        for path in MACHINE_PATHS {
            assert_eq!(machine_paths(&source("a.md", &format!("see {path}x"))).len(), 1);
        }
        assert!(machine_paths(&source("a.md", "see /proc/self and homework/")).is_empty());
    }

    #[test]
    fn modules_open_with_a_paragraph() {
        assert!(module_header(&source("a.rs", "use std::fs;\n")).is_some());
        assert!(module_header(&source("a.rs", "//! What it is for.\n")).is_none());
        assert!(module_header(&source("a.sh", "set -e\n")).is_none());
    }

    #[test]
    fn empty_names_are_refused_as_file_and_as_folder() {
        assert!(name(&source("crates/x/src/utils.rs", "")).is_some());
        assert!(name(&source("crates/x/src/common/mod.rs", "")).is_some());
        assert!(name(&source("crates/x/src/utilization.rs", "")).is_none());
    }

    #[test]
    fn panics_count_outside_tests_only() {
        // Joined, so that no brace of it stands in the first column of this file.
        let text = &[
            "//! x",
            "fn a() { b().unwrap() }",
            "// c().unwrap()",
            "#[cfg(test)]",
            "mod tests {",
            "    fn d() {",
            "        e().unwrap()",
            "    }",
            "}",
            "fn f() { g().expect(\"h\"); i.unwrap_or(1) }",
        ]
        .join("\n");
        assert_eq!(unwraps(&source("crates/x/src/a.rs", text)), 2);
        assert_eq!(unwraps(&source("crates/x/tests/a.rs", text)), 0);
        assert_eq!(unwraps(&source("crates/x/src/a_tests.rs", text)), 0);
        let all_of_it = format!("//! Made for tests.\n#![cfg(test)]\n\n{text}");
        assert_eq!(unwraps(&source("crates/x/src/a.rs", &all_of_it)), 0);
    }
}
