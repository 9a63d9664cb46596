//! Updates rewrite large values that did not change: each leaves as many dead rows in the TOAST
//! table as the value has chunks.

use super::parts::clearing::or_by_disk;
use super::parts::vacuum_advice;
use super::{
    Cause, CauseFinding, Contribution, Definition, Doc, Judge, Occurs, Outcome, Role, Source::Of, Source::With, Trait,
    bytes, bytes_per_second, ms, percent, thousands,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command;
use crate::resources::is_felt;
use crate::resources::volume::demand::{demand, is_negligible, is_rewritten, rewritten_bytes, share_text};
use crate::strength::{STRONG, WEAK};
use holdup_recording::metrics;
use holdup_signals::database::tables::{CHUNK_BYTES, Toast};
use holdup_signals::database::written::{Change, changes, set_columns};
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnPostgresql,
    adds_to: &[
        // Rewritten values leave dead rows for vacuum to remove, and are written to the same disk.
        Contribution {
            to: &[
                &[Of(Cause::AutovacuumPressure)],
                &[With(Trait::DiskLimit)],
                &[Of(Cause::DiskSaturated)],
                &[Of(Cause::CommitLogBound)],
            ],
            least: 0.0,
        },
    ],
    ..Definition::new(Cause::ToastRewrite, DOC, Judge::Alone(judge), &next_command::VACUUM)
};

const DOC: Doc = Doc {
    title: "Updates rewrite large values every time",
    what: "PostgreSQL stores values above some 2 KiB out of line, in the table's TOAST table, 1,996 bytes per row. An update that leaves such a column out keeps them. An update that sets it writes all of its rows anew and leaves the old ones dead, even if the value is the same: the server does not compare.",
    hurts: "An update of a row with a 10 KiB value leaves 1 + 6 dead rows rather than 1, and writes them to the log, to the table and once more during vacuum. This I/O fills a disk that the updates themselves would not.",
    needs: "Counters by table with the TOAST tables (--watch postgresql://…), the disk's throughput (--watch host, or a cloud's figures), and the waits for it; statements by digest name the one responsible.",
    predicts: "Rows inserted into and deleted from the TOAST table are a fixed number per update of its table, as many as the value has chunks, and their bytes are a large part of the throughput of the disk that requests wait for.",
    clears: "Updates write no TOAST rows; or their bytes are a small part of the disk's throughput; or requests do not wait for the disk.",
    looks_like: "Values that do change with every update: the counters are the same, so check what the statement sets and whether the app changes it. Inserts of new values fill the TOAST table and leave nothing dead; short-lived rows (a queue) do both without an update, so their part, by the mean size of a value, is left out.",
    fix: "Set only the columns that changed (dirty tracking or dynamic updates of the object mapper); or keep the large value in a separate table.",
    prove: "The same load again: TOAST rows per update near 0. Existing dead rows have to be vacuumed first.",
    references: "PostgreSQL documentation: TOAST (out-of-line, on-disk storage; \"during an UPDATE operation, values of unchanged fields are normally preserved as-is\"), pg_stat_all_tables, HOT.",
};

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    or_by_disk(case, from_server(case))
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let toasts = view.toasts()?;
    let Some(most) = toasts.iter().max_by(|a, b| a.bytes_per_second().total_cmp(&b.bytes_per_second())) else {
        return Ok(Outcome::Cleared(vec![nothing_of_it(&view)?]));
    };
    let ratio = per_update(&view, most);
    if !is_rewritten(most) {
        return Ok(Outcome::Cleared(vec![ratio]));
    }
    let demand = demand(case)?;
    let share = demand.share(rewritten_bytes(&toasts));
    let written = view.table_evidence(
        &most.toast,
        metrics::postgresql::STAT_TABLES_N_TUP_INS,
        bytes_per_second(most.bytes_per_second()),
        "hardly anything, if only changes were written",
        format!(
            "that is at least {}, to the log and to the table: {}",
            bytes_per_second(most.bytes_per_second()),
            share_text(&demand, share)
        ),
    );
    if is_negligible(share) {
        return Ok(Outcome::Cleared(vec![ratio, written]));
    }
    let waited = demand.waited_ms(case)?;
    let explains_ms = waited * share;
    let waits = view.table_evidence(
        &most.toast,
        metrics::postgresql::STAT_TABLES_N_TUP_DEL,
        ms(explains_ms),
        "a small part of the delay",
        format!("a request waits {} for {}, in part because of these bytes", ms(waited), demand.flow.name),
    );
    // Its share of the bytes matters only if the wait for them does: what queues in front of the
    // service comes on top of both.
    if !is_felt(case, waited)? {
        return Ok(Outcome::Cleared(vec![ratio, written, waits]));
    }
    let statements = statements(&view, most);
    let mut evidence = vec![ratio, written, waits];
    evidence.extend(statements.first().map(|of| sets(&view, most, of)));
    let mut fixes = vec![leave_out(most, statements.first())];
    fixes.extend(vacuum_advice::advise(&view, &most.toast, &most.owner));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![STRONG, if statements.is_empty() { WEAK } else { STRONG }],
        fixes,
        prove: format!(
            "The same load again: updates of {} write no rows of {}. First wait until vacuum has removed the existing dead rows.",
            most.owner.table, most.toast.table
        ),
        role: Role::Root,
    }))
}

