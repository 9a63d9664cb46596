//! Objectives of what was only watched. The app's own metrics stand for its requests there: nothing else that is watched
//! says how long a request took from its arrival to its answer.

use std::time::Duration;

use holdup_recording::manifest::{Manifest, Threshold};
use holdup_recording::objective::{Evaluation, Extent, Judgement, Metric, OperationOutcomes, State, Stretch};
use holdup_recording::words::ms;

use super::{Objective, load_start, span};
use crate::client::latency::Origin;
use crate::time::requests::{ClientView, Second};

/// Why nothing can be judged, and what to add.
pub const NO_RESPONSE_TIMES: &str = "no source measured response times; watch the app's metrics \
     (--watch prometheus:http://APP/metrics) or put load on with holdup run";

/// Judges the objectives of `manifest`, which has no load, by what `client` saw.
pub fn judge(manifest: &Manifest, client: &ClientView, origin: Origin) -> Vec<Objective> {
    let seconds = if matches!(origin, Origin::AppMetrics | Origin::AccessLog | Origin::Traces) {
        &client.seconds[..]
    } else {
        &[]
    };
    let judged = manifest.thresholds.iter().map(|threshold| {
        let judgement = one(threshold, seconds, load_start(manifest));
        let missed = (judgement.state == State::Missed).then(|| how_missed(manifest, threshold, &judgement));
        Objective { threshold: threshold.clone(), judgement, missed, aborted: false }
    });
    judged.collect()
}

fn one(threshold: &Threshold, seconds: &[Second], start: i64) -> Judgement {
    let mut evaluation = Evaluation::new(threshold, Extent::default());
    let is_of_errors = Metric::parse(&threshold.metric) == Ok(Metric::Errors);
    let Some(first) = seconds.first().filter(|_| !is_of_errors) else {
        let why = if seconds.is_empty() { NO_RESPONSE_TIMES } else { "the app's metrics count no failed requests" };
        return Judgement { state: State::NotJudged, value: None, why: Some(why.to_owned()), ..evaluation.result() };
    };
    // Samples are about a second apart: windows are cut at the nearest whole ones.
    let since = |at: i64| Duration::from_secs(((at - first.window.from).max(0) as f64 / 1e9).round() as u64);
    for second in seconds {
        let times: Vec<(u64, u64)> =
            second.response_ms.values().map(|(ms, count)| ((ms * 1e6).max(0.0) as u64, count)).collect();
        let ended = OperationOutcomes { operation: "", completed: second.offered, failed: 0, times: &times };
        evaluation.second(since(second.window.from), since(second.window.to), &[ended]);
    }
    let mut judgement = evaluation.result();
    let later = |s: Stretch| Stretch {
        from_ns: s.from_ns + first.window.from - start,
        to_ns: s.to_ns + first.window.from - start,
    };
    judgement.first_window = judgement.first_window.map(later);
    judgement.worst_window = judgement.worst_window.map(later);
    judgement
}

/// `p99 was 812 ms from 12 s to 42 s, the objective is p99 < 500ms for 30s`.
fn how_missed(manifest: &Manifest, threshold: &Threshold, judgement: &Judgement) -> String {
    let value = judgement.value.unwrap_or_default();
    let what = match Metric::parse(&threshold.metric) {
        Ok(Metric::Rate) => format!("rate was {value:.1}/s"),
        _ => format!("{} was {}", threshold.metric, ms(value)),
    };
    let when = judgement.worst_window.map_or_else(String::new, |stretch| {
        let (from, to) = span(manifest, stretch);
        format!(" from {from:.0} s to {to:.0} s")
    });
    format!("{what}{when}, the objective is {}", threshold.text)
}

#[cfg(test)]
mod tests {
    use holdup_recording::manifest::Host;
    use holdup_recording::objective::parse;

    use super::*;
    use crate::{Distribution, Window};

    const S: i64 = 1_000_000_000;

    /// Ten seconds from 3 s on, with a hundred requests each that took as many milliseconds as `of_second` says.
    fn judged(texts: &[&str], of_second: impl Fn(i64) -> f64, origin: Origin) -> Vec<Objective> {
        let mut manifest = Manifest::starting("watch", 0, Host::default());
        manifest.thresholds = texts.iter().map(|text| parse(text, &[] as &[&str]).unwrap()).collect();
        let second = |i: i64| Second {
            window: Window { from: (3 + i) * S + i * 1_000_000, to: (4 + i) * S + (i + 1) * 1_000_000 },
            offered: 100,
            errors: 0,
            response_ms: Distribution::from_counts([(of_second(i), 100)]),
            waiting_ms: None,
        };
        judge(&manifest, &ClientView { seconds: (0..10).map(second).collect() }, origin)
    }

    #[test]
    fn the_apps_metrics_stand_for_its_requests() {
        let slow = |i: i64| if i == 6 { 800.0 } else { 10.0 };
        let texts = ["p99 < 500ms", "p50 < 500ms", "p50 < 500ms for 1s", "rate > 50", "errors < 1%"];
        let found = judged(&texts, slow, Origin::AppMetrics);
        let states: Vec<State> = found.iter().map(|o| o.judgement.state).collect();
        assert_eq!(states, [State::Missed, State::Met, State::Missed, State::Met, State::NotJudged]);
        assert_eq!(found[0].missed.as_deref(), Some("p99 was 800 ms, the objective is p99 < 500ms"));
        let window = found[2].judgement.worst_window.unwrap();
        assert_eq!((window.from_ns, window.to_ns), (9 * S, 10 * S));
        assert!(found[2].missed.as_deref().unwrap().contains("from 9 s to 10 s"), "{:?}", found[2].missed);
        assert!(found[4].judgement.why.as_deref().unwrap().contains("failed"));
    }

    #[test]
    fn waits_in_a_database_are_no_response_times() {
        let found = judged(&["p99 < 1ms"], |_| 800.0, Origin::DatabaseSessions);
        assert_eq!((found[0].judgement.state, found[0].judgement.value), (State::NotJudged, None));
        assert_eq!(found[0].judgement.why.as_deref(), Some(NO_RESPONSE_TIMES));
    }
}
