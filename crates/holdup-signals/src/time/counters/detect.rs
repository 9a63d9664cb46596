//! Finds when something was wrong, without being told: the stretch of rows that differs most from
//! the rest in all counters together (an epidemic change point) and in which requests take longer.
//! Warm-up and wind-down, with fewer sessions than usual, are left out first.

use std::ops::Range;

use crate::time::counters::effect::{Quantity, mean, percentile, plain_mean};
use crate::time::counters::frame::Frame;
use crate::time::counters::jitter::Jitter;
use crate::time::counters::signal::{Kind, Signal};

/// Robust deviations from the middle at which a value is clipped: one wild row counts as three.
const CLIP: f64 = 3.0;

/// Least scale of a signal, octaves: a change by a tenth is not noteworthy.
const SCALE_MIN: f64 = 0.15;

/// The shortest episode, s.
const SHORTEST_S: f64 = 10.0;

/// Standard errors by which the mean signal of an episode must differ (root mean square over
/// signals).
const DIFFERS: f64 = 3.0;

/// Blocks of a long recording for the search, which is quadratic in them.
const BLOCKS_MAX: usize = 600;

/// Finds the rows in which something was wrong, in time order; empty if all rows are alike.
#[must_use]
pub fn detect(frame: &Frame, jitter: Jitter) -> Vec<Range<usize>> {
    let active = active(frame);
    let block = active.len().div_ceil(BLOCKS_MAX).max(1);
    let columns: Vec<Vec<f64>> = Signal::ALL
        .iter()
        .filter(|signal| signal.kind() != Kind::Setting)
        .filter_map(|signal| column(frame, *signal, active.clone(), block, jitter))
        .collect();
    let Some(count) = columns.first().map(Vec::len) else { return Vec::new() };
    let shortest =
        (jitter.apply("detect/shortest", SHORTEST_S) / (frame.period_s() * block as f64)).ceil().max(2.0) as usize;
    let Some((found, differs)) = epidemic(&columns, count, shortest) else { return Vec::new() };
    if differs < jitter.apply("detect/differs", DIFFERS) {
        return Vec::new();
    }
    let rows = active.start + found.start * block..(active.start + found.end * block).min(active.end);
    let first = oriented(frame, &active, rows);
    let inner = |rows: &Range<usize>| {
        (rows.start - active.start) / block..((rows.end - active.start).div_ceil(block)).min(count)
    };
    let within = inner(&first);
    let after = first.end..active.end;
    let later = within.end..count;
    let told_apart = differ(&columns, &(0..within.start), &later) >= jitter.apply("detect/differs", DIFFERS);
    let long = |blocks: &Range<usize>| blocks.len() >= 2 * shortest;
    if long(&(0..within.start)) && long(&later) && told_apart && slower(frame, &(active.start..first.start), &after) {
        return vec![first, after];
    }
    vec![first]
}

/// By how many standard errors the means of two stretches differ (root mean square over signals).
fn differ(columns: &[Vec<f64>], one: &Range<usize>, other: &Range<usize>) -> f64 {
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let (rows, others, signals) = (one.len() as f64, other.len() as f64, columns.len() as f64);
    let squares: f64 = columns
        .iter()
        .map(|column| (plain_mean(&column[one.clone()]) - plain_mean(&column[other.clone()])).powi(2))
        .sum();
    (squares / signals * rows * others / (rows + others)).sqrt()
}

/// Whether requests take longer after an episode than before it, with no more sessions: then it is
/// not over, and the next stretch is a phase of it. More sessions are a backlog being drained.
fn slower(frame: &Frame, before: &Range<usize>, after: &Range<usize>) -> bool {
    let time = Quantity::per("time in the system", &[Signal::SessionsRunning], &[Signal::Commits]);
    let sessions = Quantity::sum("sessions", &[Signal::SessionsRunning]);
    let ratio = |quantity: &Quantity| {
        Some(
            mean(quantity, &frame.range(after.clone()))?
                / mean(quantity, &frame.range(before.clone()))?.max(f64::EPSILON),
        )
    };
    // A fifth longer, and not a tenth more sessions.
    matches!((ratio(&time), ratio(&sessions)), (Some(time), Some(sessions)) if time > 1.2 && sessions < 1.1)
}

