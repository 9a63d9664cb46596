//! Indexes that are being added while requests are slow: each costs its building, and from then on
//! every change of a row.

use std::collections::BTreeSet;

use holdup_recording::{Labels, metrics};
use holdup_signals::View;
use holdup_signals::database::written::bare;
use holdup_signals::evidence::Evidence;

use crate::case::Case;

/// One index more is a change, not too many.
const SEVERAL: usize = 2;

/// Indexes that were added.
pub struct AddedIndexes {
    /// The table, without its schema.
    pub table: String,
    /// How many were seen, at least.
    pub count: usize,
    /// The evidence.
    pub evidence: Evidence,
}

/// The table that got most indexes since the baseline window; none if no table got several.
pub fn added(case: &Case<'_>) -> Option<AddedIndexes> {
    let (slow, baseline) = (case.slow(), case.baseline()?);
    let (now, before) = (built(&slow), built(&baseline));
    let tables: BTreeSet<&String> = now.iter().map(|(table, _)| table).collect();
    let count = |table: &str| now.iter().filter(|build| build.0 == table && !before.contains(*build)).count();
    let most = tables.into_iter().max_by_key(|table| count(table)).filter(|table| count(table) >= SEVERAL);
    if let Some(table) = most {
        let count = count(table);
        let text = format!("{count} indexes of {table} were being built, none of them in the baseline window");
        let labels = Labels::none();
        let told = Evidence::new("sessions", "digest_text", labels, slow.window, format!("{count}"), "none", text);
        return Some(AddedIndexes { table: table.clone(), count, evidence: told });
    }
    counted(&slow, &baseline)
}

/// Statements that build an index, by table.
fn built(view: &View<'_>) -> BTreeSet<(String, String)> {
    let rows = view.sessions(&["observed_at", "true_state", "digest_text"]).unwrap_or_default();
    let busy = rows.iter().filter(|row| !row.true_state.starts_with("idle"));
    busy.filter_map(|row| {
        let text = row.digest_text.as_deref()?;
        Some((indexed(text)?, text.to_lowercase()))
    })
    .collect()
}

/// The table to which a statement adds an index; none if it does something else.
fn indexed(text: &str) -> Option<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_uppercase).collect();
    let at = |word: &str| words.iter().position(|w| w == word);
    let is_create = words.first().is_some_and(|w| w == "CREATE") && words.iter().take(3).any(|w| w == "INDEX");
    let is_alter = words.first().is_some_and(|w| w == "ALTER")
        && at("ADD").is_some_and(|add| words[add..].iter().take(3).any(|w| w == "INDEX" || w == "KEY"));
    let before = if is_create { at("ON")? } else { at("TABLE").filter(|_| is_alter)? };
    let name = text.split_whitespace().nth(before + 1)?;
    Some(bare(name.split('(').next().unwrap_or(name)))
}

/// By PostgreSQL's count of a table's indexes.
fn counted(slow: &View<'_>, baseline: &View<'_>) -> Option<AddedIndexes> {
    const METRIC: &str = metrics::postgresql::TABLE_INDEXES.name;
    let level = |view: &View<'_>, table: &str| view.gauge(METRIC, &[("table", table)], "").ok();
    let more = |table: &str| {
        let (now, before) = (level(slow, table)?, level(baseline, table)?);
        let count = (now.max - before.max).max(0.0) as usize;
        (count >= SEVERAL).then(|| {
            let text = format!("{table} has {:.0} indexes, {:.0} in the baseline window", now.max, before.max);
            let told = now.evidence(format!("{:.0}", now.max), format!("{:.0}", before.max), text);
            AddedIndexes { table: bare(table), count, evidence: told }
        })
    };
    let names = slow.label_values(METRIC, "table");
    names.iter().filter_map(|table| more(table)).max_by_key(|added| added.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_add_an_index_name_its_table() {
        let is = |text: &str| indexed(text);
        assert_eq!(is("CREATE INDEX added_0 ON orders(note)").as_deref(), Some("orders"));
        assert_eq!(is("create unique index concurrently x on public.item (a, b)").as_deref(), Some("item"));
        assert_eq!(is("ALTER TABLE `orders` ADD INDEX x (note)").as_deref(), Some("orders"));
        assert_eq!(is("ALTER TABLE orders ADD COLUMN note text"), None);
        assert_eq!(is("SELECT note FROM orders"), None);
    }
}
