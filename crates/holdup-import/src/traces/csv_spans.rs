//! Spans as CSV with a header, as a query of a trace store exports them. Columns are found by their
//! usual names, or by a map: `trace=trace_id,span=id,start=began_at,duration=took_ms`. Any other
//! column is an attribute of that name, so a span's kind of time is found as in other formats.

use std::io::Read;

use serde_json::Value;

use super::span::{Body, SpanFacts, kind};
use crate::error::ImportError;
use holdup_access::time;

/// A fact of a span: its name in a map, and the usual names of its column without case and marks,
/// the plainest first.
type Fact = (&'static str, &'static [&'static str]);

const FACTS: [Fact; 12] = [
    ("trace", &["traceid", "trace", "tracekey"]),
    ("span", &["spanid", "span", "id", "segmentid"]),
    ("parent", &["parentspanid", "parentid", "parentspan", "parent", "pspanid", "parentsegmentid"]),
    ("service", &["servicename", "service", "resourceservicename", "application", "app", "cmdbid", "podname", "pod"]),
    ("name", &["name", "operationname", "operation", "spanname", "endpoint", "url", "method"]),
    ("kind", &["spankind", "kind", "spantype", "calltype"]),
    (
        "start",
        &[
            "starttime",
            "start",
            "starttimeunixnano",
            "startedat",
            "starttimemillis",
            "starttimems",
            "starttimeus",
            "timestamp",
            "time",
        ],
    ),
    ("end", &["endtime", "end", "endtimeunixnano", "endedat", "endtimemillis", "endtimems", "endtimeus"]),
    (
        "duration",
        &[
            "duration",
            "durationms",
            "durationus",
            "durationns",
            "durations",
            "durationnano",
            "durationnanos",
            "durationmillis",
            "durationmicros",
            "durationseconds",
            "elapsedtime",
            "elapsed",
            "latency",
            "latencyms",
        ],
    ),
    ("status", &["statuscode", "status", "otelstatuscode", "issuccess", "success", "iserror", "error"]),
    ("system", &["dbsystem", "dbsystemname", "system"]),
    ("statement", &["dbstatement", "dbquerytext", "statement"]),
];

/// Facts that a span cannot be without; a duration may be replaced by an end.
const NEEDED: [&str; 3] = ["trace", "span", "start"];

/// Units at the end of the name of a column with durations, in nanoseconds, the longest first.
const UNITS: [(&str, f64); 10] = [
    ("seconds", 1e9),
    ("millis", 1e6),
    ("micros", 1e3),
    ("nanos", 1.0),
    ("nano", 1.0),
    ("_ns", 1.0),
    ("_us", 1e3),
    ("_ms", 1e6),
    ("_s", 1e9),
    ("ms", 1e6),
];

/// Rows whose ends show the unit of the durations.
const LOOKED_AT: usize = 1_000;
/// A duration fits a unit if it is off by less than this factor.
const FITS: f64 = 1.2;

/// The names of columns by facts, from the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<(&'static str, String)>);

/// Places of columns in a row.
pub struct Places {
    of: [Option<usize>; FACTS.len()],
    /// Columns of other names, each with the name of its attribute.
    others: Vec<(usize, String)>,
    unit_ns: f64,
    /// The name of the column of the status, and whether that of the service names pods.
    status: String,
    is_pod: bool,
}

/// A name without case and marks.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
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

    fn given(&self, fact: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == fact).map(|(_, name)| name.as_str())
    }

    fn places(&self, header: &[&str]) -> Result<Places, String> {
        let plain: Vec<String> = header.iter().map(|name| plain(name)).collect();
        let mut of = [None; FACTS.len()];
        for ((fact, usual), place) in FACTS.iter().zip(&mut of) {
            *place = match self.given(fact) {
                Some(given) => {
                    let found = header.iter().position(|name| *name == given);
                    let columns = || header.join(", ");
                    Some(found.ok_or_else(|| format!("it has no column \"{given}\"; its columns: {}", columns()))?)
                }
                None => usual.iter().find_map(|usual| plain.iter().position(|name| name == usual)),
            };
        }
        // A named end goes before another column that happens to be called a duration.
        if self.given("end").is_some() && self.given("duration").is_none() {
            of[fact("duration")] = None;
        }
        let missing = NEEDED.into_iter().find(|needed| of[fact(needed)].is_none());
        let has_length = of[fact("duration")].or(of[fact("end")]).is_some();
        if let Some(fact) = missing.or((!has_length).then_some("duration")) {
            let columns = header.join(", ");
            return Err(format!("no column is known for {fact}; give --columns {fact}=COLUMN; its columns: {columns}"));
        }
        let name = of[fact("duration")].and_then(|place| header.get(place)).map_or("", |name| name);
        let unit = UNITS.iter().find(|(unit, _)| name.to_ascii_lowercase().ends_with(unit));
        let others = header.iter().enumerate().filter(|(place, _)| !of.contains(&Some(*place)));
        let others = others.map(|(place, name)| (place, name.to_ascii_lowercase().replace('_', "."))).collect();
        let of_fact = |name: &str| of[fact(name)].and_then(|place| plain.get(place)).cloned().unwrap_or_default();
        let is_pod = ["cmdbid", "podname", "pod"].contains(&of_fact("service").as_str());
        let unit_ns = unit.map_or(1e6, |(_, ns)| *ns);
        Ok(Places { of, others, unit_ns, status: of_fact("status"), is_pod })
    }
}

