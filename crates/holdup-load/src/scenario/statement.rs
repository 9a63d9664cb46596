//! The text of a statement as the scenario writes it: its default name, without the values in it,
//! and its `?` numbered for PostgreSQL. Both happen once, when the scenario is read.
//!
//! It does not check whether a statement is correct: the server does.

use std::borrow::Cow;

use holdup_protocol::database::Dialect;
use holdup_sql::{Lexer, TokenKind};

use crate::script::expression_bytes;
use crate::yaml::{Map, YamlError};

/// Longest name made from a statement, characters.
const LONGEST_NAME: usize = 60;

/// Stands for a template expression while the rest of a text is read: statements can't contain it.
const BLANK: char = '\0';

/// Checks that the scenario of a database uses nothing that only HTTP has.
///
/// # Errors
/// The first such thing, with its line.
pub fn check(map: &Map<'_>, has_steps: bool) -> Result<(), YamlError> {
    if let Some(headers) = map.get("headers") {
        return Err(headers.error("statements have no header fields; remove them"));
    }
    if !has_steps {
        return Err(map.node().error(
            "an access log contains HTTP requests, but the target is a database; use operations, sessions or steps",
        ));
    }
    let http = map.get("http").map_or(Ok(&[][..]), |http| http.entries())?;
    match http.iter().find(|(key, _)| !["tls", "max_response", "keep_alive"].contains(&key.as_str())) {
        Some((key, node)) => Err(node.error(format!(
            "a database does not use HTTP; remove \"{key}\" (only tls, max_response and keep_alive apply)"
        ))),
        None => Ok(()),
    }
}

/// The default name of an operation that executes `text`: its digest text, because names appear in
/// recordings and reports, which must not contain literals.
pub fn name(text: &str, dialect: Dialect) -> String {
    shortened(&digest_text(text, dialect))
}

/// The default name of a transaction of these texts.
pub fn transaction_name(texts: &[&str], dialect: Dialect) -> String {
    let texts: Vec<String> = texts.iter().map(|text| digest_text(text, dialect)).collect();
    shortened(&format!("transaction: {}", texts.join("; ")))
}

/// A name of at most so many characters as names have.
pub fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_NAME {
        return text.to_owned();
    }
    text.chars().take(LONGEST_NAME - 1).collect::<String>() + "…"
}

fn digest_text(text: &str, dialect: Dialect) -> String {
    let (masked, blanks) = masked(text);
    let values = masked.replace(BLANK, "?");
    drop(blanks);
    match dialect {
        Dialect::Mysql => holdup_sql::digest_text(values, holdup_sql::Dialect::MySql),
        // MongoDB has no statements.
        Dialect::Postgres | Dialect::Mongodb => without_values(&values),
    }
}

/// `text` with `{}` in place of every template expression.
pub fn blanked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            // An escaped brace is literal text.
            out.push_str(&rest[..at]);
            out.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        out.push_str("{}");
        rest = &rest[at + expression_bytes(&rest[at..])..];
    }
    out + rest
}

/// A template of a statement with its `?` numbered (`$1`, `$2`, …). Template expressions stay
/// unchanged, whatever they contain.
pub fn numbered(text: &str) -> String {
    let (masked, blanks) = masked(text);
    let numbered = holdup_protocol::database::numbered(&masked);
    let mut out = String::with_capacity(text.len() + 8);
    let mut blanks = blanks.into_iter();
    for (i, part) in numbered.split(BLANK).enumerate() {
        if i > 0 {
            out.push_str(blanks.next().unwrap_or_default());
        }
        out.push_str(part);
    }
    out
}

/// `text` with [`BLANK`] for every template expression, and these expressions. An escaped one
/// (`$${`) is among them, because it must not be changed either.
fn masked(text: &str) -> (String, Vec<&str>) {
    let mut out = String::with_capacity(text.len());
    let mut blanks = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let is_escaped = rest[..at].ends_with('$');
        let from = at - usize::from(is_escaped);
        let length = if is_escaped { 3 } else { expression_bytes(&rest[at..]) };
        out.push_str(&rest[..from]);
        out.push(BLANK);
        blanks.push(&rest[from..from + length]);
        rest = &rest[from + length..];
    }
    (out + rest, blanks)
}

/// PostgreSQL's text without comments, with `?` for every value and single blanks. It stops where
/// the text becomes ambiguous: what a backslash in a string means depends on the server's settings.
fn without_values(text: &str) -> String {
    let mut pieces: Vec<Cow<'_, str>> = Vec::new();
    for token in Lexer::new(text.as_bytes(), holdup_sql::Dialect::PostgreSql) {
        let is_unclosed = token.kind == TokenKind::QuotedName && (token.text.len() < 2 || !token.text.ends_with(b"\""));
        match token.kind {
            TokenKind::Comment => {}
            TokenKind::Literal if !token.text.contains(&b'\\') => pieces.push("?".into()),
            TokenKind::Parameter | TokenKind::ParameterList => pieces.push("?".into()),
            kind if kind == TokenKind::Literal || is_unclosed => {
                pieces.push("…".into());
                break;
            }
            _ => pieces.push(String::from_utf8_lossy(token.text)),
        }
    }
    joined(&pieces)
}

