//! Turns a body into rows waiting to be recorded, or refuses it. All memory that senders can make
//! it use is counted here: rows of one body, and waiting rows. A body is accepted or refused as a
//! whole, so that it can be sent again; invalid spans or points in it are rejected and counted, as
//! the protocol demands (partial success).

use std::collections::BTreeMap;
use std::io::Read;
use std::mem::size_of;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use holdup_recording::metrics::{Metric, otlp};
use holdup_recording::rows::{Sample, Span};
use holdup_recording::{Batch, Labels, clock};
use prost::Message as _;

use crate::bounds::Bounds;
use crate::messages::{ExportResponse, PartialSuccess};
use crate::metrics::{self, MetricNames, Totals};
use crate::refusal::Refusal;
use crate::sampling::Sampling;
use crate::spans;
use crate::{Encoding, Signal, traces};

/// The overhead of an allocation.
const ALLOCATION_BYTES: usize = 16;

/// Parses bodies and holds their rows.
#[derive(Debug)]
pub struct Intake {
    source: String,
    bounds: Bounds,
    waiting: Mutex<Waiting>,
    sampling: Mutex<Sampling>,
    known: Mutex<MetricNames>,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    bytes: usize,
    totals: Totals,
    counts: [Counts; 2],
    refused_bodies: BTreeMap<u16, u64>,
    lost: RefusedBodies,
    refused_connections: u64,
}

/// Results for spans, or for data points.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    taken: u64,
    rejected: u64,
    refused: u64,
}

/// Refused bodies that may have contained recordable data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedBodies {
    /// Their number; a body sent again counts each time.
    pub bodies: u64,
    /// Why the last one was refused.
    pub why: Option<Refusal>,
}

/// The parsed content of a body.
#[derive(Debug, Default)]
struct Body {
    spans: Vec<Span>,
    samples: Vec<Sample>,
    /// Samples of points with delta temporality.
    increments: Vec<Sample>,
    items: u64,
    bytes: usize,
    rejected: u64,
    why: &'static str,
}

impl Body {
    fn reject(&mut self, why: &'static str) {
        self.rejected += 1;
        self.why = why;
    }
}

/// The result for one body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyResult {
    /// Number of spans or data points that became rows.
    pub items: u64,
    /// Number of those that did not.
    pub rejected: u64,
    /// Why the last of those was rejected.
    pub why: &'static str,
}

impl BodyResult {
    /// `ExportTraceServiceResponse` or `ExportMetricsServiceResponse`.
    pub fn body(&self, signal: Signal, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Protobuf if self.rejected > 0 => {
                let rejected = i64::try_from(self.rejected).unwrap_or(i64::MAX);
                let partial_success = PartialSuccess { rejected, error_message: self.why.to_owned() };
                ExportResponse { partial_success: Some(partial_success) }.encode_to_vec()
            }
            Encoding::Protobuf => Vec::new(),
            Encoding::Json if self.rejected > 0 => {
                let what = if signal == Signal::Traces { "rejectedSpans" } else { "rejectedDataPoints" };
                let Self { rejected, why, .. } = self;
                format!("{{\"partialSuccess\":{{\"{what}\":\"{rejected}\",\"errorMessage\":\"{why}\"}}}}").into_bytes()
            }
            Encoding::Json => b"{}".to_vec(),
        }
    }
}

impl Intake {
    /// An empty intake. Its rows belong to `source`.
    pub fn new(source: &str, bounds: Bounds) -> Self {
        let sampling = Mutex::new(Sampling::new(source));
        Self { source: source.to_owned(), bounds, waiting: Mutex::default(), sampling, known: Mutex::default() }
    }

    /// Its bounds.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Handles a body, compressed with gzip or not.
    ///
    /// # Errors
    /// Why it is refused; then none of it is kept.
    pub fn take(&self, signal: Signal, encoding: Encoding, is_gzip: bool, body: &[u8]) -> Result<BodyResult, Refusal> {
        let unpacked = if is_gzip { Some(self.unpack(body)?) } else { None };
        let body = self.read(signal, encoding, unpacked.as_deref().unwrap_or(body))?;
        let mut waiting = lock(&self.waiting);
        let has_room = waiting.bytes + body.bytes <= self.bounds.queue_bytes_max || waiting.bytes == 0;
        let counts = &mut waiting.counts[signal as usize];
        if !has_room {
            counts.refused += body.items;
            return Err(Refusal::NoRoom);
        }
        counts.taken += body.items;
        counts.rejected += body.rejected;
        waiting.bytes += body.bytes;
        waiting.batch.spans.extend(body.spans);
        waiting.batch.samples.extend(body.samples);
        for mut sample in body.increments {
            if waiting.totals.add(&mut sample) {
                waiting.batch.samples.push(sample);
            } else {
                waiting.counts[signal as usize].rejected += 1;
            }
        }
        Ok(BodyResult { items: body.items, rejected: body.rejected, why: body.why })
    }

