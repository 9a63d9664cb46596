//! Pages that are made of the code: `docs/causes/<slug>.md` of what is to know of a cause, `docs/collectors.md` of the registered
//! sources and `docs/collectors/<source>.md` of their metrics. They are committed, so that they can be read where nothing is
//! built; a test says whether they still are what the code gives, and so does `--check`. `cargo xtask docs` is the way to call it.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use holdup_collect::watch::SCHEMES;
use holdup_diagnose::causes::{Cause, Edge, Source as Origin};
use holdup_diagnose::explain::{self, Page};
use holdup_recording::metrics::{Family, Metric, SOURCES, Source};

const CAUSES: &str = "docs/causes";
const COLLECTORS: &str = "docs/collectors";

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        None => write(&root()),
        Some("--check") => check(&root()),
        Some(other) => bail!("{other}: there is --check and nothing else"),
    }
}

/// The checkout this program was built from.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes every page, and removes pages of causes and sources that are gone.
fn write(root: &Path) -> Result<()> {
    for folder in [CAUSES, COLLECTORS] {
        fs::create_dir_all(root.join(folder))?;
    }
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

/// Files in the folders of causes and sources that the code does not give.
fn strays(root: &Path, pages: &BTreeMap<String, String>) -> Vec<String> {
    let files = |folder| fs::read_dir(root.join(folder)).into_iter().flatten().filter_map(Result::ok);
    let path = |folder, entry: fs::DirEntry| format!("{folder}/{}", entry.file_name().to_string_lossy());
    let mut found: Vec<String> = [CAUSES, COLLECTORS]
        .into_iter()
        .flat_map(|folder| files(folder).map(move |entry| path(folder, entry)))
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
    pages.insert(format!("{CAUSES}/links.md"), links());
    pages.insert("docs/collectors.md".to_owned(), collectors());
    pages.extend(SOURCES.iter().map(|source| (format!("{COLLECTORS}/{}.md", source.name), metrics(source))));
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
    text += "# Causes\n\nThe causes that holdup finds, clears, or reports as not judged, in the order in which a request \
             meets them. The second column says which sources to watch.\n\n| cause | what is needed |\n|---|---|\n";
    for page in explain::pages() {
        let needs =
            page.sections.iter().find(|(heading, _)| *heading == "What is needed").map(|(_, text)| text.as_str());
        text += &format!("| [{}]({1}.md): `{1}` | {2} |\n", page.title, page.cause, needs.unwrap_or_default());
    }
    text
}

/// Which cause may follow from which, and which others it adds to.
fn links() -> String {
    let mut text = made_of("crates/holdup-diagnose/src/causes/");
    text += "# Which cause may follow from which\n\n[How a verdict links causes](../verdict/links.md) says when one of these \
             links counts. The nearest cause stands first.\n\n| cause | may follow from | adds to |\n|---|---|---|\n";
    for cause in Cause::ALL {
        let of = cause.definition();
        let mut from: Vec<String> = Vec::new();
        for edge in of.follows_from {
            let behind_app = edge.from.iter().copied().flatten().any(|origin| *origin == Origin::AnyBehindApp);
            let others = behind_app.then(|| "any other cause behind the app".to_owned());
            let named = Edge::causes(edge).into_iter().map(link).chain(others);
            named.for_each(|name| {
                if !from.contains(&name) {
                    from.push(name)
                }
            });
        }
        let adds_to = |limit: &Cause| of.adds_to.iter().flat_map(|c| c.to).copied().flatten().any(|o| o.has(*limit));
        let to: Vec<String> = Cause::ALL.iter().copied().filter(adds_to).map(link).collect();
        if !from.is_empty() || !to.is_empty() {
            text += &format!("| {} | {} | {} |\n", link(*cause), from.join(", "), to.join(", "));
        }
    }
    text
}

fn link(cause: Cause) -> String {
    format!("[`{cause}`]({cause}.md)")
}

fn collectors() -> String {
    let mut text = made_of("crates/holdup-collect/src/watch.rs and crates/holdup-recording/src/metrics/");
    text += "# Sources\n\nThe addresses that `--watch` takes, and `watch:` in a scenario. `holdup doctor` proposes the list \
             for a machine.\n\n";
    text += "| `--watch` | is |\n|---|---|\n";
    for (_, example, what, _) in SCHEMES {
        text += &format!("| `{example}` | {what} |\n");
    }
    text += "\n## Metrics\n\nThe names in the table \
             [samples](recording/tables.md#samples-one-raw-counter-or-gauge-at-one-instant), by source. A counter only grows until its \
             source restarts. A histogram is two counters, `_count` and `_sum`. `…*` stands for all names that begin so.\n\n";
    text.extend(SOURCES.iter().map(|source| format!("- [{}](collectors/{}.md)\n", source.title, source.name)));
    text
}

/// The metrics of one source.
fn metrics(source: &Source) -> String {
    let file = source.name.replace('-', "_");
    let mut text = made_of(&format!("crates/holdup-recording/src/metrics/{file}.rs"));
    text += &format!("# {}\n\n[All sources](../collectors.md)\n\n", source.title);
    text += "| metric | kind | unit | |\n|---|---|---|---|\n";
    for Metric { name, kind, unit, description, .. } in source.metrics {
        text += &format!("| `{name}` | {kind} | {unit} | {description} |\n");
    }
    for Family { prefix, unit, description, .. } in source.families {
        text += &format!("| `{prefix}*` | | {unit} | {description} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_what_the_code_gives() {
        check(&root()).expect("run: cargo xtask docs");
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
        assert!(pages["docs/collectors/host.md"].contains("| `system_threads` | gauge | count |"));
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
