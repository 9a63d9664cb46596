//! Pages that are made of the code: `docs/causes/<slug>.md` of what is to know of a cause and `docs/collectors.md` of the
//! registered sources and metrics. They are committed, so that they can be read where nothing is built; a test says whether they
//! still are what the code gives and whether every rule has its place, and so does `--check`. `cargo xtask docs` is the way to call it.

#![forbid(unsafe_code)]

mod house;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use holdup_collect::watch::SCHEMES;
use holdup_diagnose::explain::{self, Page};
use holdup_recording::metrics::{Family, Metric, SOURCES};

const CAUSES: &str = "docs/causes";

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => write(&root()),
        Some("--check") => {
            check(&root())?;
            let problems = house::rules(&root())?;
            if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
        }
        Some(other) => bail!("{other}: there is --check and nothing else"),
    }
}

/// The checkout this program was built from.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes every page, and removes pages of causes that are gone.
fn write(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join(CAUSES))?;
    let pages = pages();
    for path in strays(root, &pages) {
        fs::remove_file(root.join(&path))?;
        println!("   removed {path}");
    }
    for (path, text) in pages {
        if fs::read_to_string(root.join(&path)).ok().as_ref() != Some(&text) {
            fs::write(root.join(&path), text).with_context(|| format!("failed to write {path}"))?;
            println!("   wrote {path}");
        }
    }
    Ok(())
}

/// Fails if a page is not what [`write`] would give.
fn check(root: &Path) -> Result<()> {
    let pages = pages();
    let mut stale = strays(root, &pages);
    stale.extend(
        pages
            .into_iter()
            .filter_map(|(path, text)| (fs::read_to_string(root.join(&path)).ok() != Some(text)).then_some(path)),
    );
    if stale.is_empty() { Ok(()) } else { bail!("not what the code gives: {}", stale.join(", ")) }
}

/// Files in the folder of causes that no rule gives.
fn strays(root: &Path, pages: &BTreeMap<String, String>) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(root.join(CAUSES))
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| format!("{CAUSES}/{}", entry.file_name().to_string_lossy()))
        .filter(|path| path.ends_with(".md") && !pages.contains_key(path))
        .collect();
    found.sort();
    found
}

/// Every page: path and text.
fn pages() -> BTreeMap<String, String> {
    let mut pages: BTreeMap<String, String> =
        explain::pages().iter().map(|page| (format!("{CAUSES}/{}.md", page.cause), cause(page))).collect();
    pages.insert(format!("{CAUSES}/README.md"), index());
    pages.insert("docs/collectors.md".to_owned(), collectors());
    pages
}

fn made_of(what: &str) -> String {
    format!("<!-- Made of {what} by `cargo xtask docs`. -->\n")
}

fn cause(page: &Page) -> String {
    let mut text = made_of(&page.source);
    text += &format!("# {}\n\n`{}`: also `holdup explain {}`.\n", page.title, page.cause, page.cause);
    for (heading, section) in &page.sections {
        text += &format!("\n## {heading}\n\n{section}\n");
    }
    text
}

fn index() -> String {
    let mut text = made_of("crates/holdup-diagnose/src/explain.rs");
    text += "# Causes\n\nWhat holdup can find, clear, or say it could not judge, in the order in which a request meets them.\n\n";
    let line = |page: &Page| format!("- [{}]({}.md): `{}`\n", page.title, page.cause, page.cause);
    text.extend(explain::pages().iter().map(line));
    text
}

fn collectors() -> String {
    let mut text = made_of("crates/holdup-collect/src/watch.rs and crates/holdup-recording/src/metrics/");
    text += "# Sources\n\nWhat `--watch` takes, and `watch:` in a scenario. `holdup doctor` proposes the list for a machine.\n\n";
    text += "| `--watch` | is |\n|---|---|\n";
    for scheme in SCHEMES {
        text += &format!("| `{}` | {} |\n", scheme.example, scheme.what);
    }
    text + &metrics()
}

/// The registry, a table a source.
fn metrics() -> String {
    let mut text = "\n## Metrics\n\n".to_owned();
    text += "What stands in the table [samples](recording.md#samples-one-raw-counter-or-gauge-at-one-instant), by source. \
             A counter only grows until its source restarts. A histogram is two counters, `_count` and `_sum`. \
             `…*` stands for all names that begin so.\n";
    for source in SOURCES {
        text += &format!("\n### {}\n\n| metric | kind | unit | |\n|---|---|---|---|\n", source.title);
        for Metric { name, kind, unit, description, .. } in source.metrics {
            text += &format!("| `{name}` | {kind} | {unit} | {description} |\n");
        }
        for Family { prefix, unit, description, .. } in source.families {
            text += &format!("| `{prefix}*` | | {unit} | {description} |\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_what_the_code_gives() {
        check(&root()).expect("run: cargo xtask docs");
        assert_eq!(house::rules(&root()).expect("the rules' folder"), [""; 0]);
    }

    #[test]
    fn every_cause_and_source_has_its_place() {
        let pages = pages();
        for of in explain::pages() {
            let page = &pages[&format!("docs/causes/{}.md", of.cause)];
            assert!(page.contains(&of.title) && page.contains("## How to prove"), "{page}");
        }
        assert!(pages["docs/causes/README.md"].contains("network_delay.md"));
        assert!(pages["docs/collectors.md"].contains("`pid:4711`"));
        assert!(pages["docs/collectors.md"].contains("| `system_threads` | gauge | count |"));
    }

    #[test]
    fn a_page_that_no_rule_gives_is_a_stray() {
        let root = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        fs::create_dir_all(root.join(CAUSES)).unwrap();
        fs::write(root.join(CAUSES).join("gone.md"), "").unwrap();
        assert!(check(&root).unwrap_err().to_string().contains("docs/causes/gone.md"));
        write(&root).unwrap();
        assert!(check(&root).is_ok());
        fs::write(root.join("docs/collectors.md"), "edited").unwrap();
        assert!(check(&root).unwrap_err().to_string().contains("docs/collectors.md"));
        fs::remove_dir_all(root).unwrap();
    }
}
