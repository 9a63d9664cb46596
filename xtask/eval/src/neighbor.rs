//! What a judge must be better than: one that always gives the most frequent causes, and one that was trained, giving
//! the causes of the cases that look most alike. Both leave the case itself out.

use std::collections::{BTreeMap, BTreeSet};

use holdup_signals::time::counters::effect::{Quantity, mean, nothing};
use holdup_signals::time::counters::{Frame, Signal};

/// How every signal changes from normal to episode, in octaves; NaN where it is not known.
pub fn features(frame: &Frame, episode: &BTreeSet<usize>, normal: &BTreeSet<usize>) -> Vec<f64> {
    let (episode, normal) = (frame.pick(episode.iter().copied()), frame.pick(normal.iter().copied()));
    Signal::ALL
        .iter()
        .map(|signal| {
            let over = [*signal];
            let log = |rows| mean_of(&over, rows);
            log(&episode).zip(log(&normal)).map_or(f64::NAN, |(episode, normal)| episode - normal)
        })
        .collect()
}

/// log2 of a signal's mean.
fn mean_of(over: &[Signal; 1], rows: &holdup_signals::time::counters::Rows) -> Option<f64> {
    let signal = Signal::ALL.iter().position(|signal| *signal == over[0])?;
    let quantity = Quantity::sum(over[0].name(), &Signal::ALL[signal..=signal]);
    Some((mean(&quantity, rows)? + nothing(&quantity)).log2())
}

/// How every signal lies, in octaves over 1; NaN where it is not known.
pub fn levels(rows: &holdup_signals::time::counters::Rows) -> Vec<f64> {
    Signal::ALL.iter().map(|signal| mean_of(&[*signal], rows).unwrap_or(f64::NAN)).collect()
}

/// For each case the causes of the others, the nearest case's first.
pub fn ranked<'a>(features: &[Vec<f64>], labels: &[&[&'a str]]) -> Vec<Vec<&'a str>> {
    let scales = scales(features);
    (0..features.len())
        .map(|case| {
            let mut others: Vec<(f64, usize)> = (0..features.len())
                .filter(|other| *other != case)
                .map(|other| (distance(&features[case], &features[other], &scales), other))
                .collect();
            others.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut causes: Vec<&str> = Vec::new();
            for (_, other) in others {
                causes.extend(labels[other].iter().filter(|cause| !causes.contains(cause)).collect::<Vec<_>>());
            }
            causes
        })
        .collect()
}

/// The causes of all other cases, the most frequent first.
pub fn most_frequent<'a>(labels: &[&[&'a str]], case: usize) -> Vec<&'a str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, causes) in labels.iter().enumerate().filter(|(other, _)| *other != case) {
        for cause in *causes {
            *counts.entry(cause).or_default() += 1;
        }
    }
    let mut causes: Vec<(&str, usize)> = counts.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    causes.into_iter().map(|(cause, _)| cause).collect()
}

/// Standard deviation of each feature; 1 for one that never moves.
fn scales(features: &[Vec<f64>]) -> Vec<f64> {
    (0..features.first().map_or(0, Vec::len))
        .map(|feature| {
            let known: Vec<f64> = features.iter().map(|case| case[feature]).filter(|value| value.is_finite()).collect();
            let scale = holdup_signals::time::counters::effect::deviation(&known);
            if scale > 0.0 { scale } else { 1.0 }
        })
        .collect()
}

fn distance(a: &[f64], b: &[f64], scales: &[f64]) -> f64 {
    let known = a.iter().zip(b).zip(scales).filter(|((a, b), _)| a.is_finite() && b.is_finite());
    known.map(|((a, b), scale)| ((a - b) / scale).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_other_case_answers() {
        let features = [vec![0.0, 1.0], vec![0.1, 1.0], vec![5.0, f64::NAN]];
        let labels: [&[&str]; 3] = [&["a"], &["a", "b"], &["c"]];
        let ranked = ranked(&features, &labels);
        assert_eq!(ranked[0], ["a", "b", "c"]);
        assert_eq!(ranked[1], ["a", "c"]);
        assert_eq!(most_frequent(&labels, 2), ["a", "b"]);
    }
}
