//! What the client saw, second by second, and whether there is anything to complain about.
//!
//! Unfinished work is never dropped: a request that timed out, was never sent or was cut off is at least
//! as slow as it has waited, and counts with that age. Seconds are those of the intended start, so that
//! a stall shows in the seconds whose requests it hurt.

use holdup_recording::manifest::{Manifest, Threshold};
use holdup_recording::rows::Request;

use super::Window;

/// Response time that counts as slow if the scenario has no objective: about a second is the limit for a
/// user's flow of thought to stay uninterrupted (R. B. Miller 1968; J. Nielsen, "Usability Engineering", 1993, ch. 5).
pub const SLOW_WITHOUT_OBJECTIVE_MS: f64 = 1_000.0;

/// A second is degraded against the recording's own calm seconds if its median is this many times theirs.
/// With the noise of shared machines a healthy second's median moves by a factor of two to three; queues
/// past a knee move it by tens. Source: `bench/` freeze and step runs on such machines.
const DEGRADED_FACTOR: f64 = 5.0;

/// … and at least this much slower, so that 0.2 ms against 1 ms is no complaint.
const DEGRADED_AT_LEAST_MS: f64 = 50.0;

/// Share of failed requests in a second that degrades it if the scenario has no objective for errors.
const ERRORS_WITHOUT_OBJECTIVE: f64 = 0.05;

/// A second with fewer requests than this says little about percentiles; it is judged by its slowest.
const FEW: usize = 10;

/// One second of requests, by intended start.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// The second.
    pub window: Window,
    /// Requests that were due.
    pub offered: usize,
    /// Requests that failed.
    pub errors: usize,
    /// Response times in milliseconds, ascending; unfinished ones at their age.
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

/// Requests by second.
#[derive(Clone, Debug, Default)]
pub struct ClientView {
    /// Seconds from the first to the last intended start.
    pub seconds: Vec<Second>,
}

/// What there is to complain about: the degraded stretch, the calm one it is held against, and by how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// In words, e.g. `p99 was 4,120 ms, the objective is p99 < 400ms`.
    pub text: String,
    /// From the first to the last degraded second.
    pub slow: Window,
    /// The longest calm stretch, if there is one of at least [`CALM_SECONDS`].
    pub calm: Option<Window>,
    /// Mean response time in `slow`, milliseconds.
    pub slow_mean_ms: f64,
    /// Mean response time in `calm`, milliseconds; 0 without one.
    pub calm_mean_ms: f64,
    /// p99 in `slow`, milliseconds.
    pub slow_p99_ms: f64,
}

impl Complaint {
    /// Milliseconds a mean request of the degraded stretch is too slow by: what findings have to explain.
    pub fn excess_ms(&self) -> f64 {
        (self.slow_mean_ms - self.calm_mean_ms).max(f64::MIN_POSITIVE)
    }
}

/// A calm stretch shorter than this is no yardstick.
pub const CALM_SECONDS: usize = 2;

