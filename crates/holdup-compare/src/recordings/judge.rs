//! Turns two groups' figures into verdicts: one per figure, and one overall.

use super::estimate::Estimate;
use super::family::{FALSE_ALARMS, benjamini_hochberg, hochberg};
use super::measure::{Measure, Precondition, Scale};
use super::outcome::{Against, Change, Row, Section};
use super::words::number;
use super::{Options, UsableGroup, figure};

/// A smaller change (as a share) does not count, however certain it is.
pub(super) const MATTERS: f64 = 0.03;

/// A 95 % interval that reaches further than this (as a share) to either side shows nothing. The
/// first limit holds for single recordings, which can show only large differences, the second for
/// repeats, which are made to see small ones.
const TOO_WIDE: f64 = 0.25;
const TOO_WIDE_OF_REPEATS: f64 = 0.12;

/// The same for figures compared by difference, as a multiple of the smallest difference that
/// counts.
const TOO_WIDE_LEASTS: f64 = 20.0;

/// A baseline below this multiple of its offset counts as almost zero.
const NEAR_ZERO: f64 = 2.0;

/// The change (as a share) that recommended repeats would prove.
const TO_BE_TOLD: f64 = 0.10;

/// A carried rate this far (as a factor) above the other's knee lies beyond it.
const BEYOND: f64 = 1.05;

/// The judgement of one row.
enum RowJudgement<'m> {
    Said(Against),
    Estimated(&'m Measure, Estimate),
}

/// Judges each of `rows` for `other` against `base`, in their order.
pub(super) fn judge(base: &UsableGroup<'_>, other: &UsableGroup<'_>, rows: &[Row], options: Options) -> Vec<Against> {
    let judged: Vec<RowJudgement<'_>> = rows.iter().map(|row| one(base, other, row, options)).collect();
    let mut chances = vec![1.0; rows.len()];
    for (is_headline, adjust) in [(true, hochberg as fn(&[f64]) -> Vec<f64>), (false, benjamini_hochberg)] {
        let of_kind: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].is_headline == is_headline).collect();
        let chance = |i: &usize| match &judged[*i] {
            RowJudgement::Said(_) => 1.0,
            RowJudgement::Estimated(_, estimate) => estimate.chance(),
        };
        let adjusted = adjust(&of_kind.iter().map(chance).collect::<Vec<_>>());
        of_kind.iter().zip(adjusted).for_each(|(i, chance)| chances[*i] = chance);
    }
    let each = judged.into_iter().zip(rows).zip(chances);
    each.map(|((judged, row), chance)| match judged {
        RowJudgement::Said(against) => against,
        RowJudgement::Estimated(measure, estimate) => {
            let of_base = base.samples(row).as_deref().and_then(super::middle).unwrap_or_default();
            against(measure, &estimate, chance, of_base)
        }
    })
    .collect()
}

fn one<'k>(base: &'k UsableGroup<'_>, other: &'k UsableGroup<'_>, row: &Row, options: Options) -> RowJudgement<'k> {
    let (Some(theirs), Some(mine)) = (base.samples(row), other.samples(row)) else {
        return RowJudgement::Said(
            beyond(base, other, row).unwrap_or_else(|| verdict_without_figures(Change::Missing, None)),
        );
    };
    let measure = theirs[0].measure;
    if let Some(why) = incomparable(base, other, measure, options) {
        return RowJudgement::Said(verdict_without_figures(Change::NotComparable, Some(why)));
    }
    match Estimate::between(&theirs, &mine) {
        Some(estimate) => RowJudgement::Estimated(measure, estimate),
        None => {
            RowJudgement::Said(verdict_without_figures(Change::CantTell, Some("one of the two is zero".to_owned())))
        }
    }
}

fn verdict_without_figures(verdict: Change, why: Option<String>) -> Against {
    Against { verdict, difference: None, change_ratio: None, low: None, high: None, why, repeats_wanted: None }
}

/// If a search found no knee up to its highest rate, that is a result, too.
fn beyond(base: &UsableGroup<'_>, other: &UsableGroup<'_>, row: &Row) -> Option<Against> {
    if row.section != Section::Search {
        return None;
    }
    let rate = |kept: &UsableGroup<'_>| kept.samples(row).as_deref().and_then(super::middle);
    let carried = |kept: &UsableGroup<'_>| kept.runs.iter().filter_map(|run| run.facts.carried).reduce(f64::min);
    let (verdict, limit, carried) = match (rate(base), rate(other)) {
        (Some(limit), None) => (Change::Better, limit, carried(other)?),
        (None, Some(limit)) => (Change::Worse, limit, carried(base)?),
        _ => return None,
    };
    let why = format!("none up to {}/s, which it carried", number(carried));
    (carried > limit * BEYOND).then(|| verdict_without_figures(verdict, Some(why)))
}

