//! `holdup import FILE.json ...`: turns the output of Amazon's command line, and what dashboards save
//! of its figures, into a recording. Files
//! are read one after the other; holdup writes nothing before it understands all of them.

use std::path::Path;

use holdup_import::aws::{Aws, Figures, Series, is_panel, is_unknown};
use holdup_import::cloud;
use holdup_recording::rows::{Sample, Setting};
use holdup_recording::{Batch, Coverage, CoverageState, Labels, clock};

use super::writer::Writer;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Rows that are passed on at once.
const ROWS_AT_ONCE: usize = 10_000;
/// Number of series that are printed.
const SHOWN: usize = 40;

/// Whether a file that begins like this may be output of Amazon's command line, or what a dashboard
/// saved of its figures.
pub(super) fn is_json(head: &[u8]) -> bool {
    is_document(head) || is_panel(head)
}

fn is_document(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    head.first().is_none_or(|first| matches!(first, b'{' | b'['))
}

/// Keys by which a document of a cloud's figures is known.
const KEYS: [&str; 18] = [
    "\"MetricDataResults\"",
    "\"MetricDataQueries\"",
    "\"MetricStat\"",
    "\"Datapoints\"",
    "\"AlignedStartTime\"",
    "\"EventCategories\"",
    "\"ParameterName\"",
    "\"PendingMaintenanceActions\"",
    "\"MetricList\"",
    "\"DBInstances\"",
    "\"InstanceTypes\"",
    "\"Volumes\"",
    "\"logEvents\"",
    "\"instanceResourceID\"",
    "\"nextForwardToken\"",
    "cloudsql.googleapis.com",
    "\"timeSeries\"",
    "\"timeseries\"",
];

/// Whether a document that begins like this has a key of a cloud's figures.
pub(super) fn is_known(head: &[u8]) -> bool {
    if is_panel(head) {
        return true;
    }
    let head = String::from_utf8_lossy(head);
    is_document(head.as_bytes()) && KEYS.iter().any(|key| head.contains(key))
}

/// Reads files of Amazon's figures into a recording, and reports what they contain.
pub(super) fn import(files: Vec<InputFile>, dir: &Path, db_instance: Option<&str>) -> Result<Report, Failure> {
    let (mut aws, mut others) = (Aws::default(), Figures::default());
    let (mut names, mut refused) = (Vec::new(), Vec::new());
    let (mut is_of_amazon, is_alone) = (false, files.len() == 1);
    for file in files {
        let name = file.name.clone();
        match read(file, &mut aws, &mut others) {
            Ok(of_amazon) => {
                is_of_amazon |= of_amazon;
                names.push(name);
            }
            Err(refusal) if is_alone => return Err(refusal.failure),
            Err(refusal) => refused.push((name, refusal)),
        }
    }
    let mut figures = others;
    if let (true, Some((_, refusal))) = (names.is_empty(), refused.first()) {
        return Err(Failure::Unusable(refusal.failure.to_string()));
    }
    if is_of_amazon || names.is_empty() {
        add(aws.finish(db_instance).map_err(Failure::unusable)?, &mut figures);
    }
    figures.notes.extend(refused.iter().map(|(_, refusal)| format!("left out: {}", refusal.failure)));
    let summary = FiguresSummary::from_figures(&figures);
    record(figures, &names.join(", "), &summary, &refused, dir)?;
    let next = vec![
        format!("wrote the figures to {}/samples.parquet; next: holdup diagnose {0}", dir.display()),
        "none of them is a response time; to measure that: holdup run SCENARIO --watch postgres://USER@HOST:5432"
            .to_owned(),
    ];
    let broken: Vec<String> =
        refused.iter().filter(|(_, refusal)| !refusal.is_unknown).map(|(_, of)| of.failure.to_string()).collect();
    let failed = (!broken.is_empty()).then(|| format!("{}{}{}", broken.join("; "), guard::KEPT, dir.display()));
    Ok(Report { text: summary.text(dir), json: summary.json(dir), next, failed, ..Report::default() })
}

