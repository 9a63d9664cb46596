//! A statement reads more rows by the same plan, because there are more.

#[cfg(test)]
mod tests;

use super::parts::clearing;
use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, Trait, percent};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::changes::Changes;
use crate::resources::rows_read::{ENABLE, RowsRead};
use crate::resources::slower::{self, Executed, Slowdown};
use crate::resources::{is_felt, statements};
use crate::strength::{FAIR, STRONG, Strength};
use holdup_signals::Missing;
use holdup_signals::database::plans::{Shape, shapes};
use holdup_signals::evidence::Evidence;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::DiskDemand, Trait::WithinStatement, Trait::LongStatement],
    ..Definition::new(Cause::StatementRegression, DOC, Judge::Alone(judge), &next_command::ROWS_READ)
};

const DOC: Doc = Doc {
    title: "A statement reads more rows than before",
    what: "The same statement by the same plan comes to more rows: a new trigger reads them for each row that it writes, its table or the part that its condition selects has grown, an import brought the rows of another tenant, or a parameter now selects more. An index narrows the table to the rows that the condition selects; it does not make these fewer.",
    hurts: "Each call reads, sorts or adds up all of them. It takes longer in proportion, and worse from where the rows no longer fit into the memory for sorting or into the server's cache.",
    needs: "The server's counters by statement (--watch mysql://…, with rows examined; --watch postgresql://…, with rows read by table), and what tells more rows from another plan: plans (?plans=explain), the table's rows (PostgreSQL), or the rows of the result.",
    predicts: "The statement reads several times as many rows for each call as in the baseline window and takes longer. Its plan is the one it was; or the table has grown, or its result has, in proportion; or its table has a new trigger.",
    clears: "No statement of the requests takes longer; or those that do read as many rows as before.",
    looks_like: "Another plan (plan_changed): it reads more rows of a table that did not grow. A missing index: the statement reads rows that it discards, and did so before. Dead rows (old_snapshot): it reads versions that no result shows. More calls (statement_mix_changed): each takes what it took.",
    fix: "Read fewer rows: totals that are kept instead of added up, pages by key, an index on the columns that narrow further. Or keep fewer: move old rows away, or split the table into partitions.",
    prove: "The same load again: a call reads about as many rows as before and takes as long.",
    references: "MySQL Reference Manual: Performance Schema statement digests (SUM_ROWS_EXAMINED); PostgreSQL documentation: pg_stat_statements, The Cumulative Statistics System (seq_tup_read, idx_tup_fetch, n_live_tup); M. Winand, SQL Performance Explained: Testing and Scalability.",
};

/// A statement reads more from this factor: fewer rows differ by the values that it is called with.
const MORE: f64 = 1.5;

/// As many rows as before, up to this factor.
const SAME: f64 = 1.2;

/// Fewer additional rows for each call take no time that matters.
const ROWS: f64 = 50.0;

/// What a table or a result grew by explains up to so many times the growth of the rows read: rows
/// do not lie evenly.
const PROPORTION: f64 = 2.0;

/// A call takes up to so many times what its rows take in proportion: sorting and what no longer
/// fits into a cache take more. What it takes beyond that has another cause.
const DEARER: f64 = 3.0;

/// Share (0-1) of the additional time whose rows must be known before they can clear.
const KNOWN: f64 = 0.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match by_rows(case) {
        Err(missing) => clearing::by_statements(case, "including all rows that statements read").ok_or(missing),
        outcome => outcome,
    }
}

fn by_rows(case: &Case<'_>) -> Result<Outcome, Missing> {
    let slow = case.slow();
    let executed = Executed::measure(case, ", for its statements to compare with")?;
    let slower = executed.slower();
    let all_ms = slower::all_ms(&slower);
    if let Some(evidence) = executed.hardly_longer(case, all_ms) {
        return Ok(Outcome::Cleared(vec![evidence]));
    }
    let Executed { before, completed, .. } = &executed;
    let (mut same_ms, mut same, mut grown, mut explains_ms) = (0.0, None, None, 0.0);
    for of in &slower {
        let Some(read) = RowsRead::of(case, of, before) else { continue };
        if read.factor() <= SAME {
            same_ms += of.extra_ms;
            same.get_or_insert(read.evidence);
        } else if is_more(of, &read)
            && statements::is_of_requests(case, &slow, of.now, *completed)
            && let Some(sign) = Sign::find(case, of, &read)
        {
            explains_ms += of.extra_ms.min(by_its_rows_ms(of, &read, *completed));
            grown.get_or_insert((of, read, sign));
        }
    }
    match (grown, same) {
        (Some((of, read, sign)), _) if is_felt(case, explains_ms)? => Ok(found(case, explains_ms, of, read, sign)),
        (_, Some(evidence)) if same_ms >= KNOWN * all_ms => {
            let known = percent((same_ms / all_ms).min(1.0));
            let text = format!("{}; statements that read no more have {known} of what all take longer", evidence.text);
            Ok(Outcome::Cleared(vec![evidence.saying("several times as many", text)]))
        }
        _ => Err(Missing::new("whether a statement that takes longer reads more rows by the same plan", ENABLE)),
    }
}

