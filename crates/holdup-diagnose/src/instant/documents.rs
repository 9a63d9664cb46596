//! What MongoDB's pasted status shows of an instant: its queue, the documents that it examined, and what
//! its storage engine asked of files beside what the disk read.

use holdup_recording::metrics::{Metric, mongodb as metric};
use holdup_recording::words::{bytes_per_second, ms, thousands};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Disk, View};

use crate::resources::tickets::Tickets;

/// The facts; each is absent if it was not pasted.
#[derive(Default)]
pub(crate) struct Documents {
    /// Whether a MongoDB's status or operations were pasted.
    pub is_there: bool,
    /// Operations in the queue while no ticket is left.
    pub queued: Option<(f64, Evidence)>,
    /// Documents examined for each that was returned or changed.
    pub examined: Option<(f64, Evidence)>,
    /// Collections that were read from one end to the other.
    pub scans: Option<Scans>,
    /// Bytes that the disk read for each that the storage engine asked for, between two readings.
    pub read_per_asked: Option<(f64, Evidence)>,
}

impl Documents {
    pub(crate) fn read(view: &View<'_>, disk: Option<&Disk>) -> Self {
        let known = [metric::SERVER_STATUS_CONNECTIONS_CURRENT, metric::SESSIONS];
        if known.iter().all(|metric| view.sources_of(metric.name).is_empty()) {
            return Self::default();
        }
        Self {
            is_there: true,
            queued: queued(view),
            examined: examined(view),
            scans: Scans::read(view),
            read_per_asked: disk.and_then(|disk| read_per_asked(view, disk)),
        }
    }
}

/// Scans of whole collections, and the reads that they belong to.
pub(crate) struct Scans {
    /// Scans.
    pub count: f64,
    /// Time of a mean read by the server's own timing, seconds.
    pub read_s: f64,
    /// Time of all reads, as a share (0-1) of the time of all operations.
    pub reads_ratio: f64,
    /// Documents examined.
    pub examined: f64,
    /// Time of all reads, seconds.
    pub seconds: f64,
    pub evidence: Evidence,
}

impl Scans {
    fn read(view: &View<'_>) -> Option<Self> {
        let of = |metric: Metric, kind: &str| view.counter(metric.name, &[("kind", kind)], "").ok();
        let scans = view.counter(metric::SERVER_STATUS_METRICS_QUERY_EXECUTOR_COLLECTION_SCANS.name, &[], "");
        let scans = scans.ok().filter(|scans| scans.delta > 0.0)?;
        let (reads, took) = (of(metric::OPERATIONS, "reads")?, of(metric::OPERATION_TIME, "reads")?);
        let others = ["writes", "commands", "transactions"];
        let all: f64 = others.iter().filter_map(|kind| of(metric::OPERATION_TIME, kind)).map(|of| of.delta).sum();
        let read_s = took.delta / reads.delta.max(1.0);
        let text = format!(
            "{} of {} reads went through a whole collection, and a read took {} by the server's own timing",
            thousands(scans.delta),
            thousands(reads.delta),
            ms(read_s * 1e3)
        );
        Some(Self {
            count: scans.delta,
            read_s,
            reads_ratio: took.delta / (took.delta + all).max(1e-9),
            examined: grown(view, metric::SERVER_STATUS_METRICS_QUERY_EXECUTOR_SCANNED_OBJECTS).unwrap_or(0.0),
            seconds: took.delta,
            evidence: scans.evidence(format!("{} scans", thousands(scans.delta)), "none", text),
        })
    }
}

fn queued(view: &View<'_>) -> Option<(f64, Evidence)> {
    let tickets = Tickets::measure(view).ok().filter(|tickets| tickets.gone_ratio() > 0.0)?;
    let [queue, _] = tickets.evidence();
    let text = format!("no {} ticket was left, and {}", tickets.kind, queue.text);
    Some((tickets.queued(), queue.saying("0", text)))
}

/// The growth of a counter, or what it was since the server's start if it was read once.
fn grown(view: &View<'_>, metric: Metric) -> Option<f64> {
    let grown = view.counter(metric.name, &[], "").ok().map(|counter| counter.delta).filter(|delta| *delta > 0.0);
    grown.or_else(|| view.gauge(metric.name, &[], "").ok().map(|gauge| gauge.max))
}

fn examined(view: &View<'_>) -> Option<(f64, Evidence)> {
    let scanned = metric::SERVER_STATUS_METRICS_QUERY_EXECUTOR_SCANNED_OBJECTS;
    let used = [metric::SERVER_STATUS_METRICS_DOCUMENT_UPDATED, metric::SERVER_STATUS_METRICS_DOCUMENT_DELETED];
    let changed: f64 = used.into_iter().filter_map(|metric| grown(view, metric)).sum();
    let used = grown(view, metric::SERVER_STATUS_METRICS_DOCUMENT_RETURNED)? + changed;
    let examined = grown(view, scanned)?;
    let each = examined / used.max(1.0);
    let text = format!(
        "{} documents were examined to return or change {}: {each:.1} for each",
        thousands(examined),
        thousands(used)
    );
    let told = view.gauge(scanned.name, &[], "").ok()?.evidence(format!("{each:.1} for each"), "many for each", text);
    Some((each, told))
}

fn read_per_asked(view: &View<'_>, disk: &Disk) -> Option<(f64, Evidence)> {
    let asked = view.counter(metric::SERVER_STATUS_WIRED_TIGER_BLOCK_MANAGER_BYTES_READ.name, &[], "").ok()?;
    let read = disk.read.bytes / disk.seconds.max(1e-9);
    let ratio = read / asked.rate().max(1.0);
    let text = format!(
        "the storage engine asked files for {}, and {} read {}: {ratio:.1} bytes for each",
        bytes_per_second(asked.rate()),
        disk.device,
        bytes_per_second(read)
    );
    (asked.delta > 0.0).then(|| (ratio, asked.evidence(format!("{ratio:.1} bytes for each"), "about 1", text)))
}
