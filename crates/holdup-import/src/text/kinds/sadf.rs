//! `sadf -j`: what `sar` recorded, as JSON. Each entry has its own time and interval, and its
//! figures are rates over that.

use holdup_recording::metrics::{self, Metric};
use holdup_recording::{Labels, clock};

use super::super::context::Context;
use super::super::json::{self, Value};
use super::super::out::{HOST, Report};
use super::super::paste::Line;
use super::{Kind, uptime};

/// The name of this kind.
pub(super) const NAME: &str = "sadf -j";

pub(super) const KIND: Kind = Kind { name: NAME, recognises, read };

/// CPU shares by their name, and the collector's mode.
const MODES: [(&str, &str); 13] = [
    ("user", "user"),
    ("usr", "user"),
    ("nice", "nice"),
    ("system", "system"),
    ("sys", "system"),
    ("idle", "idle"),
    ("iowait", "iowait"),
    ("irq", "interrupt"),
    ("soft", "softirq"),
    ("steal", "steal"),
    ("guest", "user"),
    ("gnice", "user"),
    ("guest_nice", "user"),
];

/// A label that only some metrics have.
type OptionalLabel = Option<(&'static str, &'static str)>;

/// Rates of the host: section, field, metric, label.
const RATES: [(&str, &str, Metric, OptionalLabel); 5] = [
    ("swap-pages", "pswpin", metrics::host::PAGING_OPERATIONS, Some(("direction", "in"))),
    ("swap-pages", "pswpout", metrics::host::PAGING_OPERATIONS, Some(("direction", "out"))),
    ("paging", "majflt", metrics::host::PAGING_FAULTS, Some(("type", "major"))),
    ("process-and-context-switch", "cswch", metrics::host::CONTEXT_SWITCHES, None),
    ("process-and-context-switch", "proc", metrics::host::PROCESS_CREATED, None),
];

/// Rates of an interface: field, factor, metric, direction.
const OF_INTERFACE: [(&str, f64, Metric, &str); 8] = [
    ("rxpck", 1.0, metrics::host::NETWORK_PACKETS, "receive"),
    ("txpck", 1.0, metrics::host::NETWORK_PACKETS, "transmit"),
    ("rxkB", 1024.0, metrics::host::NETWORK_IO_BYTES, "receive"),
    ("txkB", 1024.0, metrics::host::NETWORK_IO_BYTES, "transmit"),
    ("rxerr", 1.0, metrics::host::NETWORK_ERRORS, "receive"),
    ("txerr", 1.0, metrics::host::NETWORK_ERRORS, "transmit"),
    ("rxdrop", 1.0, metrics::host::NETWORK_DROPPED, "receive"),
    ("txdrop", 1.0, metrics::host::NETWORK_DROPPED, "transmit"),
];

/// Memory in KiB by state.
const MEMORY: [(&str, &str); 3] = [("memfree", "free"), ("buffers", "buffers"), ("cached", "cached")];

fn recognises(lines: &[Line]) -> bool {
    json::head(lines).is_some_and(|head| head.at(&["sysstat", "hosts"]).is_some())
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(document) = json::read(lines) else {
        context.unread.push(0);
        return 1;
    };
    if document.is_cut {
        context.out.note("sadf -j: the document ends before its last bracket; what follows is unknown");
    }
    let before = context.out.count();
    for host in document.value.at(&["sysstat", "hosts"]).map(Value::items).unwrap_or_default() {
        context.out.learn_cpus(host.get("number-of-cpus").and_then(Value::number).unwrap_or(0.0));
        for entry in host.get("statistics").map(Value::items).unwrap_or_default() {
            if let Some(report) = report(entry, context) {
                put(entry, report, context);
            }
        }
    }
    if context.out.count() == before {
        context.unread.push(0);
    }
    document.used
}

/// When an entry was recorded, and over which time.
fn report(entry: &Value, context: &mut Context) -> Option<Report> {
    let stamp = entry.get("timestamp")?;
    let (day, time) = (stamp.get("date")?.text()?, stamp.get("time")?.text()?);
    let interval_s = stamp.get("interval")?.number().filter(|seconds| (0.0..1e7).contains(seconds))?;
    let at = clock::parse_rfc3339(&format!("{day}T{time}Z"))?;
    if !stamp.get("utc").is_some_and(Value::is_true) {
        context.out.note("times without a zone were read as UTC");
    }
    context.set_time(at);
    Some(Report { at, interval_ns: (interval_s * 1e9) as i64 })
}

