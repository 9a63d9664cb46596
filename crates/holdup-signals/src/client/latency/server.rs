//! Response time by the app server as the kernel sees it: connections that wait to be accepted and
//! those on which an answer is due, over the requests that were answered (Little's law). Unlike the
//! app's own timing it contains the queue in front of the server.

use std::collections::BTreeMap;

use holdup_recording::metrics;

use super::{ClientView, Index, Second, Window};
use crate::app::app_server::request_counters;

/// Connections set up and not accepted, and those on which an answer is due.
const IN_FLIGHT: [&str; 2] = [metrics::tcp::ACCEPT_QUEUE_LENGTH.name, metrics::server::ANSWERING_CONNECTIONS.name];

/// Counters of the database's statements or transactions.
const STATEMENTS: [&str; 2] = [metrics::mysql::GLOBAL_STATUS_QUESTIONS.name, super::TRANSACTIONS];

/// Whether this account goes by samples of `metric`.
pub(super) fn counts(metric: &str) -> bool {
    IN_FLIGHT.contains(&metric) || STATEMENTS.contains(&metric) || request_counters().any(|(of, _)| of == metric)
}

/// Intervals in which a counter of requests rose, of the watched server with the most requests in
/// flight. Empty without such a counter, or if holdup did not see the server's connections.
pub(super) fn by_requests(index: &Index, whole: Window) -> ClientView {
    seconds(index, whole, request_counters())
}

/// The same where no source counts requests, for each statement of the database that they sent.
pub(super) fn by_statements(index: &Index, whole: Window) -> ClientView {
    seconds(index, whole, STATEMENTS.into_iter().map(|metric| (metric.to_owned(), false)))
}

fn seconds(index: &Index, whole: Window, counters: impl Iterator<Item = (String, bool)>) -> ClientView {
    let mut sources: Vec<&str> = index.series(IN_FLIGHT[1], &[]).map(|((source, _), _)| source.as_str()).collect();
    sources.retain(|source| source.starts_with("server:"));
    sources.dedup();
    let in_flight = sources.into_iter().map(|source| levels(index, source, whole));
    let sum = |levels: &BTreeMap<i64, f64>| levels.values().sum::<f64>();
    let Some(in_flight) = in_flight.max_by(|a, b| sum(a).total_cmp(&sum(b))) else { return ClientView::default() };
    let all = counters.map(|(metric, is_late)| {
        let rises = rises(index, &metric, whole);
        if is_late { evenly(&rises, &in_flight) } else { rises }
    });
    let count = |rises: &Vec<Rise>| rises.iter().map(|rise| rise.requests).sum::<f64>();
    let rises = all.max_by(|a, b| count(a).total_cmp(&count(b))).unwrap_or_default();
    let second = |rise: Rise| {
        let seen: Vec<f64> = in_flight.range(rise.window.from..=rise.window.to).map(|(_, n)| *n).collect();
        let mean = (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)?;
        let ms = mean / (rise.requests / rise.window.seconds()) * 1e3;
        Some(Second::of_mean(rise.window, ms, rise.requests.round() as u64))
    };
    ClientView { seconds: Second::bounded(rises.into_iter().filter_map(second).collect()) }
}

/// Requests in flight at each instant at which both of [`IN_FLIGHT`] were read.
fn levels(index: &Index, source: &str, whole: Window) -> BTreeMap<i64, f64> {
    let [waiting, answering] = IN_FLIGHT.map(|metric| index.sums(metric, |of, _| of == source));
    let both = answering.into_iter().filter_map(|(at, n)| Some((at, n + waiting.get(&at)?)));
    both.filter(|(at, _)| whole.contains(*at)).collect()
}

/// Requests that a server counted between two of its reports.
struct Rise {
    window: Window,
    requests: f64,
}

