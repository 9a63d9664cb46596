//! Turns the output of Amazon's command line about a database into series, events and settings. It
//! reads CloudWatch (`get-metric-data`, `get-metric-statistics`), RDS enhanced monitoring,
//! Performance Insights, and descriptions of instances, their types, volumes, events, parameters and
//! pending maintenance. A file is read once, from end to end, and never held as a whole. What
//! CloudWatch's console and panels of Grafana save is read here, too ([`Aws::read_panel`]). Missing
//! data stays missing: no point is made up, and no gap becomes a zero.

mod cell;
mod document;
mod element;
mod events;
mod guard;
mod insights;
mod name;
mod os;
mod panel;
mod parameters;
mod period;
mod resolve;
mod settings;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read};

use holdup_recording::rows::Event;

use crate::ImportError;

/// Largest file that is read, bytes.
pub const LARGEST_BYTES: u64 = 2 << 30;
/// Most series of one import.
const MOST_SERIES: usize = 20_000;
/// Most points of one import: 16 bytes each.
const MOST_POINTS: usize = 20_000_000;
/// Most instances, volumes, instance types and queries of one import, each.
pub(crate) const MOST_DESCRIBED: usize = 10_000;
/// Most notes.
const MOST_NOTES: usize = 100;
/// Letters of a file's text that a message shows.
const SHOWN_LETTERS: usize = 60;

/// How the message about a document begins that aws did not print.
const UNKNOWN: &str = "not a known answer of aws";

/// Whether a file was refused because it is something else, and not because it is broken.
#[must_use]
pub fn is_unknown(error: &ImportError) -> bool {
    error.message.contains(UNKNOWN)
}

/// Points of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its source: `cloudwatch:FILE`, `enhanced_monitoring:FILE`, `performance_insights:FILE`, with
    /// the first file that has it.
    pub source: String,
    /// Its name, unit last, e.g. `aws_read_throughput_bytes_per_second`.
    pub metric: String,
    /// What it measures: `db_instance`, if known, and further labels.
    pub labels: BTreeMap<String, String>,
    /// The period that each value is a statistic of, nanoseconds; 0 if unknown.
    pub period_ns: i64,
    /// The middle of each period (nanoseconds since the Unix epoch) and the value, in order of
    /// time, one per moment.
    pub points: Vec<(i64, f64)>,
}

/// One setting of an instance or a volume, as Amazon describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `aws`, or `aws:NAME` for an instance that the import's figures do not belong to.
    pub source: String,
    /// E.g. `instance.class`.
    pub name: String,
    /// As text; sizes in bytes.
    pub value: String,
}

/// The result of all files of one import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By metric, then labels.
    pub series: Vec<Series>,
    /// By source, then name.
    pub settings: Vec<Setting>,
    /// What the provider did with an instance or saw happen to it, by time.
    pub events: Vec<Event>,
    /// What is missing, was guessed or left out, in words.
    pub notes: Vec<String>,
    /// Whether the files lack a part of what was requested from Amazon.
    pub is_partial: bool,
}

/// Source of a series. It decides how the series is named, and where in its period its time stamp
/// lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    /// `get-metric-data`: an id, a label, and no metric name.
    Data,
    /// `get-metric-statistics`.
    Statistics,
    /// Enhanced monitoring.
    Os,
    /// Performance Insights.
    Insights,
    /// A panel of a dashboard, or what CloudWatch's console saves.
    Panel,
}

/// A series as a file has it. It gets its final name when all files are read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    kind: Kind,
    /// Number of the file, since ids are valid within one file.
    file: usize,
    /// The id, or the name.
    name: String,
    /// CloudWatch's label; for Performance Insights the identifier.
    label: String,
    stat: String,
    unit: String,
    labels: Vec<(String, String)>,
    /// The period of its points, nanoseconds; 0 if the distance of points says it.
    period_ns: i64,
}

impl Key {
    fn new(kind: Kind, name: String) -> Self {
        let (file, label, stat, unit) = (0, String::new(), String::new(), String::new());
        Self { kind, file, name, label, stat, unit, labels: Vec::new(), period_ns: 0 }
    }
}

/// Points of a series as files have them.
#[derive(Debug)]
struct RawSeries {
    key: Key,
    /// Number of the first file that has it.
    file: usize,
    points: Vec<(i64, f64)>,
}

/// One entry of the input of `get-metric-data`.
#[derive(Clone, Debug, PartialEq)]
struct Query {
    metric: String,
    dimensions: Vec<(String, String)>,
    stat: String,
    period_ns: i64,
}

/// Files that are being collected into [`Figures`].
#[derive(Debug, Default)]
pub struct Aws {
    files: Vec<String>,
    places: HashMap<Key, usize>,
    raw: Vec<RawSeries>,
    points: usize,
    /// By id; none if two files of queries disagree on it.
    queries: BTreeMap<String, Option<Query>>,
    described: settings::Descriptions,
    /// Names of instances by Amazon's internal ids of them.
    resource_ids: BTreeMap<String, String>,
    events: Vec<Event>,
    parameters: BTreeMap<String, String>,
    notes: Vec<String>,
    is_partial: bool,
}

