//! How many lines of Rust the product has, for each crate and for what is around the crates: tests and what only they use do not
//! count. The ratchet holds these numbers (`product`); here they are only counted.

use std::collections::BTreeMap;

use super::Source;

/// Lines by crate (`crates/holdup-load`), or by folder of the root (`xtask`, `bench`, `fuzz`).
pub fn product(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for source in sources.iter().filter(|source| is_product(&source.path)) {
        let Some((folder, rest)) = source.path.split_once('/') else { continue };
        let place = match (folder, rest.split_once('/')) {
            ("crates", Some((name, _))) => format!("crates/{name}"),
            _ => folder.to_owned(),
        };
        *lines.entry(place).or_default() += product_lines(&source.text);
    }
    lines
}

fn is_product(path: &str) -> bool {
    let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "testing.rs") || part.ends_with("_tests.rs");
    path.ends_with(".rs") && !path.split('/').any(is_test)
}

/// Lines of a file without its modules of tests, which rustfmt ends with a brace in the first column.
fn product_lines(text: &str) -> usize {
    let mut lines = text.lines().peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") && lines.peek().is_some_and(|next| is_module(next)) {
            lines.by_ref().find(|line| *line == "}");
        } else {
            count += 1;
        }
    }
    count
}

/// Whether a module with a body begins here.
fn is_module(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    matches!(words[..], ["mod", _, "{"]) || matches!(words[..], [visible, "mod", _, "{"] if visible.starts_with("pub"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count_wherever_they_stand() {
        let text = "//! A.\n#[cfg(test)]\nuse x;\n\n#[cfg(test)]\npub(crate) mod tests {\n    fn a() {\n    }\n}\n\nfn b() {}\n";
        assert_eq!(product_lines(text), 6);
        let source = |path: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let tests =
            ["crates/a/tests/x.rs", "crates/a/src/tests.rs", "crates/a/src/testing.rs", "crates/a/src/b_tests.rs"];
        let product =
            ["crates/a/src/lib.rs", "crates/a/build.rs", "xtask/src/main.rs", "xtask/eval/src/main.rs", "README.md"];
        let all: Vec<Source> = tests.into_iter().chain(product).map(source).collect();
        assert_eq!(super::product(&all), BTreeMap::from([("crates/a".to_owned(), 12), ("xtask".to_owned(), 12)]));
    }
}
