//! A tally as figures for people and programs: ranked, with shares and percentiles. Other modules
//! print it.

use std::collections::BTreeMap;

use holdup_sql::rewrite::distill;
use serde::Serialize;

use crate::digest::attribute::{QUERY_TIME, ROWS_EXAMINED, ROWS_SENT, Unit};
use crate::digest::event::Position;
use crate::digest::measure::Measure;
use crate::digest::run::Outcome;
use crate::digest::shape::Shape;
use crate::digest::tally::{Identity, Tally};
use crate::digest::time::written;

mod earlier;
mod figures;
mod order;
mod rest;
mod server;

pub use earlier::{EarlierFigures, HistoryReport};
pub use figures::{Figures, YesNo};
pub use order::Order;
pub use rest::RestReport;
pub use server::{Message, Named, ServerReport};

use figures::{percentiles, rounded};

/// Most users, hosts and so on that are listed of a statement.
const MOST_WHO: usize = 10;

/// Executions of one user, host, database or application.
#[derive(Clone, Debug, Serialize)]
pub struct PartyCalls {
    /// Its name.
    pub name: String,
    /// Executions.
    pub calls: u64,
}

/// The slowest execution.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// How long it took.
    pub time_us: u64,
    /// When it began, in the log's time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// File and byte of its record.
    pub place: String,
    /// Account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Database.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub database: String,
    /// Application.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub application: String,
    /// Its text without values.
    pub text: String,
}

/// A plan by which a statement was executed.
#[derive(Clone, Debug, Serialize)]
pub struct PlanReport {
    /// Its steps, one per line, without values.
    pub shape: String,
    /// Executions that were logged with it.
    pub calls: u64,
    /// Their time in total.
    pub total_us: u128,
    /// The longest of them.
    pub max_us: u64,
    /// The steps of that one, with the server's estimates and counts.
    pub slowest: String,
    /// Place of that execution.
    pub place: String,
}

/// One group of executions.
#[derive(Clone, Debug, Serialize)]
pub struct Query {
    /// Place in the ranking, from 1.
    pub rank: usize,
    /// Identity of the statement: holdup's digest, or pt-query-digest's checksum.
    pub id: String,
    /// The statement without its values.
    pub fingerprint: String,
    /// Its verbs and tables, as pt-query-digest names them; for statements of MySQL with that
    /// tool's names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub distilled: String,
    /// Values of the other grouping fields.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub group: BTreeMap<String, String>,
    /// Executions.
    pub calls: u64,
    /// Time in total.
    pub total_us: u128,
    /// Its share of the total time.
    pub share_ratio: f64,
    /// Least time. This, the percentiles and the deviation are `None` if the server does not keep
    /// them.
    pub min_us: Option<u64>,
    /// Mean time.
    pub avg_us: f64,
    /// Median.
    pub p50_us: Option<u64>,
    /// 95th percentile.
    pub p95_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// Longest time.
    pub max_us: Option<u64>,
    /// Standard deviation.
    pub stddev_us: Option<f64>,
    /// Variance to mean, in seconds.
    pub variance_to_mean: Option<f64>,
    /// Rows examined for each row sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_examined_per_sent: Option<f64>,
    /// First begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// Last begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// Calls by hour of the day.
    pub calls_by_hour: Vec<u64>,
    /// Time by hour of the day.
    pub us_by_hour: Vec<u64>,
    /// Attributes with numbers.
    pub attributes: BTreeMap<String, Figures>,
    /// Attributes that are yes or no.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub flags: BTreeMap<String, YesNo>,
    /// Most frequent users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<PartyCalls>,
    /// Most frequent clients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<PartyCalls>,
    /// Most frequent databases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub databases: Vec<PartyCalls>,
    /// Most frequent applications.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<PartyCalls>,
    /// The slowest execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Sample>,
    /// Figures of earlier runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<EarlierFigures>,
    /// Plans that the server logged for it, most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanReport>,
}

/// A file that was read.
#[derive(Clone, Debug, Serialize)]
pub struct File {
    /// Its name as given.
    pub path: String,
    /// Its format.
    #[serde(rename = "type")]
    pub format: &'static str,
    /// Bytes, unpacked.
    pub bytes: u64,
}

