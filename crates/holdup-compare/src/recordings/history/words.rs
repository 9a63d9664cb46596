//! A history in a sentence.

use super::super::outcome::Change;
use super::super::words::{percent, value};
use super::step::{BEFORE, SINCE};
use super::{Figure, LastingChange};

/// Most figures in the sentence.
const NAMED: usize = 3;

/// One sentence on a history of `builds` builds, of which `usable` have the figures that count.
pub(super) fn headline(verdict: Change, figures: &[Figure], builds: usize, usable: usize) -> String {
    let needed = BEFORE + SINCE;
    match verdict {
        Change::Worse | Change::Better => {
            let word = if verdict == Change::Worse { "worse" } else { "better" };
            let told = figures.iter().filter(|figure| figure.is_headline && figure.verdict == verdict);
            let mut told: Vec<(&Figure, &LastingChange)> =
                told.filter_map(|figure| Some((figure, figure.standing()?))).collect();
            told.sort_by(|a, b| a.1.chance.total_cmp(&b.1.chance));
            let since = told.first().map_or("", |(_, change)| change.since_build.as_str());
            let parts: Vec<String> =
                told.iter().take(NAMED).map(|(figure, change)| part(figure, change, since)).collect();
            format!("{word} since {since}: {}", parts.join("; "))
        }
        Change::CantTell => format!(
            "{builds} builds are too few to tell: a lasting change shows from {needed} on, {BEFORE} before it and {SINCE} since"
        ),
        Change::NotComparable => format!(
            "only {usable} of {builds} builds measured the same as the last one; a lasting change shows from {needed} on"
        ),
        _ => format!("no lasting change in {usable} builds"),
    }
}

/// `p95 rose from 12.1 ms to 14.0 ms (+16 %) and stayed for 6 builds, after 23 builds`.
fn part(figure: &Figure, change: &LastingChange, since: &str) -> String {
    let verb = if change.level > change.before { "rose" } else { "fell" };
    let size = match change.before {
        before if figure.unit != "ratio" && before > 0.0 => {
            format!(" ({})", percent(change.level / before - 1.0))
        }
        _ => String::new(),
    };
    let when = if change.since_build == since { String::new() } else { format!(" with {}", change.since_build) };
    format!(
        "{} {verb}{when} from {} to {}{size} and stayed there for {} builds, after {} builds",
        figure.indicator,
        value(change.before, &figure.unit),
        value(change.level, &figure.unit),
        change.builds_since,
        change.builds_before,
    )
}

impl Figure {
    /// The newest change that still stands.
    pub fn standing(&self) -> Option<&LastingChange> {
        self.changes.iter().rev().find(|change| change.stands)
    }
}
