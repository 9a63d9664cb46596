//! Series as CSV in long form, as stores of metrics export them beside traces: one row a value, with
//! its metric and its time; every other column is a label, e.g. the pod or the service.

use std::io::Read;

use holdup_access::time;
use holdup_recording::Labels;
use holdup_recording::rows::Sample;

use crate::error::ImportError;

/// Usual names of the columns, without case and marks.
const METRIC: &[&str] = &["metric", "metricname", "name", "kpi", "kpiname"];
const VALUE: &[&str] = &["value", "metricvalue"];
const TIME: &[&str] = &["time", "timestamp", "ts", "datetime", "date"];

/// Labels of a value at most: more are another kind of file.
const LABELS_MAX: usize = 20;

/// Places of the columns of a row.
pub struct Places {
    metric: usize,
    value: usize,
    time: usize,
    labels: Vec<(usize, String)>,
}

/// The places, if a header is one of such series.
pub fn detect(header: &[&str]) -> Option<Places> {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let place = |usual: &[&str]| usual.iter().find_map(|usual| header.iter().position(|name| plain(name) == **usual));
    let (metric, value, time) = (place(METRIC)?, place(VALUE)?, place(TIME)?);
    let is_label = |(place, name): &(usize, &&str)| ![metric, value, time].contains(place) && !name.is_empty();
    let labels = header.iter().enumerate().filter(is_label).map(|(place, name)| (place, word(name))).collect();
    Some(Places { metric, value, time, labels }).filter(|places: &Places| places.labels.len() <= LABELS_MAX)
}

/// A name as metrics and labels have it.
fn word(name: &str) -> String {
    let word: String =
        name.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    word.trim_matches('_').to_owned()
}

/// Reads the rows as samples of `source`. A row without a number is a gap. Returns how many rows had no value or no
/// time.
///
/// # Errors
/// With the line, if the file is not CSV of series.
pub fn read(input: impl Read, file: &str, source: &str, put: &mut dyn FnMut(Sample)) -> Result<u64, ImportError> {
    let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let wrong = |line: u64, why: String| ImportError::new(file, line as usize, why);
    let header = rows.headers().map_err(|e| wrong(1, e.to_string()))?.clone();
    let names: Vec<&str> = header.iter().map(|name| name.trim_start_matches('\u{feff}').trim()).collect();
    let places = detect(&names).ok_or_else(|| wrong(1, "it has no columns of metric, value and time".to_owned()))?;
    let (mut row, mut gaps) = (csv::StringRecord::new(), 0);
    loop {
        let line = rows.position().line();
        if !rows.read_record(&mut row).map_err(|e| wrong(line, e.to_string()))? {
            return Ok(gaps);
        }
        let text = |place: usize| row.get(place).unwrap_or_default().trim();
        let number = text(places.value).parse::<f64>().ok().filter(|value| value.is_finite());
        let (Some(value), Some(observed_at)) = (number, time::parse(text(places.time))) else {
            gaps += 1;
            continue;
        };
        let labels = places.labels.iter().map(|(place, name)| (name.as_str(), text(*place)));
        let labels = Labels::new(labels.filter(|(_, value)| !value.is_empty()));
        let metric = word(text(places.metric));
        put(Sample { observed_at, window_ns: 0, source: source.to_owned(), metric, labels, value });
    }
}
