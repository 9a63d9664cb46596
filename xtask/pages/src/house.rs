//! Files of rules against their list: every rule is registered, named for its file, and documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use holdup_diagnose::rules;

const RULES: &str = "crates/holdup-diagnose/src/rules";

/// What is wrong with the rules.
pub fn rules(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(RULES))? {
        let path = entry?.path();
        if let (Some("rs"), Some(name)) = (path.extension().and_then(|e| e.to_str()), path.file_stem()) {
            files.push((name.to_string_lossy().into_owned(), fs::read_to_string(&path)?));
        }
    }
    files.sort();
    let registered: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.cause).collect();
    let mut problems = registry(&files, &registered);
    let sections = rules::ALL.iter().map(|rule| (rule.cause, rule.doc.title, rule.doc.sections().to_vec()));
    problems.extend(sections.flat_map(|(cause, title, sections)| undocumented(cause, title, &sections)));
    Ok(problems)
}

/// Of files, by name, those with a rule that is not in the list, and listed causes without a file of that name.
fn registry(files: &[(String, String)], registered: &BTreeSet<&str>) -> Vec<String> {
    let with_rule = files.iter().filter(|(_, text)| text.contains("pub const RULE: Rule"));
    let files: BTreeSet<&str> = with_rule.map(|(name, _)| name.as_str()).collect();
    let unlisted = files.difference(registered).map(|file| format!("{RULES}/{file}.rs: its rule is not in rules::ALL"));
    let unfiled =
        registered.difference(&files).map(|cause| format!("{cause}: no file {RULES}/{cause}.rs has its rule"));
    unlisted.chain(unfiled).collect()
}

/// Sections of a cause's page that say nothing.
fn undocumented(cause: &str, title: &str, sections: &[(&str, &str)]) -> Vec<String> {
    let title = ("title", title);
    let named = std::iter::once(&title).chain(sections);
    named
        .filter(|(_, text)| text.trim().is_empty())
        .map(|(heading, _)| format!("{cause}: \"{heading}\" of its docs is empty"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule_file(name: &str) -> (String, String) {
        (name.to_owned(), "//! x\npub const RULE: Rule = Rule {".to_owned())
    }

    #[test]
    fn a_rule_must_be_listed_and_filed() {
        let listed = BTreeSet::from(["a", "b"]);
        let parts = ("timing".to_owned(), "//! Shared parts, no rule.".to_owned());
        assert!(registry(&[rule_file("a"), rule_file("b"), parts], &listed).is_empty());
        let problems = registry(&[rule_file("a"), rule_file("c")], &listed);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("rules/c.rs: its rule is not in rules::ALL"));
        assert!(problems[1].starts_with("b: no file"));
    }

    #[test]
    fn an_empty_section_is_named() {
        assert!(undocumented("a", "A", &[("What it is", "x")]).is_empty());
        assert_eq!(undocumented("a", "", &[("What it is", " ")]).len(), 2);
    }
}
