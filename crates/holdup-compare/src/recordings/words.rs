//! A comparison in words: figures with their units, changes with their intervals, the headline.

use holdup_recording::words::grouped;

use super::UsableGroup;
use super::outcome::{Against, Cell, Change, Row, Section};

/// Most differing settings that are listed.
const NAMED_SETTINGS: usize = 8;

/// `1,460`, `35.1`, `0.042`: three digits, or all digits before the point.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let digits = match magnitude {
        0.0 => 0,
        m if m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        m => (2 - m.log10().floor() as i32).clamp(2, 6) as usize,
    };
    // A zero has no sign.
    grouped(&format!("{:.digits$}", value + 0.0))
}

/// A value with its unit; shares as percent.
pub fn value(value: f64, unit: &str) -> String {
    match unit {
        "ratio" => format!("{} %", number((value * 1e4).round() / 100.0)),
        "requests/s" => format!("{}/s", number(value)),
        "a CPU" => number(value),
        unit => {
            format!("{} {}", number(value), unit.strip_suffix("/s").map_or(unit.to_owned(), |what| format!("{what}/s")))
        }
    }
}

/// A cell's value with its unit; `-` without one.
pub fn cell(cell: &Cell, unit: &str) -> String {
    let least = if cell.is_least { "at least " } else { "" };
    cell.value.map_or("-".to_owned(), |v| format!("{least}{}", value(v, unit)))
}

/// `-76 %`, `x 4.2`, `+0.31 points`.
pub fn change(against: &Against, unit: &str) -> Option<String> {
    match against.change_ratio {
        Some(ratio) => Some(percent(ratio)),
        None => against.difference.map(|difference| signed(difference, unit)),
    }
}

/// `-79 to -72 %`; none without an interval.
pub fn interval(against: &Against, unit: &str) -> Option<String> {
    let (low, high) = (against.low?, against.high?);
    let (low, high) = match against.change_ratio {
        Some(_) => (percent(low), percent(high)),
        None => (signed(low, unit), signed(high, unit)),
    };
    // The unit appears once.
    let end = high.split_once(' ').map_or("", |(_, unit)| unit);
    let low = low.strip_suffix(end).map_or(low.as_str(), str::trim_end);
    Some(format!("{low} to {high}"))
}

/// `-76 %`, `x 4.2`.
pub(super) fn percent(ratio: f64) -> String {
    match ratio {
        r if r >= 9.0 => format!("x {}", number(1.0 + r)),
        r if (r * 100.0).abs() < 0.5 => "0 %".to_owned(),
        r if r < -0.99 => format!("{:+.1} %", r * 100.0),
        r => format!("{:+.0} %", r * 100.0),
    }
}

fn signed(difference: f64, unit: &str) -> String {
    let sign = if difference > 0.0 { "+" } else { "" };
    match unit {
        "ratio" => format!("{sign}{:.1} points", difference * 100.0),
        unit => format!("{sign}{} {unit}", number(difference)),
    }
}

/// A verdict in a word or two.
pub fn verdict(change: Change) -> &'static str {
    match change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::Mixed => "better and worse",
        Change::Different => "different",
        Change::NoDifference => "no difference",
        Change::CantTell => "can't tell",
        Change::NotComparable => "not comparable",
        Change::Missing => "-",
    }
}

/// One sentence on column `i`, called `name`, against the first, called `base`.
pub(super) fn headline(rows: &[Row], i: usize, name: &str, base: &str, overall: Change) -> String {
    let told: Vec<(&Row, &Against)> = rows
        .iter()
        .filter(|row| row.is_headline)
        .filter_map(|row| Some((row, row.cells.get(i)?.against.as_ref()?)))
        .collect();
    if overall == Change::NotComparable {
        let why = told.iter().find_map(|(_, against)| against.why.as_deref());
        // Figures below still say what changed, e.g. a volume's.
        let is_told = |against: &Against| against.difference.is_some();
        let has_others =
            rows.iter().any(|row| row.cells.get(i).and_then(|cell| cell.against.as_ref()).is_some_and(is_told));
        let unmeasured = if has_others {
            "not both measured response time; the figures below still compare"
        } else {
            "they have no figure in common"
        };
        return format!("{name} cannot be compared with {base} as a whole: {}", why.unwrap_or(unmeasured));
    }
    let decides = |change: Change| matches!(change, Change::Better | Change::Worse);
    let mut chosen: Vec<(&Row, &Against)> = told.iter().copied().filter(|(_, a)| decides(a.verdict)).collect();
    chosen.sort_by_key(|(row, _)| rank(row));
    chosen.truncate(3);
    // Readers also ask for the next figures, so they follow.
    let mut others: Vec<(&Row, &Against)> = told.iter().copied().filter(|(_, a)| !decides(a.verdict)).collect();
    others.retain(|(row, a)| {
        let is_told = chosen.iter().any(|(other, _)| kind(other) == kind(row));
        let is_main = kind(row) == 1 || row.indicator.ends_with("p95");
        a.difference.is_some() && kind(row) != 2 && (!is_told || is_main)
    });
    others.sort_by_key(|(row, _)| rank(row));
    others.truncate(2_usize.max(3 - chosen.len()).min(4 - chosen.len()));
    chosen.extend(others);
    let parts: Vec<String> = chosen.iter().map(|(row, against)| part(row, against, i, overall)).collect();
    let what = match overall {
        Change::Better => format!("{name} is better than {base}"),
        Change::Worse => format!("{name} is worse than {base}"),
        Change::Mixed => format!("{name} is better than {base} in one thing and worse in another"),
        Change::CantTell => format!("It is unclear whether {name} differs from {base}"),
        _ if told.iter().any(|(_, against)| against.verdict == Change::CantTell) => {
            format!("No certain difference between {name} and {base}")
        }
        _ => format!("No difference between {name} and {base}"),
    };
    format!("{what}: {}", parts.join("; "))
}

