//! `holdup import TRACES.json ...`: turns traces in files into a recording: their spans, and the
//! response times of the service at their roots as counters by second.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use holdup_access::{Family, Pairs, Timeline, pattern};
use holdup_import::traces::{Columns, TraceKind, read, series};
use holdup_otlp::{Bounds, Encoding, Intake, Signal};
use holdup_recording::rows::{Sample, Span};
use holdup_recording::words::ms;
use holdup_recording::{Batch, clock};

use super::writer::Writer;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Services whose response times are kept until it is known which one is at the roots.
const SERVICES_MAX: usize = 20;
/// Samples that are passed on together.
const SAMPLES: usize = 10_000;
/// Largest body: a line of a collector's file.
const BODY_BYTES_MAX: usize = 256 << 20;

/// The kind of traces in a file that begins like this; with a map of columns, any other file is CSV.
pub(super) fn kind(head: &[u8], columns: Option<&Columns>) -> Option<TraceKind> {
    TraceKind::detect(&String::from_utf8_lossy(head)).or_else(|| columns.map(|_| TraceKind::Csv))
}

/// Reads traces into a recording, and reports what they contain.
pub(super) fn import(files: Vec<InputFile>, dir: &Path, columns: Option<&Columns>) -> Result<Report, Failure> {
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let mut work = TraceImport::new(&names, dir);
    for file in files {
        let name = file.shown.clone();
        if let Err(failure) = guard::reading(&name, || work.read(file, columns)) {
            return Err(work.writer.end_early(&work.source, failure, work.spans));
        }
    }
    let summary = work.finish()?;
    let next = vec![format!("wrote {}/spans.parquet; next: holdup diagnose {0}", dir.display())];
    Ok(Report { text: text(&summary), json: summary, next, ..Report::default() })
}

struct TraceImport<'a> {
    source: String,
    title: String,
    dir: &'a Path,
    intake: Intake,
    kinds: Vec<&'static str>,
    writer: Writer<'a>,
    by_service: HashMap<String, Service>,
    spans: u64,
    rejected: u64,
    why: &'static str,
    /// What the files lack, in words.
    lacks: Vec<String>,
    from: i64,
    /// The last moment of a series.
    to: i64,
}

/// The counters of one service.
#[derive(Default)]
struct Service {
    roots: u64,
    timeline: Timeline,
}

impl<'a> TraceImport<'a> {
    fn new(names: &[String], dir: &'a Path) -> Self {
        let source = format!("otlp:{}", names.first().map_or("", String::as_str));
        let most = Bounds { body_bytes_max: BODY_BYTES_MAX, ..Bounds::default() };
        let bounds = Bounds { rows_bytes_max: 2 * BODY_BYTES_MAX, queue_bytes_max: 4 * BODY_BYTES_MAX, ..most };
        Self {
            intake: Intake::new(&source, bounds),
            source,
            title: names.join(", "),
            dir,
            kinds: Vec::new(),
            writer: Writer::new(&names.join(", "), dir),
            by_service: HashMap::new(),
            spans: 0,
            rejected: 0,
            why: "",
            lacks: Vec::new(),
            from: i64::MAX,
            to: i64::MIN,
        }
    }

    fn read(&mut self, file: InputFile, columns: Option<&Columns>) -> Result<(), Failure> {
        let InputFile { name, shown, head, rest, .. } = file;
        let kind = kind(&head, columns).ok_or_else(|| {
            Failure::Unusable(format!("{shown}: no traces as in the other files; import it separately"))
        })?;
        self.kinds.push(kind.words());
        if kind == TraceKind::Series {
            return self.read_series(&name, &shown, head.chain(rest));
        }
        let mut taken = Ok(());
        let lacking = read(kind, head.chain(rest), &shown, columns, &mut |body| {
            if taken.is_ok() {
                taken = self.take(&shown, body);
            }
        });
        for lack in lacking.map_err(Failure::unusable)? {
            let lack = format!("no column for {lack}; name one with --columns");
            if !self.lacks.contains(&lack) {
                self.lacks.push(lack);
            }
        }
        taken
    }

    /// Reads series that lie beside the traces.
    fn read_series(&mut self, name: &str, shown: &str, input: impl Read) -> Result<(), Failure> {
        let (mut put, mut samples) = (Ok(()), Vec::new());
        let source = format!("import:{name}");
        let gaps = series::read(input, shown, &source, &mut |sample| {
            self.from = self.from.min(sample.observed_at);
            self.to = self.to.max(sample.observed_at);
            samples.push(sample);
            if samples.len() >= SAMPLES && put.is_ok() {
                put = self.writer.put(self.from, Batch { samples: std::mem::take(&mut samples), ..Batch::default() });
            }
        });
        let gaps = gaps.map_err(Failure::unusable)?;
        if gaps > 0 {
            self.lacks.push(format!("{shown}: {gaps} rows without a number or a time"));
        }
        put?;
        self.writer.put(self.from, Batch { samples, ..Batch::default() })
    }

