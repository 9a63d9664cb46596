//! The tables that a statement names, in its order, and their aliases.

use std::collections::BTreeMap;

use super::{MODIFIERS, Pieces};
use crate::TokenKind;

/// Words that may follow a table and are not its alias.
const NO_ALIAS: &[&str] = &[
    "where",
    "set",
    "values",
    "value",
    "on",
    "using",
    "join",
    "left",
    "right",
    "inner",
    "outer",
    "cross",
    "natural",
    "straight_join",
    "group",
    "order",
    "having",
    "limit",
    "union",
    "for",
    "lock",
    "read",
    "write",
    "low_priority",
    "select",
    "use",
    "force",
    "ignore",
    "procedure",
    "into",
    "partition",
    "add",
    "drop",
    "from",
    "as",
    "window",
    "to",
];

/// A table as a statement names it: the pieces of its name and of its alias.
struct Reference {
    first: usize,
    /// Behind the name.
    end: usize,
    alias: Option<usize>,
    depth: usize,
}

/// The names by which a statement calls its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    /// Alias -> table. A table without an alias stands under its own name; a subquery has no table.
    pub tables: BTreeMap<String, Option<String>>,
    /// Table -> database, if the statement names it.
    pub databases: BTreeMap<String, String>,
}

/// The references in `pieces`.
fn references(pieces: &Pieces) -> Vec<Reference> {
    let mut found = Vec::new();
    let is_definition = pieces.begins(&["create", "alter", "drop", "truncate", "rename", "lock"]);
    // A table that is made of others is skipped.
    let makes_of_others = pieces.begins(&["create"]) && (1..pieces.all.len()).any(|at| pieces.is(at, &["select"]));
    for at in 0..pieces.all.len() {
        let before = |words: &[&str]| at > 0 && pieces.is(at - 1, words);
        let next = if pieces.is(at, &["from", "join"]) {
            at + 1
        } else if pieces.is(at, &["into"]) && !pieces.is(at + 1, &["outfile", "dumpfile"]) {
            pieces.skip(at + 1, &["table"])
        } else if pieces.is(at, &["update"]) && !before(&["key", "for"]) {
            pieces.skip(at + 1, MODIFIERS)
        } else if at == 0 && pieces.is(at, &["insert", "replace"]) {
            let next = pieces.skip(at + 1, MODIFIERS);
            if pieces.is(next, &["into"]) || pieces.kind(at + 1) == Some(TokenKind::Open) {
                continue;
            }
            next
        } else if is_definition && !makes_of_others && at < 4 && pieces.is(at, &["table", "tables"]) {
            pieces.skip(at + 1, &["if", "not", "exists"])
        } else {
            continue;
        };
        names(pieces, next, &mut found);
    }
    found
}

/// The tables of a list that begins at `at`.
fn names(pieces: &Pieces, mut at: usize, found: &mut Vec<Reference>) {
    loop {
        while pieces.kind(at) == Some(TokenKind::Open) {
            at += 1;
        }
        if pieces.is(at, &["select"]) {
            return;
        }
        let Some(end) = pieces.name(at) else { return };
        let mut behind = pieces.skip(end, &["as"]);
        let is_alias = match pieces.kind(behind) {
            Some(TokenKind::Word) => behind > end || !pieces.is(behind, NO_ALIAS),
            Some(TokenKind::QuotedName) => true,
            _ => false,
        };
        let alias = is_alias.then_some(behind);
        behind += usize::from(is_alias);
        let depth = pieces.all.get(at).map_or(0, |piece| piece.depth);
        found.push(Reference { first: at, end, alias, depth });
        behind = pieces.skip(behind, &["read", "local", "low_priority", "write"]);
        if pieces.kind(behind) != Some(TokenKind::Comma) {
            return;
        }
        at = behind + 1;
    }
}

/// The tables that a statement names, in its order and spelling.
pub fn tables(sql: &str) -> Vec<String> {
    let pieces = Pieces::new(sql);
    references(&pieces).iter().map(|one| pieces.between(one.first, one.end - 1).to_owned()).collect()
}

/// The same with their aliases: `t1 a`, `t2 AS b`.
pub fn table_references(sql: &str) -> Vec<String> {
    let pieces = Pieces::new(sql);
    let all = references(&pieces);
    all.iter().map(|one| pieces.between(one.first, one.alias.unwrap_or(one.end - 1)).to_owned()).collect()
}

fn plain(name: &str) -> String {
    name.trim_matches('`').to_owned()
}

/// The aliases of a statement's tables, without those in its subqueries.
pub fn aliases(sql: &str) -> Aliases {
    let pieces = Pieces::new(sql);
    let mut aliases = Aliases::default();
    for one in references(&pieces).iter().filter(|one| one.depth == 0) {
        let table = plain(pieces.text(one.end - 1));
        if one.end - one.first == 3 {
            aliases.databases.insert(table.clone(), plain(pieces.text(one.first)));
        }
        let alias = one.alias.map_or_else(|| table.clone(), |at| plain(pieces.text(at)));
        aliases.tables.insert(alias, Some(table));
    }
    for open in (0..pieces.all.len()).filter(|at| pieces.kind(*at) == Some(TokenKind::Open)) {
        let is_table = open > 0 && pieces.is(open - 1, &["from", "join"]) && pieces.is(open + 1, &["select"]);
        let Some(close) = pieces.close(open).filter(|_| is_table) else { continue };
        let alias = pieces.skip(close + 1, &["as"]);
        if pieces.kind(alias) == Some(TokenKind::Word) && !pieces.is(alias, NO_ALIAS) {
            aliases.tables.insert(plain(pieces.text(alias)), None);
        }
    }
    aliases
}
