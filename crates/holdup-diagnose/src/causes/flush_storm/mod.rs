//! The database stalls to write out changed pages that fill its log or its buffer pool.

mod advice;
mod age;
mod checkpoints;
mod meanwhile;
mod signs;
mod stalls;
mod wired_tiger;

use self::age::{Age, age};
use self::meanwhile::Meanwhile;
use super::Source::Of;
use super::parts::clearing;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, Magnitude, Outcome, Role, Trait, bytes, percent, thousands,
};
use crate::case::Case;
use crate::resources::is_felt;
use crate::resources::sessions::PileUp;
use crate::strength::{FAIR, NONE, STRONG, WEAK};
use crate::{next_command, resources};
use holdup_recording::metrics::{self, Metric};
use holdup_signals::database::server::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window};

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
    predicts: "At those instants the checkpoint's age is near the capacity, or waits for free pages grow; as many pages are written as before or more, while no more rows are changed; executing sessions pile up. PostgreSQL's checkpoints start because of the log's size, and a changed row takes more log, because its page is logged whole. MongoDB's operations take longer while a checkpoint runs, or while they evict.",
    clears: "The age stays clear of the capacity and no statement waited for a free page; or sessions do not pile up when it is near; or more rows are then changed than at other times: a burst. MongoDB's operations are as quick while a checkpoint runs as at other times, and hardly evict.",
    looks_like: "A slow disk (the age follows from it, and the log's flushes are slow all the time), FLUSH TABLES or a backup's lock (nothing is written), a burst of changes (more rows are changed, not fewer).",
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
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![filled, free].into_iter().chain(piled).collect()));
    }
    let meanwhile = Meanwhile::measure(&view, &storms, case.baseline().as_ref());
    let pages = pages_written(&view, &storms);
    let is_less = pages.as_ref().is_some_and(|(is_less, _)| *is_less);
    let clears = meanwhile.as_ref().filter(|of| of.is_burst() || is_less).map(|of| of.evidence.clone());
    if let Some(clears) = clears {
        let pages = pages.map(|(_, told)| told);
        return Ok(Outcome::Cleared([clears].into_iter().chain(pages).chain([filled, free]).collect()));
    }
    let mut pieces = vec![(filled, FAIR)];
    pieces.extend(piled.map(|told| (told, WEAK)));
    pieces.extend(meanwhile.map(|of| (of.evidence.clone(), if of.is_slower() { STRONG } else { FAIR })));
    pieces.extend(pages.map(|(_, told)| (told, NONE)));
    pieces.push((free, if wait_free.delta > 0.0 { WEAK } else { NONE }));
    let (evidence, weights) = pieces.into_iter().unzip();
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

/// Whether fewer pages are written in storms than at other times of the episode; none without other times.
fn pages_written(view: &View<'_>, storms: &[Window]) -> Option<(bool, Evidence)> {
    const FLUSHED: Metric = metrics::mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FLUSHED;
    let rate = |is_storm: bool| meanwhile::rate(view, &[FLUSHED], storms, is_storm);
    let (then, usual) = (rate(true)?, rate(false)?);
    let text = format!("then {} pages/s were written, {} at other times", thousands(then), thousands(usual));
    let told = view.counter(FLUSHED.name, &[], DATABASE).ok()?;
    let told = told.evidence(format!("{} pages a second", thousands(then)), "as many or more", text);
    Some((then < SLOWER * usual || then <= 0.0, told))
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
    fn a_steady_load_changes_as_many_rows_while_it_waits_for_pages() {
        let rows = |burst: f64| {
            let changed = move |s: i64| (1..=s).map(|t| if t % 8 >= 4 { 50.0 * burst } else { 50.0 }).sum::<f64>();
            server(95e6, 32, 10e6).counted(DB, "mysql_global_status_innodb_rows_updated", &[], changed)
        };
        assert!(
            (rows(1.0).explains(&DEFINITION).unwrap() - 300.0).abs() < 50.0,
            "{:?}",
            rows(1.0).explains(&DEFINITION)
        );
        assert_eq!(rows(4.0).explains(&DEFINITION), Some(0.0), "four times as many: a burst");
        let fewer = |s: i64| (1..=s).map(|t| if t % 8 >= 4 { 10.0 } else { 500.0 }).sum::<f64>();
        let flushed = "mysql_global_status_innodb_buffer_pool_pages_flushed";
        let unwritten = rows(1.0).without(flushed).counted(DB, flushed, &[], fewer);
        assert_eq!(unwritten.explains(&DEFINITION), Some(0.0), "hardly a page is written");
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
