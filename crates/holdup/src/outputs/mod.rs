//! Where the seconds of a run go beside its recording: files, stdout, Prometheus. What was asked for is checked and
//! opened before the load starts; from then on nothing that goes wrong here ends the run or holds the load up: it is
//! said once.
//!
//! [`asked`] reads `--out`; [`csv`], [`json`], [`junit`], [`series`] and [`protobuf`] are forms and pure; [`writer`],
//! [`remote_write`] and [`scrape`] are the ways out. Judging is not done here.

mod asked;
mod csv;
mod endpoint;
pub mod figures;
mod json;
mod junit;
mod protobuf;
mod remote_write;
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

use self::asked::{Asked, Format, Place};
use self::protobuf::{STALE, Sample};
use self::remote_write::{Queue, RemoteWrite};
use self::scrape::{Page, Scrape};
use self::series::{Labels, Meter};
use self::writer::{Opened, Writer};
use crate::failure::Failure;
use crate::session::Recorded;

/// The outputs of one run.
pub struct Outputs {
    asked: Vec<Asked>,
    metrics: Option<SocketAddr>,
    opened: Vec<(Format, Opened)>,
    /// Those that are written to while the load runs.
    writers: Vec<(Format, Writer)>,
    remotes: Vec<RemoteWrite>,
    scrape: Option<Scrape>,
    labels: Labels,
    notes: Sender<String>,
    said: Receiver<String>,
}

impl Outputs {
    /// None at all.
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

    /// Those of `--out` (each as it was given) and `--metrics`. Nothing is opened yet.
    ///
    /// # Errors
    /// If one is no output, or two want the same place.
    pub fn parse(out: &[String], metrics: Option<&str>) -> Result<Self, Failure> {
        let asked = out.iter().map(|text| asked::parse(text)).collect::<Result<Vec<_>, _>>();
        let asked = asked.map_err(|why| Failure::Unusable(format!("--out: {why}")))?;
        let mut places = HashSet::new();
        for place in asked.iter().filter_map(|asked| if let Asked::Text(_, place) = asked { Some(place) } else { None })
        {
            if !places.insert(place) {
                let name = if let Place::File(path) = place { path.display().to_string() } else { "stdout".to_owned() };
                return Err(Failure::Unusable(format!("--out: two outputs want {name}; give each a place of its own")));
            }
        }
        let metrics = metrics.map(scrape::parse).transpose();
        let metrics = metrics.map_err(|why| Failure::Unusable(format!("--metrics: {why}")))?;
        Ok(Self { asked, metrics, ..Self::none() })
    }

    /// Whether one of them is stdout, where nothing else may be printed then.
    pub fn take_stdout(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked, Asked::Text(_, Place::Stdout)))
    }

    /// Opens them. Series have the labels `run`, and `shard` if it is a part.
    ///
    /// # Errors
    /// If a file can't be written, an address can't be listened on, or a receiver is not there. Nothing is left behind
    /// then.
    pub fn open(&mut self, run: &str, shard: Option<&str>) -> Result<(), Failure> {
        self.labels = vec![("run", run.to_owned())];
        self.labels.extend(shard.map(|shard| ("shard", shard.to_owned())));
        let wrong = |flag: &'static str| move |why: String| Failure::Unusable(format!("{flag}: {why}"));
        for asked in &self.asked {
            match asked {
                Asked::Text(format, place) => {
                    self.opened.push((*format, Opened::open(place).map_err(wrong("--out"))?));
                }
                Asked::RemoteWrite(endpoint) => {
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

    /// What may be worth a line before the load starts.
    pub fn announcement(&self) -> Option<String> {
        self.scrape.as_ref().map(|scrape| format!("metrics at http://{}/metrics while it runs", scrape.address))
    }

    /// The load starts: files lose what was in them. What takes the seconds may be moved to another thread.
    pub fn begin(&mut self) -> Feed {
        let mut feed = Feed {
            csv: Vec::new(),
            json: Vec::new(),
            meter: Meter::new(self.labels.clone()),
            remotes: self.remotes.iter().filter_map(RemoteWrite::queue).collect(),
            page: self.scrape.as_ref().map(|scrape| scrape.page.clone()),
            last: Last::default(),
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
                Err(error) => drop(self.notes.send(format!("an output can't be written: {error}"))),
            }
        }
        for queue in &feed.csv {
            let _ = queue.send(csv::header());
        }
        feed
    }

    /// What has gone wrong since this was last asked.
    pub fn troubles(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// Writes what is to be written when the run has been judged, and waits until all is out. What went wrong.
    pub fn finish(mut self, recorded: &Recorded, diagnosis: &Diagnosis) -> Vec<String> {
        let mut troubles = Vec::new();
        let (dir, name) = (&recorded.recording.dir, &recorded.recording.manifest.name);
        for (format, writer) in std::mem::take(&mut self.writers) {
            let last = (format == Format::Json).then(|| json::summary(name, dir, recorded.interrupted, diagnosis));
            writer.finish(last.and_then(|summary| summary.map_err(|e| troubles.push(e.to_string())).ok()));
        }
        for (format, opened) in std::mem::take(&mut self.opened) {
            let written = match format {
                Format::Hlog => std::fs::read(dir.join(HLOG))
                    .map_err(|e| format!("failed to read {HLOG} of the recording: {e}"))
                    .and_then(|bytes| opened.write(&bytes)),
                _ => {
                    let document = junit::document(name, diagnosis.load.duration_s, &junit::cases(diagnosis));
                    opened.write(document.as_bytes())
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

/// Takes the seconds of a load and hands them to all outputs, without waiting for any.
pub struct Feed {
    csv: Vec<Sender<String>>,
    json: Vec<Sender<String>>,
    meter: Meter,
    remotes: Vec<Queue>,
    page: Option<Page>,
    last: Last,
}

/// What was last sent to receivers.
#[derive(Default)]
struct Last {
    at_ms: i64,
    series: HashSet<(String, Labels)>,
}

impl Feed {
    /// Hands `second` on.
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

    /// Sends `samples`, and that those series have ended which were there before and are no more.
    fn push(&mut self, mut samples: Vec<Sample>, at_ms: i64) {
        let now: HashSet<(String, Labels)> = samples.iter().map(|s| (s.name.clone(), s.labels.clone())).collect();
        let gone = self.last.series.difference(&now).cloned();
        samples.extend(gone.map(|(name, labels)| Sample { name, labels, value: STALE }));
        // Seconds may overlap where a loop was kept from running; a series' moments may not.
        let at_ms = at_ms.max(self.last.at_ms + 1);
        self.last = Last { at_ms, series: now };
        if let Ok(body) = protobuf::body(&samples, at_ms) {
            self.remotes.iter().for_each(|queue| queue.push(body.clone()));
        }
    }
}

/// The load is over, and so are its series.
impl Drop for Feed {
    fn drop(&mut self) {
        if !self.last.series.is_empty() {
            self.push(Vec::new(), self.last.at_ms + 1);
        }
    }
}

/// A scrape puts its job into the labels; what is pushed has to bring one.
fn with_job(mut labels: Labels) -> Labels {
    labels.push(("job", "holdup".to_owned()));
    labels
}

/// What a recording's directory is called, for the label `run`.
pub fn run_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned())
}
