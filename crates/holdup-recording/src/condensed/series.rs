//! Samples by metric, source and labels.

use std::collections::BTreeMap;
use std::hash::Hash;

use super::grouped::Grouped;
use super::thinning::Thinning;
use crate::labels::Labels;

/// Times, nanoseconds since the Unix epoch, and values, in order of time.
pub type Points = Vec<(i64, f64)>;

/// Series of one metric by source and labels.
pub type SeriesOfMetric = BTreeMap<(String, Labels), Points>;

/// All samples.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Series by metric.
    pub by_metric: BTreeMap<String, SeriesOfMetric>,
    /// Sources in the order of their first sample, each with that sample's metric.
    pub sources: Vec<(String, String)>,
}

impl Series {
    /// Adds `other`, which has other metrics.
    pub(super) fn join(&mut self, other: Self) {
        self.by_metric.extend(other.by_metric);
        let known = |sources: &[(String, String)], source: &str| sources.iter().any(|(of, _)| of == source);
        let new: Vec<_> = other.sources.into_iter().filter(|(source, _)| !known(&self.sources, source)).collect();
        self.sources.extend(new);
    }
}

/// Builds series from rows as they come; `K` stands for source, metric and labels.
pub(super) struct SeriesMaker<K> {
    groups: Grouped<K>,
    /// Each with the end of its present step.
    points: Vec<(Points, i64)>,
    thinning: Thinning,
}

impl<K> Default for SeriesMaker<K> {
    fn default() -> Self {
        Self::thinned(Thinning::default())
    }
}

impl<K> SeriesMaker<K> {
    pub fn thinned(thinning: Thinning) -> Self {
        Self { groups: Grouped::default(), points: Vec::new(), thinning }
    }

    /// The distance of points, nanoseconds; 0 if all are there.
    pub fn step_ns(&self) -> i64 {
        self.thinning.step_ns()
    }
}

impl<K: Copy + Eq + Hash> SeriesMaker<K> {
    pub fn push(&mut self, key: K, at: i64, value: f64) {
        let number = self.groups.number(key);
        if number == self.points.len() {
            self.points.push((Points::new(), i64::MIN));
        }
        let (points, until) = &mut self.points[number];
        if self.thinning.takes(until, at) {
            points.push((at, value));
            self.thinning.keep_to(&mut self.points, |(at, _)| *at);
        }
    }

    /// All series; `name` returns the source, metric and labels of a key.
    pub fn finish(self, name: impl Fn(K) -> (String, String, Labels)) -> Series {
        let mut series = Series::default();
        for (key, (mut points, _)) in self.groups.keys.into_iter().zip(self.points) {
            let (source, metric, labels) = name(key);
            if !series.sources.iter().any(|(known, _)| *known == source) {
                series.sources.push((source.clone(), metric.clone()));
            }
            // Two spellings of the same labels are one series.
            let all = series.by_metric.entry(metric).or_default().entry((source, labels)).or_default();
            if all.is_empty() {
                points.shrink_to_fit();
                *all = points;
            } else {
                all.append(&mut points);
            }
            if !all.is_sorted_by_key(|(at, _)| *at) {
                all.sort_by_key(|(at, _)| *at);
            }
        }
        series
    }
}