/// Why a file is left out.
struct Refusal {
    failure: Failure,
    /// It is something else; otherwise it is broken.
    is_unknown: bool,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, is_unknown: false }
    }
}

/// Reads one file; returns whether Amazon's tools made it.
fn read(file: InputFile, aws: &mut Aws, others: &mut Figures) -> Result<bool, Refusal> {
    let name = file.name.clone();
    if cloud::is_one(&String::from_utf8_lossy(&file.head)) {
        let bytes = file.whole("ask for fewer metrics or hours")?;
        add(cloud::read(&bytes, &name).map_err(Failure::unusable)?, others);
        return Ok(false);
    }
    if is_panel(&file.head) {
        let bytes = file.whole("save a shorter period")?;
        aws.read_panel(&bytes, &name).map_err(Failure::unusable)?;
        return Ok(true);
    }
    let InputFile { shown, head, rest, .. } = file;
    aws.read(std::io::Read::chain(head.as_slice(), rest), &name).map_err(|mut e| {
        e.file.clone_from(&shown);
        let is_unknown = is_unknown(&e);
        let failure = Failure::Unusable(format!("{e}; of a HAR or OpenAPI file: holdup import scenario {shown}"));
        Refusal { failure, is_unknown }
    })?;
    Ok(true)
}

fn add(more: Figures, all: &mut Figures) {
    all.series.extend(more.series);
    all.settings.extend(more.settings);
    all.events.extend(more.events);
    all.notes.extend(more.notes);
    all.is_partial |= more.is_partial;
}

fn record(
    figures: Figures,
    title: &str,
    summary: &FiguresSummary,
    refused: &[(String, Refusal)],
    dir: &Path,
) -> Result<(), Failure> {
    // Settings alone have no time, so they count as current.
    let (from, to) = summary.span.unwrap_or_else(|| (clock::now_ns(), clock::now_ns()));
    let mut writer = Writer::new(title, dir);
    let settings = figures.settings.into_iter().map(|setting| {
        let holdup_import::aws::Setting { source, name, value } = setting;
        Setting { observed_at: from, source, name, value }
    });
    let mut coverage = coverage_by_file(&figures.series, &figures.notes, figures.is_partial);
    for sources in figures.events.chunk_by(|a, b| a.source == b.source) {
        let source = sources.first().map_or("", |event| event.source.as_str());
        match coverage.iter_mut().find(|known| known.source == source) {
            Some(known) => known.reads_total += sources.len() as u64,
            None => coverage.push(self::coverage(source, &[], sources.len() as u64, 0)),
        }
    }
    let batch = Batch { settings: settings.collect(), events: figures.events, ..Batch::default() };
    writer.put(from, batch)?;
    coverage.extend(refused.iter().map(|(name, of)| guard::failed(name, &of.failure, 0)));
    for Series { source, metric, labels, period_ns, points } in figures.series {
        let labels = Labels::new(labels);
        for points in points.chunks(ROWS_AT_ONCE) {
            let sample = |(at, value): &(i64, f64)| Sample {
                observed_at: *at,
                window_ns: period_ns,
                source: source.clone(),
                metric: metric.clone(),
                labels: labels.clone(),
                value: *value,
            };
            writer.put(from, Batch { samples: points.iter().map(sample).collect(), ..Batch::default() })?;
        }
    }
    writer.finish((from, Some(to)), coverage)
}

/// One entry for each file that has series.
fn coverage_by_file(series: &[Series], notes: &[String], is_partial: bool) -> Vec<Coverage> {
    let mut all: Vec<Coverage> = Vec::new();
    for one in series {
        let points = one.points.len() as u64;
        match all.iter_mut().find(|coverage| coverage.source == one.source) {
            Some(coverage) => coverage.reads_total += points,
            None => all.push(coverage(&one.source, &[], points, 0)),
        }
    }
    for coverage in &mut all {
        let file = coverage.source.split_once(':').map_or("", |(_, file)| file);
        let of_it: Vec<&str> = notes.iter().filter_map(|n| n.strip_prefix(file)?.strip_prefix(": ")).collect();
        if is_partial && !of_it.is_empty() {
            coverage.state = CoverageState::Partial;
            coverage.why = Some(of_it.join("; "));
            coverage.enable =
                Some("run aws without --no-paginate and --max-items, so that it returns all pages".to_owned());
        }
    }
    all
}

