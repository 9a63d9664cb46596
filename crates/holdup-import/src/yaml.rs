//! Writes YAML for people: block style, short maps and lists on one line, quotes only where they
//! are needed, comments. Any reader of YAML 1.2 gets back exactly the original texts.

use std::fmt::Write as _;

use serde_json::Value as Json;

/// A value to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Yaml {
    /// As it is: a number, a duration, `true`. The caller guarantees that it is valid.
    Plain(String),
    /// Any text; quoted if necessary.
    Text(String),
    /// Any text, always in quotes: for JSON, where an unquoted text may be a number.
    Quoted(String),
    List(Vec<Yaml>),
    /// A key that begins with `#` and has the empty [`Yaml::Plain`] is a comment above the next
    /// entry.
    Map(Vec<(String, Yaml)>),
    /// A map or list that stands on one line if that is short.
    Short(Box<Yaml>),
}

/// Widest line of a [`Yaml::Short`].
const WIDTH: usize = 110;

impl Yaml {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn plain(value: impl ToString) -> Self {
        Self::Plain(value.to_string())
    }

    pub fn short(self) -> Self {
        Self::Short(Box::new(self))
    }

    /// A map of texts.
    pub fn texts(entries: &[(String, String)]) -> Self {
        Self::Map(entries.iter().map(|(k, v)| (k.clone(), Self::text(v.clone()))).collect())
    }

    /// The value of a JSON document; `depth` is the nesting that is still allowed.
    pub fn json(value: &Json, depth: usize) -> Self {
        match value {
            Json::Null => Self::plain("null"),
            Json::Bool(b) => Self::plain(b),
            Json::Number(n) => Self::plain(n),
            Json::String(s) if s.contains("${") => Self::Quoted(s.clone()),
            Json::String(s) => Self::text(s.clone()),
            _ if depth == 0 => Self::text(value.to_string()),
            Json::Array(items) => Self::List(items.iter().map(|v| Self::json(v, depth - 1)).collect()).short(),
            Json::Object(fields) => {
                Self::Map(fields.iter().map(|(k, v)| (k.clone(), Self::json(v, depth - 1))).collect()).short()
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::List(items) => items.is_empty(),
            Self::Map(entries) => entries.is_empty(),
            Self::Short(inner) => inner.is_empty(),
            Self::Plain(_) | Self::Text(_) | Self::Quoted(_) => false,
        }
    }
}

/// The entries of a document's top level, each with a comment above it (which may be empty).
pub fn document(entries: &[(String, Yaml)]) -> String {
    let mut out = String::new();
    map(&mut out, entries, 0, false);
    out
}

/// The comment, if the entry is one.
fn remark<'a>(key: &'a str, value: &Yaml) -> Option<&'a str> {
    if matches!(value, Yaml::Plain(text) if text.is_empty()) { key.strip_prefix('#') } else { None }
}

/// Writes a comment, each line with `#`, at an indentation. Removes characters that could end the
/// line or the comment.
pub fn comment(out: &mut String, text: &str, indent: usize) {
    for line in text.split('\n') {
        let clean: String = line.chars().map(|c| if is_printable(c) && c != '\t' { c } else { ' ' }).collect();
        let _ = writeln!(out, "{:indent$}# {}", "", clean.trim_end());
    }
}

fn map(out: &mut String, entries: &[(String, Yaml)], indent: usize, mut is_inline: bool) {
    for (key, value) in entries {
        if let Some(text) = remark(key, value) {
            // The first entry of a list item stands behind its dash, which leaves no line for a
            // comment.
            if !is_inline {
                comment(out, text.trim_start(), indent);
            }
            continue;
        }
        if !std::mem::take(&mut is_inline) {
            let _ = write!(out, "{:indent$}", "");
        }
        out.push_str(&scalar(key, true, 0));
        out.push(':');
        under(out, value, indent + 2);
    }
}

/// A value behind a key.
fn under(out: &mut String, value: &Yaml, deeper: usize) {
    let column = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    match value {
        Yaml::Plain(text) => {
            let _ = writeln!(out, " {text}");
        }
        Yaml::Text(text) => {
            let _ = writeln!(out, " {}", scalar(text, false, deeper));
        }
        Yaml::Quoted(text) => {
            let _ = writeln!(out, " {}", in_quotes(text));
        }
        _ if value.is_empty() => {
            let _ = writeln!(out, " {}", flow(value));
        }
        Yaml::Short(inner) => {
            let line = flow(inner);
            if column + 1 + line.chars().count() <= WIDTH && !line.contains('\n') && is_flat(inner) {
                let _ = writeln!(out, " {line}");
            } else {
                under(out, inner, deeper);
            }
        }
        Yaml::Map(entries) => {
            out.push('\n');
            map(out, entries, deeper, false);
        }
        Yaml::List(items) => {
            out.push('\n');
            list(out, items, deeper);
        }
    }
}

