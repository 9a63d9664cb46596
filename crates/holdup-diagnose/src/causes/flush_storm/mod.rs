//! The database stalls to write out changed pages that fill its log or its buffer pool.

mod advice;
mod age;
mod checkpoints;
mod signs;
mod stalls;
mod wired_tiger;

use self::age::{Age, age};
use super::Source::Of;
use super::parts::clearing;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Magnitude, Outcome, Role, Trait, bytes, percent, thousands,
};
use crate::case::Case;
use crate::resources::is_felt;
use crate::resources::sessions::PileUp;
use crate::strength::{FAIR, STRONG, WEAK};
use crate::{next_command, resources};
use holdup_recording::metrics;
use holdup_signals::database::server::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Growth, Missing, View, Window};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::Standing, Trait::WithinStatement, Trait::LongStatement],
    follows_from: &[
        // More changes fill the log sooner. Not if the log was cut, or a session asks for checkpoints.
        Edge {
            from: &[&[Of(Cause::BackupOrBulkLoad)]],
            magnitude: Magnitude::Own(|case| !resources::checkpoints::are_forced(case)),
            is_added: false,
        },
    ],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::CHECKPOINTS, crate::strength::STRONG)],
    ..Definition::new(Cause::FlushStorm, DOC, Judge::Alone(judge), &next_command::LOG_AND_PAGES)
};

const DOC: Doc = Doc {
    title: "The database stalls to write out changed pages",
    what: "Each change stays in the redo log until its page has been written. Near the log's capacity InnoDB stops changes until pages are written, as many as it can at once; without a free page in the buffer pool it does the same. PostgreSQL starts a checkpoint early if the log has grown to max_wal_size, and writes its pages in a hurry. MongoDB writes its changed pages in a checkpoint every minute, and lets operations evict pages themselves once a fifth of its cache is changed pages.",
    hurts: "Completions stop for seconds while the disk is busiest, again and again, in the rhythm in which the log fills.",
    needs: "The age of the checkpoint, the log's capacity, pages flushed and waits for a free page (--watch mysql://…), or checkpoints with their pages and the log's position (--watch postgresql://…), and sampled sessions; of MongoDB the storage engine's own timing of evictions and checkpoints (--watch mongodb://…).",
    predicts: "At those instants the checkpoint's age is near the capacity, or waits for free pages grow; as many pages are written as before or more while the log grows less; executing sessions pile up. MongoDB's operations take longer while a checkpoint runs, or while they evict.",
    clears: "The age stays clear of the capacity and no statement waited for a free page; or sessions do not pile up when it is near; or the log then grows as fast as at other times. MongoDB's operations are as quick while a checkpoint runs as at other times, and hardly evict.",
    looks_like: "A slow disk (the age follows from it, and the log's flushes are slow all the time), FLUSH TABLES or a backup's lock (nothing is written), a burst of changes (the log grows faster, not slower).",
    fix: "A larger redo log; earlier and more even writing (innodb_io_capacity, innodb_max_dirty_pages_pct_lwm); a larger buffer pool, if free pages are short.",
    prove: "The same load again: the age stays below three quarters of the capacity, and completions do not stop.",
    references: "MySQL Reference Manual: Configuring Buffer Pool Flushing, innodb_redo_log_capacity, Innodb_buffer_pool_wait_free; MariaDB documentation: InnoDB Page Flushing (async and sync flushing, innodb_log_file_size); PostgreSQL documentation: WAL Configuration (max_wal_size, checkpoint_completion_target); MongoDB manual: serverStatus (wiredTiger.transaction, since 8.0 wiredTiger.checkpoint), WiredTiger Storage Engine, Snapshots and Checkpoints.",
};

/// Changes must be slower by this factor (0-1) at those instants than at others.
const SLOWER: f64 = 0.8;

