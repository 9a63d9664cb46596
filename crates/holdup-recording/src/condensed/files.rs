//! Condenses straight from the tables' files: one row group at a time, only the columns that are
//! judged.

use std::ops::Range;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::reader::RowGroupReader;

use super::executions::{self, Executions};
use super::series::{Series, SeriesMaker};
use super::totals::{Reading, Totals, TotalsMaker};
use crate::labels::Labels;
use crate::rows::{Sample, Statement};
use crate::segment::SegmentError;
use crate::stored::{Table, read_groups};
use crate::table::{Row, StoredColumn};
use crate::text::Names;

/// Least memory of a sample: its time and its value.
const SAMPLE_BYTES: usize = 16;
/// Least memory of an execution: its time, duration and statement.
const EXECUTION_BYTES: usize = 24;
/// Samples that take as much memory as one reading of a statement's counters.
const READING_SAMPLES: usize = 4;

/// One row group, and the columns of `R` in the file.
struct Group<'g> {
    group: &'g dyn RowGroupReader,
    positions: &'g [Option<usize>],
}

impl Group<'_> {
    fn position<R: Row>(&self, column: &str) -> Option<usize> {
        let at = R::COLUMNS.iter().position(|c| c.name == column)?;
        self.positions.get(at).copied().flatten()
    }

    /// The text numbers of a column; empty if the file lacks it.
    fn names<R: Row>(&self, column: &str, names: &mut Names) -> Result<Vec<Option<u32>>> {
        let stored = StoredColumn::<ByteArrayType>::read(self.group, self.position::<R>(column))?;
        names.forget_places();
        Ok(stored.iter().map(|text| text.map(|text| names.number(text.data()))).collect())
    }

    fn integers<R: Row>(&self, column: &str) -> Result<Vec<i64>> {
        let stored = StoredColumn::<Int64Type>::read(self.group, self.position::<R>(column))?;
        Ok(stored.iter().map(|value| value.copied().unwrap_or_default()).collect())
    }

    /// Whether the file says that no row has a value in `column`.
    fn is_empty<R: Row>(&self, column: &str) -> bool {
        let Some(position) = self.position::<R>(column) else { return true };
        let metadata = self.group.metadata();
        let empty = metadata.column(position).statistics().and_then(|s| s.null_count_opt());
        empty.is_some_and(|n| i64::try_from(n) == Ok(metadata.num_rows()))
    }
}

/// What is read of samples and statements.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reader<'r> {
    /// Only rows of this time.
    within: Option<&'r Range<i64>>,
    /// Which metrics are thinned apart from the others, and to how many points each of both.
    thinned: Option<(usize, IsFine)>,
}

/// The result of [`Reader::statements`]: the table, its executions and its totals.
pub(crate) type ReadStatements = (Table<Statement>, Executions, Vec<Totals>);

/// Whether a metric is thinned last.
type IsFine = fn(&str) -> bool;

/// Source, metric and labels as numbers of texts.
type Key = (u32, u32, u32);

impl<'r> Reader<'r> {
    /// Only rows in `range`, if there is one.
    pub fn within(range: Option<&'r Range<i64>>) -> Self {
        Self { within: range, thinned: None }
    }

    /// All, thinned to `most` points, and as many of the metrics that `is_fine` names.
    pub fn thinned(most: usize, is_fine: IsFine) -> Self {
        Self { within: None, thinned: Some((most, is_fine)) }
    }

    fn most(&self) -> usize {
        self.thinned.map_or(usize::MAX, |(most, _)| most)
    }

    fn wants(&self, at: i64) -> bool {
        self.within.is_none_or(|within| within.contains(&at))
    }

    /// The table `samples` of the recording in `dir` without its rows, and their series.
    pub fn samples(self, dir: &Path) -> std::result::Result<(Table<Sample>, Series), SegmentError> {
        let (table, series, _) = self.course_samples(dir)?;
        Ok((table, series))
    }

    /// The same, and the distance of points that were thinned, nanoseconds.
    pub fn course_samples(self, dir: &Path) -> std::result::Result<(Table<Sample>, Series, i64), SegmentError> {
        let (mut sources, mut metrics, mut labels) = (Names::default(), Names::default(), Names::default());
        let most = self.most();
        let mut makers: [SeriesMaker<Key>; 2] = [SeriesMaker::to(most), SeriesMaker::to(most)];
        let mut fine = Vec::new();
        let nothing = ByteArray::from("");
        let table = read_groups(dir, self.within, |group, positions| {
            let group = Group { group, positions };
            let texts = |column| StoredColumn::<ByteArrayType>::read(group.group, group.position::<Sample>(column));
            let (source, metric, label) = (texts("source")?, texts("metric")?, texts("labels")?);
            let times = StoredColumn::<Int64Type>::read(group.group, group.position::<Sample>("observed_at"))?;
            let values = StoredColumn::<DoubleType>::read(group.group, group.position::<Sample>("value"))?;
            [&mut sources, &mut metrics, &mut labels].into_iter().for_each(Names::forget_places);
            let rows = source.iter().zip(metric.iter()).zip(label.iter()).zip(times.iter()).zip(values.iter());
            let mut kept = 0;
            for ((((source, metric), label), at), value) in rows {
                let at = at.copied().unwrap_or_default();
                if !self.wants(at) {
                    continue;
                }
                let key = (
                    sources.number(source.unwrap_or(&nothing).data()),
                    metrics.number(metric.unwrap_or(&nothing).data()),
                    labels.number(label.unwrap_or(&nothing).data()),
                );
                if let Some((_, is_fine)) = self.thinned {
                    // Numbers count up as texts appear.
                    fine.extend((fine.len()..=key.1 as usize).map(|n| is_fine(metrics.text(n as u32).as_str())));
                }
                let is_fine = fine.get(key.1 as usize).copied().unwrap_or_default();
                makers[usize::from(is_fine)].add(key, (at, value.copied().unwrap_or_default()));
                kept += 1;
            }
            Ok(if self.thinned.is_some() { 0 } else { kept * SAMPLE_BYTES })
        })?;
        let text = |names: &Names, number| names.text(number).as_str().to_owned();
        let step_ns = makers[0].step_ns();
        let [mut series, fine] = makers.map(|maker| {
            maker.finish(|(source, metric, label)| {
                (text(&sources, source), text(&metrics, metric), Labels::from(labels.text(label).as_str()))
            })
        });
        series.join(fine);
        Ok((table, series, step_ns))
    }

