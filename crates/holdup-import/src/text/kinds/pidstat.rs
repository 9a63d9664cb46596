//! `pidstat`: CPU, disk, faults, memory, context switches and descriptors of single processes, as
//! tables by activity or on one line (`-h`). A header has the time at which its interval begins, so
//! a table whose rows have the same time covers the time since boot.
//!
//! Waits for a CPU and for disks are those of one thread: they count only where all threads are
//! listed (`-t`).

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::mpstat::timed;
use super::ps::comm;
use super::{Columns, Context, DAY_NS, Kind, Line, Report, Row, is_half, number, size, text, time_of_day};

pub(super) const KIND: Kind = Kind::lines("pidstat", recognises, read);

/// Clock ticks in a second, in which waits for disks are counted.
const TICKS_PER_SECOND: f64 = 100.0;

/// A label that only some metrics have.
type OptionalLabel = Option<(&'static str, &'static str)>;

/// Columns with a rate: unit of a number without a suffix, metric, label.
const RATES: [(&str, f64, Metric, OptionalLabel); 8] = [
    ("minflt/s", 1.0, metrics::process::MINOR_FAULTS, None),
    ("majflt/s", 1.0, metrics::process::MAJOR_FAULTS, None),
    ("kB_rd/s", 1024.0, metrics::process::DISK_IO_BYTES, Some(("direction", "read"))),
    ("kB_wr/s", 1024.0, metrics::process::DISK_IO_BYTES, Some(("direction", "write"))),
    ("cswch/s", 1.0, metrics::process::CONTEXT_SWITCHES, Some(("type", "voluntary"))),
    ("nvcswch/s", 1.0, metrics::process::CONTEXT_SWITCHES, Some(("type", "involuntary"))),
    ("%usr", 0.01, metrics::process::CPU_TIME, Some(("cpu_mode", "user"))),
    ("%system", 0.01, metrics::process::CPU_TIME, Some(("cpu_mode", "system"))),
];

/// Columns of an activity, of which a header has one.
const ACTIVITIES: [&str; 8] = ["%usr", "%CPU", "kB_rd/s", "minflt/s", "cswch/s", "StkSize", "fd-nr", "policy"];

struct Header<'t> {
    /// When the interval begins; none on a line for all activities, or above averages.
    start: Option<i64>,
    is_average: bool,
    is_one_line: bool,
    columns: Columns<'t>,
}

fn header(line: &str) -> Option<Header<'_>> {
    let one_line = line.trim_start().strip_prefix('#').map(str::trim_start);
    let one_line = one_line.and_then(|rest| rest.strip_prefix("Time"));
    let (start, names) = match one_line {
        Some(names) => (None, names),
        None => timed(line)?,
    };
    let columns = Columns::new(names).with_words(&["Command"]);
    let marks: [&[&str]; 4] = [&["PID", "TGID"], &["Command"], &ACTIVITIES, &["UID", "USER"]];
    let is_own = marks.iter().all(|names| columns.has_any(names));
    let (is_one_line, is_average) = (one_line.is_some(), one_line.is_none() && start.is_none());
    is_own.then_some(Header { start, is_average, is_one_line, columns })
}

/// Whether a line that begins as a prompt does is this tool's header.
pub(in super::super) fn is_header(line: &str) -> bool {
    header(line).is_some()
}

fn recognises(lines: &[Line]) -> bool {
    is_header(text(lines, 0))
}

/// When a row was printed, and the rest of it.
enum RowTime {
    OfDay(i64),
    Epoch(i64),
}

fn row_time(line: &str) -> Option<(RowTime, &str)> {
    let line = line.trim_start();
    let (first, rest) = line.split_once(char::is_whitespace)?;
    if first.len() == 10 && first.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((RowTime::Epoch(first.parse::<i64>().ok()?.saturating_mul(1_000_000_000)), rest));
    }
    let rest = rest.trim_start();
    let half = rest.split_once(char::is_whitespace).filter(|(word, _)| is_half(word));
    let time = time_of_day(first, half.map(|(half, _)| half)).filter(|_| first.matches(':').count() == 2)?;
    Some((RowTime::OfDay(time), half.map_or(rest, |(_, after)| after)))
}

