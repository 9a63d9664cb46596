//! `mpstat`: CPU shares, of all CPUs together; the rows of single CPUs give their number. A header
//! has the time at which its first interval begins; if a row has the same, it covers the time since
//! boot.

use super::{Columns, Context, DAY_NS, Kind, Line, Report, cpu_table, is_half, text, time_of_day};

pub(super) const KIND: Kind = Kind::lines("mpstat", recognises, read);

/// Time of day, nanoseconds, and the rest of a line of sysstat; `Average:` has no time.
pub(super) fn timed(line: &str) -> Option<(Option<i64>, &str)> {
    let line = line.trim_start();
    let (first, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    // `Average:`, in French with a space before the colon.
    let colon = if first.ends_with(':') { Some(rest) } else { rest.strip_prefix(':') };
    if let Some(rest) = colon.filter(|_| first.starts_with(char::is_alphabetic)) {
        return Some((None, rest));
    }
    let (second, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let half = is_half(second);
    if first.matches(':').count() != 2 {
        return None;
    }
    let time = time_of_day(first, half.then_some(second))?;
    Some((Some(time), if half { after } else { rest }))
}

fn header(line: &str) -> Option<(i64, &str)> {
    let (time, rest) = timed(line)?;
    let columns = Columns::new(rest);
    // `sar -u ALL` has the same columns in another order.
    let is_own = columns.place(&["CPU"]) == Some(0) && columns.place(&["%irq"]) < columns.place(&["%steal"]);
    (is_own && columns.has(&["%idle", "%usr"])).then_some((time?, rest))
}

fn recognises(lines: &[Line]) -> bool {
    header(text(lines, 0)).is_some()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some((mut before, names)) = header(text(lines, 0)) else { return 1 };
    let columns = Columns::new(names);
    let mut used = 1;
    let mut last_cpu = None;
    for line in lines.iter().skip(1) {
        let Some((time, rest)) = timed(&line.text).filter(|_| header(&line.text).is_none()) else { break };
        used += 1;
        let row = columns.row(rest);
        let shares = cpu_table::shares(|names| row.number(names), &[]);
        match row.text(&["CPU"]) {
            Some("all") => {
                if let Some(time) = time {
                    context.set_time_of_day(time);
                    let report = context.report("mpstat", 1.0);
                    let length = (time - before).rem_euclid(DAY_NS);
                    before = time;
                    let report = match length {
                        0 => Report { is_since_boot: true, ..report },
                        length => Report { interval_ns: length, ..report },
                    };
                    context.out.cpu("mpstat", report, &shares);
                }
            }
            _ => last_cpu = row.number(&["CPU"]).or(last_cpu),
        }
    }
    if let Some(last) = last_cpu {
        context.out.learn_cpus(last + 1.0);
    }
    used
}