/// TOAST rows per update.
fn per_update(view: &View<'_>, of: &Toast) -> Evidence {
    let text = format!(
        "{} updates of {} rewrote {} rows of its TOAST table and left as many dead: {:.1} per update{}",
        thousands(of.owner.updated),
        of.owner.table,
        thousands(of.rewritten()),
        of.per_update(),
        if is_rewritten(of) {
            format!(", a value of up to {} each time", bytes(of.value_bytes()))
        } else {
            ": values out of line were not rewritten".to_owned()
        }
    );
    view.table_evidence(
        &of.toast,
        metrics::postgresql::STAT_TABLES_N_TUP_INS,
        format!("{:.1} an update", of.per_update()),
        "0 an update",
        text,
    )
}

/// Evidence that no table with out-of-line values was written.
fn nothing_of_it(view: &View<'_>) -> Result<Evidence, Missing> {
    let tables = view.table_writes()?;
    let most = tables.first().ok_or_else(|| Missing::new("tables", vacuum_advice::NEEDS))?;
    let text = "none of the written tables has values out of line";
    Ok(view.table_evidence(most, metrics::postgresql::STAT_TABLES_N_TUP_UPD, "none", "a TOAST table that grows", text))
}

/// Statements that update the table, most calls first.
fn statements(view: &View<'_>, of: &Toast) -> Vec<DigestUse> {
    let mut all = view.executed(&["digest_text"]).unwrap_or_default();
    all.retain(|s| changes(&s.text, Change::Update, &of.owner.table));
    all.sort_by(|a, b| b.calls.total_cmp(&a.calls));
    all
}

fn sets(view: &View<'_>, of: &Toast, statement: &DigestUse) -> Evidence {
    let columns = set_columns(&statement.text);
    let share = (statement.calls / of.owner.updated.max(1.0)).min(1.0);
    let text = format!(
        "every update writes the value, so the statement sends it each time, changed or not: it sets {} ({} of the updates): {}",
        if columns.is_empty() { "columns that its text does not show".to_owned() } else { columns.join(", ") },
        percent(share),
        statement.text
    );
    view.digest_evidence(statement, "calls", percent(share), "", text)
}

fn leave_out(of: &Toast, statement: Option<&DigestUse>) -> Fix {
    let which = match statement.map(|s| set_columns(&s.text)).unwrap_or_default().as_slice() {
        [] | [_] => String::new(),
        several => format!(" (it sets {})", several.join(", ")),
    };
    Fix {
        text: format!(
            "Set only the columns that changed in updates of {}{which}: dirty tracking or dynamic updates of the object mapper, or a separate table for the large value. Each update then leaves 1 dead row instead of {:.0}, and {} less to write.",
            of.owner.table,
            1.0 + of.per_update(),
            bytes(of.per_update() * CHUNK_BYTES * 2.0)
        ),
        command: None,
        keep: None,
        risk: Some("Existing dead rows are vacuumed first: until then it stays slow.".to_owned()),
    }
}

#[cfg(test)]
mod tests;
