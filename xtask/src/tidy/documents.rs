//! Documents by themselves: links that lead nowhere, pages that are too long to find something in, and entries of the journal
//! that its index leaves out. What a page says is not looked at here.

use std::collections::BTreeSet;
use std::path::Path;

use super::Source;

/// Words of a page in `docs/`. Pages that the code gives, and the index of the journal, may be longer.
const PAGE_WORDS: usize = 1_500;

const JOURNAL: &str = "docs/journal/";

/// Everything wrong with the documents.
pub fn problems(root: &Path, sources: &[Source]) -> Vec<String> {
    let documents: Vec<&Source> = sources.iter().filter(|source| source.path.ends_with(".md")).collect();
    let mut problems: Vec<String> = documents.iter().flat_map(|page| dead_links(root, page, &documents)).collect();
    problems.extend(documents.iter().filter_map(|page| too_long(page)));
    problems.extend(entries_without_a_place(&documents));
    problems
}

fn dead_links(root: &Path, page: &Source, documents: &[&Source]) -> Vec<String> {
    let is_dead = |link: &&str| {
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() { page.path.clone() } else { resolved(&page.path, path) };
        let has = |source: &&&Source| source.path == target && anchors(&source.text).contains(heading);
        !root.join(&target).exists() || (!heading.is_empty() && !documents.iter().any(|d| has(&d)))
    };
    let prose = prose(&page.text);
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.trim());
    let relative = links.filter(|link| !link.contains(':') && !link.contains(' '));
    relative.filter(is_dead).map(|link| format!("{}: {link} leads nowhere", page.path)).collect()
}

/// Text without code: blocks, indented lines, and what stands between backticks.
fn prose(text: &str) -> String {
    let mut in_block = false;
    let mut lines = String::new();
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        if !in_block && !line.starts_with("    ") {
            lines.extend(line.split('`').step_by(2));
            lines.push(' ');
        }
    }
    lines
}

/// A relative path, from the folder of `page`.
fn resolved(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// What a link may name after `#`: headings as GitHub writes them, and ids.
fn anchors(text: &str) -> BTreeSet<String> {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(|c| kept(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
    });
    let ids = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id.to_owned());
    headings.chain(ids).collect()
}

fn too_long(page: &Source) -> Option<String> {
    let is_page = page.path.starts_with("docs/") && !page.path.starts_with(JOURNAL);
    let is_made = page.text.contains("<!-- Made of ") || page.text.contains("<!-- kinds -->");
    let words = page.text.split_whitespace().count();
    (is_page && !is_made && words > PAGE_WORDS)
        .then(|| format!("{}: {words} words; divide it by question, at most {PAGE_WORDS} a page", page.path))
}

fn entries_without_a_place(documents: &[&Source]) -> Vec<String> {
    let journal = documents.iter().filter_map(|page| Some((page.path.strip_prefix(JOURNAL)?, page.text.as_str())));
    let (index, entries): (Vec<_>, Vec<_>) = journal.partition(|(name, _)| *name == "README.md");
    let places = |name: &str| index.iter().map(|(_, text)| text.matches(&format!("]({name})")).count()).sum::<usize>();
    let is_wrong = |name: &&str| places(name) != 1;
    entries
        .into_iter()
        .map(|(name, _)| name)
        .filter(is_wrong)
        .map(|name| format!("{JOURNAL}{name}: README.md there has to list it once, by its subject"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_link_needs_its_file_and_its_heading() {
        let root = crate::root();
        let found = |text: &str| problems(&root, &[page("docs/README.md", text)]);
        let good = "[a](../LICENSE) [b](#how-it-is-c) [c](https://h/x#y) `[d](gone.md)`\n\n## How it is, `c`\n";
        assert_eq!(found(good), [""; 0]);
        assert_eq!(found("[a](gone.md)\n"), ["docs/README.md: gone.md leads nowhere"]);
        assert_eq!(found("[a](#gone)\n"), ["docs/README.md: #gone leads nowhere"]);
    }

    #[test]
    fn a_long_page_and_an_unlisted_entry_are_found() {
        let long = "word ".repeat(PAGE_WORDS + 1);
        let found = |path: &str, text: &str| problems(&crate::root(), &[page(path, text)]).len();
        assert_eq!(found("docs/a.md", &long), 1);
        assert_eq!(found("docs/a.md", &format!("<!-- Made of x -->\n{long}")), 0);
        assert_eq!(found("CHANGELOG.md", &long), 0);
        assert_eq!(found("docs/journal/2026-11-21-known-gaps.md", ""), 1);
        let name = "2026-11-21-known-gaps.md";
        let listed = [page(&format!("{JOURNAL}{name}"), ""), page("docs/journal/README.md", &format!("[a]({name})"))];
        assert_eq!(problems(&crate::root(), &listed), [""; 0]);
    }
}
