//! What stands out where no source measured response time: the load average, the disk and the
//! sessions, by the mean number of threads, operations or sessions that wait; and the way to the
//! database's clients. It names no cause.

use std::collections::BTreeMap;

use holdup_recording::metrics::tcp;
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::View;
use holdup_signals::database::ports::watched_database_ports;
use holdup_signals::view::stretches::within;

use crate::case::Case;
use crate::host_load;
use crate::resources::disk::what_it_does;

/// A disk stands out if it was busy for this share (0-1) of the time …
const BUSY: f64 = 0.9;

/// … or with this many operations queued or in service on average.
const QUEUED: f64 = 4.0;

/// The load average stands out from this value for each CPU.
const LOAD: f64 = 2.0;

/// A state of sessions stands out from this many on average.
const SESSIONS: f64 = 2.0;

/// Round trips stand out if a quarter of them took this many times as long as another quarter …
const LONGER: f64 = 3.0;

/// … and this many seconds: within a data center they take a few milliseconds.
const FAR_S: f64 = 0.02;

/// Segments that were sent again stand out from this share (0-1) of all, and from this many.
const LOST: f64 = 0.005;
const LOST_LEAST: f64 = 20.0;

/// States in which a session waits, in words.
const STATES: [(&str, &str); 2] = [("queued", "for a thread of the pool"), ("lock_wait", "for a lock")];

/// In sentences, the largest queue first; none if nothing stands out.
pub(super) fn text(case: &Case<'_>) -> Option<String> {
    let mut all: Vec<(f64, String)> = [load(case), disk(case)].into_iter().flatten().collect();
    all.extend(sessions(case));
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let way = way(&case.view(case.whole()));
    let texts: Vec<String> = all.into_iter().map(|(_, text)| text).chain(way).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn load(case: &Case<'_>) -> Option<(f64, String)> {
    let load = host_load::explain(case).filter(|load| load.per_cpu_max >= LOAD)?;
    Some((load.load_1m_max, load.text))
}

fn disk(case: &Case<'_>) -> Option<(f64, String)> {
    let disks = case.view(case.whole()).disks().ok()?;
    let busiest = disks.tops().max_by(|a, b| a.queue.total_cmp(&b.queue))?;
    let stands_out = busiest.utilization >= BUSY || busiest.queue >= QUEUED;
    stands_out.then(|| (busiest.queue, what_it_does(busiest)))
}

fn sessions(case: &Case<'_>) -> Vec<(f64, String)> {
    let view = case.view(case.whole());
    let instants = view.session_instants().max(1) as f64;
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for session in view.sessions(&["true_state"]).unwrap_or_default() {
        *counts.entry(session.true_state.as_str()).or_default() += 1.0 / instants;
    }
    let waiting = STATES.iter().filter_map(|(state, what)| {
        let mean = counts.get(state).copied().filter(|mean| *mean >= SESSIONS)?;
        Some((mean, format!("{mean:.0} sessions waited {what}")))
    });
    waiting.collect()
}

/// The database's own sockets time the way to its clients, which is in no account of its statements.
fn way(view: &View<'_>) -> Vec<String> {
    let trips = |port: &String| {
        let labels = [("port", port.as_str()), ("side", "server"), ("stat", "mean")];
        let series = view.index.series(tcp::ROUND_TRIP.name, &labels);
        let mut trips: Vec<f64> =
            series.flat_map(|(_, points)| within(points, view.window)).map(|(_, seconds)| *seconds).collect();
        trips.sort_by(f64::total_cmp);
        let (near, far) = (*trips.get(trips.len() / 4)?, *trips.get(trips.len() * 3 / 4)?);
        let text = || format!("round trips to clients of port {port} took {} or {}", ms(near * 1e3), ms(far * 1e3));
        (far >= FAR_S && far >= LONGER * near).then(text)
    };
    let count = |metric: &str| view.counter(metric, &[], "").map_or(0.0, |counter| counter.delta);
    let (again, sent) = (count(tcp::RETRANSMITTED_SEGMENTS.name), count(tcp::SENT_SEGMENTS.name));
    let lost = (again >= LOST_LEAST && again >= LOST * sent && sent > 0.0)
        .then(|| format!("{} TCP segments ({}) were sent again", thousands(again), percent(again / sent)));
    watched_database_ports(view).iter().filter_map(trips).chain(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// A host with four CPUs whose load average is `load`, and a disk with 100 reads a second of `read_ms`.
    fn host(load: f64, read_ms: f64) -> SyntheticRecording {
        SyntheticRecording::new(10)
            .gauge("host", "system_load_average_1m", &[], load)
            .gauge("host", "system_load_average_5m", &[], load)
            .gauge("host", "system_load_average_15m", &[], load)
            .gauge("host", "system_cpu_logical_count", &[], 4.0)
            .gauge("host", "system_threads", &[("state", "D")], load)
            .disk("vda", (100.0, 4_096.0, read_ms), (0.0, 0.0, 0.0))
    }

    #[test]
    fn the_largest_queue_comes_first_and_a_quiet_host_has_none() {
        let busy = host(40.0, 10.0).with(text).expect("stands out");
        let (load, disk) = (busy.find("load average").expect("load"), busy.find("vda").expect("disk"));
        assert!(load < disk, "{busy}");
        assert_eq!(host(1.0, 0.1).with(text), None);
    }

    /// A database whose round trips take `trip_s`, and of whose thousand segments a second `again` are sent again.
    fn database(trip_s: fn(i64) -> f64, again: f64) -> Option<String> {
        let labels = [("port", "5432"), ("side", "server"), ("stat", "mean")];
        SyntheticRecording::new(20)
            .counted("postgresql://db:5432", "postgresql_sessions", &[], |_| 0.0)
            .counted("host", "tcp_round_trip_seconds", &labels, trip_s)
            .counter("host", "tcp_sent_segments_total", &[], 1_000.0)
            .counter("host", "tcp_retransmitted_segments_total", &[], again)
            .with(text)
    }

    #[test]
    fn a_way_that_became_longer_or_loses_segments_stands_out() {
        let farther = database(|s| if s < 10 { 0.004 } else { 0.12 }, 0.0);
        assert_eq!(farther.as_deref(), Some("round trips to clients of port 5432 took 4.00 ms or 120 ms"));
        let lossy = database(|_| 0.004, 15.0).expect("stands out");
        assert!(lossy.contains("(2 %) were sent again"), "{lossy}");
    }

    #[test]
    fn clients_that_were_always_far_and_a_stray_segment_do_not_stand_out() {
        assert_eq!(database(|_| 0.15, 1.0), None);
        // Quick answers of one machine differ by more than that.
        assert_eq!(database(|s| if s < 10 { 0.000_1 } else { 0.002 }, 0.0), None);
    }
}
