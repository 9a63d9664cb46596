//! A statement in parts: without comments, by verbs, apart from its subqueries.

use super::Pieces;
use crate::TokenKind;

/// The statement without comments; code in comments stays. Here `--` begins a comment even without
/// a blank behind it.
pub fn strip_comments(sql: &str) -> String {
    let (mut text, mut rest) = (String::new(), sql);
    let mut quote = None;
    while let Some(letter) = rest.chars().next() {
        let length = letter.len_utf8();
        match quote {
            Some(open) => {
                if letter == '\\' {
                    let escaped = rest.chars().nth(1).map_or(0, char::len_utf8);
                    text.push_str(rest.get(..length + escaped).unwrap_or_default());
                    rest = rest.get(length + escaped..).unwrap_or_default();
                    continue;
                }
                if letter == open {
                    quote = None;
                }
            }
            None if rest.starts_with("--") || letter == '#' => {
                rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
                // Words on both sides of its line break stay separate.
                continue;
            }
            None if rest.starts_with("/*") && !rest.starts_with("/*!") => {
                rest = rest.find("*/").and_then(|end| rest.get(end + 2..)).unwrap_or_default();
                continue;
            }
            None if matches!(letter, '\'' | '"' | '`') => quote = Some(letter),
            None => {}
        }
        text.push(letter);
        rest = rest.get(length..).unwrap_or_default();
    }
    text
}

/// The statement split at its verbs, e.g. `insert into a ` and `select …`, without comments and
/// with single blanks.
pub fn split(sql: &str) -> Vec<String> {
    let words: Vec<String> = strip_comments(sql).split_whitespace().map(str::to_owned).collect();
    let sql = words.join(" ");
    let pieces = Pieces::new(&sql);
    let begins = |at: usize| {
        let is_top = pieces.all.get(at).is_some_and(|piece| piece.depth == 0);
        let is_call = pieces.kind(at + 1) == Some(TokenKind::Open);
        let goes_on = at > 0 && (pieces.is(at - 1, &["key", "for"]) || pieces.kind(at - 1) == Some(TokenKind::Dot));
        is_top
            && !is_call
            && !goes_on
            && pieces
                .is(at, &["select", "insert", "update", "delete", "replace", "create", "alter", "drop", "truncate"])
    };
    let mut cuts: Vec<usize> = (1..pieces.all.len()).filter(|at| begins(*at)).map(|at| pieces.from(at)).collect();
    cuts.push(sql.len());
    let mut from = 0;
    cuts.into_iter()
        .map(|to| sql.get(std::mem::replace(&mut from, to)..to).unwrap_or_default().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

/// The statement with a name for each of its subqueries, followed by the subqueries.
pub fn split_subqueries(sql: &str) -> Vec<String> {
    let pieces = Pieces::new(sql);
    let (mut main, mut from, mut found) = (String::new(), 0, Vec::new());
    let mut at = 0;
    while at < pieces.all.len() {
        if pieces.kind(at) == Some(TokenKind::Open)
            && pieces.is(at + 1, &["select"])
            && let Some(close) = pieces.close(at)
        {
            found.push(pieces.between(at, close).to_owned());
            main.push_str(sql.get(from..pieces.to(at)).unwrap_or_default());
            main.push_str(&format!("__subquery_{}", found.len()));
            from = pieces.from(close);
            at = close;
        }
        at += 1;
    }
    main.push_str(sql.get(from..).unwrap_or_default());
    let main = main.trim_end().trim_end_matches(';').to_owned();
    std::iter::once(main).chain(found).collect()
}
