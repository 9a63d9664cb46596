//! A look at the code itself, for what compilers and formatters don't see: order, names, leftovers. What was
//! already so when a check came is in `xtask/ratchet.txt` and may only get better.

mod checks;
mod documents;
mod house;
mod metrics;
mod prose;
mod ratchet;
mod rooms;
mod size;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};

use ratchet::Ratchet;

use crate::tests::cost::Cost;

/// Where the ratchet is kept.
const RATCHET: &str = "xtask/ratchet.txt";

/// Folders that hold nothing of ours, or nothing written by hand; recordings lie at the root.
const NOT_OURS: [&str; 5] = ["target", "node_modules", "dist", ".git", ".tmp"];

/// A text file of the project.
pub(crate) struct Source {
    /// Path from the root, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// Whether it is Rust of the product: neither tests nor what only they use.
    fn is_product(&self) -> bool {
        let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "testing.rs") || part.ends_with("_tests.rs");
        self.path.ends_with(".rs") && !self.path.split('/').any(is_test)
    }

    /// Its lines without modules of tests, which rustfmt ends with a brace in the first column.
    fn product_lines(&self) -> impl Iterator<Item = &str> {
        let mut lines = self.text.lines().peekable();
        std::iter::from_fn(move || {
            loop {
                let line = lines.next()?;
                if !(line.starts_with("#[cfg(test)]") && lines.peek().is_some_and(|next| is_module(next))) {
                    return Some(line);
                }
                lines.find(|line| *line == "}");
            }
        })
    }
}

/// Whether a module with a body begins here.
fn is_module(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    matches!(words[..], ["mod", _, "{"]) || matches!(words[..], [visible, "mod", _, "{"] if visible.starts_with("pub"))
}

/// Looks at everything, prints what is wrong, and lowers the ratchet where the code got better.
pub fn run(root: &Path) -> Result<()> {
    let sources = sources(root)?;
    let kept = Ratchet::parse(&fs::read_to_string(root.join(RATCHET)).unwrap_or_default())?;
    let (problems, lowered) = problems(root, &sources, &kept);
    if !problems.is_empty() {
        for problem in &problems {
            println!("   {problem}");
        }
        bail!("{} places are not tidy", problems.len());
    }
    if lowered != kept {
        fs::write(root.join(RATCHET), lowered.to_string())?;
        println!("   {RATCHET} is lower now: commit it");
    }
    Ok(())
}

/// What is wrong, and the ratchet as it would be.
fn problems(root: &Path, sources: &[Source], kept: &Ratchet) -> (Vec<String>, Ratchet) {
    let mut problems: Vec<String> = sources.iter().flat_map(checks::all).collect();
    problems.extend(documents::problems(root, sources));
    problems.extend(examples_that_do_not_run(sources));
    problems.extend(unsafe_left_open(sources));
    problems.extend(house::problems(sources));
    problems.extend(rooms::knots(sources));
    problems.extend(metrics::problems(sources));
    let counts = Ratchet::count(sources).after(kept);
    problems.extend(counts.risen(kept));
    (problems, counts)
}

/// Crates say `doctest = false` where there is nothing to run: an example written there later would only look like a test.
fn examples_that_do_not_run(sources: &[Source]) -> Vec<String> {
    let silent = |source: &&Source| source.path.ends_with("/Cargo.toml") && source.text.contains("doctest = false");
    let folders = sources.iter().filter(silent).filter_map(|source| source.path.strip_suffix("Cargo.toml"));
    let is_example =
        |line: &str| matches!(line.trim(), "/// ```" | "//! ```" | "/// ```no_run" | "/// ```should_panic");
    folders
        .flat_map(|folder| sources.iter().filter(move |s| s.path.starts_with(folder) && s.path.ends_with(".rs")))
        .filter(|source| source.text.lines().any(is_example))
        .map(|source| format!("{}: its examples are not run; delete doctest = false in Cargo.toml", source.path))
        .collect()
}

/// A crate that has no unsafe code forbids it.
fn unsafe_left_open(sources: &[Source]) -> Vec<String> {
    let is_unsafe = |line: &str| !line.trim_start().starts_with("//") && line.contains(concat!("uns", "afe {"));
    let folder = |source: &Source| {
        let path = source.path.strip_suffix("/lib.rs").or_else(|| source.path.strip_suffix("/main.rs"))?;
        path.ends_with("/src").then(|| format!("{path}/"))
    };
    let roots = sources.iter().filter_map(|source| Some((source, folder(source)?)));
    roots
        .filter(|(source, _)| !source.text.contains("#![forbid(unsafe_code)]"))
        .filter(|(_, folder)| {
            let mut inside = sources.iter().filter(|s| s.path.starts_with(folder) && s.path.ends_with(".rs"));
            !inside.any(|s| s.text.lines().any(is_unsafe))
        })
        .map(|(source, _)| format!("{}: no unsafe code here; write #![forbid(unsafe_code)]", source.path))
        .collect()
}

/// Holds what the tests took against what the ratchet allows.
///
/// # Errors
/// If they took [`ratchet::HEADROOM`] times as much.
pub fn pace(root: &Path, cost: Cost) -> Result<()> {
    let kept = Ratchet::parse(&fs::read_to_string(root.join(RATCHET)).unwrap_or_default())?;
    kept.pace(cost).map_err(|problem| anyhow!(problem))
}

/// Every text file of ours.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    collect(root, "", &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn collect(dir: &Path, prefix: &str, found: &mut Vec<Source>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("failed to read {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if !NOT_OURS.contains(&name.as_str()) && path != "recordings" {
                collect(&entry.path(), &format!("{path}/"), found)?;
            }
        } else if entry.file_type()?.is_file() && is_text(&name) {
            // Unreadable or not UTF-8: no source of ours.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                found.push(Source { path, text });
            }
        }
    }
    Ok(())
}

fn is_text(name: &str) -> bool {
    let kinds = ["rs", "toml", "md", "ts", "tsx", "mjs", "css", "yaml", "sql", "cnf", "sh", "py", "json", "txt"];
    let lock = name.ends_with("package-lock.json");
    !lock && (name == "run" || name.rsplit_once('.').is_some_and(|(_, kind)| kinds.contains(&kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let root = crate::root();
        let kept = Ratchet::parse(&fs::read_to_string(root.join(RATCHET)).unwrap()).unwrap();
        let (problems, _) = problems(&root, &sources(&root).unwrap(), &kept);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn a_crate_without_unsafe_code_forbids_it() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let block = concat!("uns", "afe { f() }");
        let open = source("a/src/lib.rs", "//! A.\n");
        assert_eq!(unsafe_left_open(std::slice::from_ref(&open)).len(), 1);
        assert!(unsafe_left_open(&[open, source("a/src/b.rs", block)]).is_empty());
        assert!(unsafe_left_open(&[source("a/src/lib.rs", "//! A.\n\n#![forbid(unsafe_code)]\n")]).is_empty());
        assert_eq!(unsafe_left_open(&[source("a/src/main.rs", ""), source("a/tests/b.rs", block)]).len(), 1);
    }

    #[test]
    fn the_walk_sees_this_file_and_nothing_built() {
        let found = sources(&crate::root()).unwrap();
        assert!(found.iter().any(|s| s.path == "xtask/src/tidy/mod.rs"));
        assert!(found.iter().all(|s| !s.path.contains("node_modules/") && !s.path.starts_with("target/")));
    }
}
