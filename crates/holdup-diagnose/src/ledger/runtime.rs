//! Pauses of the app's runtime as a part of their own. They lie within what other parts hold already:
//! a request that stands still is in the app without a call, and one that arrives in a pause has not
//! been read. So they are taken out of those parts, and never more than these have. Where no source
//! measured the app's requests, they are taken from the time without an owner.

use super::{Intervals, NETWORK};
use crate::case::Case;
use crate::cause::Cause;
use crate::resources::runtime::RuntimePauses;
use holdup_signals::time::requests::{mean_over, service_ms};

/// The part.
const PAUSE: Cause = Cause::RuntimePause;

/// Parts that may hold pauses, in the order in which they give them.
const HOLDERS: [&str; 4] = ["app_other", "app_queue", NETWORK, "accept_queue"];

/// Takes the pauses out of `parts`, and puts them where the first of their holders stood.
pub(super) fn take_out(case: &Case<'_>, parts: &mut Vec<(&'static str, Intervals)>) {
    let Ok(pauses) = RuntimePauses::for_case(case) else { return };
    let requests = case.slow_requests().unwrap_or_default();
    let Some(request_ms) = mean_over(requests.iter().copied(), service_ms).filter(|ms| *ms > 0.0) else { return };
    let share = |from: i64, to: i64| (pauses.mean_ms(from, to) / request_ms).min(1.0);
    let holders: Vec<usize> =
        HOLDERS.iter().filter_map(|name| parts.iter().position(|(part, _)| part == name)).collect();
    let (at, mut found) = match holders.first() {
        None => {
            let all = pauses.intervals.iter().map(|&(from, to, _)| (from, to, share(from, to)));
            (parts.len(), all.collect::<Vec<_>>())
        }
        Some(first) => (*first, parts[*first].1.0.iter().map(|&(from, to, _)| (from, to, share(from, to))).collect()),
    };
    if let Some(first) = holders.first() {
        let bounds = edges(&parts[*first].1);
        let mut left: Vec<f64> = found.iter().map(|(.., share)| *share).collect();
        // Sources that sample at other times can't be split by the same intervals.
        for holder in holders.iter().filter(|holder| edges(&parts[**holder].1) == bounds).copied().collect::<Vec<_>>() {
            for (left, (.., held)) in left.iter_mut().zip(&mut parts[holder].1.0) {
                let given = left.min(*held);
                *left -= given;
                *held -= given;
            }
        }
        found.iter_mut().zip(left).for_each(|((.., share), left)| *share -= left);
    }
    if found.iter().any(|(.., share)| *share > 0.0) {
        parts.insert(at, (PAUSE.slug(), Intervals(found)));
    }
}

fn edges(intervals: &Intervals) -> Vec<(i64, i64)> {
    intervals.0.iter().map(|(from, to, _)| (*from, *to)).collect()
}

#[cfg(test)]
mod tests {
    use crate::ledger::ledger;
    use crate::testing::{Judged as _, SyntheticRecording};

    const APP: &str = "prometheus:app";

    /// 50 requests a second of 400 ms; the app stands still for two seconds of five, half a second at a time.
    fn made() -> SyntheticRecording {
        SyntheticRecording::new(20).requests(50, 400).counter(APP, "jvm_gc_pause_seconds_sum", &[], 0.4).counter(
            APP,
            "jvm_gc_pause_seconds_count",
            &[],
            0.8,
        )
    }

    /// The app has had each request for `app_ms`, `called_ms` of that in a call.
    fn served(app_ms: f64, called_ms: f64) -> SyntheticRecording {
        let histogram = |made: SyntheticRecording, name: &str, ms: f64| {
            made.counter(APP, &format!("{name}_count"), &[], 50.0).counter(
                APP,
                &format!("{name}_sum"),
                &[],
                50.0 * ms / 1e3,
            )
        };
        let made = histogram(made(), "http_server_request_duration_seconds", app_ms);
        histogram(made, "http_client_request_duration_seconds", called_ms)
    }

    fn parts(made: &SyntheticRecording) -> Vec<(String, f64)> {
        let rows = made.with(ledger);
        let all = rows.iter().find(|row| row.band == "all").expect("a row");
        let sum: f64 = all.parts.iter().map(|part| part.ms).sum();
        assert!((sum + all.residual_ms - all.response_ms).abs() < 0.01 && all.residual_ms > -0.01, "{all:?}");
        all.parts.iter().map(|part| (part.part.clone(), part.ms)).collect()
    }

    fn of(parts: &[(String, f64)], name: &str) -> f64 {
        parts.iter().find(|(part, _)| part == name).map_or(0.0, |(_, ms)| *ms)
    }

    #[test]
    fn pauses_are_taken_out_of_what_holds_them_and_counted_once() {
        // Two fifths of half a second's half: 100 ms of a request, beside the usual time.
        let alone = parts(&made());
        assert!((80.0..130.0).contains(&of(&alone, super::PAUSE.slug())), "{alone:?}");
        // The app's own time and what lies in front of it have room for it.
        let roomy = parts(&served(300.0, 50.0));
        let (before, pause) = (400.0 - 50.0, of(&roomy, super::PAUSE.slug()));
        assert!((80.0..130.0).contains(&pause), "{roomy:?}");
        let rest: f64 = ["network", "app_other"].map(|name| of(&roomy, name)).iter().sum();
        assert!(of(&roomy, "downstream") > 45.0 && (rest + pause) < before + 5.0, "{roomy:?}");
        // Calls that take all of the time leave no room for pauses beside them.
        let tight = parts(&served(399.0, 399.0));
        assert!(of(&tight, super::PAUSE.slug()) < 5.0 && of(&tight, "downstream") > 390.0, "{tight:?}");
    }
}
