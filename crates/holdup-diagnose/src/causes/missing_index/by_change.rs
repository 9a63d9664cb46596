//! By the catalogs: an index is gone, invalid or hidden from the planner, and the statements on its table
//! take longer since.

use holdup_recording::catalog::Kind;
use holdup_signals::evidence::Evidence;

use super::{INDEX_COST, ROSE, ms};
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role};
use crate::change::Fix;
use crate::resources::changes::{Changes, RelevantChange};
use crate::resources::rows_read::{RowsRead, mentions};
use crate::resources::slower::{Executed, Slowdown};
use crate::resources::{is_felt, statements};
use crate::strength::{CERTAIN, FAIR, STRONG};

/// What a lost index costs.
struct Harm<'e> {
    lost: &'e RelevantChange,
    /// Milliseconds of a request.
    extra_ms: f64,
    /// The statement that costs most of it.
    first: &'e Slowdown<'e>,
    /// That it reads more rows than before, if rows are counted.
    rows: Option<Evidence>,
}

/// Found if a lost index is felt; none if no index was lost, or the statements on its table do not take
/// longer: other evidence may still show that one is missing.
pub(super) fn judge(case: &Case<'_>) -> Option<Outcome> {
    let changes = Changes::for_case(case);
    changes.lost_indexes().next()?;
    let executed = Executed::measure(case, ", for what a lost index costs").ok()?;
    let slower = executed.slower();
    let harm = changes.lost_indexes().filter_map(|lost| harm(case, lost, &slower, &executed));
    let worst = harm.max_by(|a, b| a.extra_ms.total_cmp(&b.extra_ms))?;
    is_felt(case, worst.extra_ms).ok()?.then(|| Outcome::Found(found(case, worst)))
}

/// The statements on the table of `lost` that take longer because of it.
fn harm<'e>(
    case: &Case<'_>,
    lost: &'e RelevantChange,
    slower: &'e [Slowdown<'e>],
    executed: &Executed,
) -> Option<Harm<'e>> {
    let (slow, key) = (case.slow(), &lost.change.key);
    let on_it = slower.iter().filter(|of| of.now.source == lost.change.source && mentions(&of.now.text, &key.on));
    let mut harm: Option<Harm<'e>> = None;
    for of in on_it.filter(|of| of.change.rose(ROSE)) {
        if !statements::is_of_requests(case, &slow, of.now, executed.completed) {
            continue;
        }
        let read = RowsRead::of(case, of, &executed.before);
        // It reads as many rows as before, so it waits for something else.
        if read.as_ref().is_some_and(|read| read.factor() < ROSE) {
            continue;
        }
        let rows = read.map(|read| read.evidence);
        match &mut harm {
            None => harm = Some(Harm { lost, extra_ms: of.extra_ms, first: of, rows }),
            Some(harm) => harm.extra_ms += of.extra_ms,
        }
    }
    harm
}

fn found(case: &Case<'_>, harm: Harm<'_>) -> CauseFinding {
    let strength = if harm.rows.is_some() { CERTAIN } else { STRONG };
    let took = harm.first.took(&case.slow());
    let text = format!("{}: {}", took.text, harm.first.now.text);
    let took = took.clone().saying("", text);
    let (evidence, weights) = match harm.rows {
        Some(rows) => (vec![harm.lost.evidence(), rows, took], vec![strength, STRONG, FAIR]),
        None => (vec![harm.lost.evidence(), took], vec![strength, FAIR]),
    };
    CauseFinding {
        explains_ms: harm.extra_ms,
        evidence,
        weights,
        fixes: fixes(harm.lost),
        prove: format!("Run the same load again: a call takes about {} again.", ms(harm.first.each_ms.0)),
        role: Role::Root,
    }
}

/// Building or showing the index again, by its own statement.
fn fixes(lost: &RelevantChange) -> Vec<Fix> {
    let change = &lost.change;
    debug_assert_eq!(change.key.kind, Kind::Index);
    let (index, table) = (&change.key.name, &change.key.on);
    let (text, risk) = match change.to.as_str() {
        "none" => (
            format!("Create the index {index} of {table} again."),
            format!("Reads the whole table. Find out first why it was dropped. {INDEX_COST}"),
        ),
        "invalid" => (
            format!("Build the index {index} of {table} anew: it is invalid."),
            format!("Reads the whole table. {INDEX_COST}"),
        ),
        state => (
            format!("Let the planner use the index {index} of {table} again: it is {state}."),
            "Takes effect at once. Find out first why it was hidden.".to_owned(),
        ),
    };
    let command = change.restore.as_deref().map(concurrently);
    vec![Fix::by_command(text, command.as_deref(), Some(&risk))]
}

/// PostgreSQL's statement so that writers go on meanwhile; a partitioned table does not take that.
fn concurrently(statement: &str) -> String {
    let begins = |with: &str| statement.strip_prefix(with).filter(|rest| !rest.contains(" ON ONLY "));
    ["CREATE INDEX ", "CREATE UNIQUE INDEX "]
        .into_iter()
        .find_map(|with| begins(with).map(|rest| format!("{with}CONCURRENTLY {rest}")))
        .unwrap_or_else(|| statement.to_owned())
}

#[cfg(test)]
#[path = "by_change_tests.rs"]
mod tests;
