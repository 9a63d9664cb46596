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

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let gauge = |metric: holdup_recording::metrics::Metric| facts.view.gauge(metric.name, &[], "").ok();
    let undo = gauge(metrics::mysql::INNODB_HISTORY_LIST_LENGTH).filter(|undo| undo.max >= MANY_UNDO);
    if let Some(undo) = &undo {
        let count = thousands(undo.max);
        let text = format!("{count} undo logs were not purged (history list length): reads step over old versions");
        let strength = if undo.max >= TOO_MANY_UNDO { STRONG } else { FAIR * 0.9 };
        signs.add(strength, undo.evidence(count, "thousands", text));
    }
    let open = [metrics::mysql::INNODB_OLDEST_TRANSACTION, metrics::postgresql::OLDEST_TRANSACTION];
    for open in open.into_iter().filter_map(gauge).filter(|open| open.max >= FORGOTTEN_S) {
        let text =
            format!("a transaction was open for {} s: versions of rows are kept since then", thousands(open.max));
        let strength = if undo.is_some() { FAIR } else { WEAK };
        signs.add(strength, open.evidence(format!("{} s", thousands(open.max)), "seconds", text));
    }
}
