//! The same without plans: a statement that reads many times the rows for the same result has
//! another plan. MySQL counts the rows that each statement examines, PostgreSQL those that scans
//! read of each table. A table that grows does the same little by little; another plan does it at
//! once.

use holdup_recording::metrics;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, View};

use super::{KNOWN, ROSE, fixes};
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role};
use crate::resources::changes::Changes;
use crate::resources::rows_read::{ENABLE, RowsRead};
use crate::resources::slower::Slowdown;
use crate::resources::{is_felt, statements};
use crate::strength::{FAIR, STRONG};

/// Another plan reads at least this many times the rows.
const READS: f64 = 3.0;

/// Fewer additional rows per call than this take no time that matters.
const ROWS: f64 = 100.0;

/// The result is the same up to this factor.
const SAME: f64 = 1.3;

/// The same plan reads up to so many times the rows in proportion to the table's: rows do not lie evenly.
const PROPORTION: f64 = 2.0;

/// Judges the statements that take longer by the rows that they read; none if no source counts
/// these, or they grew little by little.
pub(super) fn judge(
    case: &Case<'_>,
    slower: &[Slowdown<'_>],
    before: &[DigestUse],
    all_ms: f64,
    completed: f64,
) -> Option<Outcome> {
    let slow = case.slow();
    let (mut same_ms, mut same) = (0.0, Vec::new());
    let changes = Changes::for_case(case);
    // A new trigger reads for itself, and not by a plan of the statement.
    for of in slower.iter().filter(|of| changes.trigger_of(&of.now.text).is_none()) {
        let Some(read) = RowsRead::of(case, of, before).filter(is_same_result) else { continue };
        let more = !is_of_growth(&read) && read.each.1 >= READS * read.each.0 && read.each.1 - read.each.0 >= ROWS;
        if more
            && read.at_once
            && of.change.rose(ROSE)
            && is_felt(case, of.extra_ms).unwrap_or(false)
            && statements::is_of_requests(case, &slow, of.now, completed)
        {
            return Some(Outcome::Found(found(&slow, of, read)));
        }
        if read.each.1 <= SAME * read.each.0.max(1.0) {
            same_ms += of.extra_ms;
            same.push((of, read));
        }
    }
    let (of, read) = same.into_iter().next().filter(|_| same_ms >= KNOWN * all_ms)?;
    let mut told = read.evidence;
    told.text = format!(
        "a call reads as many rows as in the baseline window ({}, {} then), so its plan does the same: {}; such statements have {} of what \
         statements take longer",
        thousands(read.each.1),
        thousands(read.each.0),
        of.now.text,
        percent((same_ms / all_ms).min(1.0))
    );
    Some(Outcome::Cleared(vec![told, of.took(&slow)]))
}

/// Whether a call's result is as large as before, as far as that is known.
fn is_same_result(read: &RowsRead) -> bool {
    read.used.is_none_or(|(before, now)| now <= SAME * before.max(1.0))
}

/// Whether the table has so many more rows that the same plan reads as many.
fn is_of_growth(read: &RowsRead) -> bool {
    read.table_grew.is_some_and(|grew| grew >= SAME && read.factor() <= PROPORTION * grew)
}

fn found(slow: &View<'_>, of: &Slowdown<'_>, read: RowsRead) -> CauseFinding {
    let mut fixes = fixes(of.now, None);
    fixes.reverse();
    CauseFinding {
        explains_ms: of.extra_ms,
        evidence: [Some(read.evidence), Some(of.took(slow)), handlers(slow)].into_iter().flatten().collect(),
        weights: vec![STRONG, FAIR, FAIR],
        fixes,
        prove: format!(
            "Run the same scenario again: a call reads about {} rows and takes {}.",
            thousands(read.each.0),
            ms(of.each_ms.0)
        ),
        role: Role::Root,
    }
}

/// Rows that MySQL's storage engines were asked for, which any plan has to ask for.
fn handlers(view: &View<'_>) -> Option<Evidence> {
    const METRICS: [&str; 2] = [
        metrics::mysql::GLOBAL_STATUS_HANDLER_READ_RND_NEXT.name,
        metrics::mysql::GLOBAL_STATUS_HANDLER_READ_NEXT.name,
    ];
    let counted = METRICS.iter().filter_map(|metric| view.counter(metric, &[], ENABLE).ok());
    let most = counted.max_by(|a, b| a.delta.total_cmp(&b.delta))?;
    let rate = format!("{} a second", thousands(most.rate()));
    let text = format!("the server read {rate} rows of tables or indexes one after another");
    Some(most.evidence(rate, "", text))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    const TEXT: &str = "SELECT id, note FROM orders WHERE customer = ?";
    const PG: &str = "postgresql://db";

    /// 20 s, 50 requests a second of 5 ms, from the 10th second on of 400 ms; the statement runs once in each, a hundred times longer
    /// then, and has examined `rows` in a second of the latter half by its end.
    fn load(rows: impl Fn(i64) -> i64) -> SyntheticRecording {
        SyntheticRecording::new(20)
            .requests(50, 400)
            .each_request(|number, request| {
                if number < 500 {
                    request.done_at = request.intended_at + 5_000_000;
                    request.first_byte_at = Some(request.done_at);
                }
            })
            .digest(TEXT, |s| {
                let late = (s - 10).max(0);
                let examined = 50 * 10 * s.min(10) + (1..=late).map(|s| 50 * rows(s)).sum::<i64>();
                (50 * s, 150 * s.min(10) + 15_000 * late, examined, 50 * 10 * s, 0)
            })
    }

    #[test]
    fn many_rows_at_once_for_the_same_result_are_another_plan() {
        let made = load(|_| 60_000);
        assert!((made.explains(&DEFINITION).unwrap() - 297.0).abs() < 30.0, "{:?}", made.explains(&DEFINITION));
        assert_eq!(made.diagnose().culprit, Some(Cause::PlanChanged));
    }

    #[test]
    fn as_many_rows_clear_it_and_a_table_that_grows_leaves_it_open() {
        assert_eq!(load(|_| 10).explains(&DEFINITION), Some(0.0));
        assert_eq!(load(|second| 10 * second).explains(&DEFINITION), None, "the table grows");
        assert_eq!(load(|_| 60_000).without_column("statements", "rows_examined").explains(&DEFINITION), None);
    }

    #[test]
    fn postgresql_counts_the_rows_that_scans_read() {
        let made = |after: f64| {
            let read = move |s: i64| 500.0 * s.min(10) as f64 + after * (s - 10).max(0) as f64;
            load(|_| 0)
                .counted(PG, "postgresql_stat_tables_seq_tup_read", &[("table", "public.orders")], read)
                .counter(PG, "postgresql_stat_tables_idx_tup_fetch", &[("table", "public.orders")], 10.0)
                .tables(|tables| tables.statements.rows.iter_mut().for_each(|row| row.source = PG.to_owned()))
        };
        assert!(
            (made(3e6).explains(&DEFINITION).unwrap() - 297.0).abs() < 30.0,
            "{:?}",
            made(3e6).explains(&DEFINITION)
        );
        assert_eq!(made(500.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(made(3e6).without("postgresql_stat_tables_seq_tup_read").explains(&DEFINITION), None);
        // Another statement reads all of the table all along, as this one now does along an index.
        let read = |s: i64| 500.0 * s.min(10) as f64 + 3e6 * (s - 10).max(0) as f64;
        let beside = made(500.0)
            .without("postgresql_stat_tables_seq_tup_read")
            .without("postgresql_stat_tables_idx_tup_fetch")
            .counter(PG, "postgresql_stat_tables_seq_tup_read", &[("table", "public.orders")], 3e6)
            .counted(PG, "postgresql_stat_tables_idx_tup_fetch", &[("table", "public.orders")], read);
        assert!((beside.explains(&DEFINITION).unwrap() - 297.0).abs() < 30.0, "{:?}", beside.explains(&DEFINITION));
    }
}
