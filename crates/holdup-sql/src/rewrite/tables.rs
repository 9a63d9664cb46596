//! The tables that a statement names, in its order.

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

/// The tables that a statement names, in its order and spelling.
pub fn tables(sql: &str) -> Vec<String> {
    let pieces = &Pieces::new(sql);
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
fn names(pieces: &Pieces, mut at: usize, found: &mut Vec<String>) {
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
        behind += usize::from(is_alias);
        found.push(pieces.between(at, end - 1).to_owned());
        behind = pieces.skip(behind, &["read", "local", "low_priority", "write"]);
        if pieces.kind(behind) != Some(TokenKind::Comma) {
            return;
        }
        at = behind + 1;
    }
}
