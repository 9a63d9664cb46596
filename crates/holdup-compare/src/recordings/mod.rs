//! Recordings side by side: the differences, their size, how certain they are, and which figures
//! cannot be compared.
//!
//! Each recording is reduced to its figures ([`run`]) and their precision within that run
//! ([`within`]). Figures of groups give an estimate of their difference ([`estimate`]). All
//! estimates of a pair together are called better, worse or neither ([`family`], [`judge`]), unless
//! the recordings did not measure the same ([`facts`]). The first group is the baseline. See
//! `docs/compare.md`.

mod cost;
mod estimate;
mod facts;
mod family;
pub mod gate;
pub mod history;
mod judge;
mod measure;
mod outcome;
mod proves;
mod run;
mod student;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unanswered;
mod within;
pub mod words;

use holdup_recording::Recording;

pub(crate) use self::estimate::median;
pub(crate) use self::family::benjamini_hochberg;
pub use self::outcome::{Against, Cell, Change, Column, Comparison, Row, Section};
pub use self::run::Run;
pub(crate) use self::student::{quantile as student_quantile, two_sided as student_two_sided};
use crate::recordings::estimate::{Sample, middle};
use crate::recordings::measure::Measure;
use holdup_diagnose::verdict::Diagnosis;
use holdup_recording::words::round;

/// Recordings of one version or setting.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// One or several recordings.
    pub runs: Vec<Run>,
}

/// Options of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Compare although the machines differ, because the machines are what is compared.
    pub across_machines: bool,
}

/// Compares single recordings, each with its name and verdict.
pub fn recordings(recordings: &[(&str, &Recording, &Diagnosis)]) -> Comparison {
    let group = |&(name, recording, diagnosis): &(&str, &Recording, &Diagnosis)| Group {
        name: name.to_owned(),
        runs: vec![Run::from_recording(name, recording, diagnosis, None)],
    };
    groups(&recordings.iter().map(group).collect::<Vec<_>>(), Options::default())
}

/// Compares each of `groups` with the first.
pub fn groups(groups: &[Group], options: Options) -> Comparison {
    let counted = counting_unanswered(groups);
    let (groups, counted) = counted.as_ref().map_or((groups, None), |(groups, note)| (groups, Some(note)));
    let kept: Vec<UsableGroup<'_>> = groups.iter().map(UsableGroup::from_group).collect();
    let mut rows = empty_rows(&kept);
    let mut columns: Vec<Column> = kept
        .iter()
        .map(|kept| Column {
            name: kept.group.name.clone(),
            recordings: kept.runs.len() as u32,
            left_out: kept.left_out.clone(),
            verdict: None,
            headline: None,
        })
        .collect();
    let mut notes: Vec<String> = counted.into_iter().cloned().collect();
    if let Some((base, others)) = kept.split_first() {
        for (i, other) in others.iter().enumerate() {
            let verdicts = judge::judge(base, other, &rows, options);
            for (row, against) in rows.iter_mut().zip(verdicts) {
                row.cells[i + 1].against = Some(against);
            }
            let verdict = judge::overall(&rows, i + 1);
            columns[i + 1].verdict = Some(verdict);
            columns[i + 1].headline = Some(words::headline(&rows, i + 1, &other.group.name, &base.group.name, verdict));
            notes.extend(proves::proves(base, other, &rows, i + 1));
        }
        notes.extend(words::notes(base, others));
    }
    Comparison { columns, rows, notes }
}