impl Aws {
    /// Reads one file; `file` is its name.
    ///
    /// # Errors
    ///
    /// If it is not JSON, contains no known answer, contradicts itself, or exceeds the limits on
    /// size, depth or number of series.
    pub fn read(&mut self, input: impl Read, file: &str) -> Result<(), ImportError> {
        self.files.push(file.to_owned());
        let position = guard::ReadPosition::default();
        let input = BufReader::with_capacity(1 << 16, guard::Guard::new(input, &position, LARGEST_BYTES));
        let mut json = serde_json::Deserializer::from_reader(input);
        let wrong = |e: serde_json::Error| {
            if e.is_io() {
                return ImportError::new(file, position.line(), untail(&e));
            }
            let what = if e.is_data() { "" } else { "this is not the JSON that aws prints: " };
            ImportError::new(file, e.line(), format!("{what}{}", untail(&e)))
        };
        let mut documents = 0_u64;
        // Several documents in one file are read like several files, because enhanced monitoring is
        // stored so.
        while let Err(more) = json.end() {
            if more.is_io() {
                return Err(wrong(more));
            }
            document::read(&mut json, self).map_err(wrong)?;
            documents += 1;
        }
        if documents == 0 {
            return Err(ImportError::new(file, 0, "the file is empty"));
        }
        Ok(())
    }

    /// Reads what CloudWatch's console or a panel of Grafana saved: a whole file.
    ///
    /// # Errors
    ///
    /// If it has no series with times, or exceeds the limits.
    pub fn read_panel(&mut self, bytes: &[u8], file: &str) -> Result<(), ImportError> {
        self.files.push(file.to_owned());
        panel::read(bytes, self).map_err(|why| ImportError::new(file, 0, why))
    }

    /// Everything that was read, named and combined. `db_instance` is the instance of series whose
    /// file does not name it.
    ///
    /// # Errors
    ///
    /// If the files contain neither a point, nor a setting, nor an event.
    pub fn finish(self, db_instance: Option<&str>) -> Result<Figures, ImportError> {
        let file = self.files.first().cloned().unwrap_or_default();
        let figures = resolve::resolve(self, db_instance);
        if figures.series.is_empty() && figures.settings.is_empty() && figures.events.is_empty() {
            let why =
                "it contains no point; request another period (--start-time, --end-time), and check the dimensions";
            return Err(ImportError::new(&file, 0, why));
        }
        Ok(figures)
    }

    fn file(&self) -> usize {
        self.files.len().saturating_sub(1)
    }

    /// Adds points of one series. A missing value is not a number here, until the distance of
    /// points is known.
    fn push(&mut self, key: Key, points: impl IntoIterator<Item = (i64, f64)>) -> Result<(), String> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.raw.len() >= MOST_SERIES => {
                return Err(format!("there are more than {MOST_SERIES} series; import fewer files at once"));
            }
            None => {
                self.places.insert(key.clone(), self.raw.len());
                self.raw.push(RawSeries { key, file: self.file(), points: Vec::new() });
                self.raw.len() - 1
            }
        };
        if let Some(RawSeries { points: all, .. }) = self.raw.get_mut(place) {
            let before = all.len();
            all.extend(points.into_iter().filter(|(_, value)| !value.is_infinite()));
            self.points += all.len() - before;
        }
        if self.points > MOST_POINTS {
            return Err(format!("there are more than {MOST_POINTS} points; import a shorter period"));
        }
        Ok(())
    }

    fn note(&mut self, text: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Notes that the current file lacks a part of what was requested.
    fn lacks(&mut self, what: &str) {
        self.is_partial = true;
        let file = self.files.last().cloned().unwrap_or_default();
        self.note(format!("{file}: {what}"));
    }
}

/// The message without the place that precedes it.
fn untail(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let tail = format!(" at line {} column {}", e.line(), e.column());
    text.strip_suffix(&tail).unwrap_or(&text).to_owned()
}

/// A file's text, cut and cleaned for a message.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_LETTERS).collect::<String>().escape_debug().to_string()
}

pub use panel::is_one as is_panel;

/// The metric that CloudWatch calls `name`, and how many of it one `unit` is; none for another name or unit.
pub(crate) fn typed(name: &str, unit: &str) -> Option<(String, f64)> {
    let theirs = name::known(name).filter(|theirs| theirs.trim_end_matches('%') == name.trim_end_matches('%'))?;
    let one = cell::Cell::read(format!("1 {unit}").trim_end())?;
    let name::MetricName { metric, factor } = name::named(theirs, one.unit, "Average");
    Some((metric, one.value * factor))
}

#[cfg(test)]
mod shapes_tests;
#[cfg(test)]
mod tests;