/// A sample speaks for this long before and after it, nanoseconds.
const REACH_NS: i64 = 500_000_000;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match from_server(case) {
        Err(missing) => clearing::by_statements(case, "including writing out pages").ok_or(missing),
        outcome => outcome,
    }
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    if let Some(names) = checkpoints::names(&view) {
        return checkpoints::judge(case, names);
    }
    if wired_tiger::is_timed(&view) {
        return wired_tiger::judge(case);
    }
    let age = age(&view)?;
    let wait_free = view.status(metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_WAIT_FREE)?;
    view.status(metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FLUSHED)?;
    let near = near(&view, &age);
    let waits = waits_for_pages(&view);
    let filled = age.age.evidence(
        format!("{} at most", percent(age.age.max / age.capacity)),
        format!("below {}", percent(age.near / age.capacity)),
        format!(
            "changes that were only in the log were up to {} of its {}, and near that in {} of the samples",
            bytes(age.age.max),
            bytes(age.capacity),
            percent(near.len() as f64 / age.age.count.max(1) as f64)
        ),
    );
    let free = wait_free.evidence(
        thousands(wait_free.delta),
        "0",
        format!("statements waited {} times for a free page of the buffer pool", thousands(wait_free.delta)),
    );
    let storms: Vec<Window> = near.into_iter().chain(waits).collect();
    if storms.is_empty() {
        return Ok(Outcome::Cleared(vec![filled, free]));
    }
    let sessions = PileUp::measure(case, &view, &storms)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let explains_ms = sessions.request_ms(&view, completed);
    let piled = sessions.evidence(&view, explains_ms);
    if !is_felt(case, explains_ms) {
        return Ok(Outcome::Cleared(vec![filled, free].into_iter().chain(piled).collect()));
    }
    let mut evidence = vec![filled, free];
    evidence.extend(piled);
    let mut weights = vec![FAIR];
    match against_others(&view, &storms) {
        Some((true, told)) => {
            evidence.push(told);
            weights.push(STRONG);
        }
        Some((false, told)) => return Ok(Outcome::Cleared(vec![told].into_iter().chain(evidence).collect())),
        None => {}
    }
    if wait_free.delta > 0.0 {
        weights.push(WEAK);
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: advice::fixes(&view, &age, wait_free.delta > 0.0),
        prove: format!("Run the same scenario again: {} stays below three quarters of the capacity.", age.metric),
        role: Role::Root,
    }))
}

/// When the age was near the capacity.
fn near(view: &View<'_>, age: &Age) -> Vec<Window> {
    let series = view.index.series(age.metric, &[]).flat_map(|(_, series)| series);
    let near = series.filter(|(at, value)| view.window.contains(*at) && *value >= age.near);
    near.map(|(at, _)| Window { from: at - REACH_NS, to: at + REACH_NS }).collect()
}

/// When a statement waited for a free page.
fn waits_for_pages(view: &View<'_>) -> Vec<Window> {
    let growths = view.growths(|_| true, metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_WAIT_FREE.name, &[]);
    growths.into_iter().filter(|g| g.delta > 0.0).map(|g| g.window).collect()
}

