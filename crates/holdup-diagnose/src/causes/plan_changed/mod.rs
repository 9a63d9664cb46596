//! The server executes a statement with another plan than before, and it takes longer.

mod advice;
mod by_rows;
mod signs;

use holdup_recording::plan::Node;

use advice::fixes;

use super::parts::clearing;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Outcome, Role, Trait, ms, percent, thousands};
use crate::case::Case;
use crate::next_command;
use crate::resources::changes::Changes;
use crate::resources::rows_read::mentions;
use crate::resources::slower::{self, Executed, Slowdown};
use crate::resources::{is_felt, statements};
use crate::strength::{FAIR, STRONG};
use holdup_signals::database::plans::{Shape, misestimate, parting, shapes};
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::WithinStatement, Trait::LongStatement],
    signs: Some(signs::find),
    ..Definition::new(Cause::PlanChanged, DOC, Judge::Alone(judge), &next_command::ROWS_READ)
};

const DOC: Doc = Doc {
    title: "A statement's plan changed",
    what: "The planner chose another way to the same rows: a whole table is read where an index was used, or tables are joined in another order or by another method. An index is gone, statistics are outdated or new, a table has grown, a setting was changed, a generic plan replaced those made for each value.",
    hurts: "The same statement with the same values suddenly takes many times longer, and its reads fill CPUs and disks for all others.",
    needs: "Plans of the statement from the baseline window and from the episode (--watch postgresql://…?plans=explain or mysql://…?plans=explain; or auto_explain in PostgreSQL's log, with ?log=PATH), and the server's counters by statement.",
    predicts: "The same statement has another plan shape in the episode than in the baseline window, and its time per call rose as well. Other statements keep their plans.",
    clears: "The statements that take longer kept their plans, so plans are not the reason, however much longer they take. Or statements do not take longer.",
    looks_like: "The same plan that waits: for a disk at its limit, for locks, for a CPU. An index that never existed (missing_index). Other values, for which the same plan reads more.",
    fix: "See what differs at the named node: restore the index, the statistics (ANALYZE), or the setting.",
    prove: "The same load again: the statement has its former shape, and takes as long as before.",
    references: "PostgreSQL documentation: Using EXPLAIN, auto_explain, Statistics Used by the Planner, plan_cache_mode; MySQL Reference Manual: EXPLAIN Output Format, Switchable Optimizations; MariaDB documentation: EXPLAIN FORMAT=JSON, Engine-Independent Table Statistics.",
};

/// A statement takes longer from this factor: changed plans differ by more, or do not matter.
const ROSE: f64 = 2.0;

/// A shape with at least this share (0-1) of the plans in the baseline window is not new.
const WAS_USUAL: f64 = 0.25;

/// Share (0-1) of the additional time whose plans must be known before they can clear.
const KNOWN: f64 = 0.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match by_plans(case) {
        Err(missing) => clearing::by_statements(case, "including everything that plans may cost").ok_or(missing),
        Ok(Outcome::Found(found)) => Ok(Outcome::Found(CauseFinding { role: role(case, &found), ..found })),
        outcome => outcome,
    }
}

/// Where an index of the statement's table was lost, another plan is how that shows.
fn role(case: &Case<'_>, found: &CauseFinding) -> Role {
    let names = |table: &str| found.evidence.iter().any(|piece| mentions(&piece.text, table));
    let is_lost = Changes::for_case(case).lost_indexes().any(|lost| names(&lost.change.key.on));
    if is_lost { Role::Symptom } else { found.role }
}

fn by_plans(case: &Case<'_>) -> Result<Outcome, Missing> {
    let executed = Executed::measure(case, ", for its plans to compare with")?;
    let slower = executed.slower();
    let all_ms = slower::all_ms(&slower);
    if let Some(evidence) = executed.hardly_longer(case, all_ms) {
        return Ok(Outcome::Cleared(vec![evidence]));
    }
    let Executed { before, completed, .. } = &executed;
    // Without plans, the rows that a call reads show it.
    from_plans(case, &slower, all_ms, *completed)
        .or_else(|missing| by_rows::judge(case, &slower, before, all_ms, *completed).ok_or(missing))
}

