//! The same in MongoDB, where a write does not wait for a document that another one changes: the
//! storage engine refuses it, and the server makes it again until it succeeds. It counts those tries.
//! What they cost is the part of the time of writes that went into tries beyond the usual number.

use crate::change::Fix;
use holdup_recording::metrics::mongodb as metric;
use holdup_recording::words::thousands;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View};

use super::{CauseFinding, Outcome, Role, ms};
use crate::case::Case;
use crate::resources::is_felt;
use crate::resources::tickets::MONGODB;
use crate::strength::{CERTAIN, FAIR};

const WRITES: [(&str, &str); 1] = [("kind", "writes")];

/// Writes in one stretch.
struct Tries {
    conflicts: Counter,
    took: Counter,
    /// Tries for each write.
    each: f64,
}

impl Tries {
    fn measure(view: &View<'_>) -> Option<Self> {
        let counter = |metric: &str, labels: &[(&str, &str)]| view.counter(metric, labels, MONGODB).ok();
        let conflicts = counter(metric::SERVER_STATUS_METRICS_OPERATION_WRITE_CONFLICTS.name, &[])?;
        let writes = counter(metric::OPERATIONS.name, &WRITES)?;
        let took = counter(metric::OPERATION_TIME.name, &WRITES)?;
        let each = 1.0 + conflicts.delta / writes.delta.max(1.0);
        Some(Self { conflicts, took, each })
    }
}

/// The outcome by waits for locks, or by conflicts if these cost requests more.
///
/// # Errors
/// If waits could not be judged, and conflicts are not the reason.
pub(super) fn or_conflicts(case: &Case<'_>, waits: Result<Outcome, Missing>) -> Result<Outcome, Missing> {
    let Some(conflicts) = judge(case) else { return waits };
    match (waits, conflicts) {
        (Ok(Outcome::Found(waits)), Outcome::Found(conflicts)) if waits.explains_ms >= conflicts.explains_ms => {
            Ok(Outcome::Found(waits))
        }
        (_, Outcome::Found(conflicts)) => Ok(Outcome::Found(conflicts)),
        (Ok(Outcome::Cleared(waits)), Outcome::Cleared(conflicts)) => {
            Ok(Outcome::Cleared(waits.into_iter().chain(conflicts).collect()))
        }
        (waits, _) => waits,
    }
}

/// By conflicts alone; none if the server does not count them.
fn judge(case: &Case<'_>) -> Option<Outcome> {
    let view = case.slow();
    let now = Tries::measure(&view)?;
    let usual = case.baseline().and_then(|baseline| Tries::measure(&baseline)).map_or(1.0, |baseline| baseline.each);
    let took_ms = now.took.delta / case.completed_in(view.window).ok()?.max(1.0) * 1e3;
    let explains_ms = took_ms * (1.0 - usual / now.each).max(0.0);
    let evidence = evidence(&now, usual, took_ms, explains_ms);
    if !is_felt(case, explains_ms).ok()? {
        return Some(Outcome::Cleared(evidence));
    }
    let fix = Fix::advice;
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![CERTAIN, FAIR],
        fixes: vec![
            fix(
                "Find the document that many writes change: entries of the log with writeConflicts name the collection and the filter.",
                None,
            ),
            fix("Spread it over several documents (a counter in ten parts), or gather its changes in the app.", None),
            fix("Commit transactions sooner: a write that meets one is made again until that ends.", None),
        ],
        prove: "Run the same scenario again: metrics.operation.writeConflicts hardly grows.".to_owned(),
        role: Role::Root,
    }))
}

fn evidence(now: &Tries, usual: f64, took_ms: f64, explains_ms: f64) -> Vec<Evidence> {
    let text = format!(
        "writes met another write on the same document {} times: {:.1} tries for each write, {usual:.1} in the baseline window",
        thousands(now.conflicts.delta),
        now.each
    );
    let conflicts = now.conflicts.evidence(format!("{:.1} tries", now.each), format!("{usual:.1} tries"), text);
    let text =
        format!("writes took {} of a request, of which {} went into further tries", ms(took_ms), ms(explains_ms));
    vec![conflicts, now.took.evidence(ms(explains_ms), "near 0 ms", text)]
}

#[cfg(test)]
mod tests {
    use crate::cause::Cause;
    use holdup_recording::rows::Session;

    use super::super::{DEFINITION, Outcome};
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";
    const CONFLICTS: &str = "mongodb_server_status_metrics_operation_write_conflicts";

    /// 100 writes a second of 2 ms, and of 102 from 20 s on, when each meets `now` others; `before` until then. Beside them
    /// 50 reads of 2 ms.
    fn made(before: f64, now: f64) -> SyntheticRecording {
        let late = |s: i64| (s - 20).max(0) as f64;
        SyntheticRecording::new(40)
            .counter(DB, "mongodb_operations_total", &[("kind", "writes")], 100.0)
            .counter(DB, "mongodb_operations_total", &[("kind", "reads")], 50.0)
            .counter(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], 0.1)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "writes")], move |s| {
                0.2 * s as f64 + 10.0 * late(s)
            })
            .counted(DB, CONFLICTS, &[], move |s| 100.0 * (before * s.min(20) as f64 + now * late(s)))
    }

    /// The same with so many operations that wait for locks.
    fn waiting(now: f64, waiters: i64) -> SyntheticRecording {
        let session = |s: i64, id: i64| Session {
            observed_at: s * 1_000_000_000,
            source: DB.into(),
            session_id: id,
            true_state: if id > 0 { "lock_wait" } else { "executing" }.into(),
            ..Session::default()
        };
        let at = |s: i64| (0..=if s > 20 { waiters } else { 0 }).map(move |id| session(s, id));
        made(0.0, now).session_rows((0..=40).flat_map(at).collect())
    }

    #[test]
    fn the_greater_of_waits_and_conflicts_is_reported() {
        // By Little's law, at 150 operations a second.
        for (waiters, expected) in [(6, 51.0), (15, 100.0)] {
            let explains = waiting(3.0, waiters).explains(&DEFINITION).unwrap();
            assert!((explains - expected).abs() < 10.0, "{waiters}: {explains}");
        }
        let Ok(Outcome::Cleared(evidence)) = waiting(0.02, 0).judge(&DEFINITION) else { panic!("not cleared") };
        let text: String = evidence.iter().map(|it| it.text.as_str()).collect();
        assert!(text.contains("lock") && text.contains("writes met another write"), "{text}");
    }

    #[test]
    fn the_time_of_further_tries_is_its_doing() {
        // Four tries instead of one: three quarters of 102 ms, of two operations in three.
        let explains = made(0.0, 3.0).explains(&DEFINITION).unwrap();
        assert!((explains - 51.0).abs() < 5.0, "{explains}");
        let found = made(0.0, 3.0).diagnose();
        assert_eq!(found.culprit, Some(Cause::LockContention), "{}", found.headline);
        let text: String = found.findings[0].evidence.iter().map(|it| it.text.as_str()).collect();
        assert!(text.contains("4.0 tries for each write, 1.0 in the baseline window"), "{text}");
    }

    #[test]
    fn as_many_tries_as_ever_and_few_of_them_are_no_reason() {
        // Waits for locks were not sampled: what is not a conflict may be one.
        for (before, now) in [(3.0, 3.0), (0.0, 0.02)] {
            assert_eq!(made(before, now).explains(&DEFINITION), None, "{before} {now}");
        }
        assert_eq!(made(0.0, 3.0).without(CONFLICTS).explains(&DEFINITION), None);
    }
}
