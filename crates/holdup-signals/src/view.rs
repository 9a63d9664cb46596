//! Samples of one window: counters as their growth, gauges as their level, histograms as means.
//!
//! A counter's growth is taken between adjacent samples of one series whose middle lies in the
//! window. A fall is a restart of its source, and that pair is left out. Means of gauges are over
//! samples, sums over the series of one instant.

pub mod stretches;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdup_recording::condensed::{Condensed, Execution, Points};
use holdup_recording::metrics;
#[cfg(test)]
use holdup_recording::rows::Sample;
use holdup_recording::rows::{Request, Session};
use holdup_recording::tables::Tables;
use holdup_recording::{Labels, Recording};

use crate::view::stretches::{Stretches, added_by_round, pairs, within};

use crate::Evidence;
use crate::{Missing, Window};

/// Samples by metric, then by source and labels, each in time order; statements; and a time index
/// of the tables.
#[derive(Default)]
pub struct Index {
    /// Statements condensed to the fields that are used.
    pub condensed: Arc<Condensed>,
    sessions: Stretches,
    requests: Stretches,
}

impl Index {
    /// Indexes `tables`.
    pub fn new(tables: &Tables) -> Self {
        Self {
            condensed: tables.condensed.clone().unwrap_or_else(|| Arc::new(tables.condense())),
            sessions: Stretches::new(&tables.sessions.rows, |r| r.observed_at),
            requests: Stretches::new(&tables.requests.rows, |r| r.intended_at),
        }
    }

    /// An index of samples only.
    #[cfg(test)]
    pub fn from_samples(samples: &[Sample]) -> Self {
        let mut tables = Tables::default();
        tables.samples.rows = samples.to_vec();
        Self::new(&tables)
    }

    /// Requests that were due in `window`, from `rows`, which are all requests.
    pub fn requests_in<'r>(&self, rows: &'r [Request], window: Window) -> Vec<&'r Request> {
        self.requests.near(rows, window).filter(|r| window.contains(r.intended_at)).collect()
    }

    /// Series of `metric` that have all of `labels`.
    pub fn series<'i>(
        &'i self,
        metric: &str,
        labels: &'i [(&'i str, &'i str)],
    ) -> impl Iterator<Item = (&'i (String, Labels), &'i Points)> {
        self.condensed.series.by_metric.get(metric).into_iter().flatten().filter(move |((_, l), _)| l.contains(labels))
    }

    /// Sums of the series of `metric` that `is_of` accepts by source and labels, by instant.
    pub fn sums(&self, metric: &str, is_of: impl Fn(&str, &Labels) -> bool) -> BTreeMap<i64, f64> {
        let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
        for (_, series) in self.series(metric, &[]).filter(|((source, labels), _)| is_of(source, labels)) {
            series.iter().for_each(|&(at, value)| *sums.entry(at).or_default() += value);
        }
        sums
    }

    /// Growth of the counters `metric` with `labels` from sample to sample within `window`, in time
    /// order. Series of one source are added up; only sources that `is_source` accepts count. A fall
    /// is left out.
    pub fn growths(
        &self,
        window: Window,
        is_source: impl Fn(&str) -> bool,
        metric: &str,
        labels: &[(&str, &str)],
    ) -> Vec<Growth> {
        let mut by_source: BTreeMap<&str, Vec<&[(i64, f64)]>> = BTreeMap::new();
        for ((source, _), series) in self.series(metric, labels).filter(|((source, _), _)| is_source(source)) {
            by_source.entry(source).or_default().push(series);
        }
        let mut growths = Vec::new();
        for series in by_source.into_values() {
            for ((from, before), (to, after)) in pairs(&added_by_round(&series), window) {
                if after >= before && to > from {
                    growths.push(Growth { window: Window { from, to }, delta: after - before });
                }
            }
        }
        growths.sort_by_key(|g| g.window.from);
        growths
    }
}

/// A counter's growth in a window, over all matching series.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Growth.
    pub delta: f64,
    /// Seconds that the growth covers.
    pub seconds: f64,
    /// Intervals between two reads that it covers, in the series with most.
    pub reads: usize,
    origin: Origin,
}

impl Counter {
    /// Growth per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.delta / self.seconds } else { 0.0 }
    }
}

/// Counters' growth between two adjacent samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// From sample to sample.
    pub window: Window,
    /// Growth.
    pub delta: f64,
}

impl Growth {
    /// Growth per second.
    pub fn rate(&self) -> f64 {
        self.delta / self.window.seconds()
    }
}

/// A gauge in a window; series of one round of reading are added up.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// Mean over the instants.
    pub mean: f64,
    /// Greatest.
    pub max: f64,
    /// Least.
    pub min: f64,
    /// Share of instants at which it was above zero.
    pub positive_ratio: f64,
    /// Instants.
    pub count: usize,
    origin: Origin,
}

/// Mean of a histogram (growth of its sum over growth of its count), milliseconds.
#[derive(Clone, Debug)]
pub struct Mean {
    /// Mean, milliseconds.
    pub ms: f64,
    /// Observations.
    pub count: f64,
    /// Seconds that it covers.
    pub seconds: f64,
    origin: Origin,
}

