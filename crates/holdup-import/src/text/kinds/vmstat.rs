//! `vmstat`: CPU shares, swapping, context switches, free memory. The rates of its first line cover the
//! time since boot. `b` is left out: the kernel's count
//! of blocked processes hides most threads in uninterruptible sleep. Blocks in and out name no
//! disk.

use holdup_recording::Labels;
use holdup_recording::metrics::host;

use super::figure::{self, Figure, PLAIN, figure};
use super::{Columns, Context, HOST, Kind, Line, Report, Row, clock, cpu_table, text, time_of_day};

pub(super) const KIND: Kind = Kind::lines("vmstat", recognises, read);

/// Bytes of a page on the machines that holdup knows.
const PAGE_BYTES: f64 = 4096.0;

const RUNNABLE: [Figure; 1] = [figure(&["r"], PLAIN, host::PROCESSES_RUNNABLE, None)];

/// In the unit of the command.
const MEMORY: [Figure; 4] = [
    figure(&["free"], PLAIN, host::MEMORY_USAGE_BYTES, Some(("state", "free"))),
    figure(&["buff"], PLAIN, host::MEMORY_USAGE_BYTES, Some(("state", "buffers"))),
    figure(&["cache"], PLAIN, host::MEMORY_USAGE_BYTES, Some(("state", "cached"))),
    figure(&["swpd"], PLAIN, host::PAGING_USAGE_BYTES, Some(("state", "used"))),
];

/// In that unit, each second.
const SWAPPED: [Figure; 2] = [
    figure(&["si"], PLAIN, host::PAGING_OPERATIONS, Some(("direction", "in"))),
    figure(&["so"], PLAIN, host::PAGING_OPERATIONS, Some(("direction", "out"))),
];

fn is_header(line: &str) -> bool {
    let columns = Columns::new(line);
    columns.has(&["r", "b", "si", "so", "us", "id"])
}

/// `procs ---memory---`, wide `--procs-- ---memory---`; collectors put the time in front of it.
fn is_banner(line: &str) -> bool {
    line.split_whitespace().take(2).any(|word| word.trim_matches('-') == "procs")
}

/// The time of day in front of a row, and the row.
fn timed(line: &str) -> (Option<i64>, &str) {
    let line = line.trim_start();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let time = if first.contains(':') { time_of_day(first, None) } else { None };
    if time.is_some() { (time, rest) } else { (None, line) }
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
            // The column in front that holds the time does not come from `vmstat`.
            let from = line_text.find(" r ").or_else(|| line_text.find("r ")).unwrap_or(0);
            columns = Columns::new(line_text.get(from..).unwrap_or(line_text));
        } else if !is_banner(line_text) {
            let (time, values) = timed(line_text);
            let row = columns.row(values);
            let is_row = row.number(&["r"]).is_some() && row.number(&["b"]).is_some();
            if !is_row || line.is_blank() {
                break;
            }
            take_time(line, (time, values, columns.len()), context);
            // Nothing else tells: a run's first line is followed by others, a single one may be cut out.
            let is_first = context.reports("vmstat") == 0 && lines.len() > used + 1;
            put(&row, is_first, context);
        }
        used += 1;
    }
    used
}

/// A row's time: a stamp or a time of day before it, or date and time in its last columns (`-t`).
fn take_time(line: &Line, (time, values, columns): (Option<i64>, &str, usize), context: &mut Context) {
    if let Some(time) = time {
        context.set_time_of_day(time);
    }
    let words: Vec<&str> = values.split_whitespace().collect();
    let last = words.len().checked_sub(2).and_then(|from| words.get(from..)).map(|words| words.join(" "));
    let own = last.filter(|_| words.len() >= columns).and_then(|last| clock::leading(&last).0);
    if let Some(at) = own.or(line.stamp) {
        context.set_time(at);
    }
}

fn put(row: &Row<'_, '_>, is_first: bool, context: &mut Context) {
    let is_since_boot = context.is_since_boot("vmstat") || is_first;
    let report = Report { is_since_boot, ..context.report("vmstat", 1.0) };
    let unit = unit_bytes(context);
    let number = |names: &[&str]| row.number(names);
    figure::gauges(&RUNNABLE, report.at, context, &|figure| figure.of(number));
    figure::gauges(&MEMORY, report.at, context, &|figure| figure.of(number).map(|units| units * unit));
    context.out.cpu("vmstat", report, &cpu_table::shares(number, &["softirq"]));
    if let Some(switches) = number(&["cs"]) {
        context.out.rate("vmstat", report, HOST, (host::CONTEXT_SWITCHES, Labels::none()), switches);
    }
    let pages = |figure: &Figure| figure.of(number).map(|units| units * unit / PAGE_BYTES);
    figure::rates(&SWAPPED, ("vmstat", report), &Labels::none(), context, &pages);
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
