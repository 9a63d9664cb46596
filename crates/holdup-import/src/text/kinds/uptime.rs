//! `uptime`, `w` and `/proc/loadavg`: the load average at an instant, in any language: a time of
//! day, and three numbers after the last colon.

use holdup_recording::{Labels, metrics};

use super::{Context, Kind, Line, is_half, number, text, time_of_day, until_blank};

pub(super) const KIND: Kind = Kind::lines("uptime", recognises, read);

pub(super) const LOADAVG: Kind = Kind::lines(
    "/proc/loadavg",
    |lines| loadavg(text(lines, 0)).is_some(),
    |lines, context| {
        if let Some((averages, runnable)) = loadavg(text(lines, 0)) {
            let at = context.instant();
            put(averages, at, context);
            context.out.host(at, metrics::host::PROCESSES_RUNNABLE, Labels::none(), runnable);
        }
        1
    },
);

fn recognises(lines: &[Line]) -> bool {
    averages(text(lines, 0)).is_some()
}

/// The load averages of a line like `10:11:12 up 3 days, load average: 1.00, 2.00, 3.00`.
pub(super) fn averages(line: &str) -> Option<[f64; 3]> {
    time(line)?;
    let (head, tail) = line.rsplit_once(": ")?;
    if !head.contains(',') {
        return None;
    }
    let mut numbers = tail.split_whitespace().map(|word| number(word.trim_end_matches(',')));
    let three = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(three)
}

/// Its time of day, nanoseconds since midnight.
pub(super) fn time(line: &str) -> Option<i64> {
    let line = line.trim_start().trim_start_matches("top - ").trim_start();
    let mut words = line.split_whitespace();
    let first = words.next()?;
    time_of_day(first, words.next().filter(|word| is_half(word)))
}

/// Time since boot: `up 12 days,  3:04`, `up 5 min`.
fn up_ns(line: &str) -> Option<i64> {
    let (_, rest) = line.split_once(" up ")?;
    let mut parts = rest.split(',').map(str::trim);
    let first = parts.next()?;
    let days = first.split_once(" day").and_then(|(days, _)| days.parse::<i64>().ok());
    let time = if days.is_some() { parts.next()? } else { first };
    let minutes = match time.split_once(" min") {
        Some((minutes, _)) => minutes.parse().ok()?,
        None => {
            let (hours, minutes) = time.split_once(':')?;
            hours.parse::<i64>().ok()?.checked_mul(60)?.checked_add(minutes.parse().ok()?)?
        }
    };
    days.unwrap_or(0).checked_mul(1440)?.checked_add(minutes)?.checked_mul(60_000_000_000)
}

/// Adds load averages.
pub(super) fn put(averages: [f64; 3], at: i64, context: &mut Context) {
    let names = [metrics::host::LOAD_AVERAGE_1M, metrics::host::LOAD_AVERAGE_5M, metrics::host::LOAD_AVERAGE_15M];
    for (metric, value) in names.into_iter().zip(averages) {
        context.out.host(at, metric, Labels::none(), value);
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let line = text(lines, 0);
    if let Some(time) = time(line) {
        context.set_time_of_day(time);
    }
    if let Some(averages) = averages(line) {
        let at = context.instant();
        put(averages, at, context);
        context.boot = up_ns(line).map(|up| at.saturating_sub(up)).or(context.boot);
    }
    // Below `w`'s header are the users.
    if text(lines, 1).starts_with("USER ") { until_blank(lines) } else { 1 }
}

/// `/proc/loadavg`: three averages, runnable and all threads, the last process.
fn loadavg(line: &str) -> Option<([f64; 3], f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [one, five, fifteen, threads, last] = words.as_slice() else { return None };
    let _: u64 = last.parse().ok()?;
    let (runnable, all) = threads.split_once('/')?;
    let _: u64 = all.parse().ok()?;
    Some(([number(one)?, number(five)?, number(fifteen)?], runnable.parse().ok()?))
}
