//! `vmstat`: CPU shares, swapping, context switches, free memory. Its first line covers the time
//! since boot, so that gives only what it reads at the instant. `b` is left out: the kernel's count
//! of blocked processes hides most threads in uninterruptible sleep. Blocks in and out name no
//! disk.

use holdup_recording::{Labels, metrics};

use super::super::clock;
use super::super::columns::{Columns, Values};
use super::super::context::Context;
use super::super::number::number;
use super::super::out::{HOST, Report};
use super::super::paste::Line;
use super::{Kind, cpu_table, text};

pub(super) const KIND: Kind = Kind { name: "vmstat", recognises, read };

/// Bytes of a page on the machines that holdup knows.
const PAGE_BYTES: f64 = 4096.0;

fn is_header(line: &str) -> bool {
    let columns = Columns::new(line);
    ["r", "b", "si", "so", "us", "id"].iter().all(|name| columns.place(&[name]).is_some())
}

/// `procs ---memory---`, wide `--procs-- ---memory---`
fn is_banner(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("procs ") || line.starts_with("--procs-")
}

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    is_banner(first) && is_header(text(lines, 1)) || is_header(first)
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let mut columns = Columns::new("");
    let mut used = 0;
    for line in lines {
        let line_text = line.text.as_str();
        if is_header(line_text) {
            columns = Columns::new(line_text);
        } else if !is_banner(line_text) {
            let row = columns.row(line_text);
            let is_row = row.number(&["r"]).is_some() && row.number(&["b"]).is_some();
            if !is_row || line.is_blank() {
                break;
            }
            take_time(line, columns.len(), context);
            // Nothing else tells: a run's first line is followed by others, a single one may be cut out.
            let is_first = context.reports("vmstat") == 0 && lines.len() > used + 1;
            put(&row, is_first, context);
        }
        used += 1;
    }
    used
}

/// A row's time: a stamp before it, or date and time in its last columns (`-t`).
fn take_time(line: &Line, columns: usize, context: &mut Context) {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let last = words.len().checked_sub(2).and_then(|from| words.get(from..)).map(|words| words.join(" "));
    let own = last.filter(|_| words.len() >= columns).and_then(|last| clock::leading(&last).0);
    if let Some(at) = own.or(line.stamp) {
        context.set_time(at);
    }
}

fn put(row: &Values<'_, '_>, is_first: bool, context: &mut Context) {
    let is_since_boot = context.is_since_boot("vmstat") || is_first;
    let report = context.report("vmstat", 1.0);
    instant(row, report.at, context);
    if is_since_boot {
        context.out.note("vmstat: the first line of each run covers the time since boot; its rates were left out");
        return;
    }
    let unit = unit_bytes(context);
    context.out.cpu("vmstat", report, &cpu_table::shares(row, &["softirq"]));
    let mut rate = |metric, label: Option<(&str, &str)>, value: Option<f64>| {
        if let Some(value) = value {
            context.out.rate("vmstat", Report { ..report }, HOST, (metric, Labels::new(label)), value);
        }
    };
    rate(metrics::host::CONTEXT_SWITCHES, None, row.number(&["cs"]));
    for (name, direction) in [("si", "in"), ("so", "out")] {
        let pages = row.number(&[name]).map(|units| units * unit / PAGE_BYTES);
        rate(metrics::host::PAGING_OPERATIONS, Some(("direction", direction)), pages);
    }
}

fn instant(row: &Values<'_, '_>, at: i64, context: &mut Context) {
    let unit = unit_bytes(context);
    if let Some(runnable) = row.number(&["r"]) {
        context.out.host(at, metrics::host::PROCESSES_RUNNABLE, Labels::none(), runnable);
    }
    for (name, state) in [("free", "free"), ("buff", "buffers"), ("cache", "cached")] {
        if let Some(value) = row.text(&[name]).and_then(number) {
            let labels = Labels::new([("state", state)]);
            context.out.host(at, metrics::host::MEMORY_USAGE_BYTES, labels, value * unit);
        }
    }
    if let Some(used) = row.number(&["swpd"]) {
        let labels = Labels::new([("state", "used")]);
        context.out.host(at, metrics::host::PAGING_USAGE_BYTES, labels, used * unit);
    }
}

/// Bytes of the unit of memory columns: KiB, or by `-S`.
fn unit_bytes(context: &Context) -> f64 {
    let mut words = context.words().skip_while(|word| !word.starts_with("-S"));
    let unit = match words.next() {
        Some("-S") => words.next(),
        Some(word) => word.strip_prefix("-S"),
        None => None,
    };
    match unit {
        Some("k") => 1e3,
        Some("m") => 1e6,
        Some("M") => 1_048_576.0,
        _ => 1024.0,
    }
}
