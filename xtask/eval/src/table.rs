//! Tables of others: CSV, gzipped or not, and Parquet. A column is read as numbers when it is asked for; what can't be
//! read is said with file, line, column and value.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

/// A file's columns, as text.
#[derive(Debug, Clone)]
pub struct Table {
    path: PathBuf,
    rows: usize,
    columns: BTreeMap<String, Vec<String>>,
    /// What is added to a row's index for the number of its line.
    first_line: usize,
}

impl Table {
    /// Reads a CSV file with a header; one whose name ends in `.gz` is unpacked.
    pub fn csv(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
        let gzipped = path.extension().is_some_and(|extension| extension == "gz");
        let input: Box<dyn Read> = if gzipped { Box::new(flate2::read::GzDecoder::new(file)) } else { Box::new(file) };
        let mut reader = csv::Reader::from_reader(input);
        let names: Vec<String> = reader
            .headers()
            .with_context(|| format!("{}: failed to read the header", path.display()))?
            .iter()
            .map(str::to_owned)
            .collect();
        let mut columns: Vec<Vec<String>> = vec![Vec::new(); names.len()];
        let mut rows = 0;
        for record in reader.records() {
            let record = record.with_context(|| format!("{}: failed to read line {}", path.display(), rows + 2))?;
            for (column, value) in columns.iter_mut().zip(record.iter()) {
                column.push(value.to_owned());
            }
            rows += 1;
        }
        Ok(Self { path: path.to_owned(), rows, columns: names.into_iter().zip(columns).collect(), first_line: 2 })
    }

    /// Reads a Parquet file.
    pub fn parquet(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("failed to open {}", path.display()))?;
        let reader =
            SerializedFileReader::new(file).with_context(|| format!("{} is not a Parquet file", path.display()))?;
        let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut rows = 0;
        for row in reader.get_row_iter(None).with_context(|| format!("failed to read {}", path.display()))? {
            let row = row.with_context(|| format!("{}: failed to read row {rows}", path.display()))?;
            for (name, field) in row.get_column_iter() {
                let text = match field {
                    Field::Null => String::new(),
                    Field::Str(text) => text.clone(),
                    Field::Double(number) => number.to_string(),
                    other => other.to_string(),
                };
                match columns.get_mut(name) {
                    Some(column) => column.push(text),
                    None => drop(columns.insert(name.clone(), vec![text])),
                }
            }
            rows += 1;
        }
        Ok(Self { path: path.to_owned(), rows, columns, first_line: 0 })
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// A column that must be there.
    pub fn text(&self, name: &str) -> Result<&[String]> {
        let Some(column) = self.columns.get(name) else {
            bail!("{}: there is no column {name:?}", self.path.display());
        };
        Ok(column)
    }

    /// A column as numbers, NaN where it is empty; `None` if there is no such column.
    pub fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>> {
        self.numbers_of(name, 0..self.rows)
    }

    /// The same of some rows.
    pub fn numbers_of(&self, name: &str, rows: std::ops::Range<usize>) -> Result<Option<Vec<f64>>> {
        let Some(column) = self.columns.get(name) else { return Ok(None) };
        rows.map(|row| self.number(name, row, &column[row])).collect::<Result<_>>().map(Some)
    }

    fn number(&self, name: &str, row: usize, value: &str) -> Result<f64> {
        if value.is_empty() {
            return Ok(f64::NAN);
        }
        value.parse().with_context(|| {
            format!(
                "{}: line {}, column {name:?}: {value:?} is not a number",
                self.path.display(),
                row + self.first_line
            )
        })
    }

    /// An error about one value.
    pub fn wrong(&self, name: &str, row: usize, what: &str) -> anyhow::Error {
        let value = self.columns.get(name).and_then(|column| column.get(row)).map_or("", String::as_str);
        anyhow::anyhow!(
            "{}: line {}, column {name:?}: {value:?} is not {what}",
            self.path.display(),
            row + self.first_line
        )
    }
}

/// A column of a set's files that is a signal: its names there (the values are added up), and what makes of its unit ours.
pub type Mapping = (holdup_signals::time::counters::Signal, &'static [&'static str], f64);

/// The frame of some rows of a table. Signals whose columns are absent are left out.
pub fn frame(
    table: &Table,
    rows: std::ops::Range<usize>,
    mapping: &[Mapping],
    period_s: f64,
) -> Result<holdup_signals::time::counters::Frame> {
    let mut frame = holdup_signals::time::counters::Frame::new(rows.len(), period_s);
    for (signal, names, factor) in mapping {
        let mut sum = vec![0.0; rows.len()];
        let mut known = true;
        for name in *names {
            match table.numbers_of(name, rows.clone())? {
                Some(values) => {
                    for (sum, value) in sum.iter_mut().zip(&values) {
                        *sum += value * factor;
                    }
                }
                None => known = false,
            }
        }
        if known {
            frame.set(*signal, sum);
        }
    }
    Ok(frame)
}
