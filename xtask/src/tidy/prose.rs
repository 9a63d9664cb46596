//! Counts the sentences that readers stumble over. No check tells good prose from bad; these patterns were the worst of what was found
//! here, so their number may only fall.

use std::collections::BTreeMap;

use super::Source;

/// Words and phrases that hide the actor or turn a sentence around. Blanks make them whole words.
const PATTERNS: [&str; 14] = [
    " nobody ",
    " anybody ",
    " whoever ",
    " somebody ",
    " is no ",
    " are no ",
    " is none",
    " are none",
    " is of ",
    " are of ",
    " is told ",
    " are told ",
    " as it ever was",
    " what it is ",
];

/// How the name of a test begins that makes a riddle of what it shows.
const RIDDLES: [&str; 4] = ["what ", "who ", "whose ", "whoever "];

/// Words of a sentence at most, in documents and help.
const WORDS: usize = 30;

/// For each area the number of such places: documents, the commands' help, strings and comments of the crates, names of tests.
pub fn places(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for source in sources {
        for (area, text) in areas(source) {
            let long = if matches!(area, "docs" | "help") { long_sentences(&text) } else { 0 };
            *counts.entry(area.to_owned()).or_default() += phrases(&text) + long;
        }
        if source.path.ends_with(".rs") {
            let is_riddle = |name: &String| RIDDLES.iter().any(|opening| name.starts_with(opening));
            let places = |name: String| phrases(&name) + usize::from(is_riddle(&name));
            *counts.entry("tests".to_owned()).or_default() += test_names(&source.text).map(places).sum::<usize>();
        }
    }
    counts.retain(|_, count| *count > 0);
    counts
}

/// The prose of a file by area.
fn areas(source: &Source) -> Vec<(&'static str, String)> {
    let path = source.path.as_str();
    if is_document(path) {
        return vec![("docs", paragraphs(&source.text))];
    }
    if !(path.starts_with("crates/") && path.ends_with(".rs") && path.contains("/src/")) || path.contains("/tests") {
        return Vec::new();
    }
    let comment =
        |line: &str| line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']).to_owned());
    let comments: Vec<String> = source.product_lines().filter_map(comment).collect();
    let strings: Vec<&str> =
        source.product_lines().filter(|line| comment(line).is_none() && line.contains('"')).collect();
    let said = if path.starts_with("crates/holdup/src/commands/") { "help" } else { "comments" };
    // A help text is a paragraph of its own.
    let lines = if said == "help" { comments.join(".\n") } else { comments.join("\n") };
    vec![(said, lines), ("strings", strings.join("\n"))]
}

/// The names of tests, as sentences.
fn test_names(text: &str) -> impl Iterator<Item = String> {
    let mut is_test = false;
    text.lines().map(str::trim_start).filter_map(move |line| {
        if line.starts_with("#[") || line.starts_with("//") {
            is_test |= line.starts_with("#[test]") || line.starts_with(concat!("#[holdup_witness::jud", "ged"));
            return None;
        }
        let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
        std::mem::take(&mut is_test).then(|| name.replace('_', " "))
    })
}

/// Written by hand, and for users: not the journal, nor what the code gives.
fn is_document(path: &str) -> bool {
    let generated = path.starts_with("docs/causes/") || path == "docs/collectors.md";
    let user = !path.contains('/') || path.starts_with("docs/") && !path.starts_with("docs/journal/");
    path.ends_with(".md") && user && !generated
}

/// Without code, tables and headings; a list's item and a paragraph end in a full stop.
fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    let mut in_code = false;
    for line in text.lines() {
        let start = line.trim_start();
        in_code ^= start.starts_with("```");
        let is_prose = !in_code && !line.starts_with("    ") && !start.starts_with(['|', '#', '`']);
        if start.is_empty() || start.starts_with("- ") || !is_prose {
            out.push_str(". ");
        }
        if is_prose {
            out.push_str(start);
            out.push(' ');
        }
    }
    out
}

fn phrases(text: &str) -> usize {
    let lower = format!(" {} ", text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" "));
    PATTERNS.iter().map(|pattern| lower.matches(pattern).count()).sum()
}

fn long_sentences(text: &str) -> usize {
    let ended = text.replace(".\n", ". ").replace(['?', '!', ':', ';'], ".");
    ended.split(". ").filter(|sentence| sentence.split_whitespace().count() > WORDS).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(path: &str, text: &str) -> BTreeMap<String, usize> {
        places(&[Source { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn each_area_is_counted_for_itself() {
        let code = "/// Whoever asks.\n/// What nobody wants\nfn a() { let b = \"it is no name\"; }\n#[cfg(test)]\nmod tests {\n// nobody \n}\n";
        let expected = |pairs: &[(&str, usize)]| pairs.iter().map(|(area, n)| ((*area).to_owned(), *n)).collect();
        assert_eq!(places_of("crates/a/src/b.rs", code), expected(&[("comments", 2), ("strings", 1)]));
        assert_eq!(places_of("crates/holdup/src/commands/b.rs", code), expected(&[("help", 2), ("strings", 1)]));
        assert!(places_of("crates/a/tests/b.rs", code).is_empty());
    }

    #[test]
    fn names_of_tests_are_sentences() {
        let code =
            "#[test]\nfn what_is_none() {}\n#[test]\n#[should_panic]\nfn errors_name_the_line() {}\nfn who_asks() {}\n";
        assert_eq!(places_of("crates/a/tests/b.rs", code).get("tests"), Some(&2));
    }

    #[test]
    fn a_document_is_read_without_code_and_tables() {
        let long = "word ".repeat(WORDS + 1);
        assert_eq!(places_of("docs/a.md", &format!("{long}.\n")).get("docs"), Some(&1));
        let short = "word ".repeat(WORDS / 2 + 1);
        for text in [
            format!("{short}\n\n{short}\n"),
            format!("- {short}\n- {short}\n"),
            format!("```\n{long}\n```\n"),
            format!("| {long} |\n"),
        ] {
            assert!(places_of("docs/a.md", &text).is_empty(), "{text}");
        }
        assert!(places_of("docs/journal/a.md", "nobody is of it").is_empty());
    }
}
