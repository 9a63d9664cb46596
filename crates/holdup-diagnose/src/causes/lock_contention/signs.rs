//! Most active sessions wait for a lock, or statements do by the server's own account.

use holdup_recording::metrics;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::evidence::Evidence;

use crate::instant::facts::Facts;
use crate::instant::statements::{Heavy, READS};
use crate::instant::{MANY, MOST, SOME, Signs, stacks};
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, WEAK};

/// A write that examines no more rows than this is done in far less than a millisecond.
const FEW_ROWS: f64 = 100.0;

/// A commit is quick if it takes this share (0-1) of what a write takes at most.
const QUICK: f64 = 0.2;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let waits = |of: &str, _: &str| of == "lock_wait";
    signs.extend(STRONG, facts.sessions_in(MOST, "waited for a lock", waits));
    let locks = ["row_lock", "metadata_lock", "table_lock"];
    signs.extend(STRONG, stacks::many(facts, &locks, "waited for a lock of the server"));
    signs.extend(STRONG, long_wait(facts));
    holder(facts, signs);
    if facts.sessions.as_ref().is_none_or(|sessions| sessions.count(waits) < 1.0) {
        counted(facts, signs);
    }
    let mut has_statement = false;
    for heavy in &facts.statements.heavy {
        let locked = heavy.locked();
        if locked >= MOST && heavy.share * locked >= SOME {
            let why = format!("{} of that in locks", percent(locked));
            let evidence = heavy.evidence(&facts.view, "lock_ns", percent(locked), &why);
            signs.accounting(STRONG, evidence, heavy.share(locked));
            has_statement = true;
        } else if waits_unseen(heavy) {
            unseen(facts, heavy, signs);
        }
    }
    if let Some((sessions, evidence)) = &facts.statements.locked {
        // With a statement it is the same fact, in other figures.
        let strength = if has_statement { FAIR } else { CERTAIN * (sessions / MOST).min(1.0) };
        signs.add(strength * (sessions / SOME).min(1.0), evidence.clone());
    }
}

/// A wait longer than any transaction of a service takes.
fn long_wait(facts: &Facts<'_>) -> Option<Evidence> {
    const LONG_S: f64 = 60.0;
    let rows = facts.view.sessions(&["true_state", "age_ns"]).ok()?;
    let waits = rows.iter().filter(|row| row.true_state == "lock_wait").filter_map(|row| row.age_ns);
    let longest_s = waits.max().map(|ns| ns as f64 / 1e9).filter(|longest_s| *longest_s >= LONG_S)?;
    let text = format!("a session has waited for a lock for {} s", thousands(longest_s));
    facts.sessions.as_ref()?.evidence(|of, _| of == "lock_wait", "seconds at most", text)
}

/// The session that others wait for. One waiter for a moment is usual.
fn holder(facts: &Facts<'_>, signs: &mut Signs) {
    const LONG_NS: i64 = 5_000_000_000;
    let Ok(blockers) = facts.view.blockers() else { return };
    let Some(first) = blockers.holders.first() else { return };
    let rows = facts.view.sessions(&["true_state", "age_ns"]).unwrap_or_default();
    let waited = rows.iter().filter(|row| row.true_state == "lock_wait").filter_map(|row| row.age_ns).max();
    let is_long = waited.is_some_and(|waited| waited >= LONG_NS);
    let strength = match first.behind >= 2.0 || is_long {
        true if is_long => STRONG,
        true => FAIR,
        false => WEAK,
    };
    signs.add(strength, super::holder_evidence(&facts.view, &blockers, first));
}

/// Waits that a server counts without naming a session.
fn counted(facts: &Facts<'_>, signs: &mut Signs) {
    let rows = metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS;
    let all = [
        (rows, None, "row locks were waited for"),
        (metrics::mysql::METADATA_LOCKS, Some(("status", "PENDING")), "locks of tables' definitions were waited for"),
        (metrics::postgresql::LOCKS, Some(("granted", "0")), "locks were waited for"),
    ];
    for (metric, label, what) in all {
        let labels: Vec<(&str, &str)> = label.into_iter().collect();
        let Ok(gauge) = facts.view.gauge(metric.name, &labels, "") else { continue };
        let text = format!("{:.0} {what}", gauge.max);
        let strength = if gauge.max >= MANY { FAIR } else { WEAK };
        if gauge.max >= 1.0 {
            signs.add(strength, gauge.evidence(format!("{:.0}", gauge.max), "0", text));
        }
    }
}

/// Whether a write by a key took long, and nothing that the log counts did.
fn waits_unseen(heavy: &Heavy) -> bool {
    let counted = heavy.spilled() > 0.0 || heavy.in_stages(&READS) >= SOME;
    let has_rows = heavy.of.rows_examined + heavy.of.rows_used > 0.0;
    heavy.locks_rows() && has_rows && heavy.of.examined_each() <= FEW_ROWS && !counted
}

/// MariaDB's log does not count waits for row locks. A write by a key that takes long waits for one,
/// or for the log at its commit: quick commits leave the lock.
fn unseen(facts: &Facts<'_>, heavy: &Heavy, signs: &mut Signs) {
    let each_s = heavy.each_s();
    let Some(commit_s) = facts.statements.commit_s.filter(|commit_s| *commit_s <= QUICK * each_s) else { return };
    let why = "a call examined hardly a row, so it waited; the log does not count waits for row locks";
    let evidence = heavy.evidence(&facts.view, "duration_ns", ms(each_s * 1e3), why);
    signs.accounting(FAIR, evidence.clone(), heavy.share(1.0));
    let text = format!("commits took {}: the wait is not one for the disk of the log", ms(commit_s * 1e3));
    signs.add(FAIR, evidence.saying("as long as the statement, if the log's disk were the cause", text));
    let text = "next, while it is slow, who holds the lock: SELECT * FROM sys.innodb_lock_waits\\G";
    signs.add(NONE, facts.view.digest_evidence(&heavy.of, "duration_ns", "", "", text));
}
