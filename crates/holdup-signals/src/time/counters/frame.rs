//! A table of counters: a row per interval, a column per [`Signal`], NaN for a gap. It also says
//! which rows are unreliable. Other modules interpret changes in it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::time::counters::signal::{Family, Kind, Signal};

/// Series of equal length; rows are intervals of equal length in time order.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    period_s: f64,
    rows: usize,
    series: BTreeMap<Signal, Vec<f64>>,
}

impl Frame {
    /// An empty table of that many rows; an interval is `period_s` seconds long.
    #[must_use]
    pub fn new(rows: usize, period_s: f64) -> Self {
        Self { period_s, rows, series: BTreeMap::new() }
    }

    /// Adds or replaces a column. A shorter one is filled with gaps, a longer one is cut.
    pub fn set(&mut self, signal: Signal, mut values: Vec<f64>) {
        values.resize(self.rows, f64::NAN);
        self.series.insert(signal, values);
    }

    /// The values of a signal, if it was recorded.
    #[must_use]
    pub fn get(&self, signal: Signal) -> Option<&[f64]> {
        self.series.get(&signal).map(Vec::as_slice)
    }

    /// Its columns.
    pub fn signals(&self) -> impl Iterator<Item = Signal> + '_ {
        self.series.keys().copied()
    }

    /// Number of intervals.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Length of an interval, s.
    #[must_use]
    pub const fn period_s(&self) -> f64 {
        self.period_s
    }

    /// The same table without one family of telemetry.
    #[must_use]
    pub fn without(mut self, family: Family) -> Self {
        self.series.retain(|signal, _| signal.family() != family);
        self
    }

    /// The same table without one signal.
    #[must_use]
    pub fn without_signal(mut self, signal: Signal) -> Self {
        self.series.remove(&signal);
        self
    }

    /// The rows of a range.
    #[must_use]
    pub fn range(&self, rows: Range<usize>) -> Rows<'_> {
        Rows { frame: self, rows: rows.filter(|row| *row < self.rows).collect() }
    }

    /// These rows, in this order; rows outside of the table are left out.
    #[must_use]
    pub fn pick(&self, rows: impl IntoIterator<Item = usize>) -> Rows<'_> {
        Rows { frame: self, rows: rows.into_iter().filter(|row| *row < self.rows).collect() }
    }

    /// Blanks the traces of a stalled collector: a row in which all rates are 0 between two busy
    /// rows was not read, and the next row's counters hold the work of both. A negative rate is a
    /// counter that restarted.
    #[must_use]
    pub fn blanked(mut self) -> Self {
        for value in
            self.series.iter_mut().filter(|(signal, _)| signal.kind() == Kind::Rate).flat_map(|(_, values)| values)
        {
            if *value < 0.0 {
                *value = f64::NAN;
            }
        }
        let rates: Vec<Signal> =
            self.signals().filter(|signal| signal.kind() == Kind::Rate && signal.family() != Family::Host).collect();
        if rates.len() < 3 {
            return self;
        }
        let silent: Vec<bool> =
            (0..self.rows).map(|row| rates.iter().all(|rate| self.series[rate][row].abs() < f64::EPSILON)).collect();
        let broken: Vec<usize> = (1..self.rows.saturating_sub(1))
            .filter(|row| silent[*row] && !silent[row - 1] && !silent[row + 1])
            .flat_map(|row| [row, row + 1])
            .collect();
        for (signal, values) in &mut self.series {
            if signal.kind() == Kind::Rate && signal.family() != Family::Host {
                for row in &broken {
                    values[*row] = f64::NAN;
                }
            }
        }
        self
    }
}

/// Some rows of a frame: an episode, or a healthy time.
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    frame: &'a Frame,
    rows: Vec<usize>,
}

impl<'a> Rows<'a> {
    /// The table they belong to.
    #[must_use]
    pub const fn frame(&self) -> &'a Frame {
        self.frame
    }

    /// Their numbers, from 0.
    #[must_use]
    pub fn numbers(&self) -> &[usize] {
        &self.rows
    }

    /// Whether it has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The values of a signal in them, gaps included.
    #[must_use]
    pub fn values(&self, signal: Signal) -> Option<Vec<f64>> {
        let series = self.frame.get(signal)?;
        Some(self.rows.iter().map(|row| series[*row]).collect())
    }
}