/// 0 times and knees, 1 costs, 2 rates and failures.
fn kind(row: &Row) -> u8 {
    match row.section {
        Section::Cost => 1,
        _ if row.unit == "ms" || row.section == Section::Search => 0,
        _ => 2,
    }
}

/// The order in the headline.
fn rank(row: &Row) -> u8 {
    match () {
        () if row.indicator == "knee" => 0,
        () if row.indicator.ends_with("p95") => 1,
        () if row.unit == "ratio" => 2,
        () if row.section == Section::Search => 3,
        () if row.section == Section::Cost => 4,
        () if row.unit == "requests/s" => 5,
        () => 6,
    }
}

/// `p95 351 ms instead of 1,460 ms (-76 %, 95 % interval -79 to -72 %)`.
fn part(row: &Row, against: &Against, i: usize, overall: Change) -> String {
    let of = |i: usize| {
        let found = row.cells.get(i).filter(|of| of.value.is_some());
        found.map_or("none".to_owned(), |of| cell(of, &row.unit))
    };
    let sure = match (change(against, &row.unit), interval(against, &row.unit)) {
        (Some(change), Some(interval)) => format!("{change}, 95 % interval {interval}"),
        _ => against.why.clone().unwrap_or_default(),
    };
    let verdict = match against.verdict {
        Change::Better | Change::Worse if overall != Change::Mixed => String::new(),
        Change::NoDifference if overall == Change::NoDifference => String::new(),
        other => format!(": {}", verdict(other)),
    };
    format!("{} {} instead of {} ({sure}{verdict})", row.indicator, of(i), of(0))
}

/// Notes: how it was measured, what was assumed, what else differs.
pub(super) fn notes(base: &UsableGroup<'_>, others: &[UsableGroup<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let all = || std::iter::once(base).chain(others);
    let single: Vec<&str> = all().filter(|k| k.runs.len() == 1).map(|k| k.group.name.as_str()).collect();
    let is_paired = |kept: &UsableGroup<'_>| kept.runs.len() > 1 && kept.runs.iter().all(|run| run.round.is_some());
    if single.len() == others.len() + 1 {
        notes.push(
            "One recording of each: the spread between runs is assumed, not measured (4 % of response times, 3 % of \
             CPU time; standard deviations). Interleaved repeats measure it: holdup run --interleave."
                .to_owned(),
        );
    } else if all().all(is_paired) {
        let rounds = all().map(|k| k.runs.len()).min().unwrap_or(0);
        notes.push(format!("{rounds} rounds, compared within each round, so changes from round to round cancel out."));
    } else {
        notes.push(
            "The repeats were not interleaved, so changes between the groups (noisy neighbours, time of day) are part of the difference."
                .to_owned(),
        );
    }
    for other in others {
        notes.extend(settings(base, other));
    }
    notes
}

/// Settings that differ between two groups.
fn settings(base: &UsableGroup<'_>, other: &UsableGroup<'_>) -> Option<String> {
    let (theirs, mine) = (&base.runs.first()?.facts.settings, &other.runs.first()?.facts.settings);
    let differing: Vec<String> = theirs
        .iter()
        .filter_map(|(key, before)| Some((key, before, mine.get(key)?)))
        .filter(|(_, before, after)| before != after)
        .map(|((source, name), before, after)| format!("{source} {name} {before} -> {after}"))
        .collect();
    if differing.is_empty() {
        return None;
    }
    let more = differing.len().saturating_sub(NAMED_SETTINGS);
    let list = differing.iter().take(NAMED_SETTINGS).cloned().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("Settings of {} that differ: {list}{more}.", other.group.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        let said: Vec<String> = [1_460.4, 35.14, 9.999, 0.5, 0.0421, 0.0, -1_234_567.0].map(number).into();
        assert_eq!(said, ["1,460", "35.1", "10.0", "0.500", "0.0421", "0", "-1,234,567"]);
        assert_eq!((value(0.031, "ratio"), value(0.4, "requests/s")), ("3.10 %".to_owned(), "0.400/s".to_owned()));
        assert_eq!([-0.76, 0.031, 0.001, 11.0].map(percent), ["-76 %", "+3 %", "0 %", "x 12.0"]);
    }
}