/// Joins pieces with single blanks, but not around dots and inside of parentheses.
fn joined(pieces: &[Cow<'_, str>]) -> String {
    let mut text = String::new();
    let mut is_glued = true;
    for (i, piece) in pieces.iter().enumerate() {
        let sign = |piece: &str| !piece.starts_with(|c: char| c.is_alphanumeric() || "_\"?(".contains(c));
        let follows_sign = i > 0 && sign(piece) && sign(&pieces[i - 1]) && !",();".contains(&*pieces[i - 1]);
        if !(is_glued || follows_sign || matches!(&**piece, "," | ")" | "." | ";")) {
            text.push(' ');
        }
        text.push_str(piece);
        is_glued = matches!(&**piece, "(" | ".");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_blanks() {
        assert_eq!(blanked("/orders/${random(1, 9)}/x/${id}"), "/orders/{}/x/{}");
        assert_eq!(blanked("/plain"), "/plain");
        assert_eq!(blanked("/a/${json('{}')}/b"), "/a/{}/b");
        assert_eq!(blanked("/a/${default(x, '}')}/b"), "/a/{}/b");
        assert_eq!(blanked("/a/${open"), "/a/{}");
        assert_eq!(blanked("/a/$${b}/${c}"), "/a/${b}/{}");
    }

    #[test]
    fn names_hold_no_value() {
        for (text, mysql, postgres) in [
            ("SELECT 1", "SELECT ?", "SELECT ?"),
            ("SELECT  *\n FROM t WHERE id = ?", "SELECT * FROM t WHERE id = ?", "SELECT * FROM t WHERE id = ?"),
            ("SELECT a FROM t WHERE b = '${x}'", "SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b = ?"),
            (
                "SELECT a FROM t WHERE b = ${default(x, '}')}",
                "SELECT a FROM t WHERE b = ?",
                "SELECT a FROM t WHERE b = ?",
            ),
        ] {
            assert_eq!(name(text, Dialect::Mysql), mysql, "{text}");
            assert_eq!(name(text, Dialect::Postgres), postgres, "{text}");
        }
    }

    #[test]
    fn no_byte_of_a_value_is_in_a_name_whatever_way_it_is_quoted() {
        for text in [
            "SELECT 'canary', 'it''s canary', 12canary",
            "SELECT $$canary$$, $x$ canary ' $$ $x$, $1",
            "SELECT E'\\'canary' , 'x\\', 'canary'",
            "SELECT 1 -- canary ' \n, 2 /* canary /* canary */ canary */",
            "SELECT U&'canary', B'canary', 'canary",
            "SELECT 1.5e3, .5, 0xcanary, 1_canary",
            "SELECT $canary$ canary",
            "SELECT 'a'--canary\n, '$${canary}'",
        ] {
            let name = digest_text(text, Dialect::Postgres);
            assert!(name.starts_with("SELECT") && !name.contains("canary") && !name.contains("5"), "{text}: {name}");
        }
        let kept = "SELECT \"Name\", t.x::int FROM s.t WHERE a IN (1, 2) AND b >= 'x'";
        let name = digest_text(kept, Dialect::Postgres);
        assert_eq!(name, "SELECT \"Name\", t.x :: int FROM s.t WHERE a IN (?, ?) AND b >= ?");
    }

    #[test]
    fn long_ones_are_cut() {
        let text = format!("SELECT {} FROM t", "column_name, ".repeat(20));
        assert_eq!(name(&text, Dialect::Mysql).chars().count(), LONGEST_NAME);
        let texts = ["UPDATE t SET a = 5", "INSERT INTO u VALUES ('x')"];
        assert_eq!(
            transaction_name(&texts, Dialect::Postgres),
            "transaction: UPDATE t SET a = ?; INSERT INTO u VALUES (?)"
        );
    }

    #[test]
    fn placeholders_are_counted_around_blanks() {
        for (text, expected) in [
            ("SELECT ? , ?", "SELECT $1 , $2"),
            ("SELECT ${default(x, '?')} + ?", "SELECT ${default(x, '?')} + $1"),
            ("SELECT '${x}?' || ? || '$${?}'", "SELECT '${x}?' || $1 || '$${?}'"),
            ("SELECT ${open ?", "SELECT ${open ?"),
            ("SELECT $1", "SELECT $1"),
        ] {
            assert_eq!(numbered(text), expected);
        }
    }
}
