//! What the client saw, second by second. A request belongs to the second of its intended start, so
//! a stall shows in the seconds whose requests it hurt.

use holdup_recording::rows::Request;

use crate::Window;
use crate::time::distribution::{Distribution, mean_of};

/// One second of requests, by intended start.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// The second.
    pub window: Window,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Response times in milliseconds: see [`is_latency`].
    pub response_ms: Distribution,
    /// Age of the oldest request in flight at its end, milliseconds, if no request was due in it;
    /// none otherwise or if unknown.
    pub waiting_ms: Option<f64>,
}

impl Second {
    /// A stretch in which `offered` requests ended that took `ms` milliseconds on average.
    pub fn of_mean(window: Window, ms: f64, offered: u64) -> Self {
        let response_ms = Distribution::from_counts([(ms, offered)]);
        Self { window, offered, errors: 0, response_ms, waiting_ms: None }
    }

    /// A stretch in which `ended` requests ended and `waiting` were there on average (Little's law).
    pub fn by_littles_law(window: Window, waiting: f64, ended: f64) -> Self {
        Self::of_mean(window, waiting / (ended / window.seconds()) * 1e3, ended as u64)
    }

    /// Stretches by Little's law, in order, none longer than can be. In a stretch in which few of many
    /// ended, the law divides all who stand by those few. But who ends now came when those ahead of it
    /// stood, and all of them have ended since: so it took no longer than that many needed to end.
    /// Those who stood before the first stretch were seen for no longer than all of them.
    pub fn bounded(stretches: Vec<Self>) -> Vec<Self> {
        let watched = stretches.first().zip(stretches.last()).map_or(0, |(a, b)| b.window.to - a.window.from);
        let mut ended = vec![0.0];
        ended.extend(stretches.iter().scan(0.0, |sum, it| {
            *sum += it.offered as f64;
            Some(*sum)
        }));
        let reach = |(at, this): (usize, &Self)| {
            let standing = this.response_ms.mean()? / 1e3 * this.offered as f64 / this.window.seconds();
            // The last stretch since whose beginning so many have ended.
            let from = ended[..=at].partition_point(|before| ended[at + 1] - before >= standing).checked_sub(1);
            Some(from.map_or(watched, |from| this.window.to - stretches[from].window.from) as f64 / 1e6)
        };
        let reaches: Vec<Option<f64>> = stretches.iter().enumerate().map(reach).collect();
        let bound = |(it, reach): (Self, Option<f64>)| match reach {
            Some(reach) if it.response_ms.mean() > Some(reach) => Self::of_mean(it.window, reach, it.offered),
            _ => it,
        };
        stretches.into_iter().zip(reaches).map(bound).collect()
    }

    /// Percentile `q` (0-1) of response time, milliseconds.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.response_ms.quantile(q)
    }
}

/// Mean of `value` over the requests that `rows` stand for and that have a value; none without any.
pub fn mean_over<'r>(
    rows: impl IntoIterator<Item = &'r Request>,
    value: impl Fn(&Request) -> Option<f64>,
) -> Option<f64> {
    mean_of(rows.into_iter().filter_map(|row| Some((value(row)?, row.count()))))
}

/// Distribution of `value` over the requests that `rows` stand for and that have a value.
pub fn distribution<'r>(
    rows: impl IntoIterator<Item = &'r Request>,
    value: impl Fn(&Request) -> Option<f64>,
) -> Distribution {
    Distribution::from_counts(rows.into_iter().filter_map(|row| Some((value(row)?, row.count()))))
}

/// Response time of a request, milliseconds: from the intended start; for an unfinished one its
/// age.
pub fn response_ms(request: &Request) -> f64 {
    (request.done_at - request.intended_at) as f64 / 1e6
}

/// Service time, milliseconds, from the send; none if it was never sent.
pub fn service_ms(request: &Request) -> Option<f64> {
    Some((request.done_at - request.sent_at?) as f64 / 1e6)
}

/// The generator's own delay, milliseconds: from when the request could be sent to when it was,
/// without connecting.
pub fn send_lag_ms(request: &Request) -> Option<f64> {
    Some((request.sent_at? - request.ready_at? - request.connect_ns) as f64 / 1e6)
}

/// Milliseconds that it waited to connect. A request that could be sent and never was spent all its
/// time so.
pub fn connect_ms(request: &Request) -> f64 {
    match (request.sent_at, request.ready_at) {
        (None, Some(ready_at)) => (request.done_at - ready_at) as f64 / 1e6,
        _ => request.connect_ns as f64 / 1e6,
    }
}

/// Milliseconds that it was due while all the generator's connections were busy.
pub fn client_queue_ms(request: &Request) -> f64 {
    (request.ready_at.unwrap_or(request.done_at) - request.intended_at).max(0) as f64 / 1e6
}

/// Service time of a request when the service is otherwise idle, milliseconds: the 5th percentile.
/// The very fastest may have had nothing to do.
pub fn unloaded_ms<'r>(requests: impl IntoIterator<Item = &'r Request>) -> f64 {
    distribution(requests, service_ms).quantile(0.05).unwrap_or(0.0)
}

/// Whether it failed. Requests cut off by a stopped run neither failed nor succeeded.
pub fn failed(request: &Request) -> bool {
    !matches!(request.outcome.as_str(), "ok" | "unfinished")
}