/// Whether changes were slower in storms although as many pages were written; none without others.
fn against_others(view: &View<'_>, storms: &[Window]) -> Option<(bool, Evidence)> {
    let rate = |metric: &str, wanted: bool| -> Option<f64> {
        let growths = view.growths(|_| true, metric, &[]);
        let middle = |g: &Growth| g.window.from + (g.window.to - g.window.from) / 2;
        let of: Vec<&Growth> =
            growths.iter().filter(|g| storms.iter().any(|w| w.contains(middle(g))) == wanted).collect();
        let seconds: f64 = of.iter().map(|g| g.window.seconds()).sum();
        (seconds > 0.0).then(|| of.iter().map(|g| g.delta).sum::<f64>() / seconds)
    };
    const LOG: [&str; 3] = [
        metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN.name,
        metrics::mysql::GLOBAL_STATUS_INNODB_LSN_CURRENT.name,
        metrics::mysql::GLOBAL_STATUS_INNODB_ROWS_UPDATED.name,
    ];
    let log = LOG.into_iter().find(|metric| rate(metric, true).is_some())?;
    let (then, else_) = (rate(log, true)?, rate(log, false)?);
    let flushed = metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FLUSHED.name;
    let (pages_then, pages_else) = (rate(flushed, true)?, rate(flushed, false)?);
    let counter = view.counter(flushed, &[], DATABASE).ok()?;
    let text = format!(
        "then {:.0} pages/s were written, {:.0} at other times, while {} grew by {}/s instead of {}",
        pages_then,
        pages_else,
        log.trim_start_matches(metrics::mysql::GLOBAL_STATUS.prefix),
        thousands(then),
        thousands(else_)
    );
    let is_so = then <= SLOWER * else_ && pages_then >= SLOWER * pages_else && pages_then > 0.0;
    Some((is_so, counter.evidence(format!("{pages_then:.0} pages a second"), "fewer changes, fewer pages", text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_recording::rows::Session;

    const DB: &str = "mysql://db";

    /// 50 requests of 400 ms a second. In every second half of eight seconds the age is `high` of 100 MB, `piled` sessions execute
    /// and the log grows by `log` a second; else 20 MB, 2 sessions and 10 MB.
    fn server(high: f64, piled: i64, log: f64) -> SyntheticRecording {
        let storm = |s: i64| s % 8 >= 4;
        let rows = (0..=24).flat_map(|s| {
            (0..if storm(s) { piled } else { 2 }).map(move |i| Session {
                observed_at: s * 1_000_000_000,
                source: DB.into(),
                session_id: i,
                true_state: "executing".into(),
                state: Some("Updating".into()),
                ..Session::default()
            })
        });
        let grown = move |s: i64| (1..=s).map(|t| if storm(t) { log } else { 10e6 }).sum::<f64>();
        SyntheticRecording::new(24)
            .requests(50, 400)
            .session_rows(rows.collect())
            .counted(DB, "mysql_innodb_checkpoint_age_bytes", &[], move |s| if storm(s) { high } else { 20e6 })
            .gauge(DB, "mysql_innodb_log_capacity_bytes", &[], 100e6)
            .counter(DB, "mysql_global_status_innodb_buffer_pool_wait_free", &[], 0.0)
            .counter(DB, "mysql_global_status_innodb_buffer_pool_pages_flushed", &[], 500.0)
            .counted(DB, "mysql_global_status_innodb_os_log_written", &[], grown)
    }

    #[test]
    fn changes_that_stop_while_pages_are_written_near_the_logs_end_are_its_doing() {
        let made = server(95e6, 32, 1e6);
        // 30 sessions more in half of the time, at 50 requests a second.
        assert!((made.explains(&DEFINITION).unwrap() - 300.0).abs() < 50.0, "{:?}", made.explains(&DEFINITION));
        let diagnosis = made.setting(DB, "innodb_redo_log_capacity", "104857600").diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::FlushStorm));
        let fix = &diagnosis.findings[0].fixes[0];
        assert_eq!(fix.command.as_deref(), Some("SET GLOBAL innodb_redo_log_capacity = 536870912;"));
    }

    #[test]
    fn a_log_with_room_a_burst_and_a_pile_up_at_other_times_clear_it() {
        assert_eq!(server(60e6, 32, 1e6).explains(&DEFINITION), Some(0.0), "room");
        assert_eq!(server(95e6, 32, 30e6).explains(&DEFINITION), Some(0.0), "the log grows faster: a burst");
        assert_eq!(server(95e6, 2, 1e6).explains(&DEFINITION), Some(0.0), "nobody stands");
    }

    #[test]
    fn the_greatest_age_of_a_small_log_is_far_below_its_size() {
        let made = server(60e6, 32, 1e6).gauge(DB, "mysql_global_status_innodb_checkpoint_max_age", &[], 64e6);
        assert!(made.explains(&DEFINITION).is_some_and(|ms| ms > 250.0), "{:?}", made.explains(&DEFINITION));
    }

    #[test]
    fn waits_for_free_pages_count_too() {
        let made = server(20e6, 32, 1e6).without("mysql_global_status_innodb_buffer_pool_wait_free");
        let waits = made.counted(DB, "mysql_global_status_innodb_buffer_pool_wait_free", &[], |s| {
            (s / 8 * 80 + (s % 8 - 4).max(0) * 20) as f64
        });
        assert!(waits.explains(&DEFINITION).unwrap() > 150.0);
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        for metric in [
            "mysql_innodb_checkpoint_age_bytes",
            "mysql_innodb_log_capacity_bytes",
            "mysql_global_status_innodb_buffer_pool_wait_free",
            "mysql_global_status_innodb_buffer_pool_pages_flushed",
            "mysql_sessions",
        ] {
            assert_eq!(server(95e6, 32, 1e6).without(metric).explains(&DEFINITION), None, "{metric}");
        }
        assert_eq!(server(95e6, 32, 1e6).without_column("sessions", "true_state").explains(&DEFINITION), None);
    }
}
