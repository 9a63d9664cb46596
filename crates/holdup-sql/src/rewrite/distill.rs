//! A statement in a few words: what it does, and to which tables. Digits in names are `?`, so that
//! shards count as one.

use super::{Pieces, tables};
use crate::TokenKind;

/// Verbs that say what a statement does, at any place.
const VERBS: &[&str] = &["select", "insert", "update", "delete", "replace", "union"];
/// Verbs that say it only at the beginning.
const FIRST: &[&str] = &["flush", "commit", "rollback", "begin", "start", "set", "lock"];
/// Verbs that define something.
const DEFINING: &[&str] = &["create", "alter", "truncate", "drop", "rename"];
const COMMAND: &str = "administrator command: ";

/// Verbs and tables of a statement, such as `INSERT SELECT a b`; empty if it begins with an unknown
/// verb.
pub fn distill(sql: &str) -> String {
    if let Some(command) = sql.trim_start().strip_prefix(COMMAND) {
        return format!("ADMIN {}", command.trim().to_ascii_uppercase());
    }
    let pieces = Pieces::new(sql);
    let upper = |at| pieces.text(at).to_ascii_uppercase();
    if pieces.begins(&["use", "unlock"]) {
        return upper(0);
    }
    if pieces.begins(&["call"]) {
        return format!("CALL {}", pieces.name(1).map_or("", |end| pieces.between(1, end - 1)));
    }
    if pieces.begins(&["xa"]) {
        return format!("XA_{}", upper(1));
    }
    if pieces.begins(&["show"]) {
        return show(&pieces);
    }
    let mut words = if pieces.begins(DEFINING) {
        definition(&pieces)
    } else if pieces.begins(&["load"]) {
        vec![format!("LOAD {}", upper(1))]
    } else if pieces.begins(FIRST) {
        vec![upper(0)]
    } else if begins_with_verb(&pieces) {
        verbs(&pieces)
    } else {
        return String::new();
    };
    let before = words.len();
    for table in tables(sql) {
        let table = without_digits(&table.replace('`', ""));
        if !words.iter().skip(before).any(|known| *known == table) {
            words.push(table);
        }
    }
    words.join(" ").trim_end().to_owned()
}

fn begins_with_verb(pieces: &Pieces) -> bool {
    let first = (0..pieces.all.len()).find(|at| pieces.kind(*at) != Some(TokenKind::Open)).unwrap_or(0);
    pieces.is(first, VERBS)
}

fn verbs(pieces: &Pieces) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for at in 0..pieces.all.len() {
        let is_function =
            pieces.kind(at + 1) == Some(TokenKind::Open) && pieces.is(at, &["insert", "replace"]) && at > 0;
        // `a.select` and the like are names.
        let is_name = at > 0 && pieces.kind(at - 1) == Some(TokenKind::Dot);
        let word = pieces.text(at).to_ascii_uppercase();
        if pieces.is(at, VERBS) && !is_function && !is_name && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// `CREATE TABLE`, `DROP DATABASE foo`.
fn definition(pieces: &Pieces) -> Vec<String> {
    let at = (1..pieces.all.len().min(8)).find(|at| {
        pieces.is(*at, &["table", "database", "view", "index", "procedure", "function", "trigger", "event", "user"])
    });
    let Some(at) = at else { return vec![pieces.text(0).to_ascii_uppercase()] };
    let mut words = vec![pieces.text(0).to_ascii_uppercase(), pieces.text(at).to_ascii_uppercase()];
    let name = pieces.skip(at + 1, &["if", "not", "exists"]);
    if !pieces.is(at, &["table"])
        && let Some(end) = pieces.name(name)
    {
        words.push(without_digits(&pieces.between(name, end - 1).replace('`', "")));
    }
    words
}

/// `SHOW …` without what is searched for, and with one word for each thing.
fn show(pieces: &Pieces) -> String {
    let mut words = Vec::new();
    let mut at = 1;
    while words.len() < 2 {
        if pieces.is(at, &["where", "like", "from", "in", "for", "limit"]) {
            break;
        }
        let is_count = pieces.is(at, &["count"]) && pieces.kind(at + 1) == Some(TokenKind::Open);
        let Some(TokenKind::Word | TokenKind::QuotedName) = pieces.kind(at) else { break };
        let word = pieces.text(at).to_ascii_uppercase();
        at = if is_count { pieces.close(at + 1).map_or(at, |close| close) + 1 } else { at + 1 };
        match word.as_str() {
            "FULL" | "SESSION" | "STORAGE" | "ENGINE" => {}
            _ if is_count => {}
            "SCHEMAS" => words.push("DATABASES".to_owned()),
            "SCHEMA" => words.push("DATABASE".to_owned()),
            "KEYS" | "INDEXES" => words.push("INDEX".to_owned()),
            _ => words.push(word),
        }
    }
    format!("SHOW {}", words.join(" ")).trim_end().to_owned()
}

fn without_digits(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '0'..='9' if text.ends_with('?') => {}
            '0'..='9' => text.push('?'),
            _ => text.push(letter),
        }
    }
    text
}
