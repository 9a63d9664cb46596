//! Pieces of holdup's templates, correctly quoted.

use std::collections::{HashMap, HashSet};

/// Functions and words with a fixed meaning: no variable should have these names.
const TAKEN: [&str; 33] = [
    "add",
    "and",
    "base64",
    "base64url",
    "default",
    "env",
    "exists",
    "hex",
    "hmac",
    "in",
    "item",
    "json",
    "jwt",
    "length",
    "lower",
    "not",
    "now",
    "number",
    "or",
    "pad",
    "pick",
    "random",
    "random_hex",
    "random_text",
    "secret",
    "session",
    "sha256",
    "template",
    "upper",
    "url",
    "uuid",
    "contains",
    "matches",
];

/// Words that conditions take for a response's.
const SUBJECTS: [&str; 5] = ["status", "body", "header", "size", "rows"];

/// A text that is sent as it is.
pub fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// A text in quotes, as functions and conditions take it. A backslash is doubled only where it
/// would mean something.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    quoted_by(text, quote)
}

/// The same in double quotes.
pub fn double_quoted(text: &str) -> String {
    quoted_by(text, if text.contains('"') && !text.contains('\'') { '\'' } else { '"' })
}

fn quoted_by(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars
                .peek()
                .is_none_or(|next| matches!(next, '\\' | 'n' | 'r' | 't' | '\n' | '\r' | '\t') || *next == quote) =>
            {
                out.push_str("\\\\");
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// The names that one scenario already uses.
#[derive(Debug, Default)]
pub struct UsedNames {
    names: HashSet<String>,
    /// The number for the next name like it.
    next: HashMap<String, u32>,
}

impl UsedNames {
    /// A name like `wanted` that a template can use and that is still free.
    pub fn name(&mut self, wanted: &str) -> String {
        let wanted = identifier(wanted);
        let mut name = wanted.clone();
        let next = self.next.entry(wanted.clone()).or_insert(2);
        while TAKEN.contains(&name.as_str()) || SUBJECTS.contains(&name.as_str()) || self.names.contains(&name) {
            name = format!("{wanted}_{next}");
            *next += 1;
        }
        self.names.insert(name.clone());
        name
    }
}

/// `text` with `_` for all characters that a name cannot have.
pub fn identifier(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(60) {
        if c.is_ascii_alphanumeric() || c == '_' {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    if name.trim_matches('_').is_empty() {
        return "value".to_owned();
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// `text` as the name of an operation or a group: one line, no templates.
pub fn label(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        out.push_str("{}");
        rest = &rest[at + crate::target::template_end(&rest[at..]).unwrap_or(rest.len() - at)..];
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    words.join(" ").chars().take(120).collect()
}

/// Every word within a template in `text`.
pub fn words(text: &str) -> HashSet<String> {
    let inner = text.split("${").skip(1).map(|rest| rest.split('}').next().unwrap_or(rest));
    let words = inner.flat_map(|t| t.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')));
    words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_fit_and_differ() {
        let mut names = UsedNames::default();
        let names: Vec<String> =
            ["user.name", "user name", "uuid", "1st", "ö", "status"].iter().map(|n| names.name(n)).collect();
        assert_eq!(names, ["user_name", "user_name_2", "uuid_2", "_1st", "value", "status_2"]);
    }

    #[test]
    fn labels_hold_no_templates() {
        assert_eq!(label("order ${id}\n of ${x} "), "order {} of {}");
        assert_eq!(label("order ${id"), "order {}");
    }

    #[test]
    fn quotes_and_backslashes() {
        let cases = [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("\\d+", "'\\d+'"),
            ("\\n", "'\\\\n'"),
            ("a\nb", "'a\\nb'"),
            ("a\\", "'a\\\\'"),
        ];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected);
        }
    }
}
