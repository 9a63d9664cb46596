//! Sends the seconds of a run to places beside its recording: files, stdout, Prometheus. Outputs
//! are checked and opened before the load starts. After that, no error here ends the run or delays
//! the load; each is reported once.
//!
//! [`request`] parses `--out`; [`csv`], [`json`], [`junit`], [`series`] and [`protobuf`] are pure
//! formats; [`writer`], [`remote_write`] and [`scrape`] do the I/O. Nothing is judged here.

mod csv;
mod endpoint;
mod json;
pub mod junit;
mod protobuf;
mod remote_write;
mod request;
mod scrape;
mod series;
mod writer;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use holdup_diagnose::Diagnosis;
use holdup_load::stats::Second;
use holdup_recording::hlog::HLOG;

use self::protobuf::{STALE, Sample};
use self::remote_write::{Queue, RemoteWrite};
use self::request::{Destination, Format, OutputRequest};
use self::scrape::{Page, Scrape};
use self::series::{Labels, Meter};
use self::writer::{OpenDestination, Writer};
use crate::failure::Failure;
use crate::recorded::Recorded;

/// The outputs of one run.
pub struct Outputs {
    asked: Vec<OutputRequest>,
    metrics: Option<SocketAddr>,
    opened: Vec<(Format, OpenDestination)>,
    /// Outputs that are written while the load runs.
    writers: Vec<(Format, Writer)>,
    remotes: Vec<RemoteWrite>,
    scrape: Option<Scrape>,
    labels: Labels,
    notes: Sender<String>,
    said: Receiver<String>,
}

impl Outputs {
    /// No outputs.
    pub fn none() -> Self {
        let (notes, said) = channel();
        Self {
            asked: Vec::new(),
            metrics: None,
            opened: Vec::new(),
            writers: Vec::new(),
            remotes: Vec::new(),
            scrape: None,
            labels: Vec::new(),
            notes,
            said,
        }
    }

    /// The outputs of `--out` (each argument as given) and `--metrics`. Nothing is opened yet.
    ///
    /// # Errors
    /// If one is malformed, or two share a destination.
    pub fn parse(out: &[String], metrics: Option<&str>) -> Result<Self, Failure> {
        let asked = out.iter().map(|text| request::parse(text)).collect::<Result<Vec<_>, _>>();
        let asked = asked.map_err(|why| Failure::Unusable(format!("--out: {why}")))?;
        let mut places = HashSet::new();
        for place in
            asked.iter().filter_map(|asked| if let OutputRequest::Text(_, place) = asked { Some(place) } else { None })
        {
            if !places.insert(place) {
                let name =
                    if let Destination::File(path) = place { path.display().to_string() } else { "stdout".to_owned() };
                return Err(Failure::Unusable(format!(
                    "--out: two outputs write to {name}; give them different files"
                )));
            }
        }
        let metrics = metrics.map(scrape::parse).transpose();
        let metrics = metrics.map_err(|why| Failure::Unusable(format!("--metrics: {why}")))?;
        Ok(Self { asked, metrics, ..Self::none() })
    }