fn list(out: &mut String, items: &[Yaml], indent: usize) {
    for item in items {
        let mut item = item;
        if let Yaml::Map(entries) = item
            && let Some((key, value)) = entries.first()
            && let Some(text) = remark(key, value)
        {
            comment(out, text.trim_start(), indent);
        }
        let _ = write!(out, "{:indent$}-", "");
        if let Yaml::Short(inner) = item {
            let line = flow(inner);
            if indent + 2 + line.chars().count() <= WIDTH && !line.contains('\n') && is_flat(inner) {
                let _ = writeln!(out, " {line}");
                continue;
            }
            item = inner;
        }
        match item {
            Yaml::Map(entries) if !entries.is_empty() => {
                out.push(' ');
                map(out, entries, indent + 2, true);
            }
            Yaml::List(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, indent + 2);
            }
            other => under(out, other, indent + 2),
        }
    }
}

/// Whether a value can stand on one line: comments cannot.
fn is_flat(value: &Yaml) -> bool {
    match value {
        Yaml::Plain(_) | Yaml::Text(_) | Yaml::Quoted(_) => true,
        Yaml::Short(inner) => is_flat(inner),
        Yaml::List(items) => items.iter().all(is_flat),
        Yaml::Map(entries) => entries.iter().all(|(key, value)| remark(key, value).is_none() && is_flat(value)),
    }
}

