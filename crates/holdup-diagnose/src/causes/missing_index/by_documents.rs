//! The rule for MongoDB: documents examined beside those returned or changed, and operations in
//! progress that read a whole collection.

use crate::change::Fix;
use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, mongodb as metric};

use super::{EXAMINED_PER_USED, ROSE, ROW_MS};
use crate::case::{Band, Case};
use crate::causes::{CauseFinding, Outcome, Role, percent, thousands};
use crate::resources::is_felt;
use crate::resources::tickets::{MONGODB, operations_ms};
use crate::strength::{FAIR, NONE, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View};

const EXAMINED: Metric = metric::SERVER_STATUS_METRICS_QUERY_EXECUTOR_SCANNED_OBJECTS;

/// Documents that were of use.
const USED: [Metric; 3] = [
    metric::SERVER_STATUS_METRICS_DOCUMENT_RETURNED,
    metric::SERVER_STATUS_METRICS_DOCUMENT_UPDATED,
    metric::SERVER_STATUS_METRICS_DOCUMENT_DELETED,
];

/// The plan that reads a whole collection.
const WHOLE: &str = "COLLSCAN";

/// Whether a server that counts documents is watched.
pub(super) fn is_counted(view: &View<'_>) -> bool {
    !view.sources_of(EXAMINED.name).is_empty()
}

pub(super) fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let completed = case.completed_in(view.window)?.max(1.0);
    let (examined, used) = counted(&view)?;
    let took_ms = operations_ms(&view, completed)
        .ok_or_else(|| Missing::new("the time of reads and writes (opLatencies)", MONGODB))?;
    let each = examined.delta / completed;
    let explains_ms = took_ms.min(each * ROW_MS);
    let text = format!("a request examined {} documents to return or change {:.1}", thousands(each), used / completed);
    let seen =
        examined.evidence(format!("{} a request", thousands(each)), "about as many as are returned or changed", text);
    let is_little = examined.delta < EXAMINED_PER_USED * used.max(completed);
    let scan = whole_scans(&view);
    if is_little || !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![seen]));
    }
    let mut evidence = vec![seen];
    let mut weights = vec![STRONG];
    if let Some(baseline) = case.baseline()
        && let Ok((before, _)) = counted(&baseline)
    {
        let served = case.completed_in(baseline.window)?.max(1.0);
        let was = before.delta / served;
        let change = Band::of_count(each, completed).since(Band::of_count(was.max(1.0), served));
        let text = format!("{} documents examined per request, {} at baseline", thousands(each), thousands(was));
        evidence.push(examined.evidence(thousands(each), thousands(was), text));
        if change.stayed(ROSE) {
            return Ok(Outcome::Cleared(evidence));
        }
        weights.push(if change.rose(ROSE) { STRONG } else { NONE });
    }
    let shape = scan.map(|(shape, ratio, piece)| {
        evidence.push(piece);
        weights.push(FAIR * ratio);
        shape
    });
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![look(shape.as_deref())],
        prove: "Run the same scenario again: documents examined per request near those returned.".to_owned(),
        role: Role::Root,
    }))
}

/// Documents examined, and those that were of use.
fn counted(view: &View<'_>) -> Result<(Counter, f64), Missing> {
    let of = |metric: Metric| view.counter(metric.name, &[], MONGODB);
    let used: f64 = USED.into_iter().filter_map(|metric| of(metric).ok()).map(|counter| counter.delta).sum();
    of(USED[0])?;
    Ok((of(EXAMINED)?, used))
}

/// The shape of operation that was most often seen to read a whole collection, and the share (0-1) of
/// the operations at work that do; none if none was seen.
fn whole_scans(view: &View<'_>) -> Option<(String, f64, Evidence)> {
    let sessions = view.sessions(&["source", "true_state", "state", "digest_text"]).ok()?;
    let all = sessions.iter().filter(|row| row.source.starts_with("mongodb") && row.true_state == "executing");
    let (mut count, mut by_shape) = (0.0, BTreeMap::<&str, f64>::new());
    for row in all {
        count += 1.0;
        if row.state.as_deref() == Some(WHOLE) {
            *by_shape.entry(row.digest_text.as_deref().unwrap_or_default()).or_default() += 1.0;
        }
    }
    let scans = by_shape.values().sum::<f64>() / f64::max(count, 1.0);
    let (shape, _) = by_shape.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!("{} of the operations at work read a whole collection, most of them: {shape}", percent(scans));
    let labels = Labels::new([("true_state", "executing"), ("digest_text", shape)]);
    let piece = Evidence::new("sessions", "state", labels, view.window, percent(scans), "hardly any", text);
    Some((shape.to_owned(), scans, piece))
}

fn look(shape: Option<&str>) -> Fix {
    let which = shape.map_or_else(
        || {
            "Find which operation reads a whole collection: db.currentOp({active: true}), planSummary COLLSCAN"
                .to_owned()
        },
        |shape| format!("Look at the plan of \"{shape}\" (explain(\"executionStats\"))"),
    );
    Fix {
        text: format!("{which}; then index the fields of its filter, those compared for equality first."),
        command: None,
        keep: None,
        risk: Some("Building an index reads the whole collection once, and each write then maintains it.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use holdup_recording::rows::Session;

    use super::super::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";

    /// 100 reads a second that return a document each: of 2 ms, and of 102 from 20 s on; each examines `before`, then `then` documents.
    fn made(before: f64, then: f64) -> SyntheticRecording {
        let late = |s: i64| (s - 20).max(0) as f64;
        let early = |s: i64| s.min(20) as f64;
        let session = |s: i64| Session {
            observed_at: s * 1_000_000_000,
            source: DB.into(),
            true_state: "executing".into(),
            state: Some("COLLSCAN".into()),
            digest_text: Some("find shop.orders filter { email: ? }".into()),
            ..Session::default()
        };
        SyntheticRecording::new(40)
            .counter(DB, "mongodb_operations_total", &[("kind", "reads")], 100.0)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], move |s| {
                0.2 * s as f64 + 10.0 * late(s)
            })
            .counter(DB, "mongodb_server_status_metrics_document_returned", &[], 100.0)
            .counted(DB, "mongodb_server_status_metrics_query_executor_scanned_objects", &[], move |s| {
                100.0 * (before * early(s) + then * late(s))
            })
            .session_rows(if then > 1e3 { (20..40).map(session).collect() } else { Vec::new() })
    }

    #[test]
    fn documents_that_are_examined_for_few_are_the_root() {
        let diagnosis = made(1.0, 50_000.0).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::MissingIndex), "{}", diagnosis.headline);
        let fix = &diagnosis.findings[0].fixes[0].text;
        assert!(fix.contains("find shop.orders filter { email: ? }"), "{fix}");
    }

    #[test]
    fn as_many_as_before_and_as_many_as_are_returned_clear_it() {
        assert_eq!(made(50_000.0, 50_000.0).explains(&DEFINITION), Some(0.0), "as many as before");
        assert_eq!(made(1.0, 3.0).explains(&DEFINITION), Some(0.0));
        for gone in ["metrics_query_executor_scanned_objects", "metrics_document_returned"] {
            let less = made(1.0, 50_000.0).without(&format!("mongodb_server_status_{gone}"));
            assert_eq!(less.explains(&DEFINITION), None, "{gone}");
        }
    }
}
