//! Whether the crates are what ARCHITECTURE.md says: who imports whom. How large each may be is the ratchet's.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

const PAGE: &str = "ARCHITECTURE.md";

/// Name of the crate whose manifest `source` is.
fn crate_of(source: &Source) -> Option<&str> {
    let name = source.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// Crates of ours that a manifest depends on, without those of tests.
fn imports(manifest: &str) -> BTreeSet<&str> {
    let after = manifest.split("[dependencies]\n").nth(1).unwrap_or_default();
    let lines = after.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.strip_prefix("holdup-")?.trim())).collect()
}

/// The table's rows: crate, and what it imports in the words of the page.
fn rows(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.trim_end().trim_end_matches('|').split(" | ");
        let name = cells.next()?.strip_suffix('`')?;
        name.starts_with("holdup").then_some((name, cells.last()?.trim()))
    })
}

/// What the words of the page stand for, where `all` are the crates that there are.
fn meant<'a>(words: &'a str, all: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    if let Some(but) = words.strip_prefix("all but ") {
        let but: BTreeSet<&str> =
            but.split([',', ' ']).filter(|word| word.starts_with('`')).map(|name| name.trim_matches('`')).collect();
        return all.difference(&but).copied().collect();
    }
    words.split(", ").filter(|word| *word != "nothing").collect()
}

/// What is wrong with the crates of `crates/`.
pub fn problems(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return vec![format!("{PAGE}: it is not there")];
    };
    let manifests: BTreeMap<&str, &Source> = sources.iter().filter_map(|s| Some((crate_of(s)?, s))).collect();
    let all: BTreeSet<&str> = manifests.keys().filter_map(|name| name.strip_prefix("holdup-")).collect();
    let table: BTreeMap<&str, &str> = rows(&page.text).collect();
    let mut problems = Vec::new();
    for (name, manifest) in &manifests {
        let Some(words) = table.get(name) else {
            problems.push(format!("{PAGE}: no row of {name}"));
            continue;
        };
        let (is, said) = (imports(&manifest.text), meant(words, &all));
        if is != said {
            let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
            problems.push(format!("{PAGE}: {name} imports {}; the table says {}", list(&is), list(&said)));
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

    /// A page whose row of `holdup-b` says `imports`, beside a crate that imports a.
    fn house(imports: &str) -> Vec<String> {
        let page = format!(
            "| `holdup-a` | bytes | nothing |\n| `holdup-b` | more | {imports} |\n| `holdup` | it | all but `b` |"
        );
        problems(&[
            source(PAGE, &page),
            source("crates/holdup-a/Cargo.toml", "[dependencies]\nlibc.workspace = true\n"),
            source(
                "crates/holdup-b/Cargo.toml",
                "[dependencies]\nholdup-a.workspace = true\n\n[dev-dependencies]\nholdup-c = 1\n",
            ),
            source("crates/holdup/Cargo.toml", "[dependencies]\nholdup-a = { workspace = true }\n"),
        ])
    }

    #[test]
    fn arrows_are_those_of_the_page() {
        assert_eq!(house("a"), Vec::<String>::new());
        assert_eq!(house("nothing"), ["ARCHITECTURE.md: holdup-b imports a; the table says "]);
        assert_eq!(house("a, c"), ["ARCHITECTURE.md: holdup-b imports a; the table says a, c"]);
    }
}
