//! Go's scheduler: for how long goroutines were runnable and did not run, because all threads that
//! may run Go code (GOMAXPROCS) were busy, or had no CPU themselves.
//!
//! `runtime/metrics` has a histogram without a sum. Prometheus' client for Go merges its buckets to
//! powers of ten and makes the sum of their lower bounds, which can be a tenth of the truth. Such a
//! sum counts as unknown, and the buckets then say how much it may be. Besides, Go times one in
//! eight of the moments at which a goroutine becomes runnable.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::Labels;

use super::names::{GO_LATENCIES, GO_MAX_PROCS};
use crate::{Evidence, View, Window};

/// What to record to see goroutines wait.
pub const ENABLE: &str = "--watch prometheus:http://APP/metrics with the Go collector's MetricsScheduler on";

/// Of so many waits Go times one (`gTrackingPeriod`).
const ONE_TIMED_OF: f64 = 8.0;

/// A sum above what the buckets' lower bounds make by this factor is one of its own.
const OWN_SUM: f64 = 1.01;

/// How goroutines of the processes of a source wait.
#[derive(Clone, Debug, PartialEq)]
pub struct GoScheduler {
    /// The source.
    pub source: String,
    /// Seconds that they waited, all together.
    pub waited_s: f64,
    /// GOMAXPROCS, if it was recorded.
    pub max_procs: Option<f64>,
    metric: String,
    window: Window,
}

impl GoScheduler {
    /// Evidence that points at the histogram.
    pub fn evidence(
        &self,
        observed: impl Into<String>,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Evidence {
        let labels = Labels::new([("metric", self.metric.as_str())]);
        Evidence::new("samples", "value", labels, self.window, observed, expected, text)
    }
}

impl View<'_> {
    /// The scheduler of each source whose Go runtime reports it.
    pub fn go_schedulers(&self) -> Vec<GoScheduler> {
        let (bucket, sum) = (format!("{GO_LATENCIES}_bucket"), format!("{GO_LATENCIES}_sum"));
        let mut all = Vec::new();
        for metric in self.metrics_called(&bucket).into_iter().chain(self.metrics_called(&sum)) {
            let sources: BTreeSet<&str> = self.sources_of(metric).into_iter().collect();
            for source in sources {
                let is_known = all.iter().any(|known: &GoScheduler| known.source == source);
                let stem = metric.trim_end_matches("_bucket").trim_end_matches("_sum");
                if let Some(waited_s) = self.waited_s(source, stem).filter(|_| !is_known && !self.is_exporter(source)) {
                    let max_procs = GO_MAX_PROCS.iter().find_map(|end| self.level(source, end));
                    let (source, metric, window) = (source.to_owned(), metric.to_owned(), self.window);
                    all.push(GoScheduler { source, waited_s, max_procs, metric, window });
                }
            }
        }
        all
    }

    /// The greatest value of the gauge called `end` of `source`.
    fn level(&self, source: &str, end: &str) -> Option<f64> {
        let gauge = |metric: &&str| self.gauge_where(|of| of == source, metric, &[], ENABLE).ok();
        self.metrics_called(end).iter().find_map(gauge).map(|gauge| gauge.max)
    }

    /// Seconds in the histogram `stem` of `source`; none without samples.
    fn waited_s(&self, source: &str, stem: &str) -> Option<f64> {
        let growth = |metric: &str, labels: &[(&str, &str)]| {
            self.counter_where(|of| of == source, metric, labels, ENABLE).ok().map(|counter| counter.delta)
        };
        let sum = growth(&format!("{stem}_sum"), &[]);
        let metric = format!("{stem}_bucket");
        let mut cumulative: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
        for le in self.label_values(&metric, "le") {
            let bound = if le == "+Inf" { Some(f64::INFINITY) } else { le.parse::<f64>().ok() };
            if let (Some(bound), Some(count)) = (bound, growth(&metric, &[("le", &le)])) {
                // Bounds in order, as whole numbers: nanoseconds.
                cumulative.insert((bound * 1e9).min(i64::MAX as f64) as i64, (bound, count));
            }
        }
        let (mut low, mut likely, mut below) = (0.0, 0.0, (0.0, 0.0));
        for (bound, count) in cumulative.into_values() {
            let inside = f64::max(count - below.1, 0.0);
            low += inside * below.0;
            likely += inside * middle_of(below.0, bound);
            below = (bound, count);
        }
        let own = sum.filter(|sum| *sum > OWN_SUM * low);
        own.or((likely > 0.0).then_some(likely)).or(sum).map(|timed| timed * ONE_TIMED_OF)
    }
}

/// The mean of a bucket whose values are as likely in each of its octaves.
fn middle_of(low: f64, high: f64) -> f64 {
    match () {
        () if high.is_infinite() => low,
        () if low <= 0.0 => high / 2.0,
        () => (high - low) / (high / low).ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::ONE_TIMED_OF;
    use crate::testing::SyntheticRecording;

    const APP: &str = "prometheus:app";

    fn waited(made: &SyntheticRecording) -> f64 {
        made.seen(|view| view.go_schedulers()[0].waited_s / ONE_TIMED_OF / view.window.seconds())
    }

    /// A hundred waits a second of 10 to 100 ms, with `sum` seconds.
    fn histogram(sum: Option<f64>) -> SyntheticRecording {
        let made = SyntheticRecording::new(12).gauge(APP, "go_sched_gomaxprocs_threads", &[], 1.0);
        let bounds = [("0.01", 0.0), ("0.09999999999999999", 100.0), ("+Inf", 100.0)];
        let made = bounds.into_iter().fold(made, |made, (le, count)| {
            made.counter(APP, "go_sched_latencies_seconds_bucket", &[("le", le)], count)
        });
        sum.map_or(made.clone(), |sum| made.counter(APP, "go_sched_latencies_seconds_sum", &[], sum))
    }

    #[test]
    fn a_sum_of_lower_bounds_is_none() {
        assert!((3.5..4.3).contains(&waited(&histogram(None))), "{}", waited(&histogram(None)));
        let of_client = waited(&histogram(Some(1.0)));
        assert!((3.5..4.3).contains(&of_client), "{of_client}");
        assert!((waited(&histogram(Some(2.5))) - 2.5).abs() < 1e-9, "its own");
    }

    #[test]
    fn a_sum_without_buckets_counts_and_threads_are_told_with_it() {
        let made = SyntheticRecording::new(12).counter(APP, "shop_go_sched_latencies_seconds_sum", &[], 3.0).gauge(
            APP,
            "go_sched_gomaxprocs_threads",
            &[],
            1.0,
        );
        assert!((waited(&made) - 3.0).abs() < 1e-9);
        assert_eq!(made.seen(|view| view.go_schedulers()[0].max_procs), Some(1.0));
        // An exporter is written in Go, and no request meets its pauses.
        let exporter = made.gauge(APP, "mysqld_exporter_build_info", &[], 1.0).counter(
            APP,
            "go_gc_duration_seconds_sum",
            &[],
            0.1,
        );
        assert!(exporter.seen(|view| !view.has_runtime()));
    }
}
