//! `SHOW ENGINE INNODB STATUS`: latches waited for, the latest deadlock, transactions with their waits,
//! undo logs not purged, the log, the buffer pool, and rates since the last status. Statements are
//! redacted.

mod deadlock;
mod semaphores;
mod transactions;

use holdup_recording::metrics::{Metric, mysql};
use holdup_recording::{Labels, metrics};

use super::processlist::SOURCE;
use super::{Context, Kind, Line, Report, footer_line, number, text, until_blank};

pub(super) const KIND: Kind = Kind::lines(NAME, recognises, read);

const NAME: &str = "SHOW ENGINE INNODB STATUS";

/// Long waits for latches, as the server's log has them.
pub(super) const LATCHES: Kind =
    Kind::lines("InnoDB: long semaphore waits", |lines| semaphores::is_logged(text(lines, 0)), read_latches);

fn read_latches(lines: &[Line], context: &mut Context) -> usize {
    let own = lines.iter().take_while(|line| line.is_blank() || semaphores::is_logged(&line.text)).count();
    let at = lines.iter().take(own).find_map(|line| line.stamp);
    if let Some(at) = at {
        context.set_time(at);
    }
    let at = context.instant();
    semaphores::read(lines.get(..own).unwrap_or_default(), at, context);
    own.max(1)
}

/// The sections, as their titles call them.
const SECTIONS: [&str; 11] = [
    "BACKGROUND THREAD",
    "SEMAPHORES",
    "LATEST FOREIGN KEY ERROR",
    "LATEST DETECTED DEADLOCK",
    "TRANSACTIONS",
    "FILE I/O",
    "INSERT BUFFER AND ADAPTIVE HASH INDEX",
    "LOG",
    "BUFFER POOL AND MEMORY",
    "INDIVIDUAL BUFFER POOL INFO",
    "ROW OPERATIONS",
];

/// Numbers behind words at the start of a line, by section.
const GAUGES: [(&str, &str, Metric); 4] = [
    ("TRANSACTIONS", "History list length", mysql::INNODB_HISTORY_LIST_LENGTH),
    ("BUFFER POOL AND MEMORY", "Buffer pool size ", mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_TOTAL),
    ("BUFFER POOL AND MEMORY", "Free buffers", mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_FREE),
    ("BUFFER POOL AND MEMORY", "Modified db pages", mysql::GLOBAL_STATUS_INNODB_BUFFER_POOL_PAGES_DIRTY),
];

/// Rates (`12.00 reads/s`), by section.
const RATES: [(&str, &str, Metric); 5] = [
    ("FILE I/O", "reads/s", mysql::GLOBAL_STATUS_INNODB_DATA_READS),
    ("BUFFER POOL AND MEMORY", "writes/s", mysql::GLOBAL_STATUS_INNODB_PAGES_WRITTEN),
    ("ROW OPERATIONS", "inserts/s", mysql::GLOBAL_STATUS_INNODB_ROWS_INSERTED),
    ("ROW OPERATIONS", "updates/s", mysql::GLOBAL_STATUS_INNODB_ROWS_UPDATED),
    ("ROW OPERATIONS", "deletes/s", mysql::GLOBAL_STATUS_INNODB_ROWS_DELETED),
];

fn recognises(lines: &[Line]) -> bool {
    let is_title = |at: usize| text(lines, at).contains("INNODB MONITOR OUTPUT");
    let first = text(lines, 0);
    match first {
        _ if is_transaction(first) => true,
        _ if first.starts_with("====") => is_title(1),
        // The vertical form: row, type, name, status.
        _ if first.starts_with("***") => text(lines, 1).contains("InnoDB") && (2..7).any(is_title),
        // A part of it: the title of a section between two rules.
        _ if first.starts_with("----") => {
            let next = text(lines, 1).trim();
            SECTIONS.contains(&next) && next != "LOG" && text(lines, 2).starts_with("----")
        }
        "TRANSACTIONS" | "SEMAPHORES" | "LATEST DETECTED DEADLOCK" => text(lines, 1).starts_with("----"),
        _ => is_title(0) && !first.starts_with("END OF"),
    }
}

/// Whether a transaction begins here, cut out of the status.
fn is_transaction(line: &str) -> bool {
    line.starts_with("---TRANSACTION ")
}