#[derive(Clone, Debug)]
struct Origin {
    metric: String,
    labels: Labels,
    window: Window,
}

impl Origin {
    fn evidence(&self, observed: String, expected: String, text: String) -> Evidence {
        Evidence::new(
            "samples",
            "value",
            self.labels.clone().with("metric", self.metric.clone()),
            self.window,
            observed,
            expected,
            text,
        )
    }
}

macro_rules! evidence_of {
    ($($of:ty),*) => {$(
        impl $of {
            /// A piece of evidence that points at these samples.
            pub fn evidence(&self, observed: impl Into<String>, expected: impl Into<String>, text: impl Into<String>) -> Evidence {
                self.origin.evidence(observed.into(), expected.into(), text.into())
            }
        }
    )*};
}
evidence_of!(Counter, Gauge, Mean);

/// A recording, seen through one window.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// Its index.
    pub index: &'a Index,
    /// The window.
    pub window: Window,
}

impl<'a> View<'a> {
    pub(super) fn samples_readable(&self) -> Result<(), Missing> {
        let needed = &["observed_at", "source", "metric", "labels", "value"];
        self.recording
            .tables
            .samples
            .with_columns(needed)
            .map(|_| ())
            .map_err(|what| Missing::new(what, "record again; this recording lacks it"))
    }

    fn origin(&self, metric: &str, labels: &[(&str, &str)]) -> Origin {
        Origin { metric: metric.to_owned(), labels: Labels::new(labels.iter().copied()), window: self.window }
    }

    /// Growth of counter `metric` with `labels`.
    ///
    /// # Errors
    /// If no series of it has two samples around the window; `enable` says what would record it.
    pub fn counter(&self, metric: &str, labels: &[(&str, &str)], enable: &str) -> Result<Counter, Missing> {
        self.counter_where(|_| true, metric, labels, enable)
    }

    /// The same for sources that `is_source` accepts: several sources may read the same thing, and
    /// must not be added up.
    ///
    /// # Errors
    /// As [`Self::counter`].
    pub fn counter_where(
        &self,
        is_source: impl Fn(&str) -> bool,
        metric: &str,
        labels: &[(&str, &str)],
        enable: &str,
    ) -> Result<Counter, Missing> {
        self.samples_readable()?;
        let mut delta = 0.0;
        let mut seconds: f64 = 0.0;
        let mut most_reads = 0;
        for (_, series) in self.index.series(metric, labels).filter(|((source, _), _)| is_source(source)) {
            let (mut covered, mut reads) = (0.0, 0);
            for ((a_at, a), (b_at, b)) in pairs(series, self.window) {
                if b >= a {
                    delta += b - a;
                    covered += (b_at - a_at) as f64 / 1e9;
                    reads += 1;
                }
            }
            seconds = seconds.max(covered);
            most_reads = most_reads.max(reads);
        }
        if most_reads == 0 {
            return Err(Missing::new(format!("samples of {metric}"), enable));
        }
        Ok(Counter { delta, seconds, reads: most_reads, origin: self.origin(metric, labels) })
    }

    /// Gauge `metric` with `labels`.
    ///
    /// # Errors
    /// If the window has no sample of it.
    pub fn gauge(&self, metric: &str, labels: &[(&str, &str)], enable: &str) -> Result<Gauge, Missing> {
        self.gauge_where(|_| true, metric, labels, enable)
    }

    /// The same for sources that `is_source` accepts.
    ///
    /// # Errors
    /// As [`Self::gauge`].
    pub fn gauge_where(
        &self,
        is_source: impl Fn(&str) -> bool,
        metric: &str,
        labels: &[(&str, &str)],
        enable: &str,
    ) -> Result<Gauge, Missing> {
        self.samples_readable()?;
        // Series of one source are read in the same round, those of several sources at different
        // times. So holdup takes a mean per source, then the sum over sources.
        let mut by_source: BTreeMap<&str, Vec<&[(i64, f64)]>> = BTreeMap::new();
        for ((source, _), series) in self.index.series(metric, labels).filter(|((source, _), _)| is_source(source)) {
            by_source.entry(source).or_default().push(within(series, self.window));
        }
        let mut gauge =
            Gauge { mean: 0.0, max: 0.0, min: 0.0, positive_ratio: 0.0, count: 0, origin: self.origin(metric, labels) };
        for series in by_source.into_values() {
            let instants = added_by_round(&series);
            let (n, values) = (instants.len(), || instants.iter().map(|(_, value)| *value));
            if n == 0 {
                continue;
            }
            gauge.mean += values().sum::<f64>() / n as f64;
            gauge.max += values().fold(f64::MIN, f64::max);
            gauge.min += values().fold(f64::MAX, f64::min);
            let positive = values().filter(|v| *v > 0.0).count() as f64 / n as f64;
            gauge.positive_ratio = gauge.positive_ratio.max(positive);
            gauge.count += n;
        }
        if gauge.count == 0 {
            return Err(Missing::new(format!("samples of {metric}"), enable));
        }
        Ok(gauge)
    }

