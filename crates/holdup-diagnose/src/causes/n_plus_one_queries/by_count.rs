//! From the app's count of its database calls: a request makes more of them than in the baseline
//! window. Which statement repeats is what the server's counters say, if anything does.

use super::LOOP;
use crate::case::{Band, Case};
use crate::causes::{MATTERS, Outcome, ms};
use crate::resources::share;
use crate::strength::{FAIR, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Mean, View, app::timing};

/// A request makes more calls from this factor on …
const TIMES: f64 = 2.0;

/// … and from this many more: a cache that is gone asks once for what it had.
const MORE: f64 = 1.0;

/// None if the app does not count its calls, without a baseline window, or if it always had
/// many of them.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    let view = case.slow();
    let ((each, calls), (earlier, _)) = (calls_per_request(case, &view)?, calls_per_request(case, &case.baseline()?)?);
    let (now, before, change) = (each.value, earlier.value, each.since(earlier));
    let explains_ms = (now - before).max(0.0) * calls.ms;
    let text = format!(
        "the app makes {now:.1} database calls per request, {before:.1} in the baseline window, of {} each",
        ms(calls.ms)
    );
    let told = calls.evidence(format!("{now:.1} calls per request"), format!("{before:.1}"), text);
    let repeats = change.rose(TIMES) && now - before >= MORE;
    if !repeats || share(case, explains_ms) < MATTERS {
        return (now < LOOP || repeats).then(|| Outcome::Cleared(vec![told]));
    }
    let mut evidence = vec![told];
    evidence.extend(most_grown(case, &view));
    let said = format!("the further calls take {} of a request: one query could replace them", ms(explains_ms));
    evidence.push(evidence[0].clone().saying("", said));
    Some(super::found(explains_ms, evidence, vec![STRONG, FAIR]))
}

/// Calls of a mean request in `view`, and the app's timing of them.
fn calls_per_request(case: &Case<'_>, view: &View<'_>) -> Option<(Band, Mean)> {
    let calls = timing::app_operations(view).ok().filter(|calls| calls.count > 0.0)?;
    let completed = case.completed_in(view.window).ok().filter(|n| *n > 0.0)?;
    Some((Band::of_mean(calls.count / completed, completed), calls))
}

/// The statement whose calls per request grew most.
fn most_grown(case: &Case<'_>, view: &View<'_>) -> Option<Evidence> {
    let baseline = case.baseline()?;
    let (requests, baseline_requests) =
        (case.completed_in(view.window).ok()?, case.completed_in(baseline.window).ok()?);
    let before = baseline.executed(&["digest_text"]).ok()?;
    let each = |calls: f64, requests: f64| calls / requests.max(1.0);
    let was =
        |digest: &str| before.iter().find(|of| of.digest == digest).map_or(0.0, |of| each(of.calls, baseline_requests));
    let executed = view.executed(&["digest_text"]).ok()?;
    let grown = executed.iter().map(|of| (each(of.calls, requests), was(&of.digest), of));
    let (now, was, of) = grown.max_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1))).filter(|(now, was, _)| now > was)?;
    let text = format!("the server ran one statement {now:.1} times per request, {was:.1} before: {}", of.text);
    Some(view.digest_evidence(of, "calls", format!("{now:.1} a request"), format!("{was:.1}"), text))
}

#[cfg(test)]
mod tests {
    use crate::causes::Outcome;
    use crate::causes::n_plus_one_queries::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    const SLOW_FROM: i64 = 12;

    /// 50 requests a second of 20 ms, from the twelfth second on of 400 ms; they make `calls` calls of 18 ms then, and one before.
    fn made(calls: i64) -> SyntheticRecording {
        let counted = move |s: i64| (50 * s.min(SLOW_FROM) + 50 * calls * (s - SLOW_FROM).max(0)) as f64;
        let app = "prometheus:http://app";
        SyntheticRecording::new(24)
            .requests(50, 400)
            .each_request(|_, r| {
                if r.intended_at < SLOW_FROM * 1_000_000_000 {
                    r.done_at = r.intended_at + 20_000_000;
                }
            })
            .counted(app, "db_client_operation_duration_seconds_count", &[], counted)
            .counted(app, "db_client_operation_duration_seconds_sum", &[], move |s| 0.018 * counted(s))
            .digest("SELECT name FROM item WHERE id = ?", move |s| (counted(s) as i64, counted(s) as i64, 0, 0, 0))
    }

    #[test]
    fn more_calls_of_a_request_are_found_by_their_number() {
        let Ok(Outcome::Found(found)) = made(20).judge(&DEFINITION) else { panic!("not found") };
        assert!((found.explains_ms - 342.0).abs() < 20.0, "{}", found.explains_ms);
        let said = |what: &str| found.evidence.iter().any(|e| e.text.contains(what));
        assert!(
            said("calls per request, 1.0 in the baseline window") && said("SELECT name FROM item"),
            "{:?}",
            found.evidence
        );
        assert_eq!(made(20).diagnose().culprit, Some(DEFINITION.cause));
    }

    #[test]
    fn as_many_calls_as_before_clear_it_if_they_are_few() {
        assert_eq!(made(1).explains(&DEFINITION), Some(0.0));
        let always = made(1).tables(|t| {
            for row in t.samples.rows.iter_mut().filter(|r| r.metric.starts_with("db_client_operation")) {
                row.value *= 20.0;
            }
        });
        assert_eq!(always.explains(&DEFINITION), None, "which of the calls repeat is not known");
    }
}
