//! Response time by a proxy in front of the app: requests that wait in it or are with a server, over
//! the requests that it had answered (Little's law). Unlike the app's own timing, it contains the
//! proxy's queue.

use holdup_recording::metrics::haproxy;

use super::{ClientView, Index, Second, Window};

/// Whether this account goes by samples of `metric`.
pub(super) fn counts(metric: &str) -> bool {
    [haproxy::REQUESTS, haproxy::QUEUED_REQUESTS, haproxy::SERVER_SESSIONS].iter().any(|of| of.name == metric)
}

/// Intervals between samples of the proxy with the most requests.
pub(super) fn seconds(index: &Index, whole: Window) -> ClientView {
    let sum = |metric: &str, source: &str| index.sums(metric, |of, _| of == source);
    let mut sources: Vec<&str> = index.series(haproxy::REQUESTS.name, &[]).map(|((of, _), _)| of.as_str()).collect();
    sources.dedup();
    let of_source = |source: &str| {
        let (queued, served) = (sum(haproxy::QUEUED_REQUESTS.name, source), sum(haproxy::SERVER_SESSIONS.name, source));
        let answered: Vec<(i64, f64)> = sum(haproxy::REQUESTS.name, source).into_iter().collect();
        let in_flight = |at: i64| Some(queued.get(&at)? + served.get(&at)?);
        let second = |pair: &[(i64, f64)]| {
            let ((from, before), (to, after)) = (pair[0], pair[1]);
            let requests = after - before;
            if !whole.contains(from) || requests < 1.0 {
                return None;
            }
            let mean = (in_flight(from)? + in_flight(to)?) / 2.0;
            Some(Second::by_littles_law(Window { from, to }, mean, requests))
        };
        Second::bounded(answered.windows(2).filter_map(second).collect())
    };
    let all = sources.into_iter().map(of_source);
    let seconds = all.max_by_key(|seconds| seconds.iter().map(|second| second.offered).sum::<u64>());
    ClientView { seconds: seconds.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, measured};
    use super::*;
    use crate::Distribution;
    use crate::testing::SyntheticRecording;

    #[test]
    fn a_proxy_stands_for_requests_where_no_source_times_them() {
        let source = |made: SyntheticRecording, name: &str, per_second: f64| {
            made.counter(name, "haproxy_requests_total", &[("backend", "app")], per_second)
                .gauge(name, "haproxy_queued_requests", &[("backend", "app")], 6.0)
                .gauge(name, "haproxy_server_sessions", &[("backend", "app"), ("server", "one")], 2.0)
        };
        let made = source(source(SyntheticRecording::new(10), "haproxy:/a", 40.0), "haproxy:/b", 0.0);
        let (view, origin) = made.seen(|view| measured(&[], view.index, Window { from: 0, to: i64::MAX })).remove(0);
        assert_eq!((view.seconds.len(), origin), (10, Origin::Proxy));
        assert_eq!(view.seconds[3].response_ms, Distribution::from_counts([(200.0, 40)]));
    }
}