impl ClientView {
    /// Groups `requests` by second.
    pub fn of(requests: &[Request]) -> Self {
        let Some(first) = requests.iter().map(|r| r.intended_at).min() else { return Self::default() };
        let last = requests.iter().map(|r| r.intended_at).max().unwrap_or(first);
        let count = ((last - first) / 1_000_000_000 + 1) as usize;
        let mut seconds: Vec<Second> = (0..count as i64)
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
            second.response_ms.push(response_ms(request));
        }
        for second in &mut seconds {
            second.response_ms.sort_by(f64::total_cmp);
        }
        Self { seconds }
    }

    /// Finds what there is to complain about, or none.
    pub fn complaint(&self, requests: &[Request], manifest: &Manifest) -> Option<Complaint> {
        let thresholds = manifest.load.as_ref().map_or(&[][..], |l| l.thresholds.as_slice());
        let missed: Vec<String> = thresholds.iter().filter_map(|t| missed(t, requests)).collect();
        let reference = self.calm_median();
        let degraded: Vec<bool> = self.seconds.iter().map(|s| is_degraded(s, thresholds, reference)).collect();
        let share = degraded.iter().filter(|d| **d).count() as f64 / degraded.len().max(1) as f64;
        // With objectives it is their word that counts; without, the recording's own.
        let text = if !missed.is_empty() {
            missed.join("; ")
        } else if thresholds.is_empty() && share > 0.0 && self.is_sustained(&degraded) {
            let worst = self.seconds.iter().filter_map(|s| s.quantile(0.5)).fold(0.0, f64::max);
            let calm = reference.map_or_else(String::new, |r| format!(", against {r:.1} ms in calm seconds"));
            format!(
                "response time rose to a median of {worst:.0} ms in its worst second{calm} (no objective was given)"
            )
        } else {
            return None;
        };
        let first = degraded.iter().position(|d| *d).unwrap_or(0);
        let last = degraded.iter().rposition(|d| *d).unwrap_or(self.seconds.len() - 1);
        let slow = Window { from: self.seconds[first].window.from, to: self.seconds[last].window.to };
        let slow_requests: Vec<f64> =
            self.seconds[first..=last].iter().flat_map(|s| s.response_ms.iter().copied()).collect();
        let calm = self.longest_calm(&degraded);
        let calm_mean_ms =
            calm.and_then(|(from, to)| mean(self.seconds[from..to].iter().flat_map(|s| s.response_ms.iter().copied())));
        // Intervals of a histogram stand for many requests each: their means weigh by what they stand for.
        let mut sorted = slow_requests.clone();
        sorted.sort_by(f64::total_cmp);
        Some(Complaint {
            text,
            slow,
            calm: calm
                .map(|(from, to)| Window { from: self.seconds[from].window.from, to: self.seconds[to - 1].window.to }),
            slow_mean_ms: mean(slow_requests).unwrap_or(0.0),
            calm_mean_ms: calm_mean_ms.unwrap_or(0.0),
            slow_p99_ms: quantile(&sorted, 0.99).unwrap_or(0.0),
        })
    }

    /// Median of the medians of the calmer half of the seconds, milliseconds.
    fn calm_median(&self) -> Option<f64> {
        let mut medians: Vec<f64> = self.seconds.iter().filter_map(|s| s.quantile(0.5)).collect();
        medians.sort_by(f64::total_cmp);
        quantile(&medians, 0.25)
    }

    /// Two degraded seconds in a row, or one in which a tenth of all requests began.
    fn is_sustained(&self, degraded: &[bool]) -> bool {
        let all: usize = self.seconds.iter().map(|s| s.offered).sum();
        degraded.windows(2).any(|pair| pair[0] && pair[1])
            || self.seconds.iter().zip(degraded).any(|(s, d)| *d && s.offered * 10 >= all)
    }

    /// The longest run of calm seconds as indices, if long enough.
    fn longest_calm(&self, degraded: &[bool]) -> Option<(usize, usize)> {
        let mut best: Option<(usize, usize)> = None;
        let mut from = 0;
        for i in 0..=degraded.len() {
            if i == degraded.len() || degraded[i] {
                if best.is_none_or(|(a, b)| i - from > b - a) {
                    best = Some((from, i));
                }
                from = i + 1;
            }
        }
        best.filter(|(a, b)| b - a >= CALM_SECONDS)
    }
}

fn is_degraded(second: &Second, thresholds: &[Threshold], reference: Option<f64>) -> bool {
    if second.offered == 0 {
        return false;
    }
    let errors = second.errors as f64 / second.offered as f64;
    if thresholds.is_empty() {
        let median = second.quantile(0.5).unwrap_or(0.0);
        let slow = median >= SLOW_WITHOUT_OBJECTIVE_MS
            || second.quantile(0.99).unwrap_or(0.0) >= SLOW_WITHOUT_OBJECTIVE_MS && second.offered >= FEW
            || reference.is_some_and(|r| median > DEGRADED_FACTOR * r && median > r + DEGRADED_AT_LEAST_MS);
        return slow || errors > ERRORS_WITHOUT_OBJECTIVE;
    }
    thresholds.iter().any(|t| match t.metric.as_str() {
        "errors" => errors > t.below,
        "mean" => mean(second.response_ms.iter().copied()).is_some_and(|m| m >= t.below),
        metric => {
            let q = if second.offered < FEW { 1.0 } else { quantile_of(metric) };
            second.quantile(q).is_some_and(|ms| ms >= t.below)
        }
    })
}

