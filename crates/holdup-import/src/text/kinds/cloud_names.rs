//! Figures that were typed off the graphs of CloudWatch: a row begins with CloudWatch's own name, and its values
//! stand for the times in the header, if there is one.

use holdup_recording::Labels;

use super::{Context, DAY_NS, Kind, Line, number, text, time_of_day};
use crate::aws::typed;

pub(super) const KIND: Kind = Kind::lines("figures of CloudWatch", recognises, read);

/// The source of what was typed, and the database that it is of.
const SOURCE: &str = "cloudwatch:pasted";
const DATABASE: &str = "unnamed";

/// Lines between the header and the first row: a rule.
const RULES: usize = 1;

/// Most cells of a row.
const CELLS: usize = 500;

/// The cells of a line; none is empty at its ends.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    match line.contains('|') {
        true => line.trim_matches('|').split('|').map(str::trim).take(CELLS).collect(),
        false => line
            .split(['\t', ',', ':', '='])
            .flat_map(|part| part.split("  "))
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .take(CELLS)
            .collect(),
    }
}

/// The metric of a row, and its values; none of a cell without one.
fn row(line: &str) -> Option<(String, Vec<Option<f64>>)> {
    if !line.trim_start_matches(['|', ' ', '*', '`', '-']).starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let cells = cells(line);
    let (name, values) = cells.split_first()?;
    let (name, unit) = name.split_once('(').unwrap_or((name, ""));
    let plain = |text: &str| text.trim_matches(['*', '`', ' ', '-']).to_owned();
    let (metric, factor) = typed(&plain(name), unit.trim_end_matches(')').trim())?;
    let value = |cell: &&str| {
        let cell = cell.trim_matches(['*', '`', '~', '%', ' ']);
        number(&cell.replace(',', "")).map(|value| value * factor)
    };
    let values: Vec<Option<f64>> = values.iter().map(value).collect();
    (values.iter().any(Option::is_some) && values.len() <= 2 * values.iter().flatten().count())
        .then_some((metric, values))
}

/// Times of day in a header, nanoseconds, behind its first cell.
fn times(line: &str) -> Option<Vec<i64>> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split(if line.contains('|') { '|' } else { '\t' }).collect();
    let (_, times) = cells.split_first()?;
    let mut all = Vec::new();
    for time in times {
        let at = time_of_day(time.trim(), None)?;
        // The next day has begun.
        let days = all.last().map_or(0, |last: &i64| (last - at).max(0) / DAY_NS + i64::from(*last % DAY_NS > at));
        all.push(at + days * DAY_NS);
    }
    (all.len() >= 2).then_some(all)
}

fn recognises(lines: &[Line]) -> bool {
    row(text(lines, 0)).is_some()
        || times(text(lines, 0)).is_some() && (1..=1 + RULES).any(|at| row(text(lines, at)).is_some())
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    /// Values without times are taken to be as far apart, nanoseconds.
    const STEP_NS: i64 = 60_000_000_000;
    let times = times(text(lines, 0));
    let mut used = if times.is_some() { 1 } else { 0 };
    let last = context.instant();
    let rule = |line: &Line| line.text.trim_matches(['|', '-', ':', ' ', '+']).is_empty() && !line.is_blank();
    used += lines.iter().skip(used).take(RULES).take_while(|line| rule(line)).count();
    for line in lines.iter().skip(used) {
        let Some((metric, values)) = row(&line.text) else { break };
        used += 1;
        let count = values.len();
        for (place, value) in values.into_iter().enumerate() {
            let before = match &times {
                Some(times) => times.last().zip(times.get(place)).map(|(last, at)| last - at),
                None => i64::try_from(count - 1 - place).ok().and_then(|steps| steps.checked_mul(STEP_NS)),
            };
            if let (Some(before), Some(value)) = (before, value) {
                let labels = Labels::new([("db_instance", DATABASE)]);
                context.out.gauge(last.saturating_sub(before), SOURCE, &metric, labels, value);
            }
        }
    }
    used.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<(String, Vec<Option<f64>>)> {
        row(line)
    }

    #[test]
    fn a_row_begins_with_the_name_that_the_provider_gave() {
        let ratio = "aws_burst_balance_ratio".to_owned();
        assert_eq!(
            of("| BurstBalance (%) | 90 | 25 | 0 |"),
            Some((ratio.clone(), vec![Some(0.9), Some(0.25), Some(0.0)]))
        );
        assert_eq!(of("BurstBalance: 3%"), Some((ratio, vec![Some(0.03)])));
        assert_eq!(of("WriteLatency (ms)\t250"), Some(("aws_write_latency_seconds".to_owned(), vec![Some(0.25)])));
        for other in ["BurstBalance fell to zero", "Other (ms) | 3", "burst balance: 3", "WriteLatency (apples) | 3"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_header_gives_the_times_also_over_midnight() {
        let minutes =
            |line: &str| times(line).map(|all| all.into_iter().map(|at| at / 60_000_000_000).collect::<Vec<_>>());
        assert_eq!(minutes("| | 23:50 | 00:10 |"), Some(vec![1430, 1450]));
        assert_eq!(minutes("| metric | a | b |"), None);
    }
}