    /// Inflates only up to the limit, which stops decompression bombs.
    fn unpack(&self, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let most = self.bounds.body_bytes_max;
        let mut unpacked = Vec::new();
        let mut inflater = flate2::bufread::MultiGzDecoder::new(body).take(most as u64 + 1);
        inflater.read_to_end(&mut unpacked).map_err(|_| Refusal::NotGzip)?;
        if unpacked.len() > most { Err(Refusal::TooLargeUnpacked) } else { Ok(unpacked) }
    }

    fn read(&self, signal: Signal, encoding: Encoding, bytes: &[u8]) -> Result<Body, Refusal> {
        const TOO_MANY: &str = "the body holds more items than this receiver accepts; send smaller batches";
        let mut body = Body::default();
        let most = self.bounds.rows_bytes_max;
        match signal {
            Signal::Traces => {
                let mut sampling = lock(&self.sampling);
                let now = Instant::now();
                traces::each_span(encoding, bytes, &mut |service, told| {
                    if body.bytes > most {
                        return body.reject(TOO_MANY);
                    }
                    match spans::row(&self.source, service, told) {
                        Ok(row) => {
                            sampling.look(service, told, now);
                            body.items += 1;
                            body.bytes += span_bytes(&row);
                            body.spans.push(row);
                        }
                        Err(why) => body.reject(why),
                    }
                })?;
            }
            Signal::Metrics => {
                let mut known = lock(&self.known);
                metrics::each_point(encoding, bytes, &mut |resource, metric, point| {
                    if body.bytes > most {
                        return body.reject(TOO_MANY);
                    }
                    let into = if metric.is_delta { &mut body.increments } else { &mut body.samples };
                    let before = into.len();
                    match metrics::samples(&self.source, &mut known, resource, metric, point, into) {
                        Ok(()) => {
                            body.items += 1;
                            body.bytes += into.iter().skip(before).map(sample_bytes).sum::<usize>();
                        }
                        Err(why) => body.reject(why),
                    }
                })?;
            }
        }
        Ok(body)
    }

    /// Counts a refused body.
    pub fn count_refused(&self, refusal: Refusal) {
        let mut waiting = lock(&self.waiting);
        *waiting.refused_bodies.entry(refusal.http_status()).or_default() += 1;
        if refusal.is_loss() {
            waiting.lost = RefusedBodies { bodies: waiting.lost.bodies + 1, why: Some(refusal) };
        }
    }

    /// All bodies refused so far.
    pub fn refused_bodies(&self) -> RefusedBodies {
        lock(&self.waiting).lost
    }

    /// Counts a connection closed because there were too many.
    pub fn count_refused_connection(&self) {
        lock(&self.waiting).refused_connections += 1;
    }

    /// All waiting rows, and the receiver's own counters.
    pub fn drain(&self) -> Batch {
        let events = lock(&self.sampling).events(Instant::now());
        let mut waiting = lock(&self.waiting);
        let mut batch = std::mem::take(&mut waiting.batch);
        waiting.bytes = 0;
        batch.events.extend(events);
        let observed_at = clock::now_ns();
        let mut put = |metric: Metric, labels: Labels, count: u64| {
            batch.samples.push(Sample {
                observed_at,
                window_ns: 0,
                source: self.source.clone(),
                metric: metric.name.to_owned(),
                labels,
                value: count as f64,
            });
        };
        let spans = [otlp::SPANS, otlp::REJECTED_SPANS, otlp::REFUSED_SPANS];
        let points = [otlp::DATA_POINTS, otlp::REJECTED_DATA_POINTS, otlp::REFUSED_DATA_POINTS];
        for ([taken, rejected, refused], counts) in [spans, points].into_iter().zip(waiting.counts) {
            put(taken, Labels::none(), counts.taken);
            put(rejected, Labels::none(), counts.rejected);
            put(refused, Labels::none(), counts.refused);
        }
        for (status, count) in &waiting.refused_bodies {
            let labels = Labels::new([("http_response_status_code", status.to_string())]);
            put(otlp::REFUSED_BODIES, labels, *count);
        }
        put(otlp::REFUSED_CONNECTIONS, Labels::none(), waiting.refused_connections);
        batch
    }
}

/// Approximate size of a row.
fn span_bytes(row: &Span) -> usize {
    let optional = [&row.span_id, &row.parent_id, &row.system, &row.peer, &row.digest, &row.digest_text];
    let texts = [&row.source, &row.service, &row.trace_id, &row.name, &row.kind, &row.resource, &row.status];
    let all = texts.into_iter().chain(optional.into_iter().flatten());
    size_of::<Span>() + all.map(|text| text.len() + ALLOCATION_BYTES).sum::<usize>()
}

/// Approximate size of a row: a map's node has room for eleven pairs.
fn sample_bytes(row: &Sample) -> usize {
    let pairs: usize = row.labels.iter().map(|(key, value)| key.len() + value.len() + 2 * ALLOCATION_BYTES).sum();
    let nodes = row.labels.iter().count().div_ceil(6) * 11 * 2 * size_of::<String>();
    size_of::<Sample>() + row.metric.len() + row.source.len() + 2 * ALLOCATION_BYTES + pairs + nodes
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
