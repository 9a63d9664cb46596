//! Most active sessions wait for a lock, or statements do by the server's own account.

use holdup_recording::words::{ms, percent};

use crate::instant::facts::Facts;
use crate::instant::statements::{Heavy, READS};
use crate::instant::{MOST, SOME, Signs};
use crate::strength::{CERTAIN, FAIR, NONE, STRONG};

/// A write that examines no more rows than this is done in far less than a millisecond.
const FEW_ROWS: f64 = 100.0;

/// A commit is quick if it takes this share (0-1) of what a write takes at most.
const QUICK: f64 = 0.2;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(STRONG, facts.sessions_in(MOST, "waited for a lock", |of, _| of == "lock_wait"));
    for heavy in &facts.statements.heavy {
        let locked = heavy.locked();
        if locked >= MOST && heavy.share * locked >= SOME {
            let why = format!("{} of that in locks", percent(locked));
            let evidence = heavy.evidence(&facts.view, "lock_ns", percent(locked), &why);
            signs.accounting(STRONG, evidence, heavy.share(locked));
        } else if waits_unseen(heavy) {
            unseen(facts, heavy, signs);
        }
    }
    if let Some((sessions, evidence)) = &facts.statements.locked {
        signs.add(CERTAIN * (0.5 + 0.5 * (sessions / MOST).min(1.0)) * (sessions / SOME).min(1.0), evidence.clone());
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
    let why = format!(
        "a call examined {:.0} rows, so it waited; the log does not count waits for row locks",
        heavy.of.examined_each()
    );
    let evidence = heavy.evidence(&facts.view, "duration_ns", ms(each_s * 1e3), &why);
    signs.accounting(FAIR, evidence.clone(), heavy.share(1.0));
    let text = format!("commits took {}: the wait is not one for the disk of the log", ms(commit_s * 1e3));
    signs.add(FAIR, evidence.saying("as long as the statement, if the log's disk were the cause", text));
    let text = "next, while it is slow, who holds the lock: SELECT * FROM sys.innodb_lock_waits\\G";
    signs.add(NONE, facts.view.digest_evidence(&heavy.of, "duration_ns", "", "", text));
}