/// `groups` with all requests in their percentiles, and a note that says so; none unless times would cover
/// only the survivors, or if the schedules differ.
fn counting_unanswered(groups: &[Group]) -> Option<(Vec<Group>, String)> {
    let fit =
        |group: &Group| -> Vec<Run> { group.runs.iter().filter(|run| run.facts.spoiled.is_none()).cloned().collect() };
    let each: Vec<(&str, Vec<Run>)> = groups.iter().map(|group| (group.name.as_str(), fit(group))).collect();
    let base = &each.first()?.1.first()?.facts;
    let all = || each.iter().flat_map(|(_, runs)| runs).map(|run| &run.facts);
    if !all().all(|facts| facts.has_schedule_of(base)) || !all().any(|facts| facts.has_other_survivors(base)) {
        return None;
    }
    let counting = |run: &Run| {
        let measures = run.measures.iter().map(Measure::counting_unanswered).collect();
        Run { measures, ..run.clone() }
    };
    let counted = groups.iter().map(|group| {
        let runs = group.runs.iter().map(counting).collect();
        Group { name: group.name.clone(), runs }
    });
    let share = |(name, runs): &(&str, Vec<Run>)| {
        let mean = runs.iter().map(|run| run.facts.unanswered).sum::<f64>() / runs.len().max(1) as f64;
        format!("{:.0} % of {name}", mean * 100.0)
    };
    let shares: Vec<String> = each.iter().map(share).collect();
    let note = format!(
        "Percentiles count every request that was due: one without an answer ({}) is slower than \
         any answer, and took at least as long as the client would have waited.",
        shares.join(", ")
    );
    Some((counted.collect(), note))
}

/// A group without spoiled recordings.
struct UsableGroup<'g> {
    group: &'g Group,
    runs: Vec<&'g Run>,
    left_out: Vec<String>,
}

impl<'g> UsableGroup<'g> {
    /// Leaves out recordings that something other than the service spoiled, as long as others
    /// remain.
    fn from_group(group: &'g Group) -> Self {
        let is_fit = |run: &&Run| run.facts.spoiled.is_none();
        let fit: Vec<&Run> = group.runs.iter().filter(is_fit).collect();
        if fit.is_empty() {
            return Self { group, runs: group.runs.iter().collect(), left_out: Vec::new() };
        }
        let why = |run: &Run| Some(format!("{}: {}", run.name, run.facts.spoiled.as_ref()?));
        Self { group, runs: fit, left_out: group.runs.iter().filter_map(why).collect() }
    }

    /// The figure `like` of each recording; none if one of them lacks it.
    fn samples(&self, like: &Row) -> Option<Vec<Sample<'_>>> {
        let of = |run: &&'g Run| {
            let is_it =
                |m: &&Measure| m.section == like.section && m.indicator == like.indicator && m.unit == like.unit;
            Some(Sample { round: run.round, measure: run.measures.iter().find(is_it)? })
        };
        // The cost of a request holds even if the generator was late.
        let of_all = || self.group.runs.iter().map(|run| of(&run)).collect::<Option<Vec<_>>>();
        let of_fit = || self.runs.iter().map(of).collect::<Option<Vec<_>>>();
        let samples = if like.section == Section::Cost { of_all() } else { of_fit() };
        samples.filter(|samples| !samples.is_empty())
    }
}

/// A row for each figure that any group has, with its values: in the order of the first group, by
/// section.
fn empty_rows(groups: &[UsableGroup<'_>]) -> Vec<Row> {
    let mut seen: Vec<&Measure> = Vec::new();
    for measure in groups.iter().flat_map(|g| &g.runs).flat_map(|run| &run.measures) {
        if !seen.iter().any(|other| other.is_same(measure)) {
            seen.push(measure);
        }
    }
    seen.sort_by_key(|measure| measure.section);
    let row = |measure: &&Measure| {
        let mut row = Row {
            section: measure.section,
            indicator: measure.indicator.clone(),
            unit: measure.unit.clone(),
            is_headline: measure.is_headline,
            more_is_better: measure.more_is_better,
            cells: Vec::new(),
        };
        let cells = groups.iter().map(|group| {
            let samples = group.samples(&row).unwrap_or_default();
            let repeats: Vec<f64> = samples.iter().map(|s| figure(s.measure.value)).collect();
            Cell {
                value: middle(&samples).map(figure),
                repeats: if repeats.len() > 1 { repeats } else { Vec::new() },
                is_least: samples.iter().any(|s| s.measure.is_least),
                against: None,
            }
        });
        row.cells = cells.collect();
        row
    };
    seen.iter().map(row).collect()
}

/// Six digits, so that printed and stored values are readable.
fn figure(value: f64) -> f64 {
    if value.abs() < 1e-9 || !value.is_finite() {
        return 0.0;
    }
    round(value, 5 - value.abs().log10().floor() as i32)
}
