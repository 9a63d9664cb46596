//! Samples by metric, source and labels.

use std::collections::BTreeMap;
use std::hash::Hash;

use super::thinning::{Thinned, Timed};
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
pub(super) type SeriesMaker<K> = Thinned<K, (i64, f64)>;

impl Timed for (i64, f64) {
    fn at(&self) -> i64 {
        self.0
    }
}

impl<K: Copy + Eq + Hash> SeriesMaker<K> {
    /// All series; `name` returns the source, metric and labels of a key.
    pub fn finish(self, name: impl Fn(K) -> (String, String, Labels)) -> Series {
        let mut series = Series::default();
        for (key, mut points) in self.groups() {
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
