//! A statement of the requests reads many rows for each one that it needs, without an index.

use super::parts::clearing;
use super::{Cause, Definition, Doc, Edge, Judge, Magnitude, Outcome, Source::Of, Trait, ms};
use crate::case::Case;
use crate::next_command;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

mod by_change;
mod by_counters;
mod by_documents;
mod by_plan;
mod by_tables;
mod conditions;
mod scan;
mod signs;
mod trace;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::WithinStatement, Trait::LongStatement, Trait::Avoidable],
    follows_from: &[
        // Unless an index was lost, the planner reads the whole table although there is one.
        Edge {
            magnitude: Magnitude::Own(|case| by_change::judge(case).is_none()),
            ..Edge::same_time(&[&[Of(Cause::PlanChanged)]])
        },
    ],
    traces: &[trace::PATTERN],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::SCANNED, crate::strength::STRONG)],
    ..Definition::new(Cause::MissingIndex, DOC, Judge::Alone(judge), &next_command::ROWS_READ)
};

const DOC: Doc = Doc {
    title: "A statement reads whole tables because an index is missing",
    what: "No index fits the statement's conditions, so the server reads every row of a table, each time. There was none, or one was dropped, became invalid, or was hidden from the planner.",
    hurts: "Each execution takes CPU and buffer pool in proportion to the table, which grows. At some size it fills the CPUs, and everything else waits.",
    needs: "The server's counters by statement with rows examined and sent and executions without an index (--watch mysql://…, performance_schema on); for PostgreSQL its counters by statement and plans (--watch postgresql://…?plans=explain, or auto_explain in its log), with the size of tables; the number of requests. Of MongoDB, the documents examined and returned, and the operations in progress (--watch mongodb://…).",
    predicts: "A statement of the requests examines many rows per row that it sends or changes, mostly without an index, and its execution is most of the excess. On PostgreSQL its plan reads a whole table (Seq Scan) and discards most rows. CPU per request is up, the request rate is not. Or the catalogs show that an index of its table is gone or out of use since it takes longer.",
    clears: "No statement of the requests reads many rows for few without an index; or those that do take a small share of the delay; or they read as many rows per request in the baseline window. Or only database users without a session in that window run them.",
    looks_like: "A spike (the same rows per request, more requests); a changed plan (an index was used before); a count or a report over a whole table, which no index helps; locks (their time is not execution).",
    fix: "Make the index again, if the catalogs show which one is gone. Else look at its plan (EXPLAIN), then add the index that its conditions need.",
    prove: "The same load again: rows examined per call near rows sent, the statement's time a fraction of what it was.",
    references: "MySQL Reference Manual: Optimizing SELECT Statements, EXPLAIN Output Format, Performance Schema Statement Summary Tables (SUM_NO_INDEX_USED, SUM_ROWS_EXAMINED); PostgreSQL documentation: Using EXPLAIN, Examining Index Usage; MariaDB documentation: Building the best INDEX for a given SELECT.",
};

/// Fewer rows per execution are read faster than an index pays off: about 0.1 to 0.5 ms of CPU.
const ROWS: f64 = 1_000.0;

/// Rows examined per row sent or changed, from which an index would avoid most of them.
const EXAMINED_PER_USED: f64 = 20.0;

/// The cost of an index, and what it does not help.
const INDEX_COST: &str = "It takes disk space, and every change of a row must then maintain it. It does not help conditions with LIKE '%…' or functions of a column.";

/// Most milliseconds to read a row from memory: ten times and more what InnoDB takes, for wide rows,
/// joins and a shared CPU. Anything longer waits for something else, which has its own rule.
const ROW_MS: f64 = 0.01;

/// Least growth of rows per request since the baseline: data grow slowly, and load varies.
const ROSE: f64 = 1.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(found) = by_change::judge(case) {
        return Ok(found);
    }
    match from_server(case) {
        Err(missing) => clearing::by_statements(case, "including rows read without an index").ok_or(missing),
        outcome => outcome,
    }
}

const COLUMNS: &[&str] = &["digest_text", "rows_examined", "rows_sent", "no_index", "lock_ns"];

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    if by_documents::is_counted(&view) {
        return by_documents::judge(case);
    }
    let all = view.executed(COLUMNS)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    // PostgreSQL does not count examined rows: its plans show them.
    let (planned, executed): (Vec<&DigestUse>, Vec<&DigestUse>) =
        all.iter().partition(|of| of.source.starts_with("postgresql"));
    if planned.is_empty() {
        return by_counters::judge(case, &view, &executed, completed);
    }
    // An index that does not fit may be scanned as a whole: plans without a Seq Scan do not clear that.
    let by_plan = match (by_plan::judge(case, &planned, completed), by_tables::judge(case, &planned, completed)) {
        (Ok(Outcome::Cleared(_)) | Err(_), Some(found @ Outcome::Found(_))) => Ok(found),
        (Err(_), Some(outcome)) => Ok(outcome),
        (by_plan, _) => by_plan,
    };
    if executed.is_empty() || matches!(by_plan, Ok(Outcome::Found(_))) {
        return by_plan;
    }
    match (by_counters::judge(case, &view, &executed, completed)?, by_plan?) {
        (Outcome::Cleared(mut evidence), Outcome::Cleared(more)) => {
            evidence.extend(more);
            Ok(Outcome::Cleared(evidence))
        }
        (found, _) => Ok(found),
    }
}