/// A kind of problem.
#[derive(Clone, Debug, Serialize)]
pub struct ProblemReport {
    /// The kind.
    pub what: &'static str,
    /// How often.
    pub count: u64,
    /// First places.
    pub places: Vec<String>,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this form; later versions add fields and rename none.
    pub format: u32,
    /// Files that were read.
    pub files: Vec<File>,
    /// Executions that were read.
    pub events: u64,
    /// Executions that were counted.
    pub calls: u64,
    /// Time of all.
    pub total_us: u128,
    /// Different queries.
    pub distinct: usize,
    /// First begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// Last begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// Seconds from first to last.
    pub seconds: f64,
    /// Attributes over all executions.
    pub attributes: BTreeMap<String, Figures>,
    /// Ranked.
    pub queries: Vec<Query>,
    /// Queries that are not listed.
    pub not_listed: usize,
    /// Statements that did not fit in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<RestReport>,
    /// Differences from earlier runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryReport>,
    /// A PostgreSQL server's messages about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerReport>,
    /// Problems.
    pub problems: Vec<ProblemReport>,
}

fn unit(tally: &Tally, attribute: usize) -> &'static str {
    match tally.attributes.all().get(attribute).map(|attribute| attribute.unit) {
        Some(Unit::Time) => "us",
        _ => "count",
    }
}

fn attributes(tally: &Tally, shape: &Shape) -> BTreeMap<String, Figures> {
    let measures = shape.measures.iter().enumerate().filter(|(_, measure)| measure.count > 0);
    measures
        .filter_map(|(index, measure)| {
            let name = &tally.attributes.all().get(index)?.name;
            Some((name.clone(), Figures::from_measure(measure, unit(tally, index))))
        })
        .collect()
}

fn place(files: &[File], position: Position) -> String {
    let (path, unit) = match files.get(position.file as usize) {
        Some(file) if file.format == "pcap" => (file.path.as_str(), "packet"),
        Some(file) if file.format.ends_with("-summary") => (file.path.as_str(), "row"),
        Some(file) => (file.path.as_str(), "byte"),
        None => ("?", "byte"),
    };
    format!("{path}, {unit} {}", position.offset)
}

/// The same as `file:line`, if the line is known.
fn line(tally: &Tally, files: &[File], position: Position) -> String {
    match tally.lines.number(position) {
        Some(number) => {
            format!("{}:{number}", files.get(position.file as usize).map_or("?", |file| file.path.as_str()))
        }
        None => place(files, position),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn ratio(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn total(shape: &Shape) -> u128 {
    shape.measure(QUERY_TIME).map_or(0, |time| time.sum)
}

fn who(tally: &Tally, shape: &Shape, of: usize) -> Vec<PartyCalls> {
    let (Some(counts), Some(names)) = (shape.who.get(of), tally.names.get(of)) else { return Vec::new() };
    let mut all: Vec<PartyCalls> =
        counts.all().map(|(number, calls)| PartyCalls { name: names.get(number).to_owned(), calls }).collect();
    all.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    all.truncate(MOST_WHO);
    all
}

impl Report {
    /// Makes the report of an outcome: `limit` queries (0 for all) in an order.
    pub fn from_outcome(outcome: &Outcome, order: &Order, limit: usize) -> Self {
        let tally = &outcome.tally;
        let files: Vec<File> = outcome
            .files
            .iter()
            .map(|file| File { path: file.path.display().to_string(), format: file.format.name(), bytes: file.bytes })
            .collect();
        // Combines everything once more, because statements that were only parsed have no calls.
        let mut all = Shape::default();
        for shape in &tally.shapes {
            all.add_figures(shape);
        }
        let whole = total(&all) + tally.rest.total_us;
        let mut ranked: Vec<(u128, &Shape)> = tally
            .shapes
            .iter()
            .filter(|shape| shape.calls > 0)
            .map(|shape| (weight(tally, shape, order), shape))
            .collect();
        ranked.sort_by(|(a, left), (b, right)| {
            b.cmp(a)
                .then_with(|| right.calls.cmp(&left.calls))
                .then_with(|| left.id.cmp(&right.id))
                .then_with(|| left.group.cmp(&right.group))
        });
        let rest = rest::from_tally(tally, &ranked, order);
        let known = ranked.len();
        let listed = if limit == 0 { known } else { limit.min(known) };
        let distinct = known + rest.as_ref().map_or(0, |rest| rest.statements);
        let queries = ranked
            .iter()
            .take(listed)
            .enumerate()
            .map(|(index, (_, shape))| query(tally, shape, index + 1, whole, &files))
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "a time to look at")]
        let seconds = all.seen_us.map_or(0.0, |(first, last)| (last - first) as f64 / 1e6);
        let problems = tally.problems.all().map(|(problem, count, places)| ProblemReport {
            what: problem.words(),
            count,
            places: places.iter().map(|position| line(tally, &files, *position)).collect(),
        });
        Self {
            format: 1,
            events: tally.events,
            calls: all.calls.saturating_add(tally.rest.calls),
            total_us: whole,
            distinct,
            first_seen: all.seen_us.map(|(first, _)| written(first)),
            last_seen: all.seen_us.map(|(_, last)| written(last)),
            seconds,
            attributes: attributes(tally, &all),
            queries,
            not_listed: known - listed,
            rest,
            history: None,
            server: server::from_tally(tally),
            problems: problems.collect(),
            files,
        }
    }
}

fn weight(tally: &Tally, shape: &Shape, order: &Order) -> u128 {
    let time = shape.measure(QUERY_TIME);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "microseconds, to rank by")]
    match order {
        Order::TotalTime => total(shape),
        Order::Calls => u128::from(shape.calls),
        Order::AverageTime => time.map_or(0, |time| (time.mean() * 1e3) as u128),
        Order::P95 => time.map_or(0, |time| u128::from(time.quantiles([0.95])[0])),
        Order::MaxTime => time.map_or(0, |time| u128::from(time.max)),
        Order::Sum(name) => {
            let number = tally.attributes.all().iter().position(|attribute| attribute.name == *name);
            number.and_then(|number| shape.measures.get(number)).map_or(0, |measure| measure.sum)
        }
    }
}