/// The index of a fact.
fn fact(name: &str) -> usize {
    FACTS.iter().position(|(known, _)| *known == name).unwrap_or_default()
}

/// Facts that a file of spans usually has and this one lacks, in words; empty if it has all.
fn lacking(places: &Places) -> Vec<String> {
    let lacks = |(name, costs): &(&str, &str)| places.of[fact(name)].is_none().then(|| format!("{name} ({costs})"));
    let costs = [
        ("parent", "without it no span is part of a request of another"),
        ("service", "all spans belong to one unknown service"),
        ("kind", "spans are requests or calls by where a service begins"),
        ("status", "failed requests are not seen"),
    ];
    costs.iter().filter_map(lacks).collect()
}

/// Reads the rows into `body`. Returns what the file lacks, in words.
///
/// # Errors
/// With the line, if a row cannot be read.
pub fn read(
    input: impl Read,
    file: &str,
    columns: Option<&Columns>,
    body: &mut Body<'_>,
) -> Result<Vec<String>, ImportError> {
    let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let wrong = |line: u64, why: String| ImportError::new(file, line as usize, why);
    let header = rows.headers().map_err(|e| wrong(1, e.to_string()))?.clone();
    let names: Vec<&str> = header.iter().map(|name| name.trim_start_matches('\u{feff}').trim()).collect();
    let mut places = columns.unwrap_or(&Columns::default()).places(&names).map_err(|why| wrong(1, why))?;
    let mut first = Vec::new();
    let mut row = csv::StringRecord::new();
    loop {
        let line = rows.position().line();
        let is_row = rows.read_record(&mut row).map_err(|e| wrong(line, e.to_string()))?;
        if is_row && first.len() < LOOKED_AT {
            first.push((line, row.clone()));
            continue;
        }
        if !first.is_empty() {
            places.learn_unit(&first);
            for (line, row) in first.drain(..) {
                body.add(places.span(&row).map_err(|why| wrong(line, why))?);
            }
        }
        if !is_row {
            return Ok(lacking(&places));
        }
        body.add(places.span(&row).map_err(|why| wrong(line, why))?);
    }
}

