//! Versions of rows that nothing could remove, and the transaction that is open meanwhile.

use holdup_recording::metrics;
use holdup_recording::words::thousands;

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::strength::{FAIR, STRONG, WEAK};

/// Undo logs that purge has not reached: a busy server has thousands, and works on them.
const MANY_UNDO: f64 = 100_000.0;
const TOO_MANY_UNDO: f64 = 1_000_000.0;

/// A transaction that is open for longer was forgotten, seconds.
const FORGOTTEN_S: f64 = 600.0;

/// Dead rows that a vacuum left: as many times the live ones …
const OF_LIVE: f64 = 2.0;

/// … and as many at least. A queue's table has a few live rows and changes all the time.
const DEAD: f64 = 10_000.0;

/// Vacuums this close to the newest one came just before, seconds.
const JUST_S: f64 = 600.0;

/// In so many tables it is not one of them that changes fast.
const TABLES: usize = 2;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let gauge = |metric: holdup_recording::metrics::Metric| facts.view.gauge(metric.name, &[], "").ok();
    let undo = gauge(metrics::mysql::INNODB_HISTORY_LIST_LENGTH).filter(|undo| undo.max >= MANY_UNDO);
    if let Some(undo) = &undo {
        let count = thousands(undo.max);
        let text = format!("{count} undo logs were not purged (history list length): reads step over old versions");
        let strength = if undo.max >= TOO_MANY_UNDO { STRONG } else { FAIR * 0.9 };
        signs.add(strength, undo.evidence(count, "thousands", text));
    }
    left_by_vacuum(facts, signs);
    let open = [metrics::mysql::INNODB_OLDEST_TRANSACTION, metrics::postgresql::OLDEST_TRANSACTION];
    for open in open.into_iter().filter_map(gauge).filter(|open| open.max >= FORGOTTEN_S) {
        let text =
            format!("a transaction was open for {} s: versions of rows are kept since then", thousands(open.max));
        let strength = if undo.is_some() { FAIR } else { WEAK };
        signs.add(strength, open.evidence(format!("{} s", thousands(open.max)), "seconds", text));
    }
}

/// Tables that were vacuumed just before and have more dead rows than live ones all the same: vacuum could not
/// remove them.
fn left_by_vacuum(facts: &Facts<'_>, signs: &mut Signs) {
    let last = |metric: holdup_recording::metrics::Metric, table: &str| {
        facts.view.gauge(metric.name, &[("table", table)], "").ok()
    };
    let dead = metrics::postgresql::STAT_TABLES_N_DEAD_TUP;
    let mut tables: Vec<(String, f64)> = Vec::new();
    for table in facts.view.label_values(dead.name, "table") {
        let figures = [dead, metrics::postgresql::STAT_TABLES_N_LIVE_TUP, metrics::postgresql::TABLE_VACUUMED_AGE];
        let [Some(dead), Some(live), Some(age)] = figures.map(|metric| last(metric, &table)) else { continue };
        if age.max <= JUST_S && dead.max >= DEAD && dead.max >= OF_LIVE * live.max {
            tables.push((table, dead.max));
        }
    }
    tables.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some((table, count)) = tables.first().filter(|_| tables.len() >= TABLES) else { return };
    let text = format!(
        "{} tables have more dead rows than live ones right after a vacuum, {table} {} of them: something may still see them",
        tables.len(),
        thousands(*count)
    );
    let evidence = last(dead, table).map(|gauge| gauge.evidence(thousands(*count), "few after a vacuum", text));
    signs.extend(FAIR, evidence);
}
