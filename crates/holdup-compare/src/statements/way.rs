//! What the test could not tell, and how to go on: what to do first, and how to come back.

use super::change::Verdict;
use super::load::{Answer, Prediction};
use super::pairs::Pairs;
use super::{Differs, Statement};

/// A day, seconds: what runs at night or at noon only is in no shorter log.
const DAY_S: f64 = 86_400.0;

/// Statements that are named.
const NAMED: usize = 5;

/// What this test was too short for.
pub(super) fn too_little(pairs: &Pairs, statements: &[Statement]) -> Vec<String> {
    let mut said = Vec::new();
    let unknown: Vec<&Statement> = statements.iter().filter(|s| s.change.verdict == Verdict::Unknown).collect();
    if !unknown.is_empty() {
        let share: f64 = unknown.iter().map(|s| s.share_ratio).sum();
        said.push(format!(
            "{} of {} statements ({:.1} % of the time) were executed too seldom, or their times vary too much, to tell a change of a tenth: play more rounds, or a longer log",
            unknown.len(),
            statements.len(),
            share * 100.0
        ));
    }
    if pairs.length_s < DAY_S {
        said.push(format!(
            "the mix is of {}: what runs at other times of the day (reports, backups, jobs) is not in it",
            length(pairs.length_s)
        ));
    }
    if pairs.rounds < 2 {
        said.push(
            "it was played once on each: what the machine did to one of them for long is in what all have in common"
                .to_owned(),
        );
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

/// How to go on, and how to come back.
pub(super) fn back(statements: &[Statement], prediction: &Prediction) -> Vec<String> {
    let short = |s: &Statement| s.digest.chars().take(12).collect::<String>();
    let names = |of: Vec<&Statement>| {
        let named: Vec<String> = of.iter().take(NAMED).map(|s| short(s)).collect();
        let more = of.len().saturating_sub(NAMED);
        if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
    };
    let mut way = Vec::new();
    let breaks: Vec<&Statement> =
        statements.iter().filter(|s| s.differs.as_ref().is_some_and(Differs::matters)).collect();
    if !breaks.is_empty() {
        way.push(format!(
            "first of all: the new server answers something else to {}; find out why before anything is moved",
            names(breaks)
        ));
    }
    let slower: Vec<&Statement> = statements.iter().filter(|s| s.change.verdict == Verdict::Slower).collect();
    if !slower.is_empty() {
        let before = if prediction.answer == Answer::Overload { "before anything is moved" } else { "in this order" };
        way.push(format!(
            "mend or pin the plans of {} {before}: they cost most by calls x change",
            names(slower.clone())
        ));
        let loops: Vec<&Statement> = slower.into_iter().filter(|s| s.runs.is_some()).collect();
        if !loops.is_empty() {
            way.push(format!("take {} out of their loops: one statement for all of a request's rows", names(loops)));
        }
    }
    way.push("before the move: try replication in both directions, old to new and new to old, with writes; the second is the way back".to_owned());
    way.push(
        "move reads first, to one replica of the new version, and watch these statements there through a whole day"
            .to_owned(),
    );
    way.push("keep one replica of the old version fed by the new primary until it has carried a peak: going back is then a switch, and loses nothing".to_owned());
    way
}
