//! Figures of other clouds' databases, in the vocabulary of Amazon's, so that the same rules judge
//! them: Google's Cloud SQL (time series of Cloud Monitoring in JSON) and Azure's flexible servers,
//! SQL databases and disks (`az monitor metrics list`). Counts of an interval become rates.
//! Figures of unknown name are listed in a note and left out. Pure: bytes in, figures out.

mod azure;
mod google;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::ImportError;
use crate::aws::{Figures, Series, Setting};

/// Most figures of unknown name that a note lists.
const NAMED_MAX: usize = 12;

/// The source of settings, as Amazon's have it: rules read limits there.
const SETTINGS: &str = "aws";

/// Whether a document that begins like this is one of Google's or of Azure's.
pub fn is_one(head: &str) -> bool {
    google::is_one(head) || azure::is_one(head)
}

/// Reads one file.
///
/// # Errors
/// If it is not JSON, or has no figure that is known.
pub fn read(bytes: &[u8], file: &str) -> Result<Figures, ImportError> {
    let document: Value = serde_json::from_slice(bytes).map_err(|e| {
        ImportError::new(file, e.line(), format!("{e}; save the output of the command again, with --output json"))
    })?;
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(64 << 10)).unwrap_or(bytes));
    let mut found = Found::new(file);
    match google::is_one(&text) {
        true => google::read(&document, &mut found),
        false => azure::read(&document, &mut found),
    }
    let figures = found.finish();
    if figures.series.is_empty() && figures.settings.is_empty() {
        let why = figures.notes.first().map_or("it holds no points", String::as_str);
        return Err(ImportError::new(file, 0, format!("no figure of a database in it: {why}")));
    }
    Ok(figures)
}

/// A point: the interval that it is of, nanoseconds, and its value.
#[derive(Clone, Copy)]
struct Point {
    from: i64,
    to: i64,
    value: f64,
}

/// What a file gave so far.
struct Found {
    file: String,
    series: BTreeMap<(String, BTreeMap<String, String>), Vec<Point>>,
    settings: BTreeMap<String, String>,
    unknown: Vec<String>,
    source: &'static str,
}

impl Found {
    fn new(file: &str) -> Self {
        let (series, settings, unknown) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { file: file.to_owned(), series, settings, unknown, source: "cloud" }
    }

    /// Adds points of a metric; those of several series of one name and instance add up.
    fn put(&mut self, metric: &str, instance: &str, points: Vec<Point>) {
        let labels = BTreeMap::from([("db_instance".to_owned(), instance.to_owned())]);
        let known = self.series.entry((metric.to_owned(), labels)).or_default();
        let mut places: HashMap<i64, usize> = (0..).zip(known.iter()).map(|(place, one)| (one.to, place)).collect();
        for point in points.into_iter().filter(|point| point.value.is_finite()) {
            match places.get(&point.to).and_then(|place| known.get_mut(*place)) {
                Some(one) => one.value += point.value,
                None => {
                    places.insert(point.to, known.len());
                    known.push(point);
                }
            }
        }
    }

    fn unknown(&mut self, name: &str) {
        if !self.unknown.iter().any(|known| known == name) {
            self.unknown.push(name.to_owned());
        }
    }

    /// The points of a metric of one instance.
    fn points(&self, metric: &str, instance: &str) -> Option<&Vec<Point>> {
        let labels = BTreeMap::from([("db_instance".to_owned(), instance.to_owned())]);
        self.series.get(&(metric.to_owned(), labels))
    }

    /// What is left of `all` beside `used`, at the same moments.
    fn put_rest(&mut self, metric: &str, instance: &str, all: &[Point], used: &[Point]) {
        let by_end: HashMap<i64, &Point> = all.iter().map(|point| (point.to, point)).collect();
        let rest = used.iter().filter_map(|used| {
            let all = by_end.get(&used.to).copied().or_else(|| all.last())?;
            Some(Point { value: (all.value - used.value).max(0.0), ..*used })
        });
        let rest = rest.collect();
        self.put(metric, instance, rest);
    }

    fn finish(self) -> Figures {
        let Self { file, series, settings, unknown, source } = self;
        let one = |((metric, labels), mut points): ((String, BTreeMap<String, String>), Vec<Point>)| {
            points.sort_by_key(|point| point.to);
            let mut steps: Vec<i64> = points.windows(2).map(|pair| pair[1].to.saturating_sub(pair[0].to)).collect();
            steps.sort_unstable();
            let usual = steps.get(steps.len() / 2).copied().unwrap_or(0);
            let own = points.iter().map(|point| point.to.saturating_sub(point.from)).max().unwrap_or(0);
            let period_ns = if own > 0 { own } else { usual };
            let middle = |point: Point| (point.to.saturating_sub(period_ns / 2), point.value);
            // Values of several series may add up to more than a number holds.
            let points = points.into_iter().filter(|point| point.value.is_finite()).map(middle).collect();
            Series { source: format!("{source}:{file}"), metric, labels, period_ns, points }
        };
        let settings = settings.into_iter().map(|(name, value)| Setting { source: SETTINGS.to_owned(), name, value });
        let mut notes = Vec::new();
        if !unknown.is_empty() {
            let shown: Vec<&str> = unknown.iter().take(NAMED_MAX).map(String::as_str).collect();
            let more = if unknown.len() > NAMED_MAX { ", …" } else { "" };
            notes.push(format!(
                "{file}: {} figures without a rule left out: {}{more}",
                unknown.len(),
                shown.join(", ")
            ));
        }
        Figures {
            events: Vec::new(),
            // A rate needs an interval with a length: without one a series has no points.
            series: series.into_iter().map(one).filter(|series| !series.points.is_empty()).collect(),
            settings: settings.collect(),
            notes,
            is_partial: false,
        }
    }
}

#[cfg(test)]
mod tests;