/// The number after `words` in a line. Before 5.1 a position is two numbers of 32 bits.
fn after(line: &str, words: &str) -> Option<f64> {
    let mut numbers = line.trim_start().strip_prefix(words)?.split_whitespace().map(number);
    let first = numbers.next()??;
    match numbers.next() {
        Some(low) if numbers.next().is_none() => Some(first * 4_294_967_296.0 + low?),
        _ => Some(first),
    }
}

/// The sections with their lines.
fn sections(lines: &[Line]) -> Vec<(&'static str, &[Line])> {
    let title = |line: &Line| SECTIONS.iter().find(|title| **title == line.text.trim()).copied();
    let begins: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, title(line)?))).collect();
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([lines.len()]);
    begins.iter().zip(ends).map(|((at, title), end)| (*title, lines.get(at + 1..end).unwrap_or_default())).collect()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    if is_transaction(text(lines, 0)) {
        let used = until_blank(lines);
        let at = context.instant();
        transactions::read(lines.get(..used).unwrap_or_default(), at, context);
        return used;
    }
    let end = lines.iter().position(|line| line.text.starts_with("END OF INNODB MONITOR OUTPUT"));
    let mut used = end.map_or(lines.len(), |end| end + 1);
    if text(lines, used).starts_with("====") {
        used += 1;
    }
    let blanks = lines.iter().skip(used).take_while(|line| line.is_blank()).count();
    if footer_line(text(lines, used + blanks)) {
        used += blanks + 1;
    }
    let own = lines.get(..used).unwrap_or_default();
    // The first stamp is that of the status, unless it begins with the deadlock's.
    let head = own.iter().take(8).take_while(|line| !SECTIONS.contains(&line.text.trim()));
    let stamp = head.filter_map(|line| line.stamp).next();
    if let Some(stamp) = stamp {
        context.set_time(stamp);
    }
    let at = context.instant();
    let sections = sections(own);
    let of = |title: &str| sections.iter().find(|(name, _)| *name == title).map(|(_, lines)| *lines);
    figures(&sections, at, context);
    let find = |words: &str| own.iter().find_map(|line| after(&line.text, words));
    let positions = find("Log sequence number").zip(find("Last checkpoint at"));
    if let Some((now, checkpoint)) = positions {
        let metric = metrics::mysql::INNODB_CHECKPOINT_AGE_BYTES.name;
        context.out.gauge(at, SOURCE, metric, Labels::none(), (now - checkpoint).max(0.0));
    }
    let averaged = own.iter().take(8).find_map(|line| line.text.split_once("averages calculated from the last "));
    let seconds = averaged.and_then(|(_, rest)| number(rest.split(' ').next()?));
    if let Some(seconds) = seconds.filter(|seconds| (1.0..1e6).contains(seconds)) {
        rates(&sections, Report { at, interval_ns: (seconds * 1e9) as i64, is_since_boot: false }, context);
    }
    if let Some(semaphores) = of("SEMAPHORES") {
        semaphores::read(semaphores, at, context);
    }
    if let Some(deadlock) = of("LATEST DETECTED DEADLOCK") {
        deadlock::read(deadlock, at, context);
    }
    // The section on the latest deadlock shows locks of the past.
    if let Some(now) = of("TRANSACTIONS") {
        transactions::read(now, at, context);
    }
    used
}

fn figures(sections: &[(&str, &[Line])], at: i64, context: &mut Context) {
    for (section, words, metric) in GAUGES {
        let own = sections.iter().filter(|(title, _)| *title == section);
        let value = own.flat_map(|(_, lines)| lines.iter()).find_map(|line| after(&line.text, words));
        if let Some(value) = value {
            context.out.gauge(at, SOURCE, metric.name, Labels::none(), value);
        }
    }
}

fn rates(sections: &[(&str, &[Line])], report: Report, context: &mut Context) {
    for (section, unit, metric) in RATES {
        let own = sections.iter().filter(|(title, _)| *title == section).flat_map(|(_, lines)| lines.iter());
        let rate = own.flat_map(|line| line.text.split(", ")).find_map(|part| {
            let (value, name) = part.trim().split_once(' ')?;
            (name == unit).then(|| number(value)).flatten()
        });
        if let Some(rate) = rate {
            context.out.rate(NAME, report, SOURCE, (metric, Labels::none()), rate);
        }
    }
}