/// Summary of an import, for the user.
struct FiguresSummary {
    span: Option<(i64, i64)>,
    series: Vec<Line>,
    points: usize,
    settings: Vec<(String, String)>,
    events: Vec<String>,
    notes: Vec<String>,
}

#[derive(serde::Serialize)]
struct Line {
    metric: String,
    labels: String,
    points: usize,
    period_s: f64,
    least: f64,
    mean: f64,
    most: f64,
}

impl FiguresSummary {
    fn from_figures(figures: &Figures) -> Self {
        let line = |series: &Series| {
            let values = || series.points.iter().map(|(_, value)| *value);
            Line {
                metric: series.metric.clone(),
                labels: series
                    .labels
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect::<Vec<_>>()
                    .join(" "),
                points: series.points.len(),
                period_s: series.period_ns as f64 / 1e9,
                least: values().fold(f64::INFINITY, f64::min),
                mean: values().sum::<f64>() / series.points.len().max(1) as f64,
                most: values().fold(f64::NEG_INFINITY, f64::max),
            }
        };
        // From the beginning of the first period to the end of the last.
        let of_events = figures.events.iter().map(|event| (event.observed_at, event.observed_at));
        let ends = figures.series.iter().filter_map(|series| {
            let half = series.period_ns / 2;
            Some((series.points.first()?.0.saturating_sub(half), series.points.last()?.0.saturating_add(half)))
        });
        Self {
            span: ends.chain(of_events).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
            series: figures.series.iter().map(line).collect(),
            points: figures.series.iter().map(|series| series.points.len()).sum(),
            settings: figures
                .settings
                .iter()
                .map(|setting| (format!("{} {}", setting.source, setting.name), setting.value.clone()))
                .collect(),
            events: figures.events.iter().map(|e| format!("{} {}", clock::rfc3339(e.observed_at), e.text)).collect(),
            notes: figures.notes.clone(),
        }
    }

    /// The summary as text.
    fn text(&self, dir: &Path) -> String {
        let mut text = format!("{} series, {} points", self.series.len(), self.points);
        if let Some((from, to)) = self.span {
            text += &format!(" from {} to {}", clock::rfc3339(from), clock::rfc3339(to));
        }
        if !self.events.is_empty() {
            text += &format!(", {} events", self.events.len());
        }
        text += &format!(", {} settings -> {}\n", self.settings.len(), dir.display());
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        for (name, value) in self.settings.iter().take(SHOWN) {
            text += &format!("{name} = {value}\n");
        }
        for event in self.events.iter().take(SHOWN) {
            text += &format!("event: {event}\n");
        }
        if !self.series.is_empty() {
            text +=
                &format!("\n{:>8} {:>7} {:>14} {:>14} {:>14}  series\n", "points", "every", "least", "mean", "most");
        }
        for line in self.series.iter().take(SHOWN) {
            let Line { metric, labels, points, period_s, least, mean, most } = line;
            text += &format!("{points:>8} {period_s:>6}s {least:>14.4} {mean:>14.4} {most:>14.4}  {metric} {labels}\n");
        }
        if self.series.len() > SHOWN {
            text += &format!("and {} more series: --json has them all\n", self.series.len() - SHOWN);
        }
        text
    }

    /// The summary as JSON.
    fn json(&self, dir: &Path) -> serde_json::Value {
        serde_json::json!({
            "recording": dir.display().to_string(),
            "points": self.points,
            "from": self.span.map(|(from, _)| clock::rfc3339(from)),
            "to": self.span.map(|(_, to)| clock::rfc3339(to)),
            "notes": self.notes,
            "events": self.events,
            "settings": self.settings.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "series": self.series,
        })
    }
}
