//! Judges slice after slice: what the loops counted in it, or without their counts, the rows due in
//! it.

use holdup_recording::rows::Request;

use super::reading::{Loop, LoopSeries};
use super::{
    BUSY, CAPPED, FOUND_FREE_MS, KEPT_UP, LATE, Label, Limit, NO_LOCAL_PORT, PORTS, RUN_QUEUE, Reason, Slice,
    THROTTLED, Validity,
};
use crate::Window;
use crate::time::requests::{
    client_queue_ms, distribution, is_latency, mean_over, response_ms, send_lag_ms, service_ms,
};
use crate::yardstick::{MATTERS, SERVICE_SLOWED};

/// The input of the judgement.
pub struct SliceJudge<'a> {
    /// The generator's loops.
    pub loops: &'a [Loop],
    /// Seconds that the whole process lacked a CPU because its quota was used up.
    pub throttled: Option<&'a LoopSeries>,
    /// Requests by when they were due.
    pub rows: &'a [&'a Request],
    /// Users who each wait for their response; none if a schedule decides what is due.
    pub users: Option<f64>,
    /// Send lag that a slice may have, milliseconds.
    pub lag_ms: f64,
    /// Service time of a request when the service is otherwise idle, milliseconds.
    pub unloaded_ms: f64,
}

