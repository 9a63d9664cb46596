//! Tables on disk whose pages stay in memory until they are deleted: no thread sleeps for them, and
//! each row takes a request to the page cache of their storage engine, a copy of its page, and often
//! a pass of a sort through a file. That is CPU work, many times that of reading the rows.

use std::collections::BTreeSet;

use crate::change::Fix;
use holdup_recording::metrics;
use holdup_recording::rows::Session;
use holdup_signals::{Counter, DigestUse};

use super::{CREATED, ENABLE};
use crate::case::{Band, Case};
use crate::causes::parts::cpu_work;
use crate::causes::{CauseFinding, Others, Outcome, Role, thousands};
use crate::strength::{FAIR, STRONG};

/// Rows written to temporary tables.
const WRITTEN: &str = metrics::mysql::GLOBAL_STATUS_HANDLER_TMP_WRITE.name;

/// Least factor by which they must have grown since the baseline window.
const TIMES: f64 = 3.0;

/// Tables on disk per call from which a statement makes them as a rule.
const EACH: f64 = 0.5;

/// Least rows written to temporary tables for each that the statements examined: they examine what
/// they read back, too. With fewer, reading is most of the work.
const WRITES: f64 = 0.2;

/// Judges the CPU work of statements that make tables on disk; none unless it began with the episode
/// and is most of what fills the CPUs.
pub(super) fn judge(case: &Case<'_>, others: &Others) -> Option<Outcome> {
    let (view, baseline) = (case.slow(), case.baseline()?);
    let [now, before] = [&view, &baseline].map(|view| view.counter(CREATED, &[], ENABLE).ok());
    let (now, before) = (now?, before?);
    let band = |of: &Counter| Band::of_count(of.rate(), of.delta).read(of.reads);
    let (change, before) = (band(&now).since(band(&before)), before.rate());
    if !change.rose(TIMES) {
        return None;
    }
    let executed = view.executed(&["digest_text", "temporary_disk_tables", "rows_examined"]).ok()?;
    let theirs: Vec<&DigestUse> = executed.iter().filter(|of| of.temporary_disk_tables >= EACH * of.calls).collect();
    let examined: f64 = theirs.iter().map(|of| of.rows_examined).sum();
    let written = view.counter(WRITTEN, &[], ENABLE).ok()?;
    if theirs.is_empty() || written.delta < WRITES * examined {
        return None;
    }
    let texts: BTreeSet<String> = theirs.iter().map(|of| of.text.to_lowercase()).collect();
    let is_theirs = |row: &Session| row.digest_text.as_ref().is_some_and(|text| texts.contains(&text.to_lowercase()));
    let work = cpu_work::of_sessions(case, others, is_theirs)?;
    let rate = |rate: f64| format!("{}/s", thousands(rate));
    let text = format!(
        "the server made {} temporary tables on disk, {} in the baseline window, and wrote {} rows to them",
        rate(now.rate()),
        rate(before),
        rate(written.rate())
    );
    let mut evidence = vec![now.evidence(rate(now.rate()), rate(before), text)];
    evidence.extend(work.evidence);
    Some(Outcome::Found(CauseFinding {
        explains_ms: work.explains_ms,
        evidence,
        weights: vec![STRONG, FAIR, FAIR],
        fixes: vec![Fix {
            text: format!(
                "Group and sort by short columns (a key, a hash), without TEXT and BLOB columns in the result, or by an index that returns the order: {}",
                work.text
            ),
            command: None,
            keep: None,
            risk: None,
        }],
        prove: "The same load again: no temporary tables on disk (Created_tmp_disk_tables), and CPUs are idle."
            .to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mysql://db";
    const SORT: &str = "SELECT body, COUNT(*) FROM page GROUP BY body";

    /// 50 requests a second, slow from 12 s on, when two sessions group by a text all the time and the CPUs are full. They write
    /// `written` rows a second to tables on disk, and examine 20,000.
    fn made(written: f64) -> SyntheticRecording {
        let since =
            |baseline: f64, slow: f64| move |s: i64| baseline * s.min(12) as f64 + slow * (s - 12).max(0) as f64;
        let cpu = |mode| [("cpu_mode", mode)];
        let row = |s: i64, id: i64| Session {
            observed_at: s * 1_000_000_000,
            source: DB.into(),
            session_id: id,
            true_state: "executing".into(),
            digest_text: Some(SORT.into()),
            ..Session::default()
        };
        SyntheticRecording::new(24)
            .requests(50, 400)
            .each_request(|_, r| {
                if r.intended_at < 12_000_000_000 {
                    r.done_at = r.intended_at + 20_000_000;
                }
            })
            .counted("host", "system_cpu_time_seconds_total", &cpu("user"), since(0.2, 1.95))
            .counted("host", "system_cpu_time_seconds_total", &cpu("idle"), since(1.8, 0.05))
            .counted("pid:7", "process_run_queue_seconds_total", &[], since(0.05, 15.0))
            .gauge("pid:7", "process_threads", &[("state", "D")], 0.0)
            .setting(DB, "tmpdir", "/tmp")
            .gauge(DB, "mysql_sessions", &[("true_state", "executing")], 2.0)
            .session_rows((12..24).flat_map(|s| [row(s, 1), row(s, 2)]).collect())
            .counted(DB, CREATED, &[], since(0.0, 20.0))
            .counted(DB, WRITTEN, &[], since(100.0, written))
            .digest(SORT, |s| (10 * (s - 12).max(0), 2_000 * (s - 12).max(0), 20_000 * (s - 12).max(0), 0, 0))
            .tables(|tables| {
                tables.statements.rows.iter_mut().for_each(|row| row.temporary_disk_tables = 2 * row.calls);
            })
    }

    #[test]
    fn tables_on_disk_that_stay_in_memory_fill_the_cpus() {
        let found = made(10_000.0).explains(&DEFINITION).expect("judged");
        assert!(found > 200.0, "{found}");
        let diagnosis = made(10_000.0).diagnose();
        assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{:#?}", diagnosis.findings);
        assert_eq!(made(500.0).explains(&DEFINITION), Some(0.0), "reading is most of the work");
        let none =
            made(10_000.0).tables(|t| t.statements.rows.iter_mut().for_each(|row| row.temporary_disk_tables = 0));
        assert_eq!(none.explains(&DEFINITION), Some(0.0), "another statement makes them");
    }
}
