//! Figures that a row has, as a table: which column is which of the collector's metrics, in which
//! unit. A kind of output declares its columns so, and these functions add what a row shows of them.

use holdup_recording::Labels;
use holdup_recording::metrics::Metric;

use super::{Context, HOST, Report};

// How many of a column's unit are one of the metric's.
pub(super) const PLAIN: f64 = 1.0;
pub(super) const PERCENT: f64 = 100.0;
pub(super) const KIB: f64 = 1.0 / 1024.0;
pub(super) const MIB: f64 = 1.0 / 1_048_576.0;
pub(super) const SECTORS: f64 = 1.0 / 512.0;

/// A column that is a metric.
pub(super) struct Figure {
    /// Its names; the first that a row has counts.
    pub(super) columns: &'static [&'static str],
    /// How many of its unit are one of the metric's.
    pub(super) per: f64,
    metric: Metric,
    label: Option<(&'static str, &'static str)>,
}

pub(super) const fn figure(
    columns: &'static [&'static str],
    per: f64,
    metric: Metric,
    label: Option<(&'static str, &'static str)>,
) -> Figure {
    Figure { columns, per, metric, label }
}

/// Of a row, the value of a figure in its metric's unit.
type Value<'v> = dyn Fn(&Figure) -> Option<f64> + 'v;

impl Figure {
    /// The number of its column, in the metric's unit.
    pub(super) fn of(&self, number: impl Fn(&[&str]) -> Option<f64>) -> Option<f64> {
        Some(number(self.columns)? / self.per)
    }

    fn labels(&self, base: &Labels) -> Labels {
        self.label.map_or_else(|| base.clone(), |(name, value)| base.clone().with(name, value))
    }
}

/// Adds what a row of the host shows at an instant.
pub(super) fn gauges(figures: &[Figure], at: i64, context: &mut Context, value: &Value<'_>) {
    for figure in figures {
        if let Some(value) = value(figure) {
            context.out.host(at, figure.metric, figure.labels(&Labels::none()), value);
        }
    }
}

/// Adds what a row of the host, or of what `labels` name in it, shows as growth a second.
pub(super) fn rates(
    figures: &[Figure],
    (kind, report): (&'static str, Report),
    labels: &Labels,
    context: &mut Context,
    value: &Value<'_>,
) {
    for figure in figures {
        if let Some(value) = value(figure) {
            context.out.rate(kind, report, HOST, (figure.metric, figure.labels(labels)), value);
        }
    }
}
