//! How many lines of Rust the product has, for each crate and for what is around the crates: tests and what only they use do not
//! count. The ratchet holds these numbers (`product`); here they are only counted.

use std::collections::BTreeMap;

use super::Source;

/// Lines by crate (`crates/holdup-load`), or by folder of the root (`xtask`, `bench`, `fuzz`).
pub fn product(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_product()) {
        let Some((folder, rest)) = source.path.split_once('/') else { continue };
        let place = match (folder, rest.split_once('/')) {
            ("crates", Some((name, _))) => format!("crates/{name}"),
            _ => folder.to_owned(),
        };
        *lines.entry(place).or_default() += source.product_lines().count();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count_wherever_they_stand() {
        let text = "//! A.\n#[cfg(test)]\nuse x;\n\n#[cfg(test)]\npub(crate) mod tests {\n    fn a() {\n    }\n}\n\nfn b() {}\n";
        let source = |path: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let tests =
            ["crates/a/tests/x.rs", "crates/a/src/tests.rs", "crates/a/src/testing.rs", "crates/a/src/b_tests.rs"];
        let product =
            ["crates/a/src/lib.rs", "crates/a/build.rs", "xtask/src/main.rs", "xtask/eval/src/main.rs", "README.md"];
        let all: Vec<Source> = tests.into_iter().chain(product).map(source).collect();
        assert_eq!(super::product(&all), BTreeMap::from([("crates/a".to_owned(), 12), ("xtask".to_owned(), 12)]));
    }
}