fn query(tally: &Tally, shape: &Shape, rank: usize, whole: u128, files: &[File]) -> Query {
    let empty = Measure::default();
    let time = shape.measure(QUERY_TIME).unwrap_or(&empty);
    let [p50_us, p95_us, p99_us] = percentiles(time);
    let bounds = time.bounds();
    let sum = |attribute| shape.measure(attribute).map(|measure| measure.sum);
    let fields = tally.select.group_by.iter().filter_map(|field| {
        crate::digest::select::Field::ALL
            .iter()
            .find(|(name, known)| known == field && *name != "fingerprint")
            .map(|(name, _)| *name)
    });
    let flags = shape.flags.iter().filter_map(|(number, [no, yes])| {
        Some((tally.attributes.get(*number)?.name.clone(), YesNo { yes: *yes, no: *no }))
    });
    let hours = |which: usize| shape.hours.iter().map(|hour| hour[which]).collect();
    let variance_to_mean = if time.mean() > 0.0 { time.variance() / time.mean() / 1e6 } else { 0.0 };
    Query {
        rank,
        id: shape.id.clone(),
        fingerprint: shape.text.clone(),
        distilled: if tally.identity == Identity::Pt { distill(&shape.text) } else { String::new() },
        group: fields.map(str::to_owned).zip(shape.group.iter().cloned()).collect(),
        calls: shape.calls,
        total_us: time.sum,
        share_ratio: ratio(time.sum, whole).unwrap_or(0.0),
        min_us: if time.count == 0 { Some(0) } else { bounds.map(|(min, _)| min) },
        avg_us: rounded(time.mean()),
        p50_us,
        p95_us,
        p99_us,
        max_us: if time.count == 0 { Some(0) } else { bounds.map(|(_, max)| max) },
        stddev_us: time.deviation().map(rounded),
        variance_to_mean: time.deviation().map(|_| (variance_to_mean * 1e6).round() / 1e6),
        rows_examined_per_sent: sum(ROWS_EXAMINED)
            .zip(sum(ROWS_SENT))
            .and_then(|(examined, sent)| ratio(examined, sent))
            .map(rounded),
        first_seen: shape.seen_us.map(|(first, _)| written(first)),
        last_seen: shape.seen_us.map(|(_, last)| written(last)),
        calls_by_hour: hours(0),
        us_by_hour: hours(1),
        attributes: attributes(tally, shape),
        flags: flags.collect(),
        users: who(tally, shape, 0),
        hosts: who(tally, shape, 1),
        databases: who(tally, shape, 2),
        applications: who(tally, shape, 3),
        slowest: slowest(shape, files),
        before: None,
        plans: shape
            .plans
            .reported()
            .map(|(shape, plan)| PlanReport {
                shape: shape.to_owned(),
                calls: plan.times.count,
                total_us: plan.times.sum,
                max_us: plan.times.max,
                slowest: plan.slowest.clone(),
                place: place(files, plan.position),
            })
            .collect(),
    }
}

/// The slowest execution.
fn slowest(shape: &Shape, files: &[File]) -> Option<Sample> {
    let slowest = shape.slowest.as_ref()?;
    let [user, host, database, application] = slowest.who.clone();
    Some(Sample {
        time_us: slowest.time_us,
        at: slowest.at_us.map(written),
        place: place(files, slowest.position),
        user,
        host,
        database,
        application,
        text: slowest.text.clone(),
    })
}
