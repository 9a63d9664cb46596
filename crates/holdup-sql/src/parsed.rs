//! Groups PostgreSQL's statements as a parser groups them (libpg_query's fingerprints, by which
//! other tools store figures). The order of columns, tables, arguments and conditions makes no
//! difference, nor do names given with `AS`, nor whether one value is compared or one of a list. It
//! works on the digest text, clause by clause. It is not a parser, and leaves unknown text as it
//! is.

use crate::{Dialect, Lexer, TokenKind, digest_text};

/// Words that begin a clause and end the previous one.
const CLAUSES: [&str; 18] = [
    "select",
    "from",
    "where",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "set",
    "values",
    "returning",
    "union",
    "intersect",
    "except",
    "for",
    "window",
    "fetch",
    "into",
];
/// Words that may follow a table and are not its alias.
const BEHIND_TABLE: [&str; 14] = [
    "on",
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "natural",
    "using",
    "as",
    "and",
    "or",
    "tablesample",
    "only",
];
/// Types that stand before a literal.
const TYPES: [&str; 5] = ["interval", "date", "time", "timestamp", "timestamptz"];
/// Statements that count as one, whatever they name.
const BARE: [&str; 2] = ["deallocate", "unlisten"];
/// Deepest parentheses that are read.
const MOST_DEPTH: usize = 64;

/// The text shared by all statements that a parser takes for one.
pub fn parsed_text(sql: impl AsRef<[u8]>) -> String {
    let text = digest_text(sql, Dialect::PostgreSql);
    let mut tokens = Lexer::new(text.as_bytes(), Dialect::PostgreSql).map(|token| {
        let word = String::from_utf8_lossy(token.text).into_owned();
        (token.kind, if token.kind == TokenKind::QuotedName { word } else { word.to_ascii_lowercase() })
    });
    let items = level(&mut tokens, 0);
    canonical(items, None)
}

/// A word, a sign, or a group in parentheses.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Word(String),
    Sign(String),
    Group(Vec<Item>),
}

impl Item {
    fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Word(text) | Self::Sign(text) if text == wanted)
    }

    fn is_value(&self) -> bool {
        self.is("?")
            || matches!(self, Self::Group(items) if matches!(items.as_slice(), [one] if one.is("?") || one.is("?+")))
    }
}

fn level(tokens: &mut impl Iterator<Item = (TokenKind, String)>, depth: usize) -> Vec<Item> {
    let mut items = Vec::new();
    while let Some((kind, text)) = tokens.next() {
        match kind {
            TokenKind::Open if depth < MOST_DEPTH => items.push(Item::Group(level(tokens, depth + 1))),
            TokenKind::Close if depth > 0 => break,
            TokenKind::Word | TokenKind::QuotedName => items.push(Item::Word(text)),
            _ => items.push(Item::Sign(text)),
        }
    }
    items
}

/// Rewrites the items of one level; `before` is the item before its parenthesis.
fn canonical(items: Vec<Item>, before: Option<&Item>) -> String {
    if let Some(Item::Word(word)) = items.first()
        && BARE.contains(&word.as_str())
    {
        return word.clone();
    }
    let items = comparisons(items);
    // A type, not a name, follows this `AS`.
    let items = if before.is_some_and(|before| before.is("cast")) { items } else { names_left_out(items) };
    let is_call = matches!(before, Some(Item::Word(word)) if !CLAUSES.contains(&word.as_str()) && word != "in");
    let has_clauses = items.first().is_some_and(|first| CLAUSES.iter().any(|clause| first.is(clause)) || !is_call);
    if !has_clauses {
        return sorted(&items, ",").join(", ");
    }
    let mut out = Vec::new();
    let mut clause = String::new();
    let mut rest = items.as_slice();
    while !rest.is_empty() {
        let end = rest.iter().position(|item| CLAUSES.iter().any(|clause| item.is(clause))).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        match clause.as_str() {
            "select" | "from" | "set" => out.push(sorted(part, ",").join(", ")),
            "where" | "having" => out.push(conditions(part)),
            _ => out.push(plain(part)),
        }
        let Some((Item::Word(next) | Item::Sign(next), behind)) = behind.split_first() else { break };
        clause.clone_from(next);
        out.push(next.clone());
        rest = behind;
    }
    out.retain(|part| !part.is_empty());
    out.join(" ")
}

