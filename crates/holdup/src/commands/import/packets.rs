//! `holdup import FILE.pcap`: turns a capture of packets into a recording of its exchanges. It
//! reads the file once, as a stream.

use std::io::Read;
use std::path::Path;

use holdup_import::clocks::{Segment, Segments};
use holdup_protocol::packets::file::{Reader, is_capture};
use holdup_protocol::packets::packet::{Packet, numbered};
use holdup_protocol::packets::{Capture, Options, Protocol, Totals};
use holdup_recording::manifest::{Host, Manifest, RunState};
use holdup_recording::metrics::Metric;
use holdup_recording::rows::{Exchange, Sample};
use holdup_recording::writer::Recorder;
use holdup_recording::{Batch, Coverage, CoverageState, Labels, metrics};

use super::capture_summary::CaptureSummary;
use super::pace::Pace;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::session::default_dir;

/// Bytes read at once.
const PIECE_BYTES: usize = 1 << 20;
/// Rows passed on at once.
const ROWS_AT_ONCE: usize = 10_000;
/// Rows that may wait to be written: above this, reading waits for writing.
const ROWS_WAITING: usize = 200_000;
/// Interval between samples of the counters, in nanoseconds of the capture's time.
const SAMPLE_NS: i64 = 1_000_000_000;

/// The arguments of an import.
pub(super) struct ImportRequest<'a> {
    pub file: InputFile,
    pub dir: Option<&'a Path>,
    pub ports: &'a [(u16, Protocol)],
}

/// Reads a capture file into a recording, and reports what it contains.
pub(super) fn import(given: ImportRequest<'_>) -> Result<Report, Failure> {
    let InputFile { name, shown, head, rest: file, .. } = given.file;
    let unreadable = |e: std::io::Error| Failure::Unusable(format!("{shown}: {e}"));
    if !is_capture(&head) {
        let why =
            Reader::new().feed(&head, &mut |_| ()).err().map_or_else(|| "too short".to_owned(), |e| e.to_string());
        return Err(Failure::Unusable(format!(
            "{shown}: {why}; nor does it hold output of a known tool with its header (top, iostat -x, SHOW PROCESSLIST, …) \
             or lines of an access log (with a format of its own: --log-format); for a JMeter plan, HAR or OpenAPI file: holdup import scenario {shown}"
        )));
    }
    let dir = given.dir.map_or_else(|| default_dir(name.split('.').next().unwrap_or("capture")), Path::to_owned);
    let mut work = CaptureImport::new(&name, given.ports);
    let stopped = |stopped| match stopped {
        ImportError::Io(e) => unreadable(e),
        ImportError::Failed(failure) => failure,
    };
    let trouble = match guard::reading(&shown, || work.read(&head, file, &dir).map_err(stopped)) {
        Ok(trouble) => trouble,
        Err(failure) => return Err(work.end_early(failure, &dir)),
    };
    let segments = Some(std::mem::take(&mut work.segments));
    let summary = work.finish(&dir, trouble.as_deref())?;
    let next = vec![
        format!(
            "wrote the exchanges to {}/exchanges.parquet, e.g.: duckdb -c \"SELECT * FROM '{0}/exchanges.parquet' ORDER BY done_at - request_at DESC LIMIT 20\"",
            dir.display()
        ),
        "for a diagnosis, watch the packets during a load: holdup run SCENARIO --watch wire:PORT".to_owned(),
    ];
    Ok(Report { text: summary.text(), json: summary.json(&dir), next, failed: None, segments })
}

enum ImportError {
    Io(std::io::Error),
    Failed(Failure),
}

/// The import of one file into a recording.
struct CaptureImport {
    source: String,
    name: String,
    capture: Capture,
    reader: Reader,
    rows: Vec<Exchange>,
    samples: Vec<Sample>,
    sampled_at: i64,
    first_at: Option<i64>,
    /// What another capture of the same connections is aligned by.
    segments: Segments,
    summary: CaptureSummary,
    recorder: Option<Recorder>,
    pace: Pace,
}

impl CaptureImport {
    fn new(name: &str, ports: &[(u16, Protocol)]) -> Self {
        let source = format!("pcap:{name}");
        let ports = Protocol::usual_ports(ports);
        let options = Options { source: source.clone(), ports, guess: true, ..Options::default() };
        Self {
            summary: CaptureSummary::new(&source),
            source,
            name: name.to_owned(),
            capture: Capture::new(options),
            reader: Reader::new(),
            rows: Vec::new(),
            samples: Vec::new(),
            sampled_at: i64::MIN,
            first_at: None,
            segments: Segments::default(),
            recorder: None,
            pace: Pace::new("exchanges", ROWS_WAITING),
        }
    }

