//! `sar` as text: CPU (`-u`), load (`-q`), memory (`-r`), swapping (`-W`), context switches (`-w`),
//! devices (`-d`), interfaces (`-n DEV`, `-n EDEV`), page faults (`-B`). A section's header has the time at which its first interval begins.

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::super::clock::DAY_NS;
use super::super::columns::{Columns, Values};
use super::super::context::Context;
use super::super::out::{HOST, Report};
use super::super::paste::Line;
use super::mpstat::timed;
use super::{Kind, cpu_table, text, uptime};

pub(super) const KIND: Kind = Kind { name: "sar", recognises, read };

/// Bytes of a page.
const PAGE_BYTES: f64 = 4096.0;

/// Sections, by a column that only they have.
const SECTIONS: [&str; 11] = [
    "kbswpfree",
    "%user",
    "%usr",
    "ldavg-1",
    "kbmemfree",
    "pswpin/s",
    "cswch/s",
    "majflt/s",
    "DEV",
    "rxpck/s",
    "rxerr/s",
];

/// Rates of an interface: column, factor, metric, direction.
const OF_INTERFACE: [(&str, f64, Metric, &str); 10] = [
    ("rxpck/s", 1.0, metrics::host::NETWORK_PACKETS, "receive"),
    ("txpck/s", 1.0, metrics::host::NETWORK_PACKETS, "transmit"),
    ("rxkB/s", 1024.0, metrics::host::NETWORK_IO_BYTES, "receive"),
    ("txkB/s", 1024.0, metrics::host::NETWORK_IO_BYTES, "transmit"),
    ("rxbyt/s", 1.0, metrics::host::NETWORK_IO_BYTES, "receive"),
    ("txbyt/s", 1.0, metrics::host::NETWORK_IO_BYTES, "transmit"),
    ("rxerr/s", 1.0, metrics::host::NETWORK_ERRORS, "receive"),
    ("txerr/s", 1.0, metrics::host::NETWORK_ERRORS, "transmit"),
    ("rxdrop/s", 1.0, metrics::host::NETWORK_DROPPED, "receive"),
    ("txdrop/s", 1.0, metrics::host::NETWORK_DROPPED, "transmit"),
];

fn header(line: &str) -> Option<(i64, &str)> {
    let (time, rest) = timed(line)?;
    let columns = Columns::new(rest);
    // `pidstat` has columns of the same names.
    let is_own = columns.place(&["Command"]).is_none();
    SECTIONS.iter().filter(|_| is_own).any(|name| columns.place(&[name]).is_some()).then_some((time?, rest))
}

fn recognises(lines: &[Line]) -> bool {
    header(text(lines, 0)).is_some()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some((start, names)) = header(text(lines, 0)) else { return 1 };
    let columns = Columns::new(names);
    let day = context.day();
    let mut report = Report { at: day.saturating_add(start), interval_ns: 0 };
    let mut used = 1;
    for line in lines.iter().skip(1) {
        let Some((time, rest)) = timed(&line.text).filter(|_| header(&line.text).is_none()) else { break };
        used += 1;
        let Some(time) = time.filter(|_| !rest.contains("RESTART")) else { continue };
        let mut at = day.saturating_add(time);
        // A section ends after midnight.
        if at < report.at {
            at = at.saturating_add(DAY_NS);
        }
        if at > report.at {
            report = Report { at, interval_ns: at.saturating_sub(report.at) };
        }
        put(&columns.row(rest), report, context);
    }
    context.set_time(report.at);
    used
}

fn put(row: &Values<'_, '_>, report: Report, context: &mut Context) {
    if row.text(&["CPU"]).is_some() {
        match row.text(&["CPU"]) {
            Some("all") => context.out.cpu("sar", report, &cpu_table::shares(row, &[])),
            _ => context.out.learn_cpus(row.number(&["CPU"]).map_or(0.0, |last| last + 1.0)),
        }
        return;
    }
    if let Some(device) = row.text(&["DEV"]) {
        return put_device(device, row, report, context);
    }
    if let Some(device) = row.text(&["IFACE"]) {
        for (column, factor, metric, direction) in OF_INTERFACE {
            if let Some(value) = row.number(&[column]) {
                let labels = Labels::new([("device", device), ("direction", direction)]);
                context.out.rate("sar", report, HOST, (metric, labels), value * factor);
            }
        }
        return;
    }
    let averages = ["ldavg-1", "ldavg-5", "ldavg-15"].map(|name| row.number(&[name]));
    if let [Some(one), Some(five), Some(fifteen)] = averages {
        uptime::put([one, five, fifteen], report.at, context);
    }
    if let Some(runnable) = row.number(&["runq-sz"]) {
        context.out.host(report.at, metrics::host::PROCESSES_RUNNABLE, Labels::none(), runnable);
    }
    let states = [("kbmemfree", "free"), ("kbbuffers", "buffers"), ("kbcached", "cached")];
    for (name, state) in states {
        if let Some(value) = row.number(&[name]) {
            let labels = Labels::new([("state", state)]);
            context.out.host(report.at, metrics::host::MEMORY_USAGE_BYTES, labels, value * 1024.0);
        }
    }
    if let Some(available) = row.number(&["kbavail"]) {
        context.out.host(report.at, metrics::host::MEMORY_AVAILABLE_BYTES, Labels::none(), available * 1024.0);
    }
    for (name, state) in [("kbswpused", "used"), ("kbswpfree", "free")] {
        if let Some(value) = row.number(&[name]) {
            let labels = Labels::new([("state", state)]);
            context.out.host(report.at, metrics::host::PAGING_USAGE_BYTES, labels, value * 1024.0);
        }
    }
    let rates = [
        ("pswpin/s", metrics::host::PAGING_OPERATIONS, Some(("direction", "in"))),
        ("pswpout/s", metrics::host::PAGING_OPERATIONS, Some(("direction", "out"))),
        ("majflt/s", metrics::host::PAGING_FAULTS, Some(("type", "major"))),
        ("cswch/s", metrics::host::CONTEXT_SWITCHES, None),
        ("proc/s", metrics::host::PROCESS_CREATED, None),
    ];
    for (name, metric, label) in rates {
        if let Some(value) = row.number(&[name]) {
            context.out.rate("sar", report, HOST, (metric, Labels::new(label)), value);
        }
    }
}

/// A device has one wait for reads and writes together, and sizes but no counts by direction.
fn put_device(device: &str, row: &Values<'_, '_>, report: Report, context: &mut Context) {
    let mut rate = |metric, direction: Option<&str>, value: Option<f64>| {
        let Some(value) = value else { return };
        let labels = Labels::new([("device", device)]);
        let labels = direction.map_or_else(|| labels.clone(), |name| labels.clone().with("direction", name));
        context.out.rate("sar", report, HOST, (metric, labels), value);
    };
    for (direction, kilobytes, sectors) in [("read", "rkB/s", "rd_sec/s"), ("write", "wkB/s", "wr_sec/s")] {
        let bytes = row.number(&[kilobytes]).map(|value| value * 1024.0);
        let bytes = bytes.or_else(|| row.number(&[sectors]).map(|value| value * PAGE_BYTES / 8.0));
        rate(metrics::host::DISK_IO_BYTES, Some(direction), bytes);
    }
    rate(metrics::host::DISK_IO_TIME, None, row.number(&["%util"]).map(|percent| percent / 100.0));
    rate(metrics::host::DISK_WEIGHTED_IO_TIME, None, row.number(&["aqu-sz", "avgqu-sz"]));
}
