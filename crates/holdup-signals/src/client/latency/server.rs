//! Response time by the app server as the kernel sees it: connections that wait to be accepted and
//! those on which an answer is due, over the requests that were answered (Little's law). Unlike the
//! app's own timing it contains the queue in front of the server.

use std::collections::BTreeMap;

use holdup_recording::metrics;

use super::{ClientView, Index, Second, Window};
use crate::app::app_server::{called, request_counters};

/// Connections set up and not accepted, and those on which an answer is due.
const IN_FLIGHT: [&str; 2] = [metrics::tcp::ACCEPT_QUEUE_LENGTH.name, metrics::server::ANSWERING_CONNECTIONS.name];

/// Requests between two samples of the server's connections.
const ROUNDS: &str = metrics::server::REQUESTS_SINCE_LAST.name;

/// Counters of the database's statements or transactions.
const STATEMENTS: [&str; 2] = [metrics::mysql::GLOBAL_STATUS_QUESTIONS.name, super::TRANSACTIONS];

/// Requests seen in flight, all looks of an interval together, that give their mean within a fifth:
/// they vary as the square root of their number.
const SEEN: f64 = 25.0;

/// No interval need be longer, seconds: so few in flight are quick, whatever their number is.
const LONG_SECONDS: f64 = 10.0;

/// So many more requests in flight at a look than at those before are another time, and no chance …
const LEAP: f64 = 4.0;

/// … from so many on: bursts of a few come and go.
const LEAP_SEEN: f64 = 6.0;

/// A mean of so many looks that is known this well, milliseconds, needs no more of them.
const LEAST_LOOKS: usize = 6;
const ERROR_MS: f64 = 5.0;