    /// The counters in the table `statements` of the recording in `dir`.
    pub fn totals(self, dir: &Path) -> std::result::Result<(Table<Statement>, Vec<Totals>), SegmentError> {
        let (table, _, totals) = self.read_statements(dir, false, false)?;
        Ok((table, totals))
    }

    /// Reads the table `statements` of the recording in `dir`. Rows are kept for executions with a
    /// trace id, or for all executions `with_rows`, because those are examined one by one.
    pub fn statements(self, dir: &Path, with_rows: bool) -> std::result::Result<ReadStatements, SegmentError> {
        self.read_statements(dir, true, with_rows)
    }

    fn read_statements(
        self,
        dir: &Path,
        with_executions: bool,
        with_rows: bool,
    ) -> std::result::Result<ReadStatements, SegmentError> {
        let mut names = Names::default();
        let mut executions = executions::Maker::default();
        let mut totals = TotalsMaker::to(self.thinned.map_or(usize::MAX, |(most, _)| most / READING_SAMPLES));
        let mut rows = Vec::new();
        let mut table: Table<Statement> = read_groups(dir, self.within, |group, positions| {
            let of = Group { group, positions };
            let [execution, total] = ["execution", "digest_total"].map(|word| Some(names.number_of(word)));
            let empty = names.number_of("");
            let name = |number: Option<u32>| number.unwrap_or(empty);
            let mut texts = |column| of.names::<Statement>(column, &mut names);
            let kind = texts("kind")?;
            // Only counters have some columns, and many groups hold no counters.
            let has_totals = kind.contains(&total);
            if !has_totals && !with_executions {
                return Ok(0);
            }
            let [source, digest, text, database] =
                [texts("source")?, texts("digest")?, texts("digest_text")?, texts("database")?];
            let integers = |column| of.integers::<Statement>(column);
            let (times, durations) = (integers("observed_at")?, integers("duration_ns")?);
            let counts = |column| if has_totals { integers(column) } else { Ok(Vec::new()) };
            let [calls, locked, examined] = [counts("calls")?, counts("lock_ns")?, counts("rows_examined")?];
            let [sent, affected, no_index] = [counts("rows_sent")?, counts("rows_affected")?, counts("no_index")?];
            let on_disk = counts("temporary_disk_tables")?;
            for i in 0..times.len() {
                if !self.wants(times[i]) || kind[i] == execution && !with_executions {
                    continue;
                }
                if kind[i] == execution {
                    executions.push((name(digest[i]), name(text[i])), times[i], durations[i]);
                } else if kind[i] == total {
                    let reading = Reading {
                        observed_at: times[i],
                        calls: calls[i],
                        duration_ns: durations[i],
                        lock_ns: locked[i],
                        rows_examined: examined[i],
                        rows_sent: sent[i],
                        rows_affected: affected[i],
                        no_index: no_index[i],
                        temporary_disk_tables: on_disk[i],
                    };
                    totals.push((name(source[i]), database[i], name(digest[i])), name(text[i]), reading);
                }
            }
            if with_executions && (with_rows || !of.is_empty::<Statement>("trace_id")) {
                let before = rows.len();
                let all = Statement::read_group(group, positions)?.into_iter();
                let is_single = |r: &Statement| r.kind == "execution" && (with_rows || r.trace_id.is_some());
                rows.extend(all.filter(|r| self.wants(r.observed_at) && is_single(r)));
                let bytes: usize = rows[before..].iter().map(Statement::own_bytes).sum();
                return Ok(bytes + times.len() * EXECUTION_BYTES);
            }
            Ok(if self.thinned.is_some() { 0 } else { times.len() * EXECUTION_BYTES })
        })?;
        table.rows = rows;
        let text = |number: u32| names.text(number).as_str().to_owned();
        Ok((table, executions.finish(text), named(totals, text)))
    }
}

/// The totals with their texts.
fn named(totals: TotalsMaker<(u32, Option<u32>, u32), u32>, text: impl Fn(u32) -> String) -> Vec<Totals> {
    totals.finish(|(source, database, digest), of| Totals {
        source: text(source),
        database: database.map(&text),
        digest: text(digest),
        text: text(of),
        readings: Vec::new(),
    })
}