/// The value on one line.
fn flow(value: &Yaml) -> String {
    match value {
        Yaml::Plain(text) => text.clone(),
        Yaml::Text(text) => scalar(text, true, 0),
        Yaml::Quoted(text) => in_quotes(text),
        Yaml::Short(inner) => flow(inner),
        Yaml::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Yaml::Map(entries) => {
            let fields = entries.iter().filter(|(key, value)| remark(key, value).is_none());
            let fields: Vec<String> = fields.map(|(k, v)| format!("{}: {}", scalar(k, true, 0), flow(v))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// A text as a scalar; `is_flow` if it stands in a map or list on one line, or is a key. A block
/// may follow at `deeper`.
fn scalar(text: &str, is_flow: bool, deeper: usize) -> String {
    if is_plain(text, is_flow) {
        return text.to_owned();
    }
    if text.contains('\n') && !is_flow && fits_block(text) {
        return block(text, deeper);
    }
    in_quotes(text)
}

fn in_quotes(text: &str) -> String {
    if text.chars().all(|c| is_printable(c) && c != '\t') {
        if text.contains('\'') && !text.contains(['"', '\\']) {
            return format!("\"{text}\"");
        }
        return format!("'{}'", text.replace('\'', "''"));
    }
    escaped(text)
}

/// Whether it needs no quotes.
fn is_plain(text: &str, is_flow: bool) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let is_indicator = "-?:,[]{}#&*!|>'\"%@`".contains(first);
    let looks_like_another = matches!(
        text.to_ascii_lowercase().as_str(),
        "~" | "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "=" | "<<" | ".inf" | ".nan"
    ) || looks_like_number(text);
    !(is_indicator
        || looks_like_another
        || text.starts_with(' ')
        || text.ends_with([' ', ':'])
        || text.starts_with("---")
        || text.starts_with("...")
        || text.contains(": ")
        || text.contains(" #")
        || text.chars().any(|c| !is_printable(c) || c == '\t')
        || (is_flow && text.contains(['{', '}', '[', ']', ',', '"', '\'', ':', '#'])))
}

/// Whether some reader of YAML, 1.1 or 1.2, would take it for a number, a date or a time.
fn looks_like_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-', '.']);
    let only = |extra: &str| digits.chars().all(|c| c.is_ascii_digit() || extra.contains(c));
    digits.starts_with(|c: char| c.is_ascii_digit())
        && (text.parse::<f64>().is_ok()
            || only("_:.") && text.matches('.').count() < 2
            || only("-")
            || (digits.starts_with("0x") || digits.starts_with("0o") || digits.starts_with("0b"))
            || digits.as_bytes().get(4) == Some(&b'-'))
}

fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{85}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
        || c == '\t'
}

/// Whether a text of several lines can stand as a literal block.
fn fits_block(text: &str) -> bool {
    text.lines().next().is_some_and(|first| !first.is_empty() && !first.starts_with([' ', '\t']))
        && text.chars().all(|c| c == '\n' || is_printable(c))
        && text.split('\n').all(|line| !line.starts_with('\t') && (line.is_empty() || !line.trim().is_empty()))
}

fn block(text: &str, indent: usize) -> String {
    let body = text.trim_end_matches('\n');
    let chomp = match text.len() - body.len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let mut out = format!("|{chomp}");
    let whole = if chomp == "+" { &text[..text.len() - 1] } else { body };
    for line in whole.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            let _ = write!(out, "{:indent$}{line}", "");
        }
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c if (c as u32) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    /// Texts that have caught writers of YAML out before.
    const HARD: &[&str] = &[
        "",
        " ",
        "a",
        " a",
        "a ",
        "- a",
        "-",
        "-a",
        "?",
        "? a",
        ":",
        "a:",
        "a: b",
        "a:b",
        "a #b",
        "#b",
        "a#b",
        "'",
        "\"",
        "'a'",
        "it's",
        "\"a\" 'b'",
        "a\\b'",
        "${x}",
        "{a}",
        "[a]",
        "a, b",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "~",
        "null",
        "Null",
        "true",
        "yes",
        "1",
        "1.5",
        "-1",
        "0x1f",
        "1e5",
        "2020-01-01",
        "12:30",
        ".5",
        "+1",
        "---",
        "--- a",
        "...",
        "a\nb",
        "a\nb\n",
        "a\nb\n\n",
        "\na",
        "\n",
        " a\nb",
        "a\n b\n",
        "a\n\n\nb",
        "a\r\nb",
        "a\tb",
        "\ta",
        "a\n\tb",
        "a\n \nb",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}x",
        "\u{1}",
        "äöü",
        "日本",
        "\u{1f600}",
        "=",
        "<<",
        "a: ${b(1, 2)} #c",
        "{\"a\": [1, \"${x}\"]}",
        "a\n# b",
        "key: |",
        "a  \nb",
    ];

    fn read(text: &str) -> document::Node {
        document::yaml(text, "f").unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    #[test]
    fn any_text_comes_back_as_it_was() {
        for text in HARD {
            for value in
                [Yaml::text(*text), Yaml::List(vec![Yaml::text(*text)]), Yaml::List(vec![Yaml::text(*text)]).short()]
            {
                let is_list = !matches!(value, Yaml::Text(_));
                let inner = Yaml::Map(vec![((*text).to_owned(), value.clone())]);
                let all = [("a".to_owned(), value), ("b".to_owned(), inner.clone()), ("c".to_owned(), inner.short())];
                let written = document(&all);
                let node = read(&written);
                let found = node.get("a").unwrap();
                let found = if is_list { found.items().first().unwrap_or_else(|| panic!("{written}")) } else { found };
                assert_eq!(found.as_text().as_deref(), Some(*text), "{written}");
                for key in ["b", "c"] {
                    let (name, value) = &node.get(key).unwrap().entries()[0];
                    let value = if is_list { &value.items()[0] } else { value };
                    assert_eq!((name.as_str(), value.as_text().as_deref()), (*text, Some(*text)), "{written}");
                }
            }
        }
    }

    #[test]
    fn short_things_stand_on_one_line() {
        let inner = Yaml::Map(vec![("a".to_owned(), Yaml::plain(1)), ("b c".to_owned(), Yaml::text("x, y"))]);
        let list = Yaml::List(vec![inner.clone().short(), inner.clone()]);
        let written =
            document(&[("m".to_owned(), inner.short()), ("#why".to_owned(), Yaml::plain("")), ("l".to_owned(), list)]);
        assert_eq!(written, "m: {a: 1, b c: 'x, y'}\n# why\nl:\n  - {a: 1, b c: 'x, y'}\n  - a: 1\n    b c: x, y\n");
    }

    #[test]
    fn a_comment_stays_one() {
        let mut out = String::new();
        comment(&mut out, "a\nb: c\r\u{2028}d\u{0}", 2);
        assert_eq!(out, "  # a\n  # b: c  d\n");
    }
}