/// Waits of a process' threads: for a CPU, percent; for disks, ticks.
type Waits = BTreeMap<i64, (f64, f64)>;

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some(header) = header(text(lines, 0)) else { return 1 };
    let mut used = 1;
    let mut report: Option<Report> = None;
    let mut waits = Waits::new();
    let mut pid = None;
    for (place, line) in lines.iter().enumerate().skip(1) {
        if line.is_blank() || is_header(&line.text) {
            break;
        }
        if header.is_average && timed(&line.text).is_some_and(|(time, _)| time.is_none()) {
            used = place + 1;
            continue;
        }
        let Some((time, rest)) = row_time(&line.text).filter(|_| !header.is_average) else { break };
        used = place + 1;
        let row = header.columns.row(rest);
        pid = row.number(&["PID", "TGID"]).map(|pid| pid as i64).or(pid.filter(|_| row.text(&["TID"]).is_some()));
        let (Some(of), true) = (pid, row.len() >= 3) else {
            context.unread.push(place);
            continue;
        };
        let at = *report.get_or_insert_with(|| begin(&header, time, lines, context));
        put(of, &row, at, &mut waits, context);
    }
    if let Some(report) = report {
        put_waits(&waits, report, context);
    }
    used
}

/// The report of a table's first row.
fn begin(header: &Header<'_>, time: RowTime, lines: &[Line], context: &mut Context) -> Report {
    let is_first = context.reports("pidstat") == 0;
    let length = match (&time, header.start) {
        (RowTime::OfDay(time), Some(start)) => Some((*time - start).rem_euclid(DAY_NS)),
        _ => None,
    };
    let before = context.instant_if_stamped();
    match time {
        RowTime::OfDay(time) => context.set_time_of_day(time),
        RowTime::Epoch(at) => context.set_time(at),
    }
    let is_again = before.is_some() && before == context.instant_if_stamped() && !is_first;
    let at = if is_again { context.again("pidstat") } else { context.report("pidstat", 1.0) };
    let is_since_boot = match length {
        Some(length) => length == 0,
        None => header.is_one_line && is_first && is_alone(lines, context),
    };
    let interval_ns = length.filter(|length| *length > 0).unwrap_or(at.interval_ns);
    Report { at: at.at, interval_ns, is_since_boot }
}

/// Whether no interval is known, and no second report shows one.
fn is_alone(lines: &[Line], context: &Context) -> bool {
    let is_own = |word: &str| word.rsplit('/').next() == Some("pidstat");
    let after = context.words().skip_while(|word| !is_own(word)).skip(1);
    // Behind `-e` stands the program that it runs, with that one's arguments.
    let after = after.take_while(|word| *word != "-e");
    let flags_with_number = ["-p"];
    let mut previous = "";
    let has_interval = after.into_iter().any(|word| {
        let is_number = number(word).is_some() && !flags_with_number.contains(&previous);
        previous = word;
        is_number
    });
    let second = |line: &Line| row_time(&line.text).map(|(RowTime::OfDay(time) | RowTime::Epoch(time), _)| time);
    let mut times = lines.iter().filter_map(second);
    let first = times.next();
    !has_interval && times.all(|time| Some(time) == first)
}

fn put(pid: i64, row: &Row<'_, '_>, report: Report, waits: &mut Waits, context: &mut Context) {
    let source = format!("pid:{pid}");
    // A line of a thread: the process' own line has the sums.
    if row.text(&["TID"]).is_some_and(|tid| tid != "-") {
        let of = waits.entry(pid).or_default();
        of.0 += row.number(&["%wait"]).unwrap_or(0.0);
        of.1 += row.number(&["iodelay"]).unwrap_or(0.0);
        return;
    }
    if let Some(name) = row.text(&["Command"]) {
        context.out.name_process(report.at, pid, comm(name));
    }
    for (column, unit, metric, label) in RATES {
        let mut value = row.text(&[column]).and_then(|value| size(value.trim_end_matches('%'), unit, 1024.0));
        if column == "%usr" {
            let guest = row.number(&["%guest"]).unwrap_or(0.0) / 100.0;
            value = value.map(|user| user + guest);
        }
        if let Some(value) = value {
            context.out.rate("pidstat", report, &source, (metric, Labels::new(label)), value);
        }
    }
    let resident = row.text(&["RSS"]).and_then(|value| size(value, 1024.0, 1024.0));
    for (metric, value) in [
        (metrics::process::MEMORY_USAGE_BYTES, resident),
        (metrics::process::OPEN_FILE_DESCRIPTORS, row.number(&["fd-nr"])),
    ] {
        if let Some(value) = value.filter(|value| *value >= 0.0) {
            context.out.gauge(report.at, &source, metric.name, Labels::none(), value);
        }
    }
}

fn put_waits(waits: &Waits, report: Report, context: &mut Context) {
    for (pid, (percent, ticks)) in waits {
        let source = format!("pid:{pid}");
        let seconds = report.interval_ns as f64 / 1e9;
        let delay = ticks / TICKS_PER_SECOND / seconds.max(1e-9);
        for (metric, value) in
            [(metrics::process::RUN_QUEUE, percent / 100.0), (metrics::process::BLOCK_IO_DELAY, delay)]
        {
            if value > 0.0 {
                context.out.rate("pidstat", report, &source, (metric, Labels::none()), value);
            }
        }
    }
}