    /// All series of `metric` with `labels` of `source` added up, such as the memory of a server's
    /// processes, by rounds of reading within the window.
    pub fn total(&self, source: &str, metric: &str, labels: &[(&str, &str)]) -> Vec<(i64, f64)> {
        let of_source = self.index.series(metric, labels).filter(|((of, _), _)| of == source);
        let series: Vec<&[(i64, f64)]> = of_source.map(|(_, series)| series.as_slice()).collect();
        within(&added_by_round(&series), self.window).to_vec()
    }

    /// Growth of the counters `metric` with `labels` from sample to sample within the window: see
    /// [`Index::growths`].
    pub fn growths(&self, is_source: impl Fn(&str) -> bool, metric: &str, labels: &[(&str, &str)]) -> Vec<Growth> {
        self.index.growths(self.window, is_source, metric, labels)
    }

    /// Mean of the histogram `metric` (seconds) with `labels`, in milliseconds; 0 without an
    /// observation.
    ///
    /// # Errors
    /// If it was not recorded.
    pub fn mean(&self, metric: &str, labels: &[(&str, &str)], enable: &str) -> Result<Mean, Missing> {
        let sum = self.counter(&format!("{metric}_sum"), labels, enable)?;
        let count = self.counter(&format!("{metric}_count"), labels, enable)?;
        let ms = if count.delta > 0.0 { sum.delta / count.delta * 1e3 } else { 0.0 };
        Ok(Mean {
            ms,
            count: count.delta,
            seconds: count.seconds,
            origin: self.origin(&format!("{metric}_sum"), labels),
        })
    }

    /// Sources that have samples of `metric`.
    pub fn sources_of(&self, metric: &str) -> Vec<&'a str> {
        let mut sources: Vec<&str> = self.index.series(metric, &[]).map(|((s, _), _)| s.as_str()).collect();
        sources.dedup();
        sources
    }

    /// Values of label `name` of `metric` in order; empty for series without it.
    pub fn label_values(&self, metric: &str, name: &str) -> Vec<String> {
        let series = self.index.series(metric, &[]);
        let mut values: Vec<String> = series.map(|((_, l), _)| l.get(name).unwrap_or_default().to_owned()).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Sampled sessions in the window.
    ///
    /// # Errors
    /// If sessions were not recorded or lack one of `columns`.
    pub fn sessions(&self, columns: &[&'static str]) -> Result<Vec<&'a Session>, Missing> {
        let enable = "--watch mysql://USER@HOST:PORT, as an account with PROCESS";
        let rows = self.recording.tables.sessions.with_columns(columns).map_err(|what| Missing::new(what, enable))?;
        // The absence of sessions is a fact only if holdup read sessions: every sample counts them
        // by state.
        if self.session_instants() == 0 {
            return Err(Missing::new("samples of all database sessions", enable));
        }
        let near = self.index.sessions.near(rows, self.window);
        Ok(near.filter(|s| self.window.contains(s.observed_at)).collect())
    }

    /// Executions of statements that ended in the window, by the server's own timing.
    ///
    /// # Errors
    /// If executions were not recorded or lack one of `columns`.
    pub fn executions(
        &self,
        columns: &[&'static str],
    ) -> Result<impl Iterator<Item = Execution<'a>> + Clone + use<'a>, Missing> {
        let enable =
            "performance_schema with consumers events_statements_current and events_statements_history_long ON";
        self.recording.tables.statements.with_columns(columns).map_err(|what| Missing::new(what, enable))?;
        let index: &'a Index = self.index;
        let all = &index.condensed.executions;
        if all.is_empty() {
            return Err(Missing::new(
                "the server's own timing of single statements (statements, kind execution)",
                enable,
            ));
        }
        Ok(all.within(self.window.from, self.window.to))
    }

    /// Instants at which sessions of any database were sampled in the window, so that an instant
    /// without a session counts.
    pub fn session_instants(&self) -> usize {
        self.session_times().len()
    }

    /// The instants at which sessions were sampled, in order, nanoseconds since 1970.
    pub fn session_times(&self) -> Vec<i64> {
        let of = |metric| self.index.series(metric, &[]).flat_map(|(_, series)| within(series, self.window));
        let times = [metrics::mysql::SESSIONS.name, metrics::postgresql::SESSIONS.name]
            .into_iter()
            .flat_map(of)
            .map(|(at, _)| *at);
        let mut instants: Vec<i64> = times.collect();
        instants.sort_unstable();
        instants.dedup();
        instants
    }

    /// The last value of setting `name` of any source that has it.
    ///
    /// # Errors
    /// If it was not recorded.
    pub fn setting(&self, name: &str, enable: &str) -> Result<&'a str, Missing> {
        let missing = |what: String| Missing::new(what, enable);
        let rows = self.recording.tables.settings.with_columns(&["name", "value"]).map_err(missing)?;
        let found = rows.iter().rev().find(|s| s.name == name).map(|s| s.value.as_str());
        found.ok_or_else(|| missing(format!("setting {name}")))
    }
}
