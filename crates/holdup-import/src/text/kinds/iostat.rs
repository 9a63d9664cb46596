//! `iostat`: CPU shares and, per device, what `/proc/diskstats` counts. Columns are read by their
//! names, of all versions since 9. The first report below its banner covers the time since boot.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, host};

use super::figure::{self, Figure, KIB, MIB, PERCENT, PLAIN, SECTORS, figure};
use super::{Columns, Context, HOST, Kind, Line, Report, Row, clock, cpu_table, size, text};

pub(super) const KIND: Kind = Kind::lines("iostat", recognises, read);

/// The first line of sysstat's tools: kernel, host, date, number of CPUs.
pub(super) const BANNER: Kind = Kind::lines(
    "sysstat banner",
    |lines| banner(text(lines, 0)),
    |lines, context| {
        let line = text(lines, 0);
        let cpus = line.rsplit_once('(').and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok());
        context.out.learn_cpus(cpus.unwrap_or(0.0));
        let day = line.split_whitespace().find_map(|word| clock::leading(&format!("{word} 00:00:00")).0);
        if let Some(day) = day {
            context.set_day(day);
        }
        context.begin_banner();
        1
    },
);

fn banner(line: &str) -> bool {
    line.starts_with("Linux ") && line.contains('(') && line.trim_end().ends_with("CPU)")
}

const READ: Option<(&str, &str)> = Some(("direction", "read"));
const WRITE: Option<(&str, &str)> = Some(("direction", "write"));

/// What a device does in a second, of all versions.
const FIGURES: [Figure; 16] = [
    figure(&["r/s"], PLAIN, host::DISK_OPERATIONS, READ),
    figure(&["w/s"], PLAIN, host::DISK_OPERATIONS, WRITE),
    figure(&["rrqm/s"], PLAIN, host::DISK_MERGED, READ),
    figure(&["wrqm/s"], PLAIN, host::DISK_MERGED, WRITE),
    figure(&["rkB/s", "kB_read/s"], KIB, host::DISK_IO_BYTES, READ),
    figure(&["wkB/s", "kB_wrtn/s"], KIB, host::DISK_IO_BYTES, WRITE),
    figure(&["rMB/s", "MB_read/s"], MIB, host::DISK_IO_BYTES, READ),
    figure(&["wMB/s", "MB_wrtn/s"], MIB, host::DISK_IO_BYTES, WRITE),
    figure(&["rsec/s", "Blk_read/s"], SECTORS, host::DISK_IO_BYTES, READ),
    figure(&["wsec/s", "Blk_wrtn/s"], SECTORS, host::DISK_IO_BYTES, WRITE),
    // Of FreeBSD.
    figure(&["kr/s"], KIB, host::DISK_IO_BYTES, READ),
    figure(&["kw/s"], KIB, host::DISK_IO_BYTES, WRITE),
    figure(&["%util", "%b"], PERCENT, host::DISK_IO_TIME, None),
    figure(&["aqu-sz", "avgqu-sz", "qlen"], PLAIN, host::DISK_WEIGHTED_IO_TIME, None),
    figure(&["d/s"], PLAIN, host::DISK_DISCARDS, None),
    figure(&["f/s"], PLAIN, host::DISK_FLUSHES, None),
];

/// Columns with operations a second and with the wait of one, milliseconds.
const WAITS: [(&str, &[&str], Metric, Option<&str>); 3] = [
    ("r/s", &["r_await", "await", "ms/r"], host::DISK_OPERATION_TIME, Some("read")),
    ("w/s", &["w_await", "await", "ms/w"], host::DISK_OPERATION_TIME, Some("write")),
    ("f/s", &["f_await"], host::DISK_FLUSH_TIME, None),
];

/// Names of the first column.
const DEVICE: [&str; 3] = ["Device:", "Device", "device"];

fn is_cpu(line: &str) -> bool {
    line.starts_with("avg-cpu:")
}

fn is_devices(line: &str) -> bool {
    let columns = Columns::new(line);
    columns.has_any(&DEVICE) && columns.has_any(&["r/s", "rd_sec/s", "tps"]) && columns.len() > 3
}

fn recognises(lines: &[Line]) -> bool {
    is_cpu(text(lines, 0)) || is_devices(text(lines, 0))
}

/// Reads one report: CPU shares, devices, or both with one empty line between them.
fn read(lines: &[Line], context: &mut Context) -> usize {
    let is_since_boot = context.is_since_boot("iostat");
    let report = Report { is_since_boot, ..context.report("iostat", 1.0) };
    let mut used = 0;
    if is_cpu(text(lines, 0)) {
        let header = text(lines, 0).replace("avg-cpu:", " ");
        let columns = Columns::new(&header);
        let row = columns.row(text(lines, 1));
        let shares = cpu_table::shares(|names| row.number(names), &[]);
        context.out.cpu("iostat", report, &shares);
        used = if shares.is_empty() { 1 } else { 2 };
        let blanks = lines.iter().skip(used).take_while(|line| line.is_blank()).count();
        if !is_devices(text(lines, used + blanks)) {
            return used;
        }
        used += blanks;
    }
    let columns = Columns::new(text(lines, used));
    used += 1;
    for (place, line) in lines.iter().enumerate().skip(used) {
        let row = columns.row(&line.text);
        if line.is_blank() || is_cpu(&line.text) || is_devices(&line.text) {
            break;
        }
        match row.text(&DEVICE) {
            Some(device) if row.len() > 2 => {
                if !is_partition(device) {
                    put(device, &row, report, context);
                }
            }
            _ => context.unread.push(place),
        }
        used = place + 1;
    }
    used
}

/// Whether a name is that of a partition: the collector reads whole devices.
pub(super) fn is_partition(device: &str) -> bool {
    let letters = device.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = letters.len() < device.len();
    let by_p = ["nvme", "mmcblk", "loop", "md", "nbd"].iter().any(|prefix| device.starts_with(prefix));
    is_numbered
        && if by_p {
            letters.ends_with('p') && letters.trim_end_matches('p').ends_with(|c: char| c.is_ascii_digit())
        } else {
            ["sd", "vd", "xvd", "hd"].iter().any(|prefix| device.starts_with(prefix))
        }
}

fn put(device: &str, row: &Row<'_, '_>, report: Report, context: &mut Context) {
    let labels = Labels::new([("device", device)]);
    let number = |names: &[&str], base: f64| size(row.text(names)?, 1.0, base);
    // A suffix of a size is binary, and stands instead of the column's unit.
    let value = |figure: &Figure| match figure.per < PLAIN {
        true => size(row.text(figure.columns)?, 1.0 / figure.per, 1024.0),
        false => figure.of(|names| number(names, 1000.0)),
    };
    figure::rates(&FIGURES, ("iostat", report), &labels, context, &value);
    for (operations, wait_ms, metric, direction) in WAITS {
        let waited = number(&[operations], 1000.0).zip(number(wait_ms, 1000.0)).map(|(a, wait_ms)| a * wait_ms / 1e3);
        let labels = direction.map_or_else(|| labels.clone(), |direction| labels.clone().with("direction", direction));
        if let Some(seconds) = waited {
            context.out.rate("iostat", report, HOST, (metric, labels), seconds);
        }
    }
}
