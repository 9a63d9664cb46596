//! A history of builds: one line per figure, with its course.

use std::fmt::Write as _;

use super::comparison::color;
use super::visible::one_line;
use holdup_compare::recordings::history::{Figure, History, LastingChange};
use holdup_compare::recordings::{Change, words};

use super::{BOLD, DIM, styled, wrap};

/// Cells of the longest name, of a course, and of a value.
const NAME: usize = 40;
const COURSE: usize = 24;
const VALUE: usize = 14;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The whole history. Figures that do not count and did not change are only counted, unless `all`.
pub fn history(h: &History, all: bool) -> String {
    let mut out = String::new();
    styled(&mut out, color(h.verdict).bold(), &h.headline);
    let (shown, folded): (Vec<&Figure>, Vec<&Figure>) =
        h.figures.iter().partition(|figure| all || figure.is_headline || figure.verdict != Change::NoDifference);
    let name = shown.iter().map(|figure| figure.indicator.chars().count()).max().unwrap_or(0).min(NAME);
    if !shown.is_empty() {
        let _ = writeln!(
            out,
            "\n{BOLD}  {:<name$}  {:>VALUE$}  {:>VALUE$}  {:<COURSE$}{BOLD:#}",
            "", "before", "now", "course"
        );
    }
    for figure in shown {
        line(&mut out, figure, name);
    }
    if !folded.is_empty() {
        let _ = writeln!(out, "{DIM}  {} more figures without a lasting change: --all{DIM:#}", folded.len());
    }
    if let (Some(first), Some(last)) = (h.builds.first(), h.builds.last()) {
        let _ =
            writeln!(out, "{DIM}  {} builds, from {} to {}{DIM:#}", h.builds.len(), one_line(first), one_line(last));
    }
    for text in &h.left_out {
        wrap(&mut out, "  - ", &format!("left out: {text}"));
    }
    out
}

fn line(out: &mut String, figure: &Figure, name: usize) {
    let indicator: String = one_line(&figure.indicator).chars().take(name).collect();
    let change = figure.standing();
    let newest = figure.values.iter().rev().flatten().next();
    let value = |value: Option<f64>| value.map_or(String::new(), |value| words::value(value, &figure.unit));
    let before = value(change.map(|change| change.before));
    let now = value(change.map(|change| change.level).or(newest.copied()));
    let course = course(&figure.values);
    let _ = write!(out, "  {indicator:<name$}  {before:>VALUE$}  {now:>VALUE$}  {course:<COURSE$}");
    if let Some(change) = change {
        let style = color(figure.verdict);
        let _ = write!(out, "  {style}{}{style:#}", said(change, figure.verdict));
    }
    out.push('\n');
}

fn said(change: &LastingChange, verdict: Change) -> String {
    format!("{} since {}", words::verdict(verdict), one_line(&change.since_build))
}

/// The values over the builds, from 0 to the highest; several builds share a cell if there are many.
fn course(values: &[Option<f64>]) -> String {
    let top = values.iter().flatten().copied().fold(0.0, f64::max);
    let width = values.len().div_ceil(COURSE).max(1);
    let cell = |builds: &[Option<f64>]| {
        let known: Vec<f64> = builds.iter().flatten().copied().collect();
        if known.is_empty() || top <= 0.0 {
            return ' ';
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let place = (mean / top * BLOCKS.len() as f64).ceil() as usize;
        BLOCKS[place.clamp(1, BLOCKS.len()) - 1]
    };
    values.chunks(width).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_shows_levels_and_holes() {
        assert_eq!(course(&[Some(1.0), Some(1.0), None, Some(8.0)]), "▁▁ █");
        assert_eq!(course(&vec![Some(2.0); 64]).chars().count(), 22);
        assert_eq!(course(&[]), "");
    }
}