    fn take(&mut self, shown: &str, body: &[u8]) -> Result<(), Failure> {
        let taken = self.intake.take(Signal::Traces, Encoding::Json, false, body);
        let result = taken.map_err(|refusal| Failure::Unusable(format!("{shown}: {refusal}")))?;
        self.rejected += result.rejected;
        if result.rejected > 0 {
            self.why = result.why;
        }
        let spans = self.intake.drain().spans;
        if spans.is_empty() {
            return Ok(());
        }
        self.spans += spans.len() as u64;
        for span in &spans {
            self.from = self.from.min(span.started_at);
            self.count(span);
        }
        self.writer.put(self.from, Batch { spans, ..Batch::default() })
    }

    /// Counts a span in the series of its service: a request at the root of its trace, or a wait.
    fn count(&mut self, span: &Span) {
        if !self.by_service.contains_key(&span.service) && self.by_service.len() >= SERVICES_MAX {
            return;
        }
        let service = self.by_service.entry(span.service.clone()).or_default();
        let is_root = span.resource == "request" && span.parent_id.is_none();
        service.roots += u64::from(is_root);
        let (family, label, value) = match span.resource.as_str() {
            "request" => (Family::Server, "http_route", pattern(&span.name)),
            "http" => {
                let name = span.system.as_ref().or(span.peer.as_ref()).unwrap_or(&span.name);
                (Family::Client, "server_address", name.clone())
            }
            "database" => (Family::Database, "db_system_name", span.system.clone().unwrap_or_default()),
            "pool" => (Family::Pool, "db_client_connection_pool_name", span.system.clone().unwrap_or_default()),
            _ => return,
        };
        let other = || vec![(label, "other".to_owned())];
        let labels: Pairs = vec![(label, value)];
        let id = service.timeline.series(family, &labels, other);
        service.timeline.add(span.started_at, id, span.duration_ns);
    }

    fn finish(mut self) -> Result<serde_json::Value, Failure> {
        if !self.writer.has_begun() {
            let why = if self.why.is_empty() { "no spans" } else { self.why };
            return Err(Failure::Unusable(format!("{}: {why}", self.title)));
        }
        let best = self.by_service.iter().max_by_key(|(name, service)| (service.roots, std::cmp::Reverse(*name)));
        let (name, timeline) = best.map(|(name, service)| (name.as_str(), &service.timeline)).unzip();
        if let Some(timeline) = timeline {
            let sink = self.writer.begin(self.from)?.sink();
            let put = |samples: &mut Vec<Sample>| {
                sink.push(Batch { samples: std::mem::take(samples), ..Batch::default() });
            };
            let mut samples = Vec::new();
            timeline.samples(&self.source, &mut |sample| {
                samples.push(sample);
                if samples.len() >= SAMPLES {
                    put(&mut samples);
                }
            });
            put(&mut samples);
        }
        let ends = self.by_service.values().filter_map(|service| service.timeline.span());
        let of_series = Some(self.to.saturating_add(1)).filter(|_| self.to > i64::MIN);
        let to = ends.map(|(_, to)| to).chain(of_series).max();
        let lacks = (self.rejected > 0).then(|| format!("{} spans left out: {}", self.rejected, self.why));
        let lacks: Vec<String> = lacks.into_iter().chain(std::mem::take(&mut self.lacks)).collect();
        let coverage = coverage(&self.source, &lacks, self.spans + self.rejected, self.rejected);
        self.writer.finish((self.from, to), vec![coverage])?;
        let response = timeline.and_then(|timeline| timeline.mean_ms(Family::Server));
        Ok(serde_json::json!({
            "recording": self.dir.display().to_string(),
            "formats": self.kinds,
            "spans": self.spans,
            "rejected": self.rejected,
            "rejected_because": self.why,
            "lacks": lacks,
            "from": clock::rfc3339(self.from),
            "to": to.map(clock::rfc3339),
            "service": name,
            "requests": response.map(|(_, count)| count),
            "response_mean_ms": response.map(|(mean, _)| mean),
        }))
    }
}

fn text(summary: &serde_json::Value) -> String {
    let word = |key: &str| summary[key].as_str().unwrap_or("-").to_owned();
    let kinds = summary["formats"].as_array().into_iter().flatten().filter_map(|kind| kind.as_str());
    let mut kinds: Vec<&str> = kinds.collect();
    kinds.dedup();
    let mut text = format!("{} spans, taken for: {}\n", summary["spans"], kinds.join(", "));
    text += &format!("from {} to {} -> {}\n", word("from"), word("to"), word("recording"));
    if let (Some(count), Some(mean)) = (summary["requests"].as_u64(), summary["response_mean_ms"].as_f64()) {
        text += &format!("requests of {}: mean {} of {count}\n", word("service"), ms(mean));
    }
    if summary["rejected"].as_u64() > Some(0) {
        text +=
            &format!("note: {} spans left out, the last because {}\n", summary["rejected"], word("rejected_because"));
    }
    for lack in summary["lacks"].as_array().into_iter().flatten().filter_map(|lack| lack.as_str()) {
        text += &format!("note: {lack}\n");
    }
    text
}
