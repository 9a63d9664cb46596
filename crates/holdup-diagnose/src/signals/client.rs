//! What the client saw, second by second. Seconds are those of the intended start, so that a stall shows in
//! the seconds whose requests it hurt.

use holdup_recording::rows::Request;

use super::Window;

/// One second of requests, by intended start.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// The second.
    pub window: Window,
    /// Requests that were due.
    pub offered: usize,
    /// Requests that failed.
    pub errors: usize,
    /// Response times in milliseconds, ascending: see [`is_latency`].
    pub response_ms: Vec<f64>,
}

impl Second {
    /// Percentile `q` (0-1) of response time, milliseconds.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        quantile(&self.response_ms, q)
    }
}

/// Percentile `q` (0-1) of ascending `values`: the smallest value that at least a share `q` does not exceed.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
    values.get(rank.min(values.len()).checked_sub(1)?).copied()
}

/// Mean; none of nothing.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0_usize), |(s, n), v| (s + v, n + 1));
    (count > 0).then(|| sum / count as f64)
}

/// Response time of a request, milliseconds: from the intended start, unfinished ones at their age.
pub fn response_ms(request: &Request) -> f64 {
    (request.done_at - request.intended_at) as f64 / 1e6
}

/// Service time, milliseconds: from the send; none if it was never sent.
pub fn service_ms(request: &Request) -> Option<f64> {
    Some((request.done_at - request.sent_at?) as f64 / 1e6)
}

/// The generator's own delay, milliseconds: from when it could be sent to when it was, connecting aside.
pub fn send_lag_ms(request: &Request) -> Option<f64> {
    Some((request.sent_at? - request.ready_at? - request.connect_ns) as f64 / 1e6)
}

/// Milliseconds it was due while every connection of the generator was busy.
pub fn client_queue_ms(request: &Request) -> f64 {
    (request.ready_at.unwrap_or(request.done_at) - request.intended_at).max(0) as f64 / 1e6
}

/// Whether it failed. Unfinished requests of a stopped run are neither good nor bad.
pub fn failed(request: &Request) -> bool {
    !matches!(request.outcome.as_str(), "ok" | "unfinished")
}

/// Whether its time is a response time: it ended well, or had not ended when it was given up and is at least
/// as slow as it has waited. A failure that comes back at once is an error, not a fast response.
pub fn is_latency(request: &Request) -> bool {
    matches!(request.outcome.as_str(), "ok" | "timeout" | "never_sent" | "unfinished")
}

/// Requests by second.
#[derive(Clone, Debug, Default)]
pub struct ClientView {
    /// Seconds from the first to the last intended start.
    pub seconds: Vec<Second>,
}

impl ClientView {
    /// Groups `requests` by second.
    pub fn of(requests: &[Request]) -> Self {
        let Some(first) = requests.iter().map(|r| r.intended_at).min() else { return Self::default() };
        let last = requests.iter().map(|r| r.intended_at).max().unwrap_or(first);
        let count = (last - first) / 1_000_000_000 + 1;
        let mut seconds: Vec<Second> = (0..count)
            .map(|i| Second {
                window: Window { from: first + i * 1_000_000_000, to: first + (i + 1) * 1_000_000_000 },
                offered: 0,
                errors: 0,
                response_ms: Vec::new(),
            })
            .collect();
        for request in requests {
            let second = &mut seconds[((request.intended_at - first) / 1_000_000_000) as usize];
            second.offered += 1;
            second.errors += usize::from(failed(request));
            if is_latency(request) {
                second.response_ms.push(response_ms(request));
            }
        }
        for second in &mut seconds {
            second.response_ms.sort_by(f64::total_cmp);
        }
        Self { seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&values, 0.99), quantile(&values, 0.5), quantile(&[], 0.5)),
            (Some(99.0), Some(50.0), None)
        );
    }

    #[test]
    fn a_fast_failure_is_no_fast_response_and_a_timeout_is_a_slow_one() {
        let request =
            |outcome: &str, ms: i64| Request { done_at: ms * 1_000_000, outcome: outcome.into(), ..Request::default() };
        let view = ClientView::of(&[
            request("ok", 40),
            request("http_status", 1),
            request("timeout", 900),
            request("unfinished", 5),
        ]);
        assert_eq!(view.seconds[0].response_ms, [5.0, 40.0, 900.0]);
        assert_eq!((view.seconds[0].offered, view.seconds[0].errors), (4, 2));
    }
}