/// The percentile (0-1) that a metric name stands for.
pub fn quantile_of(metric: &str) -> f64 {
    match metric {
        "p50" => 0.50,
        "p90" => 0.90,
        "p95" => 0.95,
        "p99" => 0.99,
        "p999" => 0.999,
        _ => 1.0,
    }
}

/// Says how `threshold` was missed over all its requests, or none if it was met.
pub fn missed(threshold: &Threshold, requests: &[Request]) -> Option<String> {
    let of = threshold.operation.as_deref();
    let mine: Vec<&Request> = requests.iter().filter(|r| of.is_none_or(|o| r.operation == o)).collect();
    if mine.is_empty() {
        return None;
    }
    if threshold.metric == "errors" {
        let ratio = mine.iter().filter(|r| failed(r)).count() as f64 / mine.len() as f64;
        return (ratio >= threshold.below && ratio > 0.0)
            .then(|| format!("{:.1} % of requests failed, the objective is {}", ratio * 100.0, threshold.text));
    }
    let mut values: Vec<f64> = mine.iter().map(|r| response_ms(r)).collect();
    values.sort_by(f64::total_cmp);
    let value =
        if threshold.metric == "mean" { mean(values)? } else { quantile(&values, quantile_of(&threshold.metric))? };
    (value >= threshold.below)
        .then(|| format!("{} was {value:.0} ms, the objective is {}", threshold.metric, threshold.text))
}

#[cfg(test)]
mod tests {
    use holdup_recording::manifest::{Host, LoadFacts};

    use super::*;

    /// `rate` requests a second for `seconds`, each as slow as `ms` says for its second.
    fn requests(rate: i64, seconds: i64, ms: impl Fn(i64) -> f64) -> Vec<Request> {
        (0..rate * seconds)
            .map(|k| {
                let intended_at = k * 1_000_000_000 / rate;
                Request {
                    intended_at,
                    done_at: intended_at + (ms(intended_at / 1_000_000_000) * 1e6) as i64,
                    outcome: "ok".into(),
                    ..Request::default()
                }
            })
            .collect()
    }

    fn manifest(threshold: Option<Threshold>) -> Manifest {
        let mut manifest = Manifest::starting("t", 0, Host::default());
        manifest.load = Some(LoadFacts { thresholds: threshold.into_iter().collect(), ..LoadFacts::default() });
        manifest
    }

    #[test]
    fn a_knee_is_found_without_being_told() {
        let rows = requests(50, 12, |s| if s < 8 { 20.0 } else { 900.0 });
        let complaint = ClientView::of(&rows).complaint(&rows, &manifest(None)).unwrap();
        assert_eq!((complaint.slow.from, complaint.slow.to), (8_000_000_000, 12_000_000_000));
        assert_eq!(complaint.calm.map(|c| c.to), Some(8_000_000_000));
        assert!((complaint.excess_ms() - 880.0).abs() < 1.0);
    }

    #[test]
    fn steady_and_noisy_are_no_complaint() {
        for ms in [|_| 20.0, |s: i64| if s % 4 == 0 { 45.0 } else { 20.0 }] {
            let rows = requests(50, 12, ms);
            assert_eq!(ClientView::of(&rows).complaint(&rows, &manifest(None)), None);
        }
    }

    #[test]
    fn an_objective_decides() {
        let threshold =
            |below| Threshold { text: format!("p99 < {below}ms"), metric: "p99".into(), below, operation: None };
        let rows = requests(50, 12, |_| 300.0);
        assert_eq!(ClientView::of(&rows).complaint(&rows, &manifest(Some(threshold(400.0)))), None);
        let complaint = ClientView::of(&rows).complaint(&rows, &manifest(Some(threshold(200.0)))).unwrap();
        assert_eq!(complaint.text, "p99 was 300 ms, the objective is p99 < 200ms");
        assert_eq!(complaint.calm, None);
    }

    #[test]
    fn quantiles_are_of_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&values, 0.99), quantile(&values, 0.5), quantile(&[], 0.5)),
            (Some(99.0), Some(50.0), None)
        );
    }
}
