//! `sar` as text: CPU (`-u`), load (`-q`), memory (`-r`), swapping (`-W`), context switches (`-w`),
//! devices (`-d`), interfaces (`-n DEV`, `-n EDEV`), TCP (`-n TCP`,
//! `-n ETCP`), page faults (`-B`). A section's header has the time at which its first interval begins.

use super::mpstat::timed;
use super::sysstat::{DISK, INTERFACE, put_device, put_host};
use super::{Columns, Context, DAY_NS, Kind, Line, Report, Row, cpu_table, text};

pub(super) const KIND: Kind = Kind::lines("sar", recognises, read);

/// Sections, by a column that only they have.
const SECTIONS: [&str; 14] = [
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
    "active/s",
    "retrans/s",
    "pgpgin/s",
];

fn header(line: &str) -> Option<(i64, &str)> {
    let (time, rest) = timed(line)?;
    let columns = Columns::new(rest);
    // `pidstat` has columns of the same names.
    let is_own = !columns.has_any(&["Command"]);
    (is_own && columns.has_any(&SECTIONS)).then_some((time?, rest))
}

fn recognises(lines: &[Line]) -> bool {
    header(text(lines, 0)).is_some()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some((start, names)) = header(text(lines, 0)) else { return 1 };
    let columns = Columns::new(names);
    let day = context.day();
    let mut report = Report { at: day.saturating_add(start), interval_ns: 0, is_since_boot: false };
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
            report = Report { at, interval_ns: at.saturating_sub(report.at), is_since_boot: false };
        }
        put(&columns.row(rest), report, context);
    }
    context.set_time(report.at);
    used
}

fn put(row: &Row<'_, '_>, report: Report, context: &mut Context) {
    let number = |names: &[&str]| row.number(names);
    match (row.text(&["CPU"]), row.text(&["DEV"]), row.text(&["IFACE"])) {
        (Some("all"), ..) => context.out.cpu("sar", report, &cpu_table::shares(number, &[])),
        (Some(_), ..) => context.out.learn_cpus(number(&["CPU"]).map_or(0.0, |last| last + 1.0)),
        (_, Some(disk), _) => put_device(&DISK, disk, ("sar", report), context, &number),
        (.., Some(interface)) => put_device(&INTERFACE, interface, ("sar", report), context, &number),
        _ => put_host("sar", report, context, &number),
    }
}