fn from_plans(case: &Case<'_>, slower: &[Slowdown<'_>], all_ms: f64, completed: f64) -> Result<Outcome, Missing> {
    let slow = case.slow();
    let baseline = case.baseline().ok_or_else(|| Missing::baseline(", for its plans to compare with"))?;
    let (theirs, former) = (slow.plans()?, baseline.plans()?);
    let (mut known_ms, mut same_ms, mut same) = (0.0, 0.0, Vec::new());
    let mut statements = 0;
    for of in slower {
        let (now, then) = (shapes(&theirs, of.now), shapes(&former, of.now));
        let pairs = now.iter().filter_map(|(kind, now)| Some((now, then.get(kind)?)));
        let Some((now, then)) = pairs.max_by_key(|(now, then)| count(now).min(count(then))) else { continue };
        known_ms += of.extra_ms;
        statements += 1;
        let (Some(is), Some(was)) = (now.first(), then.first()) else { continue };
        let is_new = then.iter().find(|shape| shape.plan.shape == is.plan.shape).map_or(0, |shape| shape.count);
        let changed = is.plan.shape != was.plan.shape && (is_new as f64) < WAS_USUAL * count(then) as f64;
        if changed
            && of.change.rose(ROSE)
            && is_felt(case, of.extra_ms).unwrap_or(false)
            && statements::is_of_requests(case, &slow, of.now, completed)
        {
            return Ok(Outcome::Found(found(of, (&baseline, was), (&slow, is))));
        }
        if !changed {
            same_ms += of.extra_ms;
            let of_shape = |shapes: &[Shape<'_>]| {
                shapes.iter().filter(|shape| shape.plan.shape == is.plan.shape).map(|shape| shape.count).sum::<usize>()
            };
            same.push((of, is.clone(), of_shape(now) + of_shape(then), count(now) + count(then)));
        }
    }
    if let Some((of, shape, in_shape, samples)) = same.first()
        && same_ms >= KNOWN * all_ms
    {
        let waits = of.waits_for(&slow).map_or_else(String::new, |what| format!(" because it waits for {what}"));
        let others = match same.len() {
            1 => String::new(),
            n => format!(" ({n} such statements have {} of what statements take longer)", percent(same_ms / all_ms)),
        };
        let text = format!(
            "same plan before and during, in {in_shape} of {samples} samples: a call takes {} instead of {}{waits}{others}: {}",
            ms(of.each_ms.1),
            ms(of.each_ms.0),
            of.now.text
        );
        let told = slow.plan_evidence(shape, format!("shape {}", shape.plan.shape), "another shape", text);
        return Ok(Outcome::Cleared(vec![told, of.took(&slow)]));
    }
    Err(Missing::new(
        format!(
            "plans before and during of the statements that take longer (known: {} of {}, with {} of the time)",
            statements,
            slower.len(),
            percent((known_ms / all_ms.max(1e-9)).min(1.0))
        ),
        holdup_signals::database::plans::PLANS,
    ))
}

fn count(shapes: &[Shape<'_>]) -> usize {
    shapes.iter().map(|shape| shape.count).sum()
}

fn found(
    of: &Slowdown<'_>,
    (baseline, was): (&View<'_>, &Shape<'_>),
    (slow, is): (&View<'_>, &Shape<'_>),
) -> CauseFinding {
    let parting = parting(&was.tree, &is.tree);
    let differs = parting.map_or_else(|| "the trees differ only in details".to_owned(), |parting| parting.text());
    let estimate = parting.and_then(|parting| parting.after).map(rows).unwrap_or_default();
    let text = format!("{differs}{estimate}, in {} of the recorded plans of: {}", is.count, of.now.text);
    let shape = |shape: &Shape<'_>| format!("shape {}", shape.plan.shape);
    let mut evidence = vec![
        slow.plan_evidence(is, shape(is), shape(was), text),
        baseline.plan_evidence(
            was,
            shape(was),
            "",
            format!("in the baseline window it was, {} times: {}", was.count, was.tree.structure()),
        ),
        of.took(slow),
    ];
    let mut weights = vec![STRONG, FAIR];
    if let Some((node, factor)) = misestimate(&is.tree).filter(|(_, factor)| *factor >= 10.0) {
        let (expected, came) = (node.rows_estimated.unwrap_or(0.0), node.rows_actual.unwrap_or(0.0));
        let text = format!(
            "the planner was wrong by a factor of {} about {}: {} rows expected, {} came",
            thousands(factor),
            node.name(),
            thousands(expected),
            thousands(came)
        );
        evidence.push(slow.plan_evidence(
            is,
            format!("{} rows", thousands(came)),
            format!("{} rows", thousands(expected)),
            text,
        ));
        weights.push(FAIR);
    }
    CauseFinding {
        explains_ms: of.extra_ms,
        evidence,
        weights,
        fixes: fixes(of.now, parting),
        prove: format!(
            "Run the same scenario again: the statement has shape {} again and takes {} a call.",
            was.plan.shape,
            ms(of.each_ms.0)
        ),
        role: Role::Root,
    }
}

/// Expected and actual rows of a node, in words.
fn rows(node: &Node) -> String {
    let mut text = String::new();
    if let Some(expected) = node.rows_estimated {
        text.push_str(&format!(", {} rows expected", thousands(expected)));
    }
    if let Some(came) = node.rows_actual {
        text.push_str(&format!(", {} came", thousands(came)));
    }
    if let Some(removed) = node.rows_removed {
        text.push_str(&format!(" and {} were discarded", thousands(removed)));
    }
    text
}

#[cfg(test)]
mod tests;
