//! `iostat`: CPU shares and, per device, what `/proc/diskstats` counts. Columns are read by their
//! names, of all versions since 9. The first report below its banner covers the time since boot and
//! is left out.

use holdup_recording::{Labels, metrics};

use super::super::clock;
use super::super::columns::{Columns, Values};
use super::super::context::Context;
use super::super::number::size;
use super::super::out::{HOST, Report};
use super::super::paste::Line;
use super::{Kind, cpu_table, text};

pub(super) const KIND: Kind = Kind { name: "iostat", recognises, read };

/// The first line of sysstat's tools: kernel, host, date, number of CPUs.
pub(super) const BANNER: Kind = Kind {
    name: "sysstat banner",
    recognises: |lines| banner(text(lines, 0)),
    read: |lines, context| {
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
};

fn banner(line: &str) -> bool {
    line.starts_with("Linux ") && line.contains('(') && line.trim_end().ends_with("CPU)")
}

fn is_cpu(line: &str) -> bool {
    line.starts_with("avg-cpu:")
}

fn is_devices(line: &str) -> bool {
    let columns = Columns::new(line);
    let has = |names: &[&str]| columns.place(names).is_some();
    has(&["Device:", "Device"]) && (has(&["r/s", "rd_sec/s"]) || has(&["tps"])) && columns.len() > 3
}

fn recognises(lines: &[Line]) -> bool {
    is_cpu(text(lines, 0)) || is_devices(text(lines, 0))
}

/// Reads one report: CPU shares, devices, or both with one empty line between them.
fn read(lines: &[Line], context: &mut Context) -> usize {
    let is_since_boot = context.is_since_boot("iostat");
    let report = context.report("iostat", 1.0);
    if is_since_boot {
        context.out.note("iostat: the first report of each run covers the time since boot; it was left out");
    }
    let mut used = 0;
    if is_cpu(text(lines, 0)) {
        let header = text(lines, 0).replace("avg-cpu:", " ");
        let columns = Columns::new(&header);
        let shares = cpu_table::shares(&columns.row(text(lines, 1)), &[]);
        if !is_since_boot {
            context.out.cpu("iostat", report, &shares);
        }
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
        match row.text(&["Device:", "Device"]) {
            Some(device) if row.len() > 2 => {
                if !is_since_boot && !is_partition(device) {
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
fn is_partition(device: &str) -> bool {
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

/// Bytes per second below the first of the columns of this direction.
fn bytes(row: &Values<'_, '_>, direction: &str) -> Option<f64> {
    let (short, long) = if direction == "read" { ("r", "read") } else { ("w", "wrtn") };
    let units = [
        (format!("{short}kB/s"), 1024.0),
        (format!("{short}MB/s"), 1_048_576.0),
        (format!("{short}sec/s"), 512.0),
        (format!("kB_{long}/s"), 1024.0),
        (format!("MB_{long}/s"), 1_048_576.0),
        (format!("Blk_{long}/s"), 512.0),
    ];
    units.iter().find_map(|(name, unit)| size(row.text(&[name])?, *unit, 1024.0))
}

fn put(device: &str, row: &Values<'_, '_>, report: Report, context: &mut Context) {
    let mut rate = |metric, direction: Option<&str>, value: Option<f64>| {
        let Some(value) = value else { return };
        let labels = Labels::new([("device", device)]);
        let labels = direction.map_or_else(|| labels.clone(), |name| labels.clone().with("direction", name));
        context.out.rate("iostat", report, HOST, (metric, labels), value);
    };
    let number = |name: &str| row.text(&[name]).and_then(|text| size(text, 1.0, 1000.0));
    for (direction, short) in [("read", "r"), ("write", "w")] {
        let operations = number(&format!("{short}/s"));
        let wait_ms = number(&format!("{short}_await")).or_else(|| number("await"));
        let seconds = operations.zip(wait_ms).map(|(operations, wait_ms)| operations * wait_ms / 1e3);
        rate(metrics::host::DISK_OPERATIONS, Some(direction), operations);
        rate(metrics::host::DISK_MERGED, Some(direction), number(&format!("{short}rqm/s")));
        rate(metrics::host::DISK_IO_BYTES, Some(direction), bytes(row, direction));
        rate(metrics::host::DISK_OPERATION_TIME, Some(direction), seconds);
    }
    rate(metrics::host::DISK_IO_TIME, None, row.number(&["%util"]).map(|percent| percent / 100.0));
    rate(metrics::host::DISK_WEIGHTED_IO_TIME, None, number("aqu-sz").or_else(|| number("avgqu-sz")));
    rate(metrics::host::DISK_DISCARDS, None, number("d/s"));
    let flushes = number("f/s");
    let waited = flushes.zip(number("f_await")).map(|(flushes, wait_ms)| flushes * wait_ms / 1e3);
    rate(metrics::host::DISK_FLUSHES, None, flushes);
    rate(metrics::host::DISK_FLUSH_TIME, None, waited);
}
