//! The run over time, one lane per line: the offered load, the results, and the state of the
//! service.

use std::fmt::Write as _;

use super::style::{AnsiColor, Style};
use holdup_recording::Recording;
use holdup_recording::words::{bytes, bytes_per_second};

use super::{BOLD, DIM, WIDTH};
use crate::charts::{self, Chart, Lane, Mark};

/// Cells of a lane's name, and of the figures behind it.
const NAME: usize = 18;
const FIGURES: usize = 22;

/// Cells of a lane.
const CELLS: usize = WIDTH - NAME - FIGURES - 1;

/// A source that is silent for this many of its usual intervals leaves a gap.
const HOLE: f64 = 2.5;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Cells between two times below the lanes.
const TICK: usize = 15;

/// The lanes of `recording`, with times and marks below; nothing without data.
pub fn timeline(recording: &Recording) -> String {
    let drawn = charts::charts(recording);
    let lanes = charts::overview(&drawn);
    let ends_s = lanes.iter().filter_map(|lane| points_of(&drawn, lane)).flat_map(|(x_s, _)| x_s.last().copied());
    let whole = recording.manifest.ended_at.map_or(0.0, |at| (at - recording.manifest.started_at) as f64 / 1e9);
    let length_s = ends_s.fold(whole, f64::max);
    if lanes.is_empty() || length_s <= 0.0 {
        return String::new();
    }
    let mut out = format!("\n{BOLD}The run over time{BOLD:#}\n");
    // Achieved is a part of offered, so both lanes share a scale.
    let offered = lanes.iter().find(|lane| lane.title == "offered").map_or(0.0, |lane| height(&drawn, lane));
    for lane in &lanes {
        let top = if lane.title == "achieved" { offered.max(height(&drawn, lane)) } else { height(&drawn, lane) };
        line(&mut out, &drawn, lane, top, length_s);
    }
    times(&mut out, length_s);
    marked(&mut out, &charts::marks(recording), length_s);
    out
}

/// The instants and values that a lane draws.
fn points_of<'c>(drawn: &'c [Chart], lane: &Lane) -> Option<(&'c [f64], &'c [Option<f64>])> {
    drawn.iter().find(|c| c.id == lane.chart)?.points(lane.series)
}

fn highest(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().fold(0.0, f64::max)
}

/// The value that fills a lane: its limit if it has one.
fn height(drawn: &[Chart], lane: &Lane) -> f64 {
    let limit = lane.limit.and_then(|series| points_of(drawn, &Lane { series, ..lane.clone() }));
    points_of(drawn, lane).map_or(0.0, |(_, y)| highest(y)).max(limit.map_or(0.0, |(_, y)| highest(y)))
}

fn line(out: &mut String, drawn: &[Chart], lane: &Lane, top: f64, length_s: f64) {
    let Some((x_s, y)) = points_of(drawn, lane) else { return };
    let unit = drawn.iter().find(|c| c.id == lane.chart).map_or("", |c| c.unit);
    let most = highest(y);
    let style = match () {
        () if lane.is_bad && most > 0.0 => AnsiColor::Red.on_default(),
        () => AnsiColor::Cyan.on_default(),
    };
    let bar: String = cells(x_s, y, length_s).iter().map(|value| value.map_or(' ', |v| block(v, top))).collect();
    let limit =
        if lane.limit.is_some() { format!("{} of {}", figure(most, ""), figure(top, "")) } else { figure(most, unit) };
    let _ = writeln!(out, "{DIM}{:<NAME$}{DIM:#}{style}{bar}{style:#} {DIM}at most {limit}{DIM:#}", lane.title);
}

/// The highest value of each cell. A cell without a value repeats the previous one, unless the
/// source was silent for longer than usual or could not be read: that leaves a gap.
fn cells(x_s: &[f64], y: &[Option<f64>], length_s: f64) -> Vec<Option<f64>> {
    let mut gaps: Vec<f64> = x_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_by(f64::total_cmp);
    let hole_s = gaps.get(gaps.len() / 2).map_or(length_s, |usual| usual * HOLE);
    let width_s = length_s / CELLS as f64;
    let mut at = 0;
    let mut before: Option<(f64, Option<f64>)> = None;
    (0..CELLS)
        .map(|cell| {
            let end_s = width_s * (cell + 1) as f64;
            let from = at;
            while at < x_s.len() && (x_s[at] < end_s || cell + 1 == CELLS) {
                at += 1;
            }
            if from < at {
                before = Some((x_s[at - 1], y[at - 1]));
                return y[from..at].iter().flatten().copied().reduce(f64::max);
            }
            before.filter(|(since, _)| end_s - since <= hole_s + width_s).and_then(|(_, value)| value)
        })
        .collect()
}