/// A server may report less often than it is asked: intervals end where its count rises.
fn rises(index: &Index, metric: &str, whole: Window) -> Vec<Rise> {
    let mut rises = Vec::new();
    let mut last: Option<(i64, f64)> = None;
    for (at, total) in index.sums(metric, |_, _| true).into_iter().filter(|(at, _)| whole.contains(*at)) {
        match last {
            Some((_, before)) if total == before => continue,
            // A fall means a restart.
            Some((from, before)) if total > before => {
                rises.push(Rise { window: Window { from, to: at }, requests: total - before });
            }
            _ => {}
        }
        last = Some((at, total));
    }
    rises
}

/// The same requests at their mean rate, between the instants of `levels`: a count that is seconds
/// old does not show when they ended.
fn evenly(rises: &[Rise], levels: &BTreeMap<i64, f64>) -> Vec<Rise> {
    let (Some(first), Some(last)) = (rises.first(), rises.last()) else { return Vec::new() };
    let all = Window { from: first.window.from, to: last.window.to };
    let per_second = rises.iter().map(|rise| rise.requests).sum::<f64>() / all.seconds();
    let instants: Vec<i64> = levels.keys().copied().collect();
    let window = |pair: &[i64]| Window { from: pair[0], to: pair[1] };
    instants.windows(2).map(window).map(|window| Rise { window, requests: per_second * window.seconds() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, measured};
    use super::*;
    use crate::Distribution;
    use crate::testing::SyntheticRecording;

    #[test]
    fn the_queue_in_front_of_a_server_belongs_to_its_requests() {
        let made = SyntheticRecording::new(10)
            .gauge("server:80", "tcp_accept_queue_length", &[("port", "80")], 6.0)
            .gauge("server:80", "server_answering_connections", &[], 4.0)
            .counted("uwsgi:x", "uwsgi_requests_total", &[], |second| 40.0 * (second / 2 * 2) as f64);
        let seen = made.seen(|view| measured(&[], view.index, Window { from: 0, to: i64::MAX }));
        let (view, origin) = &seen[0];
        assert_eq!((view.seconds.len(), *origin), (5, Origin::AppServer), "it counts every two seconds");
        assert_eq!(view.seconds[2].response_ms, Distribution::from_counts([(250.0, 80)]));
        let uncounted = made.without("uwsgi_requests_total");
        // Puma's workers report when they get to it.
        let late = uncounted.clone().counted("puma:x", "puma_requests_total", &[], |second| {
            if (3..8).contains(&second) { 80.0 } else { 40.0 * second as f64 }
        });
        let seen = late.seen(|view| measured(&[], view.index, Window { from: 0, to: i64::MAX }));
        assert_eq!(seen[0].0.seconds.len(), 10);
        assert_eq!(seen[0].0.seconds[5].response_ms, Distribution::from_counts([(250.0, 40)]));
        let by_statements = uncounted.clone().counter("mysql:x", "mysql_global_status_questions", &[], 50.0);
        let seen = by_statements.seen(|view| measured(&[], view.index, Window { from: 0, to: i64::MAX }));
        let (view, origin) = seen.last().unwrap();
        let each = Distribution::from_counts([(200.0, 50)]);
        assert_eq!((&view.seconds[2].response_ms, *origin), (&each, Origin::AppServer), "of a statement");
        assert!(uncounted.seen(|view| {
            let all = measured(&[], view.index, Window { from: 0, to: i64::MAX });
            all.iter().all(|(view, _)| view.seconds.is_empty())
        }));
    }

    #[test]
    fn the_apps_own_time_comes_first_and_may_be_a_mean() {
        let app = "prometheus:app";
        let made = SyntheticRecording::new(10)
            .gauge("server:80", "tcp_accept_queue_length", &[("port", "80")], 6.0)
            .gauge("server:80", "server_answering_connections", &[], 4.0)
            .counter(app, "http_server_request_duration_seconds_sum", &[], 2.0)
            .counter(app, "http_server_request_duration_seconds_count", &[], 50.0);
        let seen = made.seen(|view| measured(&[], view.index, Window { from: 0, to: i64::MAX }));
        let means: Vec<_> =
            seen.iter().map(|(view, origin)| (*origin, view.seconds[3].response_ms.mean().unwrap().round())).collect();
        assert_eq!(means, [(Origin::AppMeans, 40.0), (Origin::AppServer, 200.0)]);
    }
}
