//! Spans as CSV with a header, as a query of a trace store exports them. Columns are found by their
//! usual names, or by a map: `trace=trace_id,span=id,start=began_at,duration=took_ms`.

use std::io::Read;

use super::span::{Body, SpanFacts, kind};
use crate::error::ImportError;
use holdup_access::time;

/// What a span needs or may have, with the usual names of its column.
const FACTS: [(&str, &[&str]); 12] = [
    ("trace", &["trace_id", "traceid", "trace"]),
    ("span", &["span_id", "spanid", "id"]),
    ("parent", &["parent_id", "parent_span_id", "parentid", "parentspanid"]),
    ("service", &["service", "service_name", "servicename"]),
    ("name", &["name", "operation", "operation_name", "span_name", "spanname"]),
    ("kind", &["kind", "span_kind", "spankind"]),
    ("start", &["start", "start_time", "started_at", "timestamp", "start_time_unix_nano"]),
    ("end", &["end", "end_time", "ended_at", "end_time_unix_nano"]),
    ("duration", &["duration", "duration_ms", "duration_us", "duration_ns", "duration_s", "duration_nano"]),
    ("status", &["status", "status_code", "statuscode"]),
    ("system", &["db_system", "db_system_name", "system"]),
    ("statement", &["db_statement", "db_query_text", "statement"]),
];

/// Units at the end of the name of a column with durations, in nanoseconds.
const UNITS: [(&str, f64); 6] =
    [("_ns", 1.0), ("_nano", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9), ("_seconds", 1e9)];

/// The names of columns by facts, from the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<(&'static str, String)>);

/// Places of columns in a row.
pub struct Places {
    of: [Option<usize>; FACTS.len()],
    unit_ns: f64,
}

impl Columns {
    /// Reads `trace=trace_id,start=began_at`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let one = |pair: &str| {
            let known = || FACTS.map(|(fact, _)| fact).join(", ");
            let (fact, name) = pair.split_once('=').ok_or_else(|| format!("\"{pair}\" is not FACT=COLUMN"))?;
            let fact = FACTS.iter().find(|(known, _)| *known == fact.trim());
            let (fact, _) = fact.ok_or_else(|| format!("\"{pair}\" names an unknown fact; known: {}", known()))?;
            Ok((*fact, name.trim().to_owned()))
        };
        text.split(',').map(one).collect::<Result<_, String>>().map(Self)
    }

    /// The places by usual names.
    ///
    /// # Errors
    /// Which fact has no column.
    pub fn detect(header: &[&str]) -> Result<Places, String> {
        Self::default().places(header)
    }

    fn places(&self, header: &[&str]) -> Result<Places, String> {
        let mut places = Places { of: [None; FACTS.len()], unit_ns: 1e6 };
        for ((fact, usual), place) in FACTS.iter().zip(&mut places.of) {
            let given = self.0.iter().find(|(known, _)| known == fact).map(|(_, name)| name.as_str());
            let usual = |name: &str| usual.contains(&name.to_ascii_lowercase().replace(['.', '-', ' '], "_").as_str());
            *place = header.iter().position(|name| given.map_or_else(|| usual(name), |given| given == *name));
            if let (Some(given), None) = (given, *place) {
                return Err(format!("it has no column \"{given}\"; its columns: {}", header.join(", ")));
            }
        }
        let [trace, span, _, _, _, _, start, end, duration, ..] = places.of;
        let missing = [("trace", trace), ("span", span), ("start", start), ("duration", duration.or(end))];
        if let Some((fact, _)) = missing.iter().find(|(_, place)| place.is_none()) {
            let columns = header.join(", ");
            return Err(format!("no column is known for {fact}; give --columns {fact}=COLUMN; its columns: {columns}"));
        }
        let name = duration.and_then(|place| header.get(place)).map_or("", |name| name);
        let unit = UNITS.iter().find(|(unit, _)| name.to_ascii_lowercase().ends_with(unit));
        places.unit_ns = unit.map_or(1e6, |(_, ns)| *ns);
        Ok(places)
    }
}

/// # Errors
/// With the line, if a row cannot be read.
pub fn read(input: impl Read, file: &str, columns: Option<&Columns>, body: &mut Body<'_>) -> Result<(), ImportError> {
    let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let wrong = |line: u64, why: String| ImportError::new(file, line as usize, why);
    let header = rows.headers().map_err(|e| wrong(1, e.to_string()))?.clone();
    let names: Vec<&str> = header.iter().map(|name| name.trim_start_matches('\u{feff}').trim()).collect();
    let places = columns.unwrap_or(&Columns::default()).places(&names).map_err(|why| wrong(1, why))?;
    let mut row = csv::StringRecord::new();
    loop {
        let line = rows.position().line();
        match rows.read_record(&mut row) {
            Ok(true) => body.add(places.span(&row).map_err(|why| wrong(line, why))?),
            Ok(false) => return Ok(()),
            Err(e) => return Err(wrong(line, e.to_string())),
        }
    }
}

impl Places {
    fn span(&self, row: &csv::StringRecord) -> Result<SpanFacts, String> {
        let all = self.of.map(|place| place.and_then(|place| row.get(place)).unwrap_or_default().trim());
        let [trace, span, parent, service, name, kind_name, start, end, duration, status, system, statement] = all;
        let moment = |text: &str| {
            let at = time::parse(text).and_then(|at| u64::try_from(at).ok());
            at.ok_or_else(|| format!("\"{}\" is not a time", text.chars().take(40).collect::<String>()))
        };
        let start_ns = moment(start)?;
        let end_ns = if duration.is_empty() {
            moment(end)?
        } else {
            let number: f64 = duration.parse().map_err(|_| "its duration is not a number".to_owned())?;
            let ns = number * self.unit_ns;
            if !(0.0..1e18).contains(&ns) {
                return Err("its duration is negative or longer than 30 years".to_owned());
            }
            start_ns.saturating_add(ns as u64)
        };
        let status = status.to_ascii_lowercase();
        let attributes = [("db.system", system), ("db.statement", statement)];
        let attributes = attributes.iter().filter(|(_, text)| !text.is_empty());
        Ok(SpanFacts {
            trace_id: trace.to_owned(),
            span_id: span.to_owned(),
            parent_id: parent.to_owned(),
            service: service.to_owned(),
            name: name.to_owned(),
            kind: kind(kind_name),
            start_ns,
            end_ns,
            is_error: status.ends_with("error") || status == "2",
            attributes: attributes.map(|(key, text)| ((*key).to_owned(), (*text).into())).collect(),
        })
    }
}
