//! The latest deadlock: when it was, whose transactions it stopped, and at which table.

use std::collections::BTreeSet;

use holdup_recording::rows::Event;
use holdup_recording::{Labels, events};

use super::transactions::{self, Transaction};
use crate::text::kinds::processlist::SOURCE;
use crate::text::kinds::{Context, Line};

/// A deadlock that is older than this, when the status was printed, says nothing of the incident: 1 h.
const RECENT_NS: i64 = 3_600_000_000_000;

/// `… index PRIMARY of table `shop`.`orders` trx id 7 lock_mode X waiting`
pub(super) fn table(text: &str) -> Option<String> {
    let (_, rest) = text.split_once(" of table ").or_else(|| text.split_once("TABLE LOCK table "))?;
    let name = rest.split(" trx id").next()?.split(" /*").next()?;
    Some(name.replace(['`', '"'], "").trim().to_owned()).filter(|name| !name.is_empty())
}

pub(super) fn read(lines: &[Line], at: i64, context: &mut Context) {
    let Some(when) = lines.iter().take(4).find_map(|line| line.stamp) else { return };
    let transactions: Vec<Transaction> = transactions::all(lines);
    let tables: BTreeSet<String> = lines.iter().filter_map(|line| table(&line.text)).collect();
    let sessions: Vec<String> = transactions.iter().filter_map(|one| Some(one.session?.to_string())).collect();
    if transactions.is_empty() {
        return;
    }
    let at_table = tables.iter().next().map_or_else(String::new, |table| format!(" at table {table}"));
    let statements: Vec<&str> = transactions.iter().filter_map(|one| one.digest_text.as_deref()).collect();
    let ran = if statements.is_empty() { String::new() } else { format!(": {}", statements.join("; ")) };
    let text = format!(
        "sessions {} waited for each other's locks{at_table}, and one was rolled back{ran}",
        sessions.join(" and ")
    );
    let age_ns = at.saturating_sub(when);
    if !(0..=RECENT_NS).contains(&age_ns) {
        let hours = age_ns as f64 / 3.6e12;
        context.out.note(format!("InnoDB: the latest deadlock was {hours:.1} h before the status; it was left out"));
        return;
    }
    let mut labels = Labels::new([("waits", transactions.len().to_string())]);
    let digest = transactions.iter().find_map(|one| one.digest_text.as_deref()).map(holdup_sql::digest_of_text);
    let parts = [("table", tables.into_iter().next()), ("session", sessions.into_iter().next()), ("digest", digest)];
    for (name, value) in parts {
        labels = value.map_or_else(|| labels.clone(), |value| labels.clone().with(name, value));
    }
    let (source, kind) = (SOURCE.to_owned(), events::DEADLOCK.to_owned());
    context.out.batch.events.push(Event { observed_at: when, source, kind, text, labels });
}
