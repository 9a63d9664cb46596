//! The same where the indexes are new: they were added while requests became slow, and the
//! statements that change the table take longer since.

use crate::change::Fix;
use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

use super::writes::writes_to;
use crate::case::{Band, Case};
use crate::causes::{CauseFinding, Outcome, Role, bytes, ms};
use crate::resources::indexes::{AddedIndexes, added};
use crate::resources::is_felt;
use crate::strength::{FAIR, STRONG};

/// Least factor by which the log of a changed row has grown to show the indexes' part.
const ROSE: f64 = 1.2;

/// The outcome by indexes that were added; none without such, or their table's changes take no
/// longer.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    let added = added(case)?;
    let (slow, baseline) = (case.slow(), case.baseline()?);
    let now = written_ms(case, &slow, &added.table)?;
    let before = written_ms(case, &baseline, &added.table)?;
    let explains_ms = (now - before).max(0.0);
    if !is_felt(case, explains_ms).ok()? {
        return None;
    }
    let text = format!(
        "statements that change {} take {} of a request, {} in the baseline window",
        added.table,
        ms(now),
        ms(before)
    );
    let all = slow.executed(&["digest_text"]).ok()?;
    let most = all.iter().find(|of| writes_to(&of.text, &added.table))?;
    let slowed = slow.digest_evidence(most, "duration_ns", ms(now), ms(before), text);
    let log = log_per_row(&slow, &baseline);
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: [Some(added.evidence.clone()), Some(slowed), log].into_iter().flatten().collect(),
        weights: vec![STRONG, FAIR, FAIR],
        fixes: vec![fix(&added)],
        prove: "The same load without the new indexes: changes take as long as in the baseline window.".to_owned(),
        role: Role::Root,
    }))
}

fn fix(added: &AddedIndexes) -> Fix {
    Fix {
        text: format!(
            "Stop adding indexes to {} now. Build those that statements need one at a time at a quiet hour, and drop the others: each is maintained at every change.",
            added.table
        ),
        command: None,
        keep: None,
        risk: Some("A statement that needs a new index reads the whole table without it.".to_owned()),
    }
}

/// Milliseconds of a request spent in statements that change `table`.
fn written_ms(case: &Case<'_>, view: &View<'_>, table: &str) -> Option<f64> {
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let all = view.executed(&["digest_text"]).ok()?;
    let own = all.iter().filter(|of| writes_to(&of.text, table));
    Some(own.map(|of| of.seconds).fold(0.0, |sum, s| sum + s) / completed * 1e3)
}

/// Bytes of log per changed row, if they rose: each index adds its entry.
fn log_per_row(slow: &View<'_>, baseline: &View<'_>) -> Option<Evidence> {
    const LOG: [&str; 2] =
        [metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN.name, metrics::postgresql::WAL_POSITION_BYTES.name];
    let each = |view: &View<'_>, metric: &str| {
        let all = view.executed(&["digest_text", "rows_affected"]).ok()?;
        let rows: f64 = all.iter().map(|of| of.rows_changed).sum();
        let log = view.counter(metric, &[], "").ok()?;
        let band = Band::of_mean(log.delta / rows, rows).read(log.reads);
        (rows > 0.0).then_some((band, log))
    };
    LOG.iter().find_map(|metric| {
        let ((is, log), (was, _)) = (each(slow, metric)?, each(baseline, metric)?);
        let (now, before) = (is.value, was.value);
        let text = format!("a changed row took {} of log, {} in the baseline window", bytes(now), bytes(before));
        is.since(was).rose(ROSE).then(|| log.evidence(bytes(now), bytes(before), text))
    })
}
