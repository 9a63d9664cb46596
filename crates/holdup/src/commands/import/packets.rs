//! `holdup import FILE.pcap`: turns a capture of packets into a recording of its exchanges. It
//! reads the file once, as a stream.

use std::io::Read;
use std::path::Path;

use holdup_import::clocks::{Segment, Segments};
use holdup_protocol::packets::file::Reader;
use holdup_protocol::packets::packet::{Packet, numbered};
use holdup_protocol::packets::{Capture, Options, Protocol};
use holdup_recording::metrics::Metric;
use holdup_recording::rows::{Exchange, Sample};
use holdup_recording::{Batch, Coverage, Labels, metrics};

use super::capture_summary::CaptureSummary;
use super::writer::Writer;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::recorded::coverage;

/// Bytes read at once.
const PIECE_BYTES: usize = 1 << 20;
/// Rows passed on at once.
const ROWS_AT_ONCE: usize = 10_000;
/// Interval between samples of the counters, in nanoseconds of the capture's time.
const SAMPLE_NS: i64 = 1_000_000_000;

/// Reads a capture file into a recording, and reports what it contains.
pub(super) fn import(file: InputFile, dir: &Path, ports: &[(u16, Protocol)]) -> Result<Report, Failure> {
    let InputFile { name, shown, head, rest: file, .. } = file;
    let mut work = CaptureImport::new(&name, ports, dir);
    let trouble = match guard::reading(&shown, || work.read(&shown, &head, file)) {
        Ok(trouble) => trouble,
        Err(failure) => {
            let packets = work.capture.totals().packets;
            return Err(work.writer.end_early(&work.source, failure, packets));
        }
    };
    let segments = Some(std::mem::take(&mut work.segments));
    let summary = work.finish(dir, trouble.as_deref())?;
    let next = vec![
        format!(
            "wrote the exchanges to {}/exchanges.parquet, e.g.: duckdb -c \"SELECT * FROM '{0}/exchanges.parquet' ORDER BY done_at - request_at DESC LIMIT 20\"",
            dir.display()
        ),
        "for a diagnosis, watch the packets during a load: holdup run SCENARIO --watch wire:PORT".to_owned(),
    ];
    Ok(Report { text: summary.text(), json: summary.json(dir), next, segments, ..Report::default() })
}

/// The import of one file into a recording.
struct CaptureImport<'d> {
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
    writer: Writer<'d>,
}

impl<'d> CaptureImport<'d> {
    fn new(name: &str, ports: &[(u16, Protocol)], dir: &'d Path) -> Self {
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
            writer: Writer::new(name, dir),
        }
    }

    /// Reads the whole file, which messages call `shown`. If it ends early, returns why: the rows before that are kept.
    fn read(&mut self, shown: &str, head: &[u8], mut file: Box<dyn Read>) -> Result<Option<String>, Failure> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut fed = self.feed(head);
        while fed.is_none() {
            let count = file.read(&mut piece).map_err(|e| Failure::Unusable(format!("{shown}: {e}")))?;
            let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            fed = self.feed(bytes);
            self.put(ROWS_AT_ONCE)?;
        }
        if self.capture.totals().packets == 0 {
            let why = fed.unwrap_or_else(|| "it holds no packets".to_owned());
            return Err(Failure::Unusable(format!("{}: {why}", self.name)));
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
    fn put(&mut self, at_least: usize) -> Result<(), Failure> {
        let Some(from) = self.first_at.filter(|_| self.rows.len() + self.samples.len() >= at_least) else {
            return Ok(());
        };
        let batch = Batch {
            exchanges: std::mem::take(&mut self.rows),
            samples: std::mem::take(&mut self.samples),
            ..Batch::default()
        };
        self.writer.put(from, batch)
    }

    fn finish(mut self, dir: &Path, trouble: Option<&str>) -> Result<CaptureSummary, Failure> {
        let Self { capture, rows, summary, samples, source, .. } = &mut self;
        let last_at = capture.last_at().unwrap_or_default();
        sample(source, last_at, capture, samples);
        capture.finish(last_at, &mut |row| {
            summary.add(&row);
            rows.push(row);
        });
        self.put(0)?;
        let totals = self.capture.totals();
        let from = self.first_at.unwrap_or(last_at);
        self.summary.end(totals, self.reader.dropped(), last_at - from, trouble);
        let coverage = Coverage {
            enable: (totals.cut_bytes > 0).then(|| "capture whole packets: tcpdump -s 0".to_owned()),
            ..coverage(&self.source, &self.summary.losses(), totals.packets, totals.gaps)
        };
        self.writer.finish((from, Some(last_at)), vec![coverage])?;
        self.summary.dir = dir.to_owned();
        Ok(self.summary)
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