impl Places {
    fn texts<'r>(&self, row: &'r csv::StringRecord) -> [&'r str; FACTS.len()] {
        self.of.map(|place| place.and_then(|place| row.get(place)).unwrap_or_default().trim())
    }

    /// Takes the unit that most durations of `rows` have by their own starts and ends, if these show one.
    fn learn_unit(&mut self, rows: &[(u64, csv::StringRecord)]) {
        let mut votes = [(1.0, 0), (1e3, 0), (1e6, 0), (1e9, 0)];
        for (_, row) in rows {
            let [_, _, _, _, _, _, start, end, duration, ..] = self.texts(row);
            let Some((start, end)) = time::parse(start).zip(time::parse(end)) else { continue };
            let Some(number) = duration.parse::<f64>().ok().filter(|number| *number > 0.0) else { continue };
            let ratio = (end - start) as f64 / number;
            let fits = |(unit, _): &&mut (f64, usize)| ratio < FITS * *unit && ratio * FITS > *unit;
            votes.iter_mut().find(fits).into_iter().for_each(|(_, count)| *count += 1);
        }
        if let Some((unit, count)) = votes.into_iter().max_by_key(|(_, count)| *count)
            && count > 0
        {
            self.unit_ns = unit;
        }
    }

    fn span(&self, row: &csv::StringRecord) -> Result<SpanFacts, String> {
        let [trace, span, parent, service, name, kind_name, start, end, duration, status, system, statement] =
            self.texts(row);
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
        let mut attributes = Vec::new();
        let others = self.others.iter().filter_map(|(place, key)| Some((key.as_str(), row.get(*place)?.trim())));
        for (key, text) in [("db.system", system), ("db.statement", statement)].into_iter().chain(others) {
            match serde_json::from_str(text) {
                // A column of attributes as JSON.
                Ok(Value::Object(inner)) => attributes.extend(inner),
                _ if text.is_empty() => {}
                _ => attributes.push((key.to_owned(), text.into())),
            }
        }
        // Without a kind, a span that nothing called is a request.
        let is_begun = kind_name.is_empty() && self.of[fact("kind")].is_none() && is_none(parent);
        Ok(SpanFacts {
            trace_id: trace.to_owned(),
            span_id: span.to_owned(),
            parent_id: if is_none(parent) { String::new() } else { parent.to_owned() },
            service: if self.is_pod { workload(service) } else { service }.to_owned(),
            name: name.to_owned(),
            kind: if is_begun { kind("server") } else { kind(kind_name) },
            start_ns,
            end_ns,
            is_error: says_failed(&self.status, &status.to_ascii_lowercase()),
            attributes,
        })
    }
}

/// Whether a status, in lower case, says that its span failed: in words, as a code of OpenTelemetry (2), gRPC or HTTP,
/// or as an answer to the question that the name of its column asks.
fn says_failed(column: &str, status: &str) -> bool {
    /// Codes of gRPC for which the server is to blame (OpenTelemetry's conventions for gRPC).
    const GRPC: [u64; 7] = [2, 4, 8, 12, 13, 14, 15];
    match column {
        "issuccess" | "success" => ["false", "0", "no"].contains(&status),
        "iserror" | "error" => !["", "false", "0", "no", "null", "none"].contains(&status),
        _ => match status.parse::<u64>() {
            Ok(code) => code >= 500 || GRPC.contains(&code),
            Err(_) => {
                ["error", "fail", "exception", "unavailable", "internal"].iter().any(|word| status.contains(word))
            }
        },
    }
}

/// `cart` of `cart-5f6585d649-fnmft`: a pod's name is that of its workload with the hash of its template and five
/// characters of its own (Kubernetes documentation, "ReplicaSet").
fn workload(pod: &str) -> &str {
    let mut parts = pod.rsplitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(own), Some(hash), Some(name))
            if own.len() == 5
                && (6..=10).contains(&hash.len())
                && hash.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
                && hash.bytes().any(|c| c.is_ascii_digit()) =>
        {
            name
        }
        _ => pod,
    }
}

/// Whether a parent's id stands for no parent.
fn is_none(id: &str) -> bool {
    ["", "root", "null", "none", "nan", "-1", "-"].contains(&id.to_ascii_lowercase().as_str())
        || id.bytes().all(|digit| digit == b'0')
}