/// The normal rows beside some episodes: between warm-up and wind-down, and outside of all
/// episodes.
#[must_use]
pub fn healthy(frame: &Frame, episodes: &[Range<usize>]) -> Vec<usize> {
    active(frame).filter(|row| !episodes.iter().any(|episode| episode.contains(row))).collect()
}

/// The rows between warm-up and wind-down: from the first to the last with at least half of the
/// sessions that are there in three quarters of the time, or of the commits if sessions are not
/// counted.
fn active(frame: &Frame) -> Range<usize> {
    let presence = [Signal::SessionsRunning, Signal::SessionsConnected, Signal::Commits]
        .into_iter()
        .find_map(|signal| frame.get(signal));
    let Some(presence) = presence else { return 0..frame.rows() };
    let usual = percentile(presence, 0.25).unwrap_or_default();
    let there = |value: &f64| *value >= usual / 2.0;
    let first = presence.iter().position(there).unwrap_or(0);
    let last = presence.iter().rposition(there).unwrap_or(frame.rows().saturating_sub(1));
    first..last + 1
}

/// A signal as blocks of clipped octaves from its middle, in units of its own short-term noise;
/// `None` if it never moves.
fn column(frame: &Frame, signal: Signal, rows: Range<usize>, block: usize, jitter: Jitter) -> Option<Vec<f64>> {
    let series = &frame.get(signal)?[rows];
    let mut logs: Vec<f64> = series
        .chunks(block)
        .map(|chunk| {
            let known: Vec<f64> = chunk.iter().copied().filter(|value| value.is_finite()).collect();
            if known.is_empty() { f64::NAN } else { (plain_mean(&known).max(0.0) + signal.nothing()).log2() }
        })
        .collect();
    let middle = percentile(&logs, 0.5)?;
    let steps: Vec<f64> = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // The median of |difference of two normal values| is 0.954 standard deviations.
    let scale = (percentile(&steps, 0.5)? / 0.954).max(jitter.apply("detect/scale", SCALE_MIN));
    let clip = jitter.apply("detect/clip", CLIP);
    let mut moves = false;
    for log in &mut logs {
        *log = if log.is_finite() { ((*log - middle) / scale).clamp(-clip, clip) } else { 0.0 };
        moves |= log.abs() > 1.0;
    }
    moves.then_some(logs)
}

/// The blocks whose means differ most from those of the rest, and by how many standard errors (root mean square).
fn epidemic(columns: &[Vec<f64>], count: usize, shortest: usize) -> Option<(Range<usize>, f64)> {
    let sums: Vec<Vec<f64>> = columns
        .iter()
        .map(|column| {
            let mut sum = 0.0;
            std::iter::once(0.0)
                .chain(column.iter().map(|value| {
                    sum += value;
                    sum
                }))
                .collect()
        })
        .collect();
    let mut best: Option<(Range<usize>, f64)> = None;
    for first in 0..count {
        for end in first + shortest..=count {
            let inside = end - first;
            if count - inside < shortest {
                continue;
            }
            let (inside, outside) = (inside as f64, (count - inside) as f64);
            let gain: f64 = sums
                .iter()
                .map(|sum| {
                    let within = sum[end] - sum[first];
                    let difference = within / inside - (sum[count] - within) / outside;
                    difference * difference
                })
                .sum::<f64>()
                * inside
                * outside
                / (inside + outside);
            if best.as_ref().is_none_or(|(_, most)| gain > *most) {
                best = Some((first..end, gain));
            }
        }
    }
    best.map(|(range, gain)| (range, (gain / columns.len() as f64).sqrt()))
}

/// Which of the found rows and the rest is the bad time: if they reach the edge, a change has two
/// sides.
fn oriented(frame: &Frame, active: &Range<usize>, rows: Range<usize>) -> Range<usize> {
    let other = if rows.start == active.start {
        rows.end..active.end
    } else if rows.end == active.end {
        active.start..rows.start
    } else {
        return rows;
    };
    let time = Quantity::per("time in the system", &[Signal::SessionsRunning], &[Signal::Commits]);
    let latency = Quantity::sum("latency", &[Signal::Latency]);
    let slow = |rows: &Range<usize>| {
        let rows = frame.range(rows.clone());
        mean(&time, &rows).or_else(|| mean(&latency, &rows))
    };
    match (slow(&rows), slow(&other)) {
        (Some(found), Some(rest)) if rest > found => other,
        _ => rows,
    }
}
