//! Checks of files against each other: every rule is registered, named for its file, and documented.

use std::collections::BTreeSet;

use holdup_diagnose::rules;

use super::Source;

const RULES: &str = "crates/holdup-diagnose/src/rules/";

/// What is wrong with the rules.
pub fn rules(sources: &[Source]) -> Vec<String> {
    let registered: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.cause).collect();
    let mut problems = registry(sources, &registered);
    let sections = rules::ALL.iter().map(|rule| (rule.cause, rule.doc.title, rule.doc.sections().to_vec()));
    problems.extend(sections.flat_map(|(cause, title, sections)| undocumented(cause, title, &sections)));
    problems
}

/// Files with a rule that is not in the list, and listed causes without a file of that name.
fn registry(sources: &[Source], registered: &BTreeSet<&str>) -> Vec<String> {
    let files: BTreeSet<&str> = sources
        .iter()
        .filter(|source| source.text.contains("pub const RULE: Rule"))
        .filter_map(|source| source.path.strip_prefix(RULES)?.strip_suffix(".rs"))
        .collect();
    let unlisted = files.difference(registered).map(|file| format!("{RULES}{file}.rs: its rule is not in rules::ALL"));
    let unfiled = registered.difference(&files).map(|cause| format!("{cause}: no file {RULES}{cause}.rs has its rule"));
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

    fn rule_file(name: &str) -> Source {
        Source { path: format!("{RULES}{name}.rs"), text: "//! x\npub const RULE: Rule = Rule {".to_owned() }
    }

    #[test]
    fn a_rule_must_be_listed_and_filed() {
        let listed = BTreeSet::from(["a", "b"]);
        let parts = Source { path: format!("{RULES}timing.rs"), text: "//! Shared parts, no rule.".to_owned() };
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