/// Whether a call reads so much more that it takes longer for that.
fn is_more(of: &Slowdown<'_>, read: &RowsRead) -> bool {
    read.factor() >= MORE && read.each.1 - read.each.0 >= ROWS && of.change.rose(MORE)
}

/// The most that a statement's additional rows cost a request, milliseconds.
fn by_its_rows_ms(of: &Slowdown<'_>, read: &RowsRead, completed: f64) -> f64 {
    (DEARER * read.factor() - 1.0) * of.each_ms.0 * of.now.calls / completed
}

/// What tells more rows from another plan.
enum Sign {
    /// It has the plan that it had.
    Plan(Box<Evidence>),
    /// The table has so many times the rows.
    Table(f64),
    /// A call's result has so many rows, and had.
    Result(f64, f64),
    /// A trigger on its table is new, and reads them.
    Trigger,
}

impl Sign {
    /// None if the plan is another, or nothing tells.
    fn find(case: &Case<'_>, of: &Slowdown<'_>, read: &RowsRead) -> Option<Self> {
        if Changes::for_case(case).trigger_of(&of.now.text).is_some() {
            return Some(Self::Trigger);
        }
        match same_plan(case, of) {
            Some(Ok(evidence)) => return Some(Self::Plan(Box::new(evidence))),
            Some(Err(())) => return None,
            None => {}
        }
        let explains = |grew: f64| grew >= MORE && read.factor() <= PROPORTION * grew;
        let result = read.used.filter(|(before, now)| explains(now / before.max(1.0)));
        let table = read.table_grew.filter(|grew| explains(*grew)).map(Self::Table);
        table.or_else(|| result.map(|(before, now)| Self::Result(before, now)))
    }
}

/// Whether the statement's usual plan is the one of the baseline window: an error if it is another,
/// none if plans of both times are not known.
fn same_plan(case: &Case<'_>, of: &Slowdown<'_>) -> Option<Result<Evidence, ()>> {
    let (slow, baseline) = (case.slow(), case.baseline()?);
    let (theirs, former) = (slow.plans().ok()?, baseline.plans().ok()?);
    let (now, then) = (shapes(&theirs, of.now), shapes(&former, of.now));
    let (is, was): (&Shape<'_>, &Shape<'_>) =
        now.iter().find_map(|(kind, now)| Some((now.first()?, then.get(kind)?.first()?)))?;
    if is.plan.shape != was.plan.shape {
        return Some(Err(()));
    }
    let text = format!("its plan is the one of the baseline window: {}", is.tree.structure());
    let shape = format!("shape {}", is.plan.shape);
    Some(Ok(slow.plan_evidence(is, shape.clone(), shape, text)))
}

fn found(case: &Case<'_>, explains_ms: f64, of: &Slowdown<'_>, read: RowsRead, sign: Sign) -> Outcome {
    let factor = read.factor();
    let mut evidence = vec![read.evidence];
    let mut weights: Vec<Strength> = vec![STRONG];
    match sign {
        Sign::Plan(plan) => {
            evidence.push(*plan);
            weights.push(FAIR);
        }
        // The change itself comes in front.
        Sign::Trigger => {}
        Sign::Table(grew) => evidence[0].text += &format!("; the table has {grew:.1} times the rows"),
        Sign::Result(before, now) => {
            evidence[0].text += &format!("; its result has {:.1} times the rows", now / before)
        }
    }
    evidence.insert(1, of.took(&case.slow()));
    weights.insert(1, FAIR);
    let fix = Fix::advice;
    let fixes = vec![
        fix(format!("Find what brought the rows that it now reads {factor:.1} times as many of: {}", of.now.text), None),
        fix(
            "Read fewer of them: keep totals instead of adding up, page by key, or add the columns that narrow further to the index.".to_owned(),
            Some("Another index takes disk space, and each change maintains it."),
        ),
        fix("Move rows that are hardly read to another table, or split the table into partitions.".to_owned(), None),
    ];
    let prove = "Run the same scenario again: a call reads about as many rows as in the baseline window.".to_owned();
    Outcome::Found(CauseFinding { explains_ms, evidence, weights, fixes, prove, role: Role::Root })
}