/// Whether its time is a response time: it succeeded, or it was given up after that long and is at
/// least as slow. A failure that comes back at once is an error, not a fast response.
pub fn is_latency(request: &Request) -> bool {
    matches!(request.outcome.as_str(), "ok" | "timeout" | "never_sent" | "unfinished")
}

const SECOND_NS: i64 = 1_000_000_000;

/// Seconds for which holdup follows one request in flight.
const LONGEST_STALL: usize = 3_600;

/// Requests by second.
#[derive(Clone, Debug, Default)]
pub struct ClientView {
    /// Seconds from the first to the last intended start.
    pub seconds: Vec<Second>,
}

impl ClientView {
    /// Groups `requests` by second.
    pub fn from_requests<'r>(requests: impl IntoIterator<Item = &'r Request> + Clone) -> Self {
        let bounds = requests.clone().into_iter().map(|r| r.intended_at);
        let Some((first, last)) =
            bounds.fold(None, |b, at| b.map_or(Some((at, at)), |(a, z): (i64, i64)| Some((a.min(at), z.max(at)))))
        else {
            return Self::default();
        };
        let count = (last - first) / SECOND_NS + 1;
        let mut counts = vec![(0, 0); count as usize];
        let mut times: Vec<Vec<(f64, u64)>> = vec![Vec::new(); count as usize];
        // When the oldest request in flight at the end of each second was due.
        let mut oldest: Vec<Option<i64>> = vec![None; count as usize];
        for request in requests {
            let second = ((request.intended_at - first) / SECOND_NS) as usize;
            counts[second].0 += request.count();
            counts[second].1 += if failed(request) { request.count() } else { 0 };
            if is_latency(request) {
                times[second].push((response_ms(request), request.count()));
            }
            let ended = ((request.done_at - first) / SECOND_NS).min(count);
            for under_way in oldest.iter_mut().take(ended.max(0) as usize).skip(second).take(LONGEST_STALL) {
                *under_way = Some(under_way.map_or(request.intended_at, |at| at.min(request.intended_at)));
            }
        }
        let window = |i: i64| Window { from: first + i * SECOND_NS, to: first + (i + 1) * SECOND_NS };
        let all = (0..count).zip(counts).zip(times).zip(oldest);
        let seconds = all.map(|(((i, (offered, errors)), times), oldest)| Second {
            window: window(i),
            offered,
            errors,
            response_ms: Distribution::from_counts(times),
            waiting_ms: oldest.filter(|_| offered == 0).map(|at| (window(i).to - at) as f64 / 1e6),
        });
        Self { seconds: seconds.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_failure_is_no_fast_response_and_a_timeout_is_a_slow_one() {
        let request =
            |outcome: &str, ms: i64| Request { done_at: ms * 1_000_000, outcome: outcome.into(), ..Request::default() };
        let rows = [request("ok", 40), request("http_status", 1), request("timeout", 900), request("unfinished", 5)];
        let view = ClientView::from_requests(&rows);
        assert_eq!(view.seconds[0].response_ms, Distribution::from_counts([(5.0, 1), (40.0, 1), (900.0, 1)]));
        assert_eq!((view.seconds[0].offered, view.seconds[0].errors), (4, 2));
    }

    #[test]
    fn no_request_took_longer_than_those_ahead_of_it_needed_to_end() {
        let second = |at: i64, standing: f64, ended: f64| {
            Second::by_littles_law(Window { from: at * SECOND_NS, to: (at + 1) * SECOND_NS }, standing, ended)
        };
        let means = |stretches: Vec<Second>| -> Vec<f64> {
            Second::bounded(stretches).iter().filter_map(|it| it.response_ms.mean()).collect()
        };
        // 110 stand all the time; in the fourth second two of them end.
        let stalled =
            vec![second(0, 110.0, 110.0), second(1, 110.0, 55.0), second(2, 110.0, 55.0), second(3, 110.0, 2.0)];
        assert_eq!(means(stalled), [1_000.0, 2_000.0, 2_000.0, 3_000.0]);
        // Steady: Little's law is exact, and stays so from the first second on.
        assert_eq!(means((0..9).map(|at| second(at, 30.0, 10.0)).collect()), [3_000.0; 9]);
        // Nothing says for how long they stood before; they were watched for two seconds.
        assert_eq!(means(vec![second(0, 110.0, 2.0), second(1, 110.0, 2.0)]), [2_000.0; 2]);
        assert!(Second::bounded(Vec::new()).is_empty());
    }

    #[test]
    fn a_row_counts_as_often_as_it_stands_for() {
        let row = |outcome: &str, ms: i64, weight: i64| Request {
            done_at: ms * 1_000_000,
            outcome: outcome.into(),
            weight,
            ..Request::default()
        };
        let rows = [row("ok", 10, 90), row("ok", 50, 9), row("timeout", 900, 0), row("http_status", 1, 20)];
        let second = &ClientView::from_requests(&rows).seconds[0];
        assert_eq!((second.offered, second.errors), (120, 21));
        assert_eq!(
            (second.quantile(0.9), second.quantile(0.99), second.quantile(1.0)),
            (Some(10.0), Some(50.0), Some(900.0))
        );
        assert_eq!(mean_over(&rows, |r| is_latency(r).then(|| response_ms(r))), Some(22.5));
    }
}
