//! A long statement, shortened for reading: the first of many rows, the first values of a long
//! list.

use super::Pieces;
use crate::TokenKind;

/// Number of values that stay of a list.
const KEPT: usize = 20;

/// The statement with its first row only. If it has `most` bytes or more, lists behind `IN` are
/// also cut to their first 20 values. `None` leaves lists as they are.
pub fn shorten(sql: &str, most: Option<usize>) -> String {
    let sql = first_row(sql).unwrap_or_else(|| sql.to_owned());
    match most {
        Some(most) if sql.len() >= most => shorten_lists(&sql),
        _ => sql,
    }
}

fn first_row(sql: &str) -> Option<String> {
    let pieces = Pieces::new(sql);
    if !pieces.begins(&["insert", "replace"]) {
        return None;
    }
    let values = pieces.find(1, &["values", "value"])?;
    let close = pieces.close(values + 1)?;
    if pieces.kind(close + 1) != Some(TokenKind::Comma) {
        return None;
    }
    let rest = pieces.on_duplicate().map_or("", |at| sql.get(pieces.from(at)..).unwrap_or_default());
    Some(format!("{} /*... omitted ...*/{rest}", sql.get(..pieces.to(close))?))
}

/// A list ends at the first parenthesis, quoted or not: the shortened text is only for reading.
fn shorten_lists(sql: &str) -> String {
    let lower = sql.to_ascii_lowercase();
    let (mut text, mut from) = (String::new(), 0);
    while let Some(found) = lower.get(from..).and_then(|rest| rest.find("in")) {
        let word = from + found;
        let open = word + 2 + lower.get(word + 2..).map_or(0, |rest| rest.len() - rest.trim_start().len());
        let behind_word = lower.as_bytes().get(word.wrapping_sub(1)).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let list = lower.get(open + 1..).and_then(|rest| rest.find(')')).map(|length| (open + 1, open + 1 + length));
        let Some((begin, end)) = list.filter(|_| behind_word && lower.as_bytes().get(open) == Some(&b'(')) else {
            text.push_str(sql.get(from..word + 2).unwrap_or_default());
            from = word + 2;
            continue;
        };
        let items: Vec<&str> = sql.get(begin..end).unwrap_or_default().split(',').collect();
        text.push_str(sql.get(from..begin).unwrap_or_default());
        text.push_str(&items.iter().take(KEPT).copied().collect::<Vec<_>>().join(","));
        if items.len() > KEPT {
            text.push_str(&format!("/*... omitted {} items ...*/", items.len() - KEPT));
        }
        from = end;
    }
    text + sql.get(from..).unwrap_or_default()
}