/// Whether this account goes by samples of `metric`.
pub(super) fn counts(metric: &str) -> bool {
    IN_FLIGHT.contains(&metric)
        || metric == ROUNDS
        || STATEMENTS.contains(&metric)
        || request_counters().any(|(of, _)| of == metric)
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

/// The same where nothing counts requests, by the kernel's counts of segments: the outermost server, to
/// which no other that is watched connects. A database with an account of its own is left out.
pub(super) fn by_rounds(index: &Index, whole: Window) -> ClientView {
    let port = |source: &str| source.rsplit_once(':').map_or("", |(_, port)| port).to_owned();
    let mut behind = called(index);
    let databases = STATEMENTS.iter().flat_map(|metric| index.series(metric, &[]));
    behind.extend(databases.map(|((source, _), _)| port(source)));
    let outermost = servers(index).into_iter().filter(|source| !behind.contains(&port(source)));
    let Some((source, in_flight)) = busiest(index, outermost, whole) else { return ClientView::default() };
    let counted = index.sums(ROUNDS, |of, _| of == source);
    let instants: Vec<i64> = in_flight.keys().copied().collect();
    let rise =
        |pair: &[i64]| Some(Rise { window: Window { from: pair[0], to: pair[1] }, requests: *counted.get(&pair[1])? });
    let rises: Vec<Rise> = instants.windows(2).filter_map(rise).collect();
    let joined = joined(&rises, &in_flight);
    let mut all = spent(joined.enough, &in_flight).seconds;
    // A quick time is a baseline by itself: as many seconds as it has, each with the mean of all.
    for quick in spent(joined.quick, &in_flight).seconds {
        let Some(ms) = quick.response_ms.mean() else { continue };
        let within = rises.iter().filter(|rise| quick.window.contains(rise.window.from) && rise.requests >= 1.0);
        all.extend(within.map(|rise| Second::of_mean(rise.window, ms, rise.requests.round() as u64)));
    }
    all.sort_by_key(|second| second.window.from);
    ClientView { seconds: Second::bounded(all) }
}

/// Stretches of intervals.
#[derive(Default)]
struct Joined {
    /// Of each the mean is known.
    enough: Vec<Rise>,
    /// Before far more were in flight.
    quick: Vec<Rise>,
}

/// Adjacent intervals joined until enough requests were seen in flight, or for long, or until far more
/// are: of few requests one look sees none and the next sees two, and that is chance.
fn joined(rises: &[Rise], in_flight: &BTreeMap<i64, f64>) -> Joined {
    let looks = |rise: &Rise| in_flight.range(rise.window.from + 1..=rise.window.to).map(|(_, n)| *n);
    let seen = |rise: &Rise| looks(rise).sum::<f64>();
    let each = |rise: &Rise, more: f64| (seen(rise) + more) / looks(rise).count().max(1) as f64;
    // A time in which none was answered belongs to the next that were.
    let is_enough = |rise: &Rise| rise.requests >= 1.0 && (seen(rise) >= SEEN || rise.window.seconds() >= LONG_SECONDS);
    let is_far_more = |last: &Rise, rise: &Rise| each(rise, 0.0) >= LEAP * each(last, 1.0);
    let adjoins = |last: &Rise, rise: &Rise| last.window.to == rise.window.from;
    let add = |last: &mut Rise, rise: &Rise| {
        last.window.to = rise.window.to;
        last.requests += rise.requests;
    };
    let mut all: Vec<Rise> = Vec::new();
    for (i, rise) in rises.iter().enumerate() {
        // Two looks in a row: a burst of a few comes and goes.
        let next = rises.get(i + 1).filter(|next| adjoins(rise, next));
        let is_leap = |last: &Rise| {
            let more = |rise: &Rise| seen(rise) >= LEAP_SEEN && is_far_more(last, rise);
            more(rise) && next.is_some_and(more)
        };
        match all.last_mut().filter(|last| adjoins(last, rise) && !is_enough(last) && !is_leap(last)) {
            Some(last) => add(last, rise),
            None => all.push(*rise),
        }
    }
    let error_ms = |rise: &Rise| {
        let (count, at_most) = (looks(rise).count().max(1) as f64, seen(rise) + 1.0);
        at_most.sqrt() / count * rise.window.seconds() / rise.requests.max(f64::MIN_POSITIVE) * 1e3
    };
    // What is left at the end, before a gap or before far more is as much chance, by itself, unless so
    // few of so many can only have been quick beside what follows.
    let is_quick = |i: usize, rise: &Rise| {
        let is_known = looks(rise).count() >= LEAST_LOOKS && error_ms(rise) <= ERROR_MS;
        is_known && all.iter().skip(i + 1).find(|next| is_enough(next)).is_some_and(|next| is_far_more(rise, next))
    };
    let mut joined = Joined::default();
    for (i, rise) in all.iter().enumerate() {
        match joined.enough.last_mut().filter(|last| adjoins(last, rise)) {
            _ if is_enough(rise) => joined.enough.push(*rise),
            _ if is_quick(i, rise) => joined.quick.push(*rise),
            Some(last) => add(last, rise),
            None => {}
        }
    }
    joined
}

/// Servers whose connections are known.
fn servers(index: &Index) -> Vec<&str> {
    let mut sources: Vec<&str> = index.series(IN_FLIGHT[1], &[]).map(|((source, _), _)| source.as_str()).collect();
    sources.retain(|source| source.starts_with("server:"));
    sources.dedup();
    sources
}

/// The one of `sources` with most requests in flight, and how many at each instant.
fn busiest<'i>(
    index: &Index,
    sources: impl IntoIterator<Item = &'i str>,
    whole: Window,
) -> Option<(&'i str, BTreeMap<i64, f64>)> {
    let in_flight = sources.into_iter().map(|source| (source, levels(index, source, whole)));
    let sum = |levels: &BTreeMap<i64, f64>| levels.values().sum::<f64>();
    in_flight.max_by(|(_, a), (_, b)| sum(a).total_cmp(&sum(b)))
}

fn seconds(index: &Index, whole: Window, counters: impl Iterator<Item = (String, bool)>) -> ClientView {
    let Some((_, in_flight)) = busiest(index, servers(index), whole) else { return ClientView::default() };
    let all = counters.map(|(metric, is_late)| {
        let rises = rises(index, &metric, whole);
        if is_late { evenly(&rises, &in_flight) } else { rises }
    });
    let count = |rises: &Vec<Rise>| rises.iter().map(|rise| rise.requests).sum::<f64>();
    let rises = all.max_by(|a, b| count(a).total_cmp(&count(b))).unwrap_or_default();
    spent(rises, &in_flight)
}

