//! The same from what began with the episode: statements that change many rows at a time, seen in
//! the server's counters, and copies that run on the CPUs instead of waiting for the disk.

use crate::change::Fix;
use holdup_recording::metrics;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::throttle::Unit;

use crate::case::{Band, Case};
use crate::causes::parts::cpu_work;
use crate::causes::{CauseFinding, Others, Outcome, Role, bytes_per_second, ms, percent, thousands};
use crate::resources::newcomers::{BulkChange, Newcomers};
use crate::resources::volume::demand::demand;
use crate::resources::{is_felt, locks};
use crate::strength::{FAIR, STRONG};
use holdup_signals::database::copies::{Copying, copying, is_copy};

/// Bulk changes that make up less of all changed rows (0-1) are not what fills the log.
const MOST: f64 = 0.5;

/// Least factor by which the writing must have grown since the baseline window.
const GREW: f64 = 2.0;

/// Changes of many rows at a time. What they cost requests is the time that the requests' own
/// statements take longer, without their waits for locks: those have a rule of their own. A writer
/// that only holds a lock is not found here.
pub(super) fn by_changes(case: &Case<'_>) -> Option<Outcome> {
    let new = Newcomers::for_case(case).ok()?;
    let bulk = new.bulk(case).filter(|bulk| bulk.share >= MOST)?;
    let locked_ms = locks::waited_ms(case).unwrap_or(0.0);
    let (grown, written) = writing(case)?;
    let explains_ms = (new.slowed_ms - locked_ms).max(0.0) * bulk.share * grown;
    if !is_felt(case, explains_ms).ok()? {
        return None;
    }
    let mut slowed = written.clone();
    slowed.text = format!(
        "{}; the requests' own statements take {} of a request longer than in the baseline window, without waits for locks",
        written.text,
        ms(new.slowed_ms - locked_ms)
    );
    Some(Outcome::Found(found(&bulk, explains_ms, slowed)))
}

/// Copies that run most of the time, while the disk moves more than in the baseline window and the
/// requests' own statements take longer: where no source shows how long requests wait for the disk.
pub(super) fn by_statements(case: &Case<'_>) -> Option<Outcome> {
    let (slow, baseline) = (case.slow(), case.well_before()?);
    let ran = |copies: Vec<Copying>| {
        copies.into_iter().filter(|of| !of.is_program).max_by(|a, b| a.seen_ratio.total_cmp(&b.seen_ratio))
    };
    let copy = ran(copying(&slow, None)).filter(|copy| copy.seen_ratio >= MOST)?;
    if ran(copying(&baseline, None)).is_some_and(|before| before.seen_ratio >= MOST * copy.seen_ratio) {
        return None;
    }
    let (grown, moved) = moving(case)?;
    let new = Newcomers::for_case(case).ok()?;
    let slowed_ms = (new.slowed_ms - locks::waited_ms(case).unwrap_or(0.0)).max(0.0);
    let explains_ms = slowed_ms * grown;
    if !is_felt(case, explains_ms).ok()? {
        return None;
    }
    let text = format!(
        "{} was running in {} of the samples; the requests' own statements take {} of a request longer than in the baseline window",
        copy.name,
        percent(copy.seen_ratio),
        ms(slowed_ms)
    );
    let told = copy.evidence.clone().saying("nothing of it", text);
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![told, moved],
        weights: vec![STRONG, STRONG * grown],
        fixes: vec![Fix {
            text: format!("Let {} run at another time or from a replica, or slower.", copy.name),
            command: None,
            keep: None,
            risk: Some("A slower backup takes longer, and keeps its snapshot for as long.".to_owned()),
        }],
        prove: "The same load without it: response time is that of the baseline window.".to_owned(),
        role: Role::Root,
    }))
}

/// How much of what the disk moves is new since the baseline window (0-1); none if it did not grow.
fn moving(case: &Case<'_>) -> Option<(f64, Evidence)> {
    let (slow, baseline) = (case.slow(), case.well_before()?);
    let demand = demand(case).ok()?;
    let before = demand.flow.mean(Unit::Bytes, baseline.window)?;
    let grown = grew(demand.moved, before)?;
    let (is, was) = (bytes_per_second(demand.moved), bytes_per_second(before));
    let text = format!("{} moved {is}, {was} in the baseline window", demand.flow.name);
    Some((grown, demand.flow.evidence(Unit::Bytes, slow.window, is, was, text)))
}

/// The new part (0-1) of a rate that grew.
fn grew(now: f64, before: f64) -> Option<f64> {
    (now >= GREW * before && now > 0.0).then(|| 1.0 - before / now)
}

/// How much of the writing is new since the baseline window (0-1), by the server's log or else by
/// the disk; none if it did not grow.
fn writing(case: &Case<'_>) -> Option<(f64, Evidence)> {
    const LOG: [&str; 2] =
        [metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN.name, metrics::postgresql::WAL_POSITION_BYTES.name];
    let (slow, baseline) = (case.slow(), case.well_before()?);
    let log = LOG.iter().find_map(|metric| {
        let (now, before) = (slow.counter(metric, &[], "").ok()?, baseline.counter(metric, &[], "").ok()?);
        let change = Band::of_counter(&now).since(Band::of_counter(&before));
        let grown = grew(now.rate(), before.rate()).filter(|_| change.rose(GREW))?;
        let (is, was) = (bytes_per_second(now.rate()), bytes_per_second(before.rate()));
        let text = format!("the server's log grew by {is}, by {was} in the baseline window");
        Some((grown, now.evidence(is, was, text)))
    });
    log.or_else(|| moving(case))
}

