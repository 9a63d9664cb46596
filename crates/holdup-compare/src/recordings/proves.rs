//! What a pair proves about the first service. If the second carries more and its handler takes
//! less time per request, the difference of their knees is the cost of the handler's work and waits
//! in the first. With an empty handler, the rest is the server's own.

use super::outcome::{Change, Row, Section};
use super::{UsableGroup, words};

/// A handler's time that fell by less than this (as a share) counts as unchanged.
const FELL: f64 = 0.2;

/// The sentence; none if the pair proves nothing of the kind. `rows` have the verdicts of column
/// `i`.
pub(super) fn proves(base: &UsableGroup<'_>, other: &UsableGroup<'_>, rows: &[Row], i: usize) -> Option<String> {
    let knee = rows.iter().find(|row| row.section == Section::Search && row.indicator == "knee")?;
    let cell = knee.cells.get(i)?;
    if cell.against.as_ref()?.verdict != Change::Better {
        return None;
    }
    let (before, after) = (knee.cells.first()?.value?, cell.value?);
    let handler = |kept: &UsableGroup<'_>| kept.runs.iter().map(|run| run.facts.handler_ms).reduce(f64::min);
    let (was, is) = (handler(base)?, handler(other)?);
    if was <= 0.0 || is > was * (1.0 - FELL) {
        return None;
    }
    let share = 1.0 - before / after;
    let (a, b) = (&base.group.name, &other.group.name);
    Some(format!(
        "{b} carries {:.2} times what {a} does ({}/s instead of {}/s), and a request that meets an idle service takes {} instead of \
         {}: {:.0} % of what a request costs {a} at its knee is what {b}'s handler leaves out, its work and its waits; the other \
         {:.0} % are the server's own and what both handlers do. A limit that stays where the handler does nothing is the server's.",
        after / before,
        words::number(after),
        words::number(before),
        words::value(is, "ms"),
        words::value(was, "ms"),
        share * 100.0,
        (1.0 - share) * 100.0,
    ))
}