/// The mean response time in each interval, by Little's law.
fn spent(rises: impl IntoIterator<Item = Rise>, in_flight: &BTreeMap<i64, f64>) -> ClientView {
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
#[derive(Clone, Copy)]
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
    fn where_nothing_counts_requests_the_kernels_segments_do() {
        let app = "server:80";
        let made = SyntheticRecording::new(10)
            .gauge(app, "tcp_accept_queue_length", &[("port", "80")], 0.0)
            .gauge(app, "server_answering_connections", &[], 6.0)
            .gauge(app, "server_requests_since_last", &[], 20.0)
            .gauge(app, "server_outgoing_connections", &[("peer_port", "5432")], 6.0)
            .gauge("server:5432", "tcp_accept_queue_length", &[("port", "5432")], 0.0)
            .gauge("server:5432", "server_answering_connections", &[], 9.0)
            .gauge("server:5432", "server_requests_since_last", &[], 300.0);
        let first = |made: &SyntheticRecording| {
            made.seen(|view| {
                let (view, origin) = measured(&[], view.index, Window { from: 0, to: i64::MAX }).remove(0);
                (view.seconds.get(1).map(|second| second.response_ms.clone()), origin)
            })
        };
        let each = |ms: f64, count: u64| (Some(Distribution::from_counts([(ms, count)])), Origin::AppServer);
        // Of six at a time five looks are enough.
        assert_eq!(first(&made), each(300.0, 100), "the one in front");
        let counted = made.clone().counter("uwsgi:x", "uwsgi_requests_total", &[], 30.0);
        assert_eq!(first(&counted), each(300.0, 30), "a server's own count comes first");
        // A database that is watched as such has its statements.
        let database = made.without("server_outgoing_connections").counter(
            "mysql://db:80",
            "mysql_global_status_questions",
            &[],
            40.0,
        );
        let database = database.without("uwsgi_requests_total");
        assert_eq!(first(&database), each(30.0, 900));
    }

    #[test]
    fn a_few_requests_that_a_look_happens_to_see_make_no_slow_second() {
        let app = "server:80";
        // One of 10 ms is in flight at one look of five; 20 a second.
        let quiet = SyntheticRecording::new(40)
            .gauge(app, "tcp_accept_queue_length", &[("port", "80")], 0.0)
            .counted(app, "server_answering_connections", &[], |second| f64::from(u8::from(second % 5 == 0)))
            .gauge(app, "server_requests_since_last", &[], 20.0);
        let most = quiet.seen(|view| {
            let (view, _) = measured(&[], view.index, Window { from: 0, to: i64::MAX }).remove(0);
            view.seconds.iter().filter_map(|second| second.response_ms.mean()).fold(0.0, f64::max)
        });
        assert!(most > 5.0 && most < 20.0, "{most}");
    }

    #[test]
    fn a_quick_time_ends_where_far_more_are_in_flight() {
        let app = "server:80";
        let then = |second: i64| if second <= 7 { f64::from(u8::from(second == 3)) } else { 12.0 };
        let made = SyntheticRecording::new(20)
            .gauge(app, "tcp_accept_queue_length", &[("port", "80")], 0.0)
            .counted(app, "server_answering_connections", &[], then)
            .gauge(app, "server_requests_since_last", &[], 60.0);
        let means: Vec<f64> = made.seen(|view| {
            let (view, _) = measured(&[], view.index, Window { from: 0, to: i64::MAX }).remove(0);
            view.seconds.iter().filter_map(|second| second.response_ms.mean()).collect()
        });
        let (quick, slow) = means.split_at(7);
        assert!(quick.iter().all(|ms| *ms < 10.0) && slow.iter().all(|ms| *ms > 100.0), "{means:?}");
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
