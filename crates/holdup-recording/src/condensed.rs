//! Samples and statements in condensed form for judging: repeated text is stored once, and columns
//! that no rule uses are not read. An hour of a busy server has some 4 million samples and as many
//! executions. As rows they take gigabytes, condensed some hundred megabytes. The same data can be
//! built from rows or straight from the files.

mod executions;
mod files;
mod grouped;
mod series;
mod thinning;
mod totals;

use crate::rows::{Sample, Statement};
pub use executions::{Execution, Executions};
pub(crate) use files::Reader;
use series::SeriesMaker;
pub use series::{Points, Series, SeriesOfMetric};
use totals::TotalsMaker;
pub use totals::{Reading, Totals};

/// Samples and statements of a recording.
#[derive(Clone, Debug, Default)]
pub struct Condensed {
    /// Samples.
    pub series: Series,
    /// Single executions of statements.
    pub executions: Executions,
    /// Counters by statement, in order of source, database and digest.
    pub totals: Vec<Totals>,
}

impl Condensed {
    /// Adds another recording's, of other sources.
    pub(crate) fn append(&mut self, other: Self) {
        let Self { series, executions, totals } = other;
        for (metric, of_metric) in series.by_metric {
            self.series.by_metric.entry(metric).or_default().extend(of_metric);
        }
        self.series.sources.extend(series.sources);
        self.executions.append(executions);
        self.totals.extend(totals);
        self.totals.sort_by(|a, b| (&a.source, &a.database, &a.digest).cmp(&(&b.source, &b.database, &b.digest)));
    }

    /// Moves every time by `by_ns` nanoseconds.
    pub(crate) fn move_times(&mut self, by_ns: i64) {
        let moved = |at: &mut i64| *at = at.saturating_add(by_ns);
        let points = self.series.by_metric.values_mut().flat_map(|of_metric| of_metric.values_mut()).flatten();
        points.for_each(|(at, _)| moved(at));
        self.executions.move_times(by_ns);
        self.totals.iter_mut().flat_map(|of| &mut of.readings).for_each(|reading| moved(&mut reading.observed_at));
    }

    /// Condenses rows.
    pub(crate) fn from_rows(samples: &[Sample], statements: &[Statement]) -> Self {
        let mut series = SeriesMaker::to(usize::MAX);
        for row in samples {
            let key = (row.source.as_str(), row.metric.as_str(), &row.labels);
            series.add(key, (row.observed_at, row.value));
        }
        let mut executions = executions::Maker::default();
        let mut totals = TotalsMaker::to(usize::MAX);
        for row in statements {
            match row.kind.as_str() {
                "execution" => {
                    executions.push((row.digest.as_str(), row.digest_text.as_str()), row.observed_at, row.duration_ns);
                }
                "digest_total" => {
                    let key = (row.source.as_str(), row.database.as_deref(), row.digest.as_str());
                    totals.push(key, row.digest_text.as_str(), Reading::from_row(row));
                }
                _ => {}
            }
        }
        Self {
            series: series.finish(|(source, metric, labels)| (source.to_owned(), metric.to_owned(), labels.clone())),
            executions: executions.finish(str::to_owned),
            totals: totals.finish(|(source, database, digest), text| Totals {
                source: source.to_owned(),
                database: database.map(str::to_owned),
                digest: digest.to_owned(),
                text: text.to_owned(),
                readings: Vec::new(),
            }),
        }
    }
}