fn block(value: f64, top: f64) -> char {
    let level = if top > 0.0 { (value / top * 7.0).round().clamp(0.0, 7.0) as usize } else { 0 };
    BLOCKS[level]
}

/// A value with its unit, short.
fn figure(value: f64, unit: &str) -> String {
    let number = |v: f64| match v {
        v if v >= 9_999.5 => format!("{:.0}k", v / 1e3),
        v if v >= 99.95 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    match unit {
        // A sample that is read late may exceed 100 %.
        "ratio" => format!("{:.0} %", value.min(1.0) * 100.0),
        "bytes" => bytes(value),
        "bytes/s" => bytes_per_second(value),
        "requests/s" | "connections/s" => format!("{}/s", number(value)),
        "ms" if value >= 9_999.5 => format!("{} s", number(value / 1e3)),
        "ms" => format!("{} ms", number(value)),
        _ => number(value),
    }
}

fn times(out: &mut String, length_s: f64) {
    let mut row = String::new();
    let mut cell = 0;
    while cell + TICK / 2 < CELLS {
        let text = format!("{:.0} s", length_s * cell as f64 / CELLS as f64);
        let _ = write!(row, "{text:<TICK$}");
        cell += TICK;
    }
    let _ = writeln!(out, "{DIM}{:<NAME$}{}{DIM:#}", "", row.trim_end());
}

/// One line of signs at events, and a list of the events, each kind once.
fn marked(out: &mut String, marks: &[Mark], length_s: f64) {
    if marks.is_empty() {
        return;
    }
    let mut row = vec![' '; CELLS];
    for mark in marks {
        let cell = (mark.at_s / length_s * CELLS as f64).clamp(0.0, (CELLS - 1) as f64) as usize;
        // In one cell, an end is more important than a beginning.
        if mark.is_bad || row[cell] == ' ' {
            row[cell] = if mark.is_bad { 'x' } else { '^' };
        }
    }
    let (bad, row): (Style, String) = (AnsiColor::Red.on_default(), row.into_iter().collect());
    let _ = writeln!(out, "{:<NAME$}{bad}{}{bad:#}", "", row.trim_end());
    let mut kinds: Vec<&str> = Vec::new();
    for mark in marks.iter().filter(|mark| mark.is_bad) {
        if !kinds.contains(&mark.kind.as_str()) {
            kinds.push(&mark.kind);
        }
    }
    for kind in kinds {
        let of: Vec<&Mark> = marks.iter().filter(|mark| mark.kind == kind).collect();
        let times: Vec<String> = of.iter().take(6).map(|mark| format!("{:.1}", mark.at_s)).collect();
        let more = if of.len() > times.len() { format!(" and {} more", of.len() - times.len()) } else { String::new() };
        let _ = writeln!(out, "{DIM}{:<NAME$}x {} at {} s{more}{DIM:#}", "", kind.replace('_', " "), times.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_its_highest_value_and_a_hole_stays_one() {
        let x_s: Vec<f64> = (0..CELLS).filter(|i| !(20..30).contains(i)).map(|i| i as f64).collect();
        let y: Vec<Option<f64>> = x_s.iter().map(|x| (*x != 5.0).then_some(*x)).collect();
        let drawn = cells(&x_s, &y, CELLS as f64);
        assert_eq!((drawn[4], drawn[5], drawn[6]), (Some(4.0), None, Some(6.0)), "what could not be read is blank");
        assert_eq!((drawn[19], drawn[21], drawn[25], drawn[30]), (Some(19.0), Some(19.0), None, Some(30.0)));
        // Twice as many values as cells.
        let x_s: Vec<f64> = (0..2 * CELLS).map(|i| i as f64 / 2.0).collect();
        let y: Vec<Option<f64>> = (0..2 * CELLS).map(|i| Some((i % 2) as f64)).collect();
        assert!(cells(&x_s, &y, CELLS as f64).iter().all(|value| *value == Some(1.0)));
    }

    #[test]
    fn figures_have_their_unit() {
        let said = [
            figure(12_300.0, "requests/s"),
            figure(0.914, "ratio"),
            figure(1.94, "CPUs"),
            figure(64.0, ""),
            figure(1.5e8, "bytes"),
            figure(1.5e8, "bytes/s"),
            figure(30_000.0, "ms"),
        ];
        assert_eq!(said, ["12k/s", "91 %", "1.94", "64", "143 MiB", "150 MB/s", "30 s"]);
    }
}
