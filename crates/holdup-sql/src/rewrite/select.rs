//! A write as the read that finds its rows, to ask a server what the write would cost.

use super::{MODIFIERS, Pieces};
use crate::TokenKind;

/// The statement as a `SELECT` of the rows that it writes. Other statements, and writes that cannot
/// be turned into a `SELECT`, stay as they are.
pub fn as_select(sql: &str) -> String {
    let pieces = Pieces::new(sql);
    let made = if pieces.begins(&["insert", "replace"]) {
        select_from_insert(&pieces)
    } else if pieces.begins(&["update"]) {
        select_from_update(&pieces)
    } else if pieces.begins(&["delete"]) {
        select_from_delete(&pieces)
    } else {
        None
    };
    made.unwrap_or_else(|| sql.to_owned())
}

/// Text from one byte to another.
fn cut<'a>(pieces: &Pieces<'a>, from: usize, to: usize) -> &'a str {
    pieces.sql.get(from..to).unwrap_or_default()
}

fn select_from_insert(pieces: &Pieces) -> Option<String> {
    let end = pieces.on_duplicate().map_or(pieces.all.len(), |at| at);
    // The blanks before `on duplicate …` are dropped with it.
    let stop = if end < pieces.all.len() { pieces.to(end.checked_sub(1)?) } else { pieces.sql.len() };
    if let Some(select) = pieces.find(1, &["select"]) {
        return Some(cut(pieces, pieces.from(select), stop).to_owned());
    }
    let into = pieces.skip(1, MODIFIERS);
    let table = pieces.skip(into, &["into"]);
    let behind = pieces.name(table)?;
    let begin = pieces.to(table.checked_sub(1)?);
    if pieces.is(behind, &["set"]) {
        let mut conditions = String::new();
        let mut from = pieces.from(behind + 1);
        for comma in (behind + 1..end).filter(|at| is_comma(pieces, *at, 0)) {
            conditions.push_str(cut(pieces, from, pieces.from(comma)));
            conditions.push_str(" and ");
            from = pieces.to(comma);
        }
        conditions.push_str(cut(pieces, from, stop));
        let table = cut(pieces, begin, pieces.to(behind - 1));
        return Some(format!("select * from {table} where {} ", conditions.trim_end()));
    }
    let columns = elements(pieces, behind)?;
    let values = pieces.skip(pieces.close(behind)? + 1, &["values", "value"]);
    let rows = elements(pieces, values)?;
    if columns.len() != rows.len() {
        return None;
    }
    let conditions: Vec<String> =
        columns.iter().zip(&rows).map(|(column, value)| format!("{column}={value}")).collect();
    let table = cut(pieces, begin, pieces.from(behind));
    Some(format!("select * from {table} where {}", conditions.join(" and ")))
}

fn is_comma(pieces: &Pieces, at: usize, depth: usize) -> bool {
    pieces.kind(at) == Some(TokenKind::Comma) && pieces.all.get(at).is_some_and(|piece| piece.depth == depth)
}

/// The text between the commas in the parentheses at `open`, with its blanks.
fn elements<'a>(pieces: &Pieces<'a>, open: usize) -> Option<Vec<&'a str>> {
    if pieces.kind(open) != Some(TokenKind::Open) {
        return None;
    }
    let depth = pieces.all.get(open)?.depth + 1;
    let close = pieces.close(open)?;
    let mut from = pieces.to(open);
    let mut found = Vec::new();
    for comma in (open + 1..close).filter(|at| is_comma(pieces, *at, depth)) {
        found.push(cut(pieces, from, pieces.from(comma)));
        from = pieces.to(comma);
    }
    found.push(cut(pieces, from, pieces.from(close)));
    Some(found)
}

fn select_from_update(pieces: &Pieces) -> Option<String> {
    let table = pieces.skip(1, MODIFIERS);
    let set = pieces.find(table, &["set"])?;
    let from = pieces.between(table, set.checked_sub(1)?);
    let begin = pieces.to(set);
    let condition = pieces.find(set, &["where"]);
    let limit = pieces.find(set, &["limit"]).filter(|_| condition.is_none());
    Some(match (condition, limit) {
        (Some(at), _) => {
            let values = cut(pieces, begin, pieces.to(at - 1));
            format!("select {values} from {from} where {}", cut(pieces, pieces.to(at), pieces.sql.len()))
        }
        (None, Some(at)) => {
            let values = cut(pieces, begin, pieces.from(at));
            format!("select {values} from {from}  {} ", cut(pieces, pieces.from(at), pieces.sql.len()))
        }
        _ => format!("select {} from {from} ", cut(pieces, begin, pieces.sql.len())),
    })
}

fn select_from_delete(pieces: &Pieces) -> Option<String> {
    let from = pieces.find(1, &["from"])?;
    // With several tables, the tables to delete from precede `from`.
    let list = if from == pieces.skip(1, MODIFIERS) { "*" } else { "1" };
    Some(format!("select {list} from {}", cut(pieces, pieces.to(from), pieces.sql.len())))
}

/// A `SELECT` that does the work of this one and sends one row. Other statements stay as they are.
pub fn as_derived_table(sql: &str) -> String {
    if Pieces::new(sql).begins(&["select"]) { format!("select 1 from ({sql}) as x limit 1") } else { sql.to_owned() }
}

/// A `SELECT` that reads the same columns and sends almost nothing of them.
pub fn constant_select_list(sql: &str) -> String {
    let pieces = Pieces::new(sql);
    let Some(from) = pieces.find(1, &["from"]).filter(|_| pieces.begins(&["select"])) else { return sql.to_owned() };
    let behind = cut(&pieces, pieces.from(from), sql.len());
    let list = cut(&pieces, pieces.to(0), pieces.from(from));
    if list.trim() == "*" { format!("select 1 {behind}") } else { format!("select isnull(coalesce({list})) {behind}") }
}
