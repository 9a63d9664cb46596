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
    /// Condenses rows.
    pub(crate) fn from_rows(samples: &[Sample], statements: &[Statement]) -> Self {
        let mut series = SeriesMaker::default();
        for row in samples {
            let key = (row.source.as_str(), row.metric.as_str(), &row.labels);
            series.push(key, row.observed_at, row.value);
        }
        let mut executions = executions::Maker::default();
        let mut totals = TotalsMaker::default();
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
