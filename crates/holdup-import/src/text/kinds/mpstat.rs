//! `mpstat`: CPU shares, of all CPUs together; the rows of single CPUs give their number.

use super::super::clock::{is_half, time_of_day};
use super::super::columns::Columns;
use super::super::context::Context;
use super::super::paste::Line;
use super::{Kind, cpu_table, text};

pub(super) const KIND: Kind = Kind { name: "mpstat", recognises, read };

/// Time of day, nanoseconds, and the rest of a line of sysstat; `Average:` has no time.
pub(super) fn timed(line: &str) -> Option<(Option<i64>, &str)> {
    let line = line.trim_start();
    let (first, rest) = line.split_once(char::is_whitespace)?;
    if first.starts_with(|c: char| c.is_alphabetic()) && first.ends_with(':') {
        return Some((None, rest));
    }
    let rest = rest.trim_start();
    let (second, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let half = is_half(second);
    if first.matches(':').count() != 2 {
        return None;
    }
    let time = time_of_day(first, half.then_some(second))?;
    Some((Some(time), if half { after } else { rest }))
}

fn header(line: &str) -> Option<&str> {
    let (time, rest) = timed(line)?;
    let columns = Columns::new(rest);
    let is_own = columns.place(&["CPU"]) == Some(0) && columns.place(&["%idle"]).is_some();
    (time.is_some() && is_own && columns.place(&["%usr"]).is_some()).then_some(rest)
}

fn recognises(lines: &[Line]) -> bool {
    header(text(lines, 0)).is_some()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let columns = Columns::new(header(text(lines, 0)).unwrap_or_default());
    let mut used = 1;
    let mut last_cpu = None;
    for line in lines.iter().skip(1) {
        let Some((time, rest)) = timed(&line.text).filter(|_| header(&line.text).is_none()) else { break };
        used += 1;
        let row = columns.row(rest);
        let shares = cpu_table::shares(&row, &[]);
        match row.text(&["CPU"]) {
            Some("all") => {
                if let Some(time) = time {
                    context.set_time_of_day(time);
                    let report = context.report("mpstat", 1.0);
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