    /// Whether one of them is stdout; nothing else may be printed there then.
    pub fn take_stdout(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked, OutputRequest::Text(_, Destination::Stdout)))
    }

    /// Opens them. Series have the label `run`, and `shard` if this is a part of the load.
    ///
    /// # Errors
    /// If a file cannot be written, an address cannot be listened on, or a receiver does not
    /// answer. Nothing is left behind then.
    pub fn open(&mut self, run: &str, shard: Option<&str>) -> Result<(), Failure> {
        self.labels = vec![("run", run.to_owned())];
        self.labels.extend(shard.map(|shard| ("shard", shard.to_owned())));
        let wrong = |flag: &'static str| move |why: String| Failure::Unusable(format!("{flag}: {why}"));
        for asked in &self.asked {
            match asked {
                OutputRequest::Text(format, place) => {
                    self.opened.push((*format, OpenDestination::open(place).map_err(wrong("--out"))?));
                }
                OutputRequest::RemoteWrite(endpoint) => {
                    let remote = RemoteWrite::open(endpoint, self.notes.clone()).map_err(wrong("--out prometheus"))?;
                    self.remotes.push(remote);
                }
            }
        }
        if let Some(address) = self.metrics {
            let scrape = Scrape::open(address).map_err(wrong("--metrics"))?;
            scrape.page.set(&series::text(&Meter::new(self.labels.clone()).before()));
            self.scrape = Some(scrape);
        }
        Ok(())
    }

    /// A line to print before the load starts, if there is one.
    pub fn announcement(&self) -> Option<String> {
        self.scrape
            .as_ref()
            .map(|scrape| format!("serving metrics at http://{}/metrics during the run", scrape.address))
    }

    /// Starts writing, which truncates files. The result may be moved to another thread.
    pub fn begin(&mut self) -> Feed {
        let mut feed = Feed {
            csv: Vec::new(),
            json: Vec::new(),
            meter: Meter::new(self.labels.clone()),
            remotes: self.remotes.iter().filter_map(RemoteWrite::queue).collect(),
            page: self.scrape.as_ref().map(|scrape| scrape.page.clone()),
            last: LastSent::default(),
        };
        for (format, opened) in std::mem::take(&mut self.opened) {
            let queues = match format {
                Format::Csv => &mut feed.csv,
                Format::Json => &mut feed.json,
                Format::Junit | Format::Hlog => {
                    self.opened.push((format, opened));
                    continue;
                }
            };
            match Writer::begin(opened, self.notes.clone()) {
                Ok(writer) => {
                    queues.extend(writer.queue());
                    self.writers.push((format, writer));
                }
                Err(error) => drop(self.notes.send(format!("an output cannot be written: {error}"))),
            }
        }
        for queue in &feed.csv {
            let _ = queue.send(csv::header());
        }
        feed
    }

    /// The errors since the last call.
    pub fn troubles(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// Writes the final parts once the run has been judged, waits until all is written, and returns
    /// the errors.
    pub fn finish(mut self, recorded: &Recorded, diagnosis: &Diagnosis) -> Vec<String> {
        let mut troubles = Vec::new();
        let (dir, name) = (&recorded.recording.dir, &recorded.recording.manifest.name);
        for (format, writer) in std::mem::take(&mut self.writers) {
            let last = (format == Format::Json).then(|| json::summary(name, dir, recorded.interrupted, diagnosis));
            writer.finish(last.and_then(|summary| summary.map_err(|e| troubles.push(e.to_string())).ok()));
        }
        for (format, opened) in std::mem::take(&mut self.opened) {
            let written = match format {
                Format::Hlog => std::fs::read(recorded.folder.place().join(HLOG))
                    .map_err(|e| format!("failed to read {HLOG} of the recording: {e}"))
                    .and_then(|bytes| opened.write(bytes)),
                _ => {
                    let document = junit::document(name, diagnosis.load.duration_s, &junit::cases(diagnosis));
                    opened.write(document.into_bytes())
                }
            };
            troubles.extend(written.err());
        }
        troubles.extend(std::mem::take(&mut self.remotes).into_iter().filter_map(RemoteWrite::finish));
        let mut all = self.troubles();
        all.extend(troubles);
        all
    }
}

/// Passes the seconds of a load to all outputs without waiting for any.
pub struct Feed {
    csv: Vec<Sender<String>>,
    json: Vec<Sender<String>>,
    meter: Meter,
    remotes: Vec<Queue>,
    page: Option<Page>,
    last: LastSent,
}

/// The samples last sent to receivers.
#[derive(Default)]
struct LastSent {
    at_ms: i64,
    series: HashSet<(String, Labels)>,
}

impl Feed {
    /// Passes `second` on.
    pub fn second(&mut self, second: &Second) {
        let hand_on = |queues: &[Sender<String>], form: fn(&Second) -> String| {
            if !queues.is_empty() {
                let text = form(second);
                queues.iter().for_each(|queue| drop(queue.send(text.clone())));
            }
        };
        hand_on(&self.csv, csv::rows);
        hand_on(&self.json, json::second);
        if self.remotes.is_empty() && self.page.is_none() {
            return;
        }
        let points = self.meter.at(second);
        if let Some(page) = &self.page {
            page.set(&series::text(&points));
        }
        if self.remotes.is_empty() {
            return;
        }
        let ended_ms = (second.started_at + second.to.saturating_sub(second.from).as_nanos() as i64) / 1_000_000;
        let points = points.into_iter().map(|p| Sample { name: p.name(), labels: with_job(p.labels), value: p.value });
        self.push(points.collect(), ended_ms);
    }

    /// Sends `samples`, and end markers for series that no longer exist.
    fn push(&mut self, mut samples: Vec<Sample>, at_ms: i64) {
        let now: HashSet<(String, Labels)> = samples.iter().map(|s| (s.name.clone(), s.labels.clone())).collect();
        let gone = self.last.series.difference(&now).cloned();
        samples.extend(gone.map(|(name, labels)| Sample { name, labels, value: STALE }));
        // Seconds may overlap if a loop was delayed; timestamps of a series may not.
        let at_ms = at_ms.max(self.last.at_ms + 1);
        self.last = LastSent { at_ms, series: now };
        if let Ok(body) = protobuf::body(&samples, at_ms) {
            self.remotes.iter().for_each(|queue| queue.push(body.clone()));
        }
    }
}

/// The load is over, so all series end.
impl Drop for Feed {
    fn drop(&mut self) {
        if !self.last.series.is_empty() {
            self.push(Vec::new(), self.last.at_ms + 1);
        }
    }
}

/// A scrape adds its job as a label; pushed series must bring one.
fn with_job(mut labels: Labels) -> Labels {
    labels.push(("job", "holdup".to_owned()));
    labels
}

/// A recording's directory name, for the label `run`.
pub fn run_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned())
}
