//! `dstat` and `dool`: CPU shares, swapping and context switches by the groups of their header. Its first
//! line covers the time since boot. Bytes of disks and networks are sums over devices, and name none.

use holdup_recording::Labels;
use holdup_recording::metrics::host;

use super::{Context, HOST, Kind, Line, Report, size, text};

pub(super) const KIND: Kind = Kind::lines("dstat", recognises, read);

/// Names of CPU columns and the collector's modes.
const MODES: [(&str, &str); 7] = [
    ("usr", "user"),
    ("sys", "system"),
    ("idl", "idle"),
    ("wai", "iowait"),
    ("hiq", "interrupt"),
    ("siq", "softirq"),
    ("stl", "steal"),
];

/// Bytes of a page on the machines that holdup knows.
const PAGE_BYTES: f64 = 4096.0;

/// `----total-usage---- -dsk/total- …`
fn is_groups(line: &str) -> bool {
    line.starts_with("--")
        && ["-cpu-usage", "total-usage", "-dsk/", "-net/", "-paging-"].iter().any(|it| line.contains(it))
}

fn is_header(line: &str) -> bool {
    let words = columns(line).concat();
    let has = |name: &str| words.contains(&name);
    has("usr") && has("sys") && has("idl")
}

/// The words of each group.
fn columns(line: &str) -> Vec<Vec<&str>> {
    line.split(['|', ':']).map(|group| group.split_whitespace().collect()).collect()
}

fn recognises(lines: &[Line]) -> bool {
    is_groups(text(lines, 0)) && is_header(text(lines, 1)) || is_header(text(lines, 0))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let (mut groups, mut header, mut used) = ("", "", 0);
    for line in lines {
        let own = line.text.as_str();
        if is_groups(own) {
            groups = own;
        } else if is_header(own) {
            header = own;
        } else if line.is_blank() || !put(groups, header, own, context) {
            break;
        }
        used += 1;
    }
    used.max(1)
}

/// Adds a row; false if it is not a row of this table.
fn put(groups: &str, header: &str, line: &str, context: &mut Context) -> bool {
    // A colon in a row is one of a time, so groups are cut at bars alone.
    let names: Vec<Vec<&str>> = header.split('|').map(|group| group.split_whitespace().collect()).collect();
    let values: Vec<Vec<&str>> = line.split('|').map(|group| group.split_whitespace().collect()).collect();
    let titles: Vec<&str> = groups.split_whitespace().collect();
    let is_row = names.len() == values.len() && line.bytes().any(|byte| byte.is_ascii_digit());
    if !is_row {
        return false;
    }
    let is_since_boot = context.reports("dstat") == 0;
    let report = Report { is_since_boot, ..context.report("dstat", 1.0) };
    for (place, (names, values)) in names.iter().zip(&values).enumerate().filter(|(_, (a, b))| a.len() == b.len()) {
        let value = |name: &str| {
            let at = names.iter().position(|known| *known == name)?;
            size(values.get(at)?, 1.0, 1024.0)
        };
        let shares: Vec<(&str, f64)> = MODES.iter().filter_map(|(name, mode)| Some((*mode, value(name)?))).collect();
        if shares.len() >= 3 {
            context.out.cpu("dstat", report, &shares);
        }
        let is_paging = titles.get(place).is_some_and(|title| title.contains("paging"));
        for direction in ["in", "out"] {
            if let Some(bytes) = value(direction).filter(|_| is_paging) {
                let of = (host::PAGING_OPERATIONS, Labels::new([("direction", direction)]));
                context.out.rate("dstat", report, HOST, of, bytes / PAGE_BYTES);
            }
        }
        if let Some(switches) = value("csw") {
            context.out.rate("dstat", report, HOST, (host::CONTEXT_SWITCHES, Labels::none()), switches);
        }
    }
    true
}
