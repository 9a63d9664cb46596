//! What the test could not show, what to do next, and how to go back.

use super::change::Verdict;
use super::load::{Answer, Prediction};
use super::pairs::Pairs;
use super::{AnswerDifferences, Statement};

/// A day, seconds: a shorter log misses what runs at other times of the day.
const DAY_S: f64 = 86_400.0;

/// Most statements that are listed.
const NAMED: usize = 5;

/// The limits of this test.
pub(super) fn test_limits(pairs: &Pairs, statements: &[Statement]) -> Vec<String> {
    let mut said = Vec::new();
    let unknown: Vec<&Statement> = statements.iter().filter(|s| s.change.verdict == Verdict::Unknown).collect();
    if !unknown.is_empty() {
        let share: f64 = unknown.iter().map(|s| s.share_ratio).sum();
        said.push(format!(
            "{} of {} statements ({:.1} % of the time) ran too rarely, or vary too much, to show a change of 10 %: play more rounds, or a longer log",
            unknown.len(),
            statements.len(),
            share * 100.0
        ));
    }
    if pairs.length_s < DAY_S {
        said.push(format!(
            "the log covers {}: it lacks what runs at other times of the day (reports, backups, jobs)",
            length(pairs.length_s)
        ));
    }
    if pairs.rounds < 2 {
        said.push("each server played once: a long disturbance of one machine counts as a common change".to_owned());
    }
    said
}

fn length(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

/// The next steps, and the way back.
pub(super) fn next_steps(statements: &[Statement], prediction: &Prediction) -> Vec<String> {
    let short = |s: &Statement| s.digest.chars().take(12).collect::<String>();
    let names = |of: Vec<&Statement>| {
        let named: Vec<String> = of.iter().take(NAMED).map(|s| short(s)).collect();
        let more = of.len().saturating_sub(NAMED);
        if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
    };
    let mut way = Vec::new();
    let breaks: Vec<&Statement> =
        statements.iter().filter(|s| s.differs.as_ref().is_some_and(AnswerDifferences::matters)).collect();
    if !breaks.is_empty() {
        way.push(format!(
            "first of all: find out why the new server answers {} differently, before you move anything",
            names(breaks)
        ));
    }
    let slower: Vec<&Statement> = statements.iter().filter(|s| s.change.verdict == Verdict::Slower).collect();
    if !slower.is_empty() {
        let before = if prediction.answer == Answer::Overload { "before you move anything" } else { "in this order" };
        way.push(format!(
            "fix or pin the plans of {} {before}: they cost most by calls x change",
            names(slower.clone())
        ));
        let loops: Vec<&Statement> = slower.into_iter().filter(|s| s.runs.is_some()).collect();
        if !loops.is_empty() {
            way.push(format!("take {} out of their loops: use one statement for all rows of a request", names(loops)));
        }
    }
    way.push(
        "before the move: test replication with writes in both directions; from new to old is the way back".to_owned(),
    );
    way.push(
        "move reads first, to one replica of the new version, and watch these statements there through a whole day"
            .to_owned(),
    );
    way.push("keep a replica of the old version behind the new primary until the new one has carried a peak: going back is then a switch and loses nothing".to_owned());
    way
}
