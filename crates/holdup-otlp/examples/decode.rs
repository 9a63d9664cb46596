//! What it costs to read a body of spans, in time and in memory: by this crate, and by prost into OpenTelemetry's generated
//! messages. `cargo run --release -p holdup-otlp --example decode`. The ways are taken in turns, and of each the median is
//! printed. Memory is the most that the allocator had handed out at a time, beyond the body.
//!
//! `walk` reads every span and keeps none; `rows` makes the rows of a recording, which is the receiver's whole work; `prost`
//! decodes, and makes no row yet. The second body and the third are what a hostile sender may send: as many spans, or
//! attributes of a span, as fit into a mebibyte, each of them empty.

#[path = "support/bodies.rs"]
mod bodies;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use holdup_otlp::{Bounds, Encoding, Intake, Signal};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// Spans of the ordinary body.
const SPANS: usize = 10_000;
/// Size of the hostile bodies.
const HOSTILE_BYTES: usize = 1 << 20;
/// Times that each way is taken.
const TURNS: usize = 5;

type Error = Box<dyn std::error::Error>;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

impl Counting {
    fn grown(by: usize) {
        let live = LIVE_BYTES.fetch_add(by, Ordering::Relaxed) + by;
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
    }
}

// SAFETY: it only counts, and leaves the rest to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::grown(layout.size());
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A way to read a body; how many spans it saw.
type Way = fn(&[u8]) -> Result<u64, Error>;

const WAYS: [(&str, Way); 3] = [("walk", walk), ("rows", rows), ("prost", prost)];

fn main() -> Result<(), Error> {
    let mut one = bodies::traces(0, 1);
    let hostile = |request: &ExportTraceServiceRequest| request.encode_to_vec();
    let spans_of = |request: &mut ExportTraceServiceRequest, spans: Vec<Span>| {
        request.resource_spans[0].scope_spans[0].spans = spans;
    };
    // An empty message takes two bytes: its field's number, and its length.
    spans_of(&mut one, vec![Span::default(); HOSTILE_BYTES / 2]);
    let spans = hostile(&one);
    let attributes = vec![KeyValue::default(); HOSTILE_BYTES / 2];
    spans_of(&mut one, vec![Span { attributes, ..Span::default() }]);
    let attributes = hostile(&one);
    drop(one);
    let ordinary = bodies::traces(0, SPANS).encode_to_vec();
    for (what, body) in [("10,000 spans", &ordinary), ("empty spans", &spans), ("empty attributes", &attributes)] {
        println!("{what}, {:.2} MiB", mebibytes(body.len()));
        let mut taken = WAYS.map(|_| Vec::new());
        for _ in 0..TURNS {
            for ((_, way), taken) in WAYS.iter().zip(&mut taken) {
                taken.push(measure(*way, body)?);
            }
        }
        for ((name, _), taken) in WAYS.iter().zip(&mut taken) {
            taken.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let (seconds, peak, spans) = taken[TURNS / 2];
            println!(
                "  {name:6} {:8.2} ms, {:7.0} MB/s, {:8.2} MiB, {spans} spans",
                seconds * 1e3,
                body.len() as f64 / seconds / 1e6,
                mebibytes(peak)
            );
        }
    }
    Ok(())
}

/// Seconds, most bytes of memory, and spans.
fn measure(way: Way, body: &[u8]) -> Result<(f64, usize, u64), Error> {
    let before = LIVE_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(before, Ordering::Relaxed);
    let begun = Instant::now();
    let spans = way(body)?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok((seconds, PEAK_BYTES.load(Ordering::Relaxed) - before, spans))
}

fn walk(body: &[u8]) -> Result<u64, Error> {
    take(body, Bounds { rows_bytes_max: 0, ..Bounds::default() })
}

fn rows(body: &[u8]) -> Result<u64, Error> {
    take(body, Bounds::default())
}

fn take(body: &[u8], bounds: Bounds) -> Result<u64, Error> {
    let taken = Intake::new("otlp", bounds).take(Signal::Traces, Encoding::Protobuf, false, body)?;
    Ok(taken.items + taken.rejected)
}

fn prost(body: &[u8]) -> Result<u64, Error> {
    let request = ExportTraceServiceRequest::decode(body)?;
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    Ok(scopes.map(|scope| scope.spans.len() as u64).sum())
}

fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