/// Writes `= ANY (?)` and `IN (?+)` as `= ?`, and drops a type before a literal.
fn comparisons(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in items {
        let before = |out: &[Item], back: usize, word: &str| {
            out.len() >= back && out.get(out.len() - back).is_some_and(|item| item.is(word))
        };
        let value = || Item::Sign("?".to_owned());
        if item.is_value() && before(&out, 1, "any") && before(&out, 2, "=") {
            out.pop();
            out.push(value());
        } else if item.is_value() && before(&out, 1, "in") {
            out.pop();
            let is_not = before(&out, 1, "not");
            if is_not {
                out.pop();
            }
            out.push(Item::Sign(if is_not { "!=" } else { "=" }.to_owned()));
            out.push(value());
        } else if item.is_value() && TYPES.iter().any(|kind| before(&out, 1, kind)) {
            out.pop();
            out.push(value());
        } else if item.is("?") && before(&out, 1, "?") {
            // `INTERVAL (3) ?`: the precision is a value as well.
        } else {
            out.push(item);
        }
    }
    out
}

/// Drops names that columns and tables have for this statement only.
fn names_left_out(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    let (mut is_from, mut items) = (false, items.into_iter().peekable());
    while let Some(item) = items.next() {
        if item.is("as")
            && matches!(items.peek(), Some(Item::Word(next)) if !CLAUSES.contains(&next.as_str()) && next != "with")
        {
            items.next();
            continue;
        }
        if let Item::Word(word) = &item {
            let is_clause = CLAUSES.contains(&word.as_str());
            let behind_table = match out.last() {
                Some(Item::Word(last)) => !CLAUSES.contains(&last.as_str()) && !BEHIND_TABLE.contains(&last.as_str()),
                Some(Item::Group(_)) => true,
                _ => false,
            };
            if is_from && !is_clause && !BEHIND_TABLE.contains(&word.as_str()) && behind_table {
                continue;
            }
            is_from =
                if is_clause { word == "from" } else { is_from && word != "on" || matches!(word.as_str(), "join") };
        }
        out.push(item);
    }
    out
}

/// The parts between a sign or word, as text.
fn parts<'a>(items: &'a [Item], mark: &str) -> Vec<&'a [Item]> {
    // The `AND` of `BETWEEN` separates no parts.
    let mut between = false;
    items
        .split(|item| {
            if item.is("between") {
                between = true;
            }
            let parts = item.is(mark) && !(between && mark == "and");
            if item.is("and") {
                between = false;
            }
            parts
        })
        .collect()
}

fn sorted(items: &[Item], mark: &str) -> Vec<String> {
    let mut texts: Vec<String> = parts(items, mark).into_iter().map(plain).collect();
    texts.sort();
    texts.dedup();
    texts
}

fn conditions(items: &[Item]) -> String {
    let mut any: Vec<String> = parts(items, "or").into_iter().map(|all| sorted(all, "and").join(" and ")).collect();
    any.sort();
    any.dedup();
    any.join(" or ")
}

fn plain(items: &[Item]) -> String {
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        if !out.is_empty() {
            out.push(' ');
        }
        match item {
            Item::Word(text) | Item::Sign(text) => out.push_str(text),
            Item::Group(inner) => {
                let before = index.checked_sub(1).and_then(|index| items.get(index));
                out.push('(');
                out.push_str(&canonical(inner.clone(), before));
                out.push(')');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_given_names_make_no_difference() {
        for (one, other) in [
            ("SELECT a, b FROM t WHERE c = 1 AND d = 2", "select b, a from t as x where d = 7 and c = 'y'"),
            ("select * from a b join c d on b.x = d.x", "select * from a join c on b.x = d.x"),
            ("select 1 from t where a in (1, 2)", "select 2 from t where a = any($1)"),
            ("insert into t (a, b) values (1, 2)", "insert into t (b, a) values (1, 2)"),
            ("select a from t where b between 1 and 2 and c = 3", "select a from t where c = 3 and b between 1 and 2"),
            ("deallocate a", "deallocate all"),
        ] {
            assert_eq!(parsed_text(one), parsed_text(other));
        }
        for (one, other) in [
            ("select a from t", "select b from t"),
            ("select a from t where b = 1 or c = 2", "select a from t where b = 1 and c = 2"),
            ("select cast(a as int)", "select cast(a as text)"),
            ("select a from t order by b, c", "select a from t order by c, b"),
            ("with x as (select 1) select * from x", "with y as (select a) select * from x"),
        ] {
            assert_ne!(parsed_text(one), parsed_text(other));
        }
        // Whatever it is given it ends.
        parsed_text("(".repeat(10_000));
        assert!(!parsed_text("select 'canary', \"a").contains("canary"));
    }
}
