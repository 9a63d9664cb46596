//! What one machine says of itself: series, threads and settings of the source `host`. They are
//! taken out of the joined recording and put back, one machine's at a time. No point is copied.

use std::sync::Arc;

use super::MACHINE;
use crate::Labels;
use crate::condensed::{Points, SeriesOfMetric};
use crate::rows::{Setting, Thread};
use crate::tables::Tables;

/// What one machine says of itself, while it is not in the recording.
#[derive(Debug, Default)]
pub(super) struct Machine {
    series: Vec<(String, Labels, Points)>,
    threads: Vec<Thread>,
    settings: Vec<Setting>,
    /// The metric of its first sample.
    first: Option<String>,
}

impl Machine {
    /// Takes it out of `tables`.
    pub fn take(tables: &mut Tables) -> Self {
        let mut machine = Self {
            threads: tables.threads.rows.extract_if(.., |row| row.source == MACHINE).collect(),
            settings: tables.settings.rows.extract_if(.., |row| row.source == MACHINE).collect(),
            ..Self::default()
        };
        let Some(condensed) = &mut tables.condensed else { return machine };
        let series = &mut Arc::make_mut(condensed).series;
        for (metric, of_metric) in &mut series.by_metric {
            let (mine, others) = std::mem::take(of_metric).into_iter().partition(|((source, _), _)| source == MACHINE);
            *of_metric = others;
            let mine: SeriesOfMetric = mine;
            machine.series.extend(mine.into_iter().map(|((_, labels), points)| (metric.clone(), labels, points)));
        }
        series.by_metric.retain(|_, of_metric| !of_metric.is_empty());
        let at = series.sources.iter().position(|(source, _)| source == MACHINE);
        machine.first = at.map(|at| series.sources.remove(at).1);
        machine
    }

    /// Puts it into `tables`.
    pub fn put(self, tables: &mut Tables) {
        tables.threads.rows.extend(self.threads);
        tables.threads.rows.sort_by_key(|row| row.observed_at);
        tables.settings.rows.extend(self.settings);
        let Some(condensed) = &mut tables.condensed else { return };
        let series = &mut Arc::make_mut(condensed).series;
        for (metric, labels, points) in self.series {
            series.by_metric.entry(metric).or_default().insert((MACHINE.to_owned(), labels), points);
        }
        series.sources.extend(self.first.map(|metric| (MACHINE.to_owned(), metric)));
    }
}

/// Puts machine `number` into `tables` in place of machine `before`.
pub(super) fn exchange(tables: &mut Tables, machines: &mut [Machine], before: Option<usize>, number: usize) {
    if let Some(place) = before.and_then(|before| machines.get_mut(before)) {
        *place = Machine::take(tables);
    }
    if let Some(machine) = machines.get_mut(number) {
        std::mem::take(machine).put(tables);
    }
}