fn put(entry: &Value, report: Report, context: &mut Context) {
    let number = |section: &str, field: &str| entry.at(&[section, field]).and_then(Value::number);
    for cpu in ["cpu-load", "cpu-load-all"].iter().filter_map(|name| entry.get(name)).flat_map(Value::items) {
        let name = cpu.get("cpu");
        if name.and_then(Value::text) == Some("all") || name.and_then(Value::number) == Some(-1.0) {
            let shares = MODES.iter().filter_map(|(field, mode)| Some((*mode, cpu.get(field)?.number()?)));
            context.out.cpu("sadf", report, &shares.collect::<Vec<_>>());
        }
    }
    for (section, field, metric, label) in RATES {
        if let Some(value) = number(section, field) {
            context.out.rate("sadf", report, HOST, (metric, Labels::new(label)), value);
        }
    }
    let averages = ["ldavg-1", "ldavg-5", "ldavg-15"].map(|field| number("queue", field));
    if let [Some(one), Some(five), Some(fifteen)] = averages {
        uptime::put([one, five, fifteen], report.at, context);
    }
    if let Some(runnable) = number("queue", "runq-sz") {
        context.out.host(report.at, metrics::host::PROCESSES_RUNNABLE, Labels::none(), runnable);
    }
    for (field, state) in MEMORY {
        if let Some(value) = number("memory", field) {
            let labels = Labels::new([("state", state)]);
            context.out.host(report.at, metrics::host::MEMORY_USAGE_BYTES, labels, value * 1024.0);
        }
    }
    if let Some(available) = number("memory", "avail") {
        context.out.host(report.at, metrics::host::MEMORY_AVAILABLE_BYTES, Labels::none(), available * 1024.0);
    }
    for (field, state) in [("swpused", "used"), ("swpfree", "free")] {
        if let Some(value) = number("memory", field) {
            let labels = Labels::new([("state", state)]);
            context.out.host(report.at, metrics::host::PAGING_USAGE_BYTES, labels, value * 1024.0);
        }
    }
    for disk in entry.get("disk").map(Value::items).unwrap_or_default() {
        put_disk(disk, report, context);
    }
    for part in ["net-dev", "net-edev"] {
        for interface in entry.at(&["network", part]).map(Value::items).unwrap_or_default() {
            let Some(device) = interface.get("iface").and_then(Value::text) else { continue };
            for (field, factor, metric, direction) in OF_INTERFACE {
                if let Some(value) = interface.get(field).and_then(Value::number) {
                    let labels = Labels::new([("device", device), ("direction", direction)]);
                    context.out.rate("sadf", report, HOST, (metric, labels), value * factor);
                }
            }
        }
    }
}

/// Sizes are in KiB since 12, before that in sectors.
fn put_disk(disk: &Value, report: Report, context: &mut Context) {
    let Some(device) = disk.get("disk-device").and_then(Value::text) else { return };
    let number = |fields: &[&str]| fields.iter().find_map(|field| disk.get(field)?.number());
    let bytes = |kilobytes: &str, sectors: &str| {
        number(&[kilobytes]).map(|value| value * 1024.0).or_else(|| Some(number(&[sectors])? * 512.0))
    };
    for (metric, direction, value) in [
        (metrics::host::DISK_IO_BYTES, Some("read"), bytes("rkB", "rd_sec")),
        (metrics::host::DISK_IO_BYTES, Some("write"), bytes("wkB", "wr_sec")),
        (metrics::host::DISK_IO_TIME, None, number(&["util-percent", "util"]).map(|percent| percent / 100.0)),
        (metrics::host::DISK_WEIGHTED_IO_TIME, None, number(&["aqu-sz", "avgqu-sz"])),
    ] {
        let Some(value) = value else { continue };
        let labels = Labels::new([("device", device)]);
        let labels = direction.map_or_else(|| labels.clone(), |name| labels.clone().with("direction", name));
        context.out.rate("sadf", report, HOST, (metric, labels), value);
    }
}