fn incomparable(
    base: &UsableGroup<'_>,
    other: &UsableGroup<'_>,
    measure: &Measure,
    options: Options,
) -> Option<String> {
    if measure.needs == Precondition::Nothing {
        return None;
    }
    for kept in [base, other].into_iter().filter(|_| measure.needs != Precondition::SameOperations) {
        if let Some(why) = kept.runs.iter().find_map(|run| run.facts.spoiled.as_ref()) {
            return Some(format!("{} was disturbed: {why}", kept.group.name));
        }
    }
    let of_base = &base.runs.first()?.facts;
    other
        .runs
        .iter()
        .chain(&base.runs)
        .find_map(|run| run.facts.incomparable(of_base, measure, options.across_machines))
}

/// An estimate as a verdict. `chance` is that of a difference this large among all examined
/// figures.
fn against(measure: &Measure, estimate: &Estimate, chance: f64, base: f64) -> Against {
    let reach = estimate.reach();
    let (low, high) = (estimate.shift - reach, estimate.shift + reach);
    let is_ratio = matches!(measure.scale, Scale::Ratio { .. });
    // If the baseline is near 0, a ratio is meaningless.
    let plus = if let Scale::Ratio { plus } = measure.scale { plus } else { 0.0 };
    let by_factor = is_ratio && base > 0.0 && base >= NEAR_ZERO * plus;
    // Without this, an interval could reach beyond what is possible: less than nothing, more than all.
    let bounds = measure.bounds();
    let difference_of = |shift: f64| {
        let difference = if is_ratio { (base + plus) * shift.exp_m1() } else { shift };
        difference.clamp((bounds.start() - base).min(0.0), (bounds.end() - base).max(0.0))
    };
    let shown = |shift: f64| if by_factor { difference_of(shift) / base } else { difference_of(shift) };
    let difference = difference_of(estimate.shift);
    let matters = difference.abs() >= measure.least && (!is_ratio || estimate.shift.abs().exp_m1() >= MATTERS);
    let is_wide = if is_ratio {
        let too_wide = if estimate.repeats > 1 { TOO_WIDE_OF_REPEATS } else { TOO_WIDE };
        reach.exp_m1() > too_wide && reach.exp_m1() * base.abs() > measure.least
    } else {
        reach > TOO_WIDE_LEASTS * measure.least
    };
    let excludes_none = low > 0.0 || high < 0.0;
    let mut why = estimate.outlying.map(|round| format!("without the outlying round {round}"));
    let mut add = |text: String| why = Some(why.take().map_or(text.clone(), |before| format!("{before}; {text}")));
    let mut wanted = None;
    let verdict = match () {
        () if chance <= FALSE_ALARMS && matters => match measure.more_is_better {
            None => Change::Different,
            Some(more) if (estimate.shift > 0.0) == more => Change::Better,
            Some(_) => Change::Worse,
        },
        () if matters && excludes_none => {
            wanted = estimate.repeats_for(estimate.shift.abs() / 1.5);
            add("alone it would count, but among this many figures one such is expected by chance".to_owned());
            Change::CantTell
        }
        () if is_wide => {
            let target = if is_ratio { TO_BE_TOLD.ln_1p() } else { measure.least };
            wanted = estimate.repeats_for(target);
            add("the interval is too wide".to_owned());
            Change::CantTell
        }
        () => Change::NoDifference,
    };
    Against {
        verdict,
        difference: Some(figure(difference)),
        change_ratio: by_factor.then(|| figure(shown(estimate.shift))),
        low: Some(figure(shown(low))),
        high: Some(figure(shown(high))),
        why,
        repeats_wanted: wanted.filter(|n| *n as usize > estimate.repeats),
    }
}

/// The overall verdict of column `i`, from the headline rows.
pub(super) fn overall(rows: &[Row], i: usize) -> Change {
    let verdicts: Vec<Change> =
        rows.iter().filter(|r| r.is_headline).filter_map(|r| Some(r.cells.get(i)?.against.as_ref()?.verdict)).collect();
    let has = |change: Change| verdicts.contains(&change);
    // The cost of requests says nothing about how well they were served.
    let of_service = |row: &Row| row.is_headline && row.section != Section::Cost;
    let told = rows.iter().filter(|r| of_service(r)).filter_map(|r| Some(r.cells.get(i)?.against.as_ref()?.verdict));
    let mut told = told.filter(|change| *change != Change::Missing).peekable();
    let is_only_cost = told.peek().is_some() && told.all(|change| change == Change::NotComparable);
    match () {
        () if is_only_cost && !has(Change::Better) && !has(Change::Worse) => Change::NotComparable,
        () if has(Change::Better) && has(Change::Worse) => Change::Mixed,
        () if has(Change::Better) => Change::Better,
        () if has(Change::Worse) => Change::Worse,
        () if has(Change::NoDifference) => Change::NoDifference,
        () if has(Change::CantTell) => Change::CantTell,
        () => Change::NotComparable,
    }
}