/// How often a statement ran, and what reading its rows accounts for.
fn time_taken(view: &View<'_>, of: &DigestUse, completed: f64, explains_ms: f64) -> Evidence {
    view.digest_evidence(
        of,
        "duration_ns",
        format!("{} a request", ms(explains_ms)),
        "a small part of the delay, with an index",
        format!(
            "it ran {:.2} times per request, {} each by the server's own timing; reading rows accounts for {} of a request",
            of.calls / completed,
            ms(of.seconds / of.calls * 1e3),
            ms(explains_ms)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_signals::app::accounts::testing::{ALL, BASELINE_S, Injected, RATE, ReportingSources, made};

    const TEXT: &str = "SELECT id, total FROM shop.orders WHERE customer = ? AND state IN (...) ORDER BY id LIMIT ?";

    /// 50 requests of 400 ms a second; a statement of `each_ms` that examines `examined` rows for `sent`, `calls` a second.
    fn server(calls: i64, each_ms: i64, examined: i64, sent: i64, no_index: bool) -> SyntheticRecording {
        SyntheticRecording::new(12).requests(50, 400).digest(TEXT, move |s| {
            let n = calls * s;
            (n, n * each_ms, n * examined, n * sent, if no_index { n } else { 0 })
        })
    }

    #[test]
    fn a_statement_of_every_request_that_reads_a_table_is_named_with_its_index() {
        let made = server(50, 350, 200_000, 3, true);
        assert!((made.explains(&DEFINITION).unwrap() - 350.0).abs() < 30.0);
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::MissingIndex));
        let fixes = &diagnosis.findings[0].fixes;
        assert!(
            fixes[0].command.as_deref().is_some_and(|c| c.starts_with("EXPLAIN SELECT id, total FROM shop.orders"))
        );
        let index = fixes[1].command.as_deref().unwrap();
        assert!(index.contains("ALTER TABLE `orders` ADD INDEX") && index.contains("(`customer`, `state`)"), "{index}");
    }

    #[test]
    fn indexes_reports_and_what_is_quick_are_cleared() {
        assert_eq!(server(50, 350, 200_000, 3, false).explains(&DEFINITION), Some(0.0), "it uses an index");
        assert_eq!(server(50, 350, 200, 3, true).explains(&DEFINITION), Some(0.0), "few rows");
        assert_eq!(server(50, 350, 200_000, 100_000, true).explains(&DEFINITION), Some(0.0), "all of them are sent");
        assert_eq!(server(1, 350, 2_000_000, 1, true).explains(&DEFINITION), Some(0.0), "a report beside the requests");
        assert_eq!(server(50, 2, 2_000, 3, true).explains(&DEFINITION), Some(0.0), "it takes 2 ms");
        assert_eq!(server(50, 350, 2_000, 3, true).explains(&DEFINITION), Some(0.0), "350 ms are not for 2,000 rows");
        let whole = SyntheticRecording::new(12)
            .requests(50, 400)
            .digest("SELECT COUNT(*) FROM orders", |s| (50 * s, 17_500 * s, 10_000_000 * s, 50 * s, 50 * s));
        assert_eq!(whole.explains(&DEFINITION), Some(0.0), "no index helps it");
    }

    #[test]
    fn frequent_scans_of_other_clients_do_not_belong_to_requests() {
        let waits = Injected { admission: 60.0, ..Injected::default() };
        // As many as there are requests, of 55 ms, from when requests are slow.
        let scans = |recorded: SyntheticRecording| {
            recorded.digest(TEXT, |s| {
                let n = RATE * (s - BASELINE_S).max(0);
                (n, n * 55, n * 200_000, n, n)
            })
        };
        assert_eq!(scans(made(waits, ALL)).explains(&DEFINITION), Some(0.0));
        // By their rate alone they might be theirs; and what requests run is.
        let untold = ReportingSources { executions: false, wire: (false, false), ..ALL };
        assert!(scans(made(waits, untold)).explains(&DEFINITION).is_some_and(|ms| ms > 40.0));
        let theirs = made(waits, ALL).tables(|tables| {
            tables.statements.rows.iter_mut().for_each(|row| row.digest = TEXT.into());
        });
        assert!(scans(theirs).explains(&DEFINITION).is_some_and(|ms| ms > 40.0));
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        let made = server(50, 350, 200_000, 3, true);
        for column in ["rows_examined", "rows_sent", "no_index", "calls", "duration_ns", "digest_text"] {
            assert_eq!(made.clone().without_column("statements", column).explains(&DEFINITION), None, "{column}");
        }
        // Without requests the counters of statements say how they fared.
        let unmeasured = made.without_column("requests", "done_at").tables(|tables| tables.statements.rows.clear());
        assert_eq!(unmeasured.explains(&DEFINITION), None);
    }
}