impl SliceJudge<'_> {
    /// All slices of `span`.
    pub fn slices(&self, span: Window) -> Vec<Slice> {
        let mut edges = self.loops.first().map_or_else(Vec::new, |l| l.edges(span));
        if edges.is_empty() {
            edges.push(span.from);
        }
        let mut slices: Vec<Slice> =
            edges.windows(2).map(|pair| self.judge(Window { from: pair[0], to: pair[1] })).collect();
        let (first, last) = (edges[0], edges[edges.len() - 1]);
        let unseen = |window| Slice { window, label: Label::NotJudged, reasons: Vec::new(), spoils: false };
        if first > span.from {
            slices.insert(0, unseen(Window { from: span.from, to: first }));
        }
        if last < span.to {
            slices.push(unseen(Window { from: last, to: span.to }));
        }
        slices
    }

    fn judge(&self, window: Window) -> Slice {
        let rows = self.due_in(window);
        let mut reasons: Vec<Reason> = Vec::new();
        let mut judged = !self.loops.is_empty();
        let offered = self.sum(window, |l| l.offered.as_ref());
        let capped = match (self.sum(window, |l| l.capped.as_ref()), offered) {
            _ if self.users.is_some() => Some(0.0),
            (Some(capped), Some(offered)) => Some(capped / offered.max(1.0)),
            _ => share_of(rows, |r| client_queue_ms(r) > FOUND_FREE_MS),
        };
        let late = rows.iter().filter(|r| send_lag_ms(r).is_some_and(|ms| ms > self.lag_ms));
        let several_late = rows.is_empty() || late.map(|r| r.count()).sum::<u64>() >= LATE;
        let behind = self.is_behind(window) || capped.is_some_and(|c| c >= CAPPED);
        for one in self.loops {
            let name = || one.label.clone();
            let seconds = one.busy.as_ref().and_then(|r| r.seconds(window));
            let share = |reading: Option<&LoopSeries>| Some(reading?.growth(window)? / seconds?);
            let busy = share(one.busy.as_ref());
            judged &= busy.is_some();
            if let Some(value) = busy.filter(|share| *share >= BUSY && (self.users.is_some() || behind)) {
                reasons.push(Reason { limit: Limit::Busy, value: value.min(1.0), in_loop: name() });
            }
            if let Some(value) = share(one.run_queue.as_ref()).filter(|share| *share >= RUN_QUEUE) {
                reasons.push(Reason { limit: Limit::RunQueue, value: value.min(1.0), in_loop: name() });
            }
            let lag = one.lag.as_ref().map(|r| r.greatest(window) * 1e3);
            if let Some(value) = lag.filter(|ms| *ms > self.lag_ms && several_late) {
                reasons.push(Reason { limit: Limit::SendLag, value, in_loop: name() });
            }
        }
        if self.loops.iter().all(|l| l.lag.is_none()) {
            // The generator did not sum it up, but the rows hold it too.
            let lag = distribution(rows.iter().copied(), send_lag_ms).quantile(0.99);
            judged &= lag.is_some() || rows.is_empty() && offered == Some(0.0);
            if let Some(value) = lag.filter(|ms| *ms > self.lag_ms && several_late) {
                reasons.push(Reason { limit: Limit::SendLag, value, in_loop: String::new() });
            }
        }
        if let Some(value) = self.throttled.and_then(|r| Some(r.growth(window)? / r.seconds(window)?))
            && value >= THROTTLED
        {
            reasons.push(Reason { limit: Limit::Throttled, value: value.min(1.0), in_loop: String::new() });
        }
        if let Some(value) = share_of(rows, |r| r.outcome == NO_LOCAL_PORT).filter(|share| *share >= PORTS) {
            reasons.push(Reason { limit: Limit::LocalPorts, value, in_loop: String::new() });
        }
        let limited = !reasons.is_empty();
        let spoils = limited && self.is_spoiled(window, rows, &reasons);
        judged &= capped.is_some();
        if let Some(value) = capped.filter(|share| *share >= CAPPED) {
            reasons.push(Reason { limit: Limit::InFlight, value: value.min(1.0), in_loop: String::new() });
        }
        let label = match () {
            () if limited => Label::GeneratorLimited,
            () if !judged => Label::NotJudged,
            () if !reasons.is_empty() => Label::Capped,
            () => Label::Valid,
        };
        Slice { window, label, reasons, spoils }
    }

    /// Sum over all loops of their counts in `window`; none if one loop did not count.
    fn sum(&self, window: Window, of: fn(&Loop) -> Option<&LoopSeries>) -> Option<f64> {
        self.loops.iter().map(|l| of(l).and_then(|r| r.growth(window))).sum()
    }

    /// Whether fewer requests ended in `window` than were due.
    pub fn is_behind(&self, window: Window) -> bool {
        let (due, ended) = (self.sum(window, |l| l.offered.as_ref()), self.sum(window, |l| l.ended.as_ref()));
        due.zip(ended).is_some_and(|(due, ended)| ended < KEPT_UP * due)
    }

    /// Whether limits of the generator changed the measurement in `rows`.
    fn is_spoiled(&self, window: Window, rows: &[&Request], reasons: &[Reason]) -> bool {
        // Requests that were never sent do not show in those that were.
        if self.waited_unseen(window, rows) >= MATTERS
            || reasons.iter().any(|r| matches!(r.limit, Limit::Busy | Limit::LocalPorts))
        {
            return true;
        }
        // Connections run out if the generator frees them late, but also if the service holds them
        // for long. In that case service time shows it.
        let service = mean_over(rows.iter().copied(), service_ms).unwrap_or(0.0);
        let slowed = service >= SERVICE_SLOWED * self.unloaded_ms;
        let own = |r: &Request| {
            let queue = if slowed { 0.0 } else { client_queue_ms(r) };
            is_latency(r).then(|| queue + send_lag_ms(r).unwrap_or(0.0))
        };
        let own = distribution(rows.iter().copied(), own);
        let response = distribution(rows.iter().copied(), |r| is_latency(r).then(|| response_ms(r)));
        let matters = |own: Option<f64>, response: Option<f64>| {
            own.zip(response).is_none_or(|(own, response)| own >= MATTERS * response)
        };
        matters(own.mean(), response.mean()) || matters(own.quantile(0.99), response.quantile(0.99))
    }

    /// Share (0-1) of their time that users spent between a response and their next request, in the
    /// generator or thinking. A user is always in one of the two, so the rest of response time is
    /// that (Little's law).
    fn waited_unseen(&self, window: Window, rows: &[&Request]) -> f64 {
        let waited_s: f64 = rows.iter().map(|r| r.count() as f64 * response_ms(r) / 1e3).sum();
        self.users.map_or(0.0, |users| 1.0 - waited_s / (users * window.seconds()).max(1e-9))
    }

    fn due_in(&self, window: Window) -> &[&Request] {
        let at = |t: i64| self.rows.partition_point(|r| r.intended_at < t);
        &self.rows[at(window.from)..at(window.to)]
    }

    /// See [`Validity::connections_wanted`].
    pub fn wanted(&self, validity: &Validity) -> Option<f64> {
        let capped = |slice: &&Slice| !slice.spoils && slice.reasons.iter().any(|r| r.limit == Limit::InFlight);
        let windows: Vec<Window> = validity.slices.iter().filter(capped).map(|s| s.window).collect();
        let rows = || windows.iter().flat_map(|w| self.due_in(*w)).copied();
        let p99_s = distribution(rows(), |r| Some(response_ms(r) / 1e3)).quantile(0.99)?;
        let offered: u64 = rows().map(Request::count).sum();
        let seconds: f64 = windows.iter().map(|w| w.seconds()).sum();
        Some((offered as f64 / seconds.max(1e-9) * p99_s).ceil())
    }

    /// See [`Validity::quota`].
    pub fn quota(&self, validity: &Validity) -> Option<(f64, f64)> {
        let throttled = |slice: &&Slice| slice.reasons.iter().any(|r| r.limit == Limit::Throttled);
        let (mut used, mut kept, mut seconds) = (0.0, 0.0, 0.0);
        for slice in validity.slices.iter().filter(throttled) {
            used += self.loops.iter().filter_map(|l| l.cpu.as_ref()?.growth(slice.window)).sum::<f64>();
            kept += self.throttled?.growth(slice.window)?;
            seconds += slice.window.seconds();
        }
        (seconds > 0.0).then(|| (used / seconds, kept / seconds))
    }
}

/// Share (0-1) of the requests that `rows` stand for for which `is` holds; none without any.
fn share_of(rows: &[&Request], is: impl Fn(&Request) -> bool) -> Option<f64> {
    let (all, some) =
        rows.iter().fold((0, 0), |(all, some), r| (all + r.count(), some + if is(r) { r.count() } else { 0 }));
    (all > 0).then(|| some as f64 / all as f64)
}
