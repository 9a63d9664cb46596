//! The rule from the server's counters by statement: rows examined, and executions without an
//! index.

use crate::change::Fix;
use holdup_recording::metrics;

use super::conditions::{columns, tables};
use super::{COLUMNS, EXAMINED_PER_USED, INDEX_COST, ROSE, ROW_MS, ROWS, time_taken};
use crate::case::{Band, Case, Change};
use crate::causes::{CauseFinding, Outcome, Role, ms, percent, thousands};
use crate::resources::{is_felt, statements};
use crate::strength::{FAIR, NONE, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

/// Share (0-1) of the executions that must be without an index.
pub(super) const WITHOUT: f64 = 0.5;

/// Judges statements of servers that count examined rows.
pub(super) fn judge(
    case: &Case<'_>,
    view: &View<'_>,
    executed: &[&DigestUse],
    completed: f64,
) -> Result<Outcome, Missing> {
    let own_ms = |of: &DigestUse| {
        let took_ms = (of.seconds - of.lock_seconds).max(0.0) * 1e3;
        took_ms.min(of.rows_examined * ROW_MS) / completed
    };
    let mut suspects: Vec<&DigestUse> = executed.iter().copied().filter(|of| reads_too_much(of)).collect();
    suspects.sort_by(|a, b| own_ms(b).total_cmp(&own_ms(a)));
    let Some(of) = suspects.iter().copied().find(|of| statements::is_of_requests(case, view, of, completed)) else {
        return Ok(Outcome::Cleared(vec![worst(view, suspects.first().copied(), executed, completed)]));
    };
    let explains_ms = own_ms(of);
    let seen = view.digest_evidence(
        of,
        "rows_examined",
        format!("{} a call", thousands(of.examined_each())),
        format!("about the {} that it sends or changes", thousands(of.rows_used / of.calls)),
        format!(
            "a call examined {} rows to send or change {:.1}, and {} of the calls used no index: {}",
            thousands(of.examined_each()),
            of.rows_used / of.calls,
            percent(of.no_index / of.calls),
            of.text
        ),
    );
    let took = time_taken(view, of, completed, explains_ms);
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![took, seen]));
    }
    let mut evidence = vec![seen, took];
    let mut weights = vec![STRONG, FAIR * (of.no_index / of.calls)];
    if let Some((change, told)) = against_baseline(case, of, completed) {
        evidence.push(told);
        if change.stayed(ROSE) {
            return Ok(Outcome::Cleared(evidence));
        }
        weights.push(if change.rose(ROSE) { STRONG } else { NONE });
    }
    evidence.extend(cpu(view, completed));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: fixes(of),
        prove: format!(
            "Run the same scenario again: hardly any of the {} rows examined per call are left.",
            thousands(of.examined_each())
        ),
        role: Role::Root,
    }))
}

/// Whether an index would avoid most of its rows. Without a condition all rows are needed.
fn reads_too_much(of: &DigestUse) -> bool {
    reads_in_vain(of) && of.no_index >= WITHOUT * of.calls
}

/// Whether it has a condition and reads many rows for few that it sends or changes.
pub(super) fn reads_in_vain(of: &DigestUse) -> bool {
    has_condition(&of.text)
        && of.examined_each() >= ROWS
        && of.rows_examined >= EXAMINED_PER_USED * of.rows_used.max(of.calls)
}

/// Whether a statement asks for a part of the rows.
pub(super) fn has_condition(text: &str) -> bool {
    let text = text.to_uppercase();
    // A shape of MongoDB has its filter in braces.
    let words = [" WHERE ", " JOIN ", " ON ", " LIMIT ", " FILTER {", " Q {", " QUERY {", " PIPELINE ["];
    words.iter().any(|word| text.contains(word))
}

/// The nearest candidate, for the evidence that clears.
fn worst(view: &View<'_>, suspect: Option<&DigestUse>, executed: &[&DigestUse], completed: f64) -> Evidence {
    if let Some(of) = suspect {
        let text = format!(
            "the statement that reads most without an index ran {:.3} times per request, so it is not one of the requests' own: {}",
            of.calls / completed,
            of.text
        );
        return view.digest_evidence(of, "calls", format!("{:.3} a request", of.calls / completed), "", text);
    }
    let rows = executed.iter().map(|of| of.rows_examined).fold(0.0, |sum, n| sum + n);
    let first = executed.first();
    let text = format!(
        "all statements together examined {} rows per request, and none reads many rows for few without an index",
        thousands(rows / completed)
    );
    match first {
        Some(of) => {
            view.digest_evidence(of, "rows_examined", format!("{} a request", thousands(rows / completed)), "", text)
        }
        None => {
            let labels = holdup_recording::Labels::new([("kind", "digest_total")]);
            Evidence::new("statements", "calls", labels, view.window, "0", "", "no statement ended meanwhile")
        }
    }
}

/// Growth of rows examined per request since the baseline window, if there is one.
fn against_baseline(case: &Case<'_>, of: &DigestUse, completed: f64) -> Option<(Change, Evidence)> {
    let baseline = case.baseline()?;
    let before = baseline.executed(COLUMNS).ok()?;
    let served = case.completed_in(baseline.window).ok().filter(|n| *n > 0.0)?;
    let was = before.iter().find(|b| b.digest == of.digest && b.database == of.database);
    // A statement that did not run then read nothing, exactly.
    let (was, calls) = was.map_or((0.0, f64::INFINITY), |b| (b.rows_examined / served, b.calls));
    let is = of.rows_examined / completed;
    let text = format!("{} rows examined per request, {} at baseline", thousands(is), thousands(was));
    let change = Band::of_count(is, of.calls).since(Band::of_count(was.max(1.0), calls));
    Some((change, case.slow().digest_evidence(of, "rows_examined", thousands(is), thousands(was), text)))
}

/// CPU time per request, if processes or the host report it.
fn cpu(view: &View<'_>, completed: f64) -> Option<Evidence> {
    let cpu = view.counter(metrics::process::CPU_TIME.name, &[], "").ok()?;
    let each = cpu.delta / completed * 1e3;
    Some(cpu.evidence(
        format!("{} a request", ms(each)),
        "",
        format!("the watched processes used {} of CPU per request", ms(each)),
    ))
}

fn fixes(of: &DigestUse) -> Vec<Fix> {
    let database = of.database.as_deref().map_or_else(String::new, |d| format!("USE `{d}`; "));
    let tables = tables(&of.text);
    let table = tables.first().map_or("the table", String::as_str);
    let columns = columns(&of.text);
    let mut fixes = vec![Fix {
        text: format!(
            "See which table it reads whole (type ALL), and with which condition: {table} in \"{}\". Replace each ? by a value.",
            of.text
        ),
        command: Some(format!("{database}EXPLAIN {};", of.text.trim_end_matches(';'))),
        keep: None,
        risk: None,
    }];
    if !columns.is_empty() {
        let name = format!("holdup_{}", columns.join("_"));
        let alter = format!("{database}ALTER TABLE `{table}`");
        let list = columns.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
        fixes.push(Fix {
            text: format!("If the plan confirms it, index the compared columns: {}.", columns.join(", ")),
            command: Some(format!("{alter} ADD INDEX `{name}` ({list}), ALGORITHM=INPLACE, LOCK=NONE;")),
            keep: None,
            risk: Some(format!("Reads the whole table once. {INDEX_COST}")),
        });
    }
    fixes
}