fn found(bulk: &BulkChange, explains_ms: f64, written: Evidence) -> CauseFinding {
    CauseFinding {
        explains_ms,
        evidence: vec![bulk.evidence.clone(), written],
        weights: vec![STRONG, STRONG * bulk.share],
        fixes: vec![Fix {
            text: format!(
                "Find the job that changes {} rows at a time ({} a second), and let it run at another time, or in smaller batches with pauses: {}",
                thousands(bulk.rows_each),
                thousands(bulk.rows_per_second),
                bulk.text
            ),
            command: None,
            keep: None,
            risk: Some("Smaller batches take longer in all.".to_owned()),
        }],
        prove: "The same load without that job: response time is that of the baseline window.".to_owned(),
        role: Role::Root,
    }
}

/// Copies that keep CPUs busy, if CPUs are what requests wait for: a dump of what is in memory
/// reads no disk.
pub(super) fn by_cpu(case: &Case<'_>, others: &Others) -> Option<Outcome> {
    let work = cpu_work::of_sessions(case, others, |row| row.digest_text.as_deref().is_some_and(is_copy))?;
    Some(Outcome::Found(CauseFinding {
        explains_ms: work.explains_ms,
        evidence: work.evidence,
        weights: vec![STRONG, FAIR],
        fixes: vec![Fix {
            text: format!("Let it run at another time or from a replica, with fewer jobs at once: {}", work.text),
            command: None,
            keep: None,
            risk: Some("A slower backup takes longer, and keeps its snapshot for as long.".to_owned()),
        }],
        prove: "The same load without it: response time is that of the baseline window.".to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_recording::rows::Session;

    const DB: &str = "mysql://db";

    /// 100 requests a second of 10 ms, and of 400 from 30 to 60 s of 90: an own statement of 1 ms takes 300 then, `waiting` sessions
    /// wait for a lock, and an import inserts `rows` at a time, 5 times a second.
    fn made(rows: i64, waiting: i64) -> SyntheticRecording {
        let during = |s: i64| (s - 30).clamp(0, 30);
        let waiter = |s: i64, id: i64| Session {
            observed_at: s * 1_000_000_000,
            source: DB.into(),
            session_id: id,
            true_state: "lock_wait".into(),
            digest_text: Some("UPDATE item SET n = ? WHERE id = ?".into()),
            ..Session::default()
        };
        SyntheticRecording::new(90)
            .requests(100, 400)
            .each_request(|n, r| {
                if !(30..60).contains(&(n / 100)) {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .session_rows((30..60).flat_map(|s| (0..waiting).map(move |id| waiter(s, id))).collect())
            .digest("UPDATE item SET n = ? WHERE id = ?", move |s| {
                (100 * s, 100 * s + 100 * 299 * during(s), 0, 100 * s, 0)
            })
            .digest("INSERT INTO item SELECT * FROM staged", move |s| {
                (5 * during(s), 50 * during(s), 0, 5 * rows * during(s), 0)
            })
            .counted(DB, "mysql_global_status_innodb_os_log_written", &[], move |s| (s + 20 * during(s)) as f64 * 1e5)
            .tables(|tables| {
                tables.statements.rows.iter_mut().for_each(|row| {
                    row.rows_affected = row.rows_sent;
                    row.rows_sent = 0;
                });
            })
    }

    #[test]
    fn an_import_that_fills_the_log_is_what_began() {
        let explains = made(1_000, 0).explains(&DEFINITION).unwrap();
        assert!((explains - 270.0).abs() < 30.0, "{explains}");
        let diagnosis = made(1_000, 0).diagnose();
        assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
    }

    #[test]
    fn a_few_rows_at_a_time_and_waits_for_a_lock_are_not_its_doing() {
        for made in [made(2, 0), made(1_000, 30)] {
            assert!(made.explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "{:?}", made.explains(&DEFINITION));
        }
        let constant = made(1_000, 0).without("mysql_global_status_innodb_os_log_written");
        assert!(constant.explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "nothing shows that more is written");
    }

    #[test]
    fn a_dump_that_reads_the_disk_is_what_the_own_statements_wait_for() {
        let dump = |s: i64| Session {
            observed_at: s * 1_000_000_000,
            source: DB.into(),
            session_id: 9,
            true_state: "executing".into(),
            digest_text: Some("SELECT SQL_NO_CACHE id, body FROM article".into()),
            ..Session::default()
        };
        let read = |s: i64| (s + 20 * (s - 30).clamp(0, 30)) as f64 * 1e5;
        let device = [("device", "vda"), ("direction", "read")];
        let made = |seconds: std::ops::Range<i64>| {
            made(2, 0)
                .without("mysql_global_status_innodb_os_log_written")
                .session_rows(seconds.map(dump).collect())
                .disk("vda", (10.0, 8_192.0, 1.0), (1.0, 8_192.0, 1.0))
                .without("system_disk_io_bytes_total")
                .counted("host", "system_disk_io_bytes_total", &device, read)
                .counter("host", "system_disk_io_bytes_total", &[("device", "vda"), ("direction", "write")], 1e3)
        };
        let explains = made(30..60).explains(&DEFINITION).unwrap();
        assert!((explains - 285.0).abs() < 30.0, "{explains}");
        assert!(made(0..0).explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "none ran");
        assert!(made(0..60).explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "it ran before");
    }
}
