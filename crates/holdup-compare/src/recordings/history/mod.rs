//! Builds in order of time: whether a figure got worse for good, and since which build. Two
//! recordings show a change between them ([`super::groups`]); a history shows what a single
//! comparison can't, because it knows how much the builds before differed from each other.

mod step;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};

use self::step::{BEFORE, SINCE};
pub use self::step::{Step, steps};
use super::judge::MATTERS;
use super::measure::{Measure, Precondition, Scale};
use super::outcome::{Change, Row, Section};
use super::{Group, Options, UsableGroup, empty_rows, figure};

/// Chance that a history without any change shows a step in one of its headline figures.
pub const FALSE_ALARMS: f64 = 0.01;

/// A history of builds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Names of the builds, in order.
    pub builds: Vec<String>,
    /// Worse, if a headline figure is; can't tell, if there are too few builds; not comparable, if
    /// too few of them measured the same as the last.
    pub verdict: Change,
    /// The same in a sentence.
    pub headline: String,
    /// The figures that are measured in every kind of recording first.
    pub figures: Vec<Figure>,
    /// Builds that do not count for some figures, with reasons.
    pub left_out: Vec<String>,
}

/// One figure over all builds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its subject.
    pub section: Section,
    /// Name.
    pub indicator: String,
    /// Unit.
    pub unit: String,
    /// Whether it counts for the verdict.
    pub is_headline: bool,
    /// Whether more is better; none if neither is.
    pub more_is_better: Option<bool>,
    /// One for each build; none where the build lacks it, or measured something else.
    pub values: Vec<Option<f64>>,
    /// Where its level changed, and stayed.
    pub changes: Vec<LastingChange>,
    /// Worse or better than before the last of these changes that still stands; different, if neither value is better.
    pub verdict: Change,
}

/// A change of a figure's level that lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastingChange {
    /// The last build of the level before.
    pub after_build: String,
    /// The first build of the new level.
    pub since_build: String,
    /// Median of the level before, in the figure's unit.
    pub before: f64,
    /// Median of the new level.
    pub level: f64,
    /// Builds of the level before.
    pub builds_before: u32,
    /// Builds of the new level, up to the next change.
    pub builds_since: u32,
    /// Chance that a series without any change shows this (0-1).
    pub chance: f64,
    /// Whether the newest level still differs from the one before in this direction.
    pub stands: bool,
}

/// Looks for lasting changes in `builds`, which are in order of time.
pub fn history(builds: &[Group], options: Options) -> History {
    let kept: Vec<UsableGroup<'_>> = builds.iter().map(UsableGroup::from_group).collect();
    let mut left_out: Vec<String> = kept.iter().flat_map(|build| build.left_out.clone()).collect();
    let rows = empty_rows(&kept);
    let headlines = rows.iter().filter(|row| row.is_headline && row.more_is_better.is_some()).count().max(1);
    let figures: Vec<Figure> =
        rows.iter().filter_map(|row| one(row, &kept, options, headlines, &mut left_out)).collect();
    left_out.dedup();
    let most = figures.iter().filter(|f| f.is_headline).map(|f| f.values.iter().flatten().count()).max().unwrap_or(0);
    let of_headlines = |verdict| figures.iter().any(|f| f.is_headline && f.verdict == verdict);
    let verdict = match () {
        () if of_headlines(Change::Worse) => Change::Worse,
        () if most < BEFORE + SINCE && builds.len() >= BEFORE + SINCE => Change::NotComparable,
        () if most < BEFORE + SINCE => Change::CantTell,
        () if of_headlines(Change::Better) => Change::Better,
        () => Change::NoDifference,
    };
    let builds: Vec<String> = builds.iter().map(|build| build.name.clone()).collect();
    let headline = words::headline(verdict, &figures, builds.len(), most);
    History { builds, verdict, headline, figures, left_out }
}

/// The figure of `row`, if the last build has it.
fn one(
    row: &Row,
    builds: &[UsableGroup<'_>],
    options: Options,
    headlines: usize,
    left_out: &mut Vec<String>,
) -> Option<Figure> {
    let newest = builds.last()?;
    let measure = newest.samples(row)?.first()?.measure.clone();
    let facts = &newest.runs.first()?.facts;
    let needs_service = !matches!(measure.needs, Precondition::Nothing | Precondition::SameOperations);
    let values: Vec<Option<f64>> = builds
        .iter()
        .zip(&row.cells)
        .map(|(build, cell)| {
            let spoiled = || build.runs.iter().find_map(|run| run.facts.spoiled.clone());
            let other =
                build.runs.iter().find_map(|run| run.facts.incomparable(facts, &measure, options.across_machines));
            let other = other.or_else(|| needs_service.then(spoiled).flatten());
            if let Some(why) = other.filter(|_| row.is_headline && cell.value.is_some()) {
                left_out.push(format!("{}: {why}", build.group.name));
                return None;
            }
            cell.value
        })
        .collect();
    let changes = lasting(&values, &measure, FALSE_ALARMS / headlines as f64, builds);
    let verdict = match (changes.iter().rev().find(|change| change.stands), row.more_is_better) {
        (None, _) => Change::NoDifference,
        (Some(_), None) => Change::Different,
        (Some(change), Some(more_is_better)) if (change.level > change.before) == more_is_better => Change::Better,
        (Some(_), Some(_)) => Change::Worse,
    };
    Some(Figure {
        section: row.section,
        indicator: row.indicator.clone(),
        unit: row.unit.clone(),
        is_headline: row.is_headline,
        more_is_better: row.more_is_better,
        values,
        changes,
        verdict,
    })
}

/// The lasting changes of `values`, one for each build.
fn lasting(values: &[Option<f64>], like: &Measure, chance: f64, builds: &[UsableGroup<'_>]) -> Vec<LastingChange> {
    let (places, known): (Vec<usize>, Vec<f64>) =
        values.iter().enumerate().filter_map(|(place, value)| Some((place, (*value)?))).unzip();
    let found = steps(&known, chance, &|before, after| matters(like, before, after));
    let ends: Vec<usize> = [0].into_iter().chain(found.iter().map(|s| s.at)).chain([known.len()]).collect();
    let name = |at: usize| builds[places[at]].group.name.clone();
    let change = |(step, ends): (&Step, &[usize])| LastingChange {
        after_build: name(step.at - 1),
        since_build: name(step.at),
        before: figure(step.before),
        level: figure(step.after),
        builds_before: (ends[1] - ends[0]) as u32,
        builds_since: (ends[2] - ends[1]) as u32,
        chance: step.chance,
        stands: step.stands,
    };
    found.iter().zip(ends.windows(3)).map(change).collect()
}

/// Whether a change is large enough to count, as in a comparison of two recordings.
fn matters(like: &Measure, before: f64, after: f64) -> bool {
    let is_enough = match like.scale {
        Scale::Ratio { plus } => is_large(before + plus, after + plus),
        Scale::Difference => true,
    };
    is_enough && (after - before).abs() >= like.least
}

/// Whether `after` differs from `before` by a ratio that counts.
pub fn is_large(before: f64, after: f64) -> bool {
    before > 0.0 && after > 0.0 && (after / before).ln().abs() >= MATTERS.ln_1p()
}
