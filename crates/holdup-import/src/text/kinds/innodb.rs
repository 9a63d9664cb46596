//! `SHOW ENGINE INNODB STATUS`: undo logs not purged, the age of the checkpoint, row locks waited
//! for, and by whom. Statements in it are not read.

use std::collections::BTreeSet;

use holdup_recording::{Labels, metrics};

use super::processlist::{self, SOURCE, Waiting};
use super::{Context, Kind, Line, footer_line, number, text};

pub(super) const KIND: Kind = Kind::lines("SHOW ENGINE INNODB STATUS", recognises, read);

fn recognises(lines: &[Line]) -> bool {
    let is_title = |at: usize| text(lines, at).contains("INNODB MONITOR OUTPUT");
    let first = text(lines, 0);
    match first {
        _ if first.starts_with("====") => is_title(1),
        // The vertical form: row, type, name, status.
        _ if first.starts_with("***") => text(lines, 1).contains("InnoDB") && (2..7).any(is_title),
        _ => is_title(0) && !first.starts_with("END OF"),
    }
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

fn read(lines: &[Line], context: &mut Context) -> usize {
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
    if let Some(stamp) = own.iter().take(8).find_map(|line| line.stamp) {
        context.set_time(stamp);
    }
    let at = context.instant();
    let find = |words: &str| own.iter().find_map(|line| after(&line.text, words));
    let mut put = |metric: &str, value: Option<f64>| {
        if let Some(value) = value {
            context.out.gauge(at, SOURCE, metric, Labels::none(), value);
        }
    };
    put(metrics::mysql::INNODB_HISTORY_LIST_LENGTH.name, find("History list length"));
    let positions = find("Log sequence number").zip(find("Last checkpoint at"));
    let age = positions.map(|(now, checkpoint)| (now - checkpoint).max(0.0));
    put(metrics::mysql::INNODB_CHECKPOINT_AGE_BYTES.name, age);
    // The section on the latest deadlock shows locks of the past.
    let from = own.iter().position(|line| line.text.trim() == "TRANSACTIONS");
    if let Some(from) = from {
        let now = own.get(from..).unwrap_or_default();
        let waits = now.iter().filter(|line| line.text.contains("TRX HAS BEEN WAITING")).count();
        put(metrics::mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS.name, Some(waits as f64));
        let ids = waiting(now).into_iter().map(|id| (id, None)).collect();
        processlist::correct(&Waiting { ids, command: "Query", true_state: "lock_wait" }, at, context);
    }
    used
}

/// Connection ids of the transactions that wait for a lock: the line with the id stands before the one
/// that says so.
fn waiting(transactions: &[Line]) -> BTreeSet<i64> {
    let mut id: Option<i64> = None;
    let mut ids = BTreeSet::new();
    for line in transactions {
        let text = line.text.trim_start();
        if text.starts_with("---TRANSACTION") {
            id = None;
        } else if let Some(rest) =
            text.strip_prefix("MySQL thread id ").or_else(|| text.strip_prefix("MariaDB thread id "))
        {
            id = rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
        } else if text.contains("TRX HAS BEEN WAITING") {
            ids.extend(id);
        }
    }
    ids
}
