//! The judgement by counters alone, as text: the anomalous window, and the likeliest causes with
//! the votes for and against each.

use std::fmt::Write as _;

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::{CountersSuspect, CountersVote, FoundBy};

use super::{BOLD, DIM, dim, wrap};

/// Number of suspects that are shown.
const SHOWN: usize = 3;

/// A vote of this strength (0-1) counts as seen.
const SEEN: f64 = 0.5;

/// Digits of a score.
const DIGITS: usize = 2;

/// Shown by itself if no source measured response time, otherwise only if `asked`.
pub(super) fn counters(out: &mut String, d: &Diagnosis, asked: bool) {
    let Some(told) = &d.by_counters else { return };
    let is_alone = told.found_by != FoundBy::ResponseTime;
    let Some(worst) = told.episodes.first().filter(|_| is_alone || asked) else { return };
    let _ = writeln!(out, "\n{BOLD}By counters alone{BOLD:#}{}", if is_alone { "" } else { " (milliseconds decide)" });
    if !is_alone {
        dim(out, &told.text);
    }
    for suspect in worst.suspects.iter().filter(|s| s.score.is_some()).take(SHOWN) {
        let score = suspect.score.unwrap_or(0.0);
        let _ = writeln!(out, "  {:<26} {score:.DIGITS$}  {DIM}{}{DIM:#}", suspect.cause, suspect.title);
        votes(out, suspect, "    + ", |v| !is_against(v) && is_seen(v));
        votes(out, suspect, "    - ", |v| is_against(v) && is_seen(v) || !is_against(v) && is_missing(v));
    }
    if !told.lacks.is_empty() {
        dim(out, &format!("not recorded: counters of {}", told.lacks.join(", ")));
    }
}

fn is_seen(vote: &CountersVote) -> bool {
    vote.strength.is_some_and(|s| s >= SEEN)
}

/// An expected sign that is absent.
fn is_missing(vote: &CountersVote) -> bool {
    vote.strength.is_some_and(|s| s < SEEN)
}

fn is_against(vote: &CountersVote) -> bool {
    vote.part == "refutes"
}

fn votes(out: &mut String, of: &CountersSuspect, lead: &str, is_it: impl Fn(&CountersVote) -> bool) {
    for vote in of.votes.iter().filter(|v| is_it(v)) {
        let figures: Vec<String> = vote
            .figures
            .iter()
            .filter_map(|f| {
                let now = f.episode?;
                Some(f.normal.map_or_else(
                    || format!("{} {now}", f.name),
                    |normal| format!("{} {now}, usually {normal}", f.name),
                ))
            })
            .collect();
        let not = if is_missing(vote) { "not so: " } else { "" };
        let figures = if figures.is_empty() { String::new() } else { format!(" ({})", figures.join("; ")) };
        wrap(out, lead, &format!("{not}{}{figures}", vote.what));
    }
}