    /// Reads the whole file. If it ends early, returns why: the rows before that are kept.
    fn read(&mut self, head: &[u8], mut file: Box<dyn Read>, dir: &Path) -> Result<Option<String>, ImportError> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut fed = self.feed(head);
        while fed.is_none() {
            let count = file.read(&mut piece).map_err(ImportError::Io)?;
            let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            fed = self.feed(bytes);
            self.put(dir, ROWS_AT_ONCE).map_err(ImportError::Failed)?;
        }
        if self.capture.totals().packets == 0 {
            let why = fed.unwrap_or_else(|| "it holds no packets".to_owned());
            return Err(ImportError::Failed(Failure::Unusable(format!("{}: {why}", self.name))));
        }
        Ok(fed.or_else(|| self.reader.finish().err().map(|e| e.to_string())))
    }

    fn feed(&mut self, bytes: &[u8]) -> Option<String> {
        let Self { source, capture, reader, rows, samples, sampled_at, first_at, segments, summary, .. } = self;
        let mut take = |packet: &Packet<'_>| {
            let mut out = |row: Exchange| {
                summary.add(&row);
                rows.push(row);
            };
            first_at.get_or_insert(packet.at);
            if let Some((from, to, seq)) = numbered(packet) {
                segments.add(Segment { from, to, seq }, packet.at);
            }
            capture.packet(packet, &mut out);
            if packet.at.saturating_sub(*sampled_at) >= SAMPLE_NS {
                *sampled_at = packet.at;
                capture.quiet(packet.at, &mut out);
                sample(source, packet.at, capture, samples);
            }
        };
        reader.feed(bytes, &mut take).err().map(|e| e.to_string())
    }

    /// Passes rows on if there are at least `at_least` of them.
    fn put(&mut self, dir: &Path, at_least: usize) -> Result<(), Failure> {
        if self.rows.len() + self.samples.len() < at_least || self.first_at.is_none() {
            return Ok(());
        }
        let recorder = match self.recorder.take() {
            Some(recorder) => recorder,
            None => Recorder::create(dir, &self.manifest()).map_err(Failure::unusable)?,
        };
        let batch = Batch {
            exchanges: std::mem::take(&mut self.rows),
            samples: std::mem::take(&mut self.samples),
            ..Batch::default()
        };
        self.pace.push(&recorder.sink(), batch, dir);
        self.recorder = Some(recorder);
        Ok(())
    }

    fn manifest(&self) -> Manifest {
        Manifest::starting(&self.name, self.first_at.unwrap_or_default(), Host::default())
    }

    /// Ends it with the rows so far, if there are any.
    fn end_early(mut self, failure: Failure, dir: &Path) -> Failure {
        let manifest = self.manifest();
        let Some(recorder) = self.recorder.take() else { return failure };
        let broken = guard::failed(&self.source, &failure, self.capture.totals().packets);
        guard::end_early(recorder, manifest, broken, failure, dir)
    }

    fn finish(mut self, dir: &Path, trouble: Option<&str>) -> Result<CaptureSummary, Failure> {
        let Self { capture, rows, summary, samples, source, .. } = &mut self;
        let last_at = capture.last_at().unwrap_or_default();
        sample(source, last_at, capture, samples);
        capture.finish(last_at, &mut |row| {
            summary.add(&row);
            rows.push(row);
        });
        self.put(dir, 0)?;
        let totals = self.capture.totals();
        self.summary.end(totals, self.reader.dropped(), last_at - self.first_at.unwrap_or(last_at), trouble);
        let mut manifest = self.manifest();
        manifest.coverage = vec![coverage(&self.source, &self.summary, &totals)];
        let Some(recorder) = self.recorder.take() else {
            return Err(Failure::Unusable(format!("{}: it holds no packets", self.name)));
        };
        let folder = recorder.folder();
        let mut manifest = recorder.finish(manifest, RunState::Complete).map_err(Failure::unusable)?;
        // The recording ends when the capture did, not now.
        manifest.ended_at = Some(last_at);
        manifest.write(&folder.place()).map_err(|e| Failure::Unusable(format!("{}: {e}", dir.display())))?;
        self.summary.dir = dir.to_owned();
        Ok(self.summary)
    }
}

fn coverage(source: &str, summary: &CaptureSummary, totals: &Totals) -> Coverage {
    let why = summary.losses();
    Coverage {
        source: source.to_owned(),
        state: if why.is_empty() { CoverageState::Complete } else { CoverageState::Partial },
        enable: (totals.cut_bytes > 0).then(|| "capture whole packets: tcpdump -s 0".to_owned()),
        why: (!why.is_empty()).then(|| why.join("; ")),
        cpu_ratio: None,
        reads_total: totals.packets,
        gaps_total: totals.gaps,
    }
}

/// Samples the counters so far, and the round trips since the last sample.
fn sample(source: &str, at: i64, capture: &mut Capture, samples: &mut Vec<Sample>) {
    let totals = capture.totals();
    let mut put = |metric: Metric, labels: Labels, value: f64| {
        let (source, metric) = (source.to_owned(), metric.name.to_owned());
        samples.push(Sample { observed_at: at, window_ns: 0, source, metric, labels, value });
    };
    for (metric, value) in totals.counters() {
        put(metric, Labels::none(), value as f64);
    }
    for trip in capture.round_trips().iter().take(64) {
        let (client, server) = (trip.client.to_string(), trip.server.to_string());
        let labels = Labels::new([("client", client.as_str()), ("server", server.as_str())]);
        put(metrics::wire::ROUND_TRIP, labels, trip.least_ns as f64 / 1e9);
    }
}
