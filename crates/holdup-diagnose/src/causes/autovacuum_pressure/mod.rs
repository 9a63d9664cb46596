//! Vacuum works on tables with many dead rows, and takes a large part of the disk's capacity.

use super::Source::{Of, With};
use super::parts::clearing::or_by_disk;
use super::parts::vacuum_advice;
use super::{
    Cause, CauseFinding, Contribution, Definition, Doc, Judge, MATTERS, Occurs, Outcome, Role, Trait, ms, percent,
    thousands,
};
use crate::case::Case;
use crate::change::database::{Server, milliseconds};
use crate::change::parameters::{Engine, VACUUM_DELAY};
use crate::change::{Direction, Fix, SettingChange};
use crate::next_command;
use crate::resources::is_felt;
use crate::resources::volume::demand::{Demand, demand, share_text, vacuum_bytes};
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_recording::metrics;
use holdup_signals::database::tables::TableWrites;
use holdup_signals::database::vacuum::{IoSource, Vacuum};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnPostgresql,
    adds_to: &[Contribution {
        to: &[&[With(Trait::DiskLimit)], &[Of(Cause::DiskSaturated)], &[Of(Cause::CommitLogBound)]],
        least: 0.0,
    }],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::WRAPAROUND, crate::strength::CERTAIN)],
    ..Definition::new(Cause::AutovacuumPressure, DOC, Judge::Alone(judge), &next_command::VACUUM)
};

const DOC: Doc = Doc {
    title: "Vacuum uses much of the disk",
    what: "Updates and deletes leave dead rows, and autovacuum goes through tables and indexes to remove them: it reads pages that no request needs, changes them, and writes each change to the log as well.",
    hurts: "On a disk at its limit requests wait behind it, for hours on a large table. Stopping it brings relief at once, and later more dead rows, larger tables and a longer run.",
    needs: "PostgreSQL's vacuum progress, tables and sessions (--watch postgresql://…); its reads and writes from pg_stat_io (16 and later), from the log (log_autovacuum_min_duration) or from its progress; the disk's throughput (--watch host, or a cloud's figures).",
    predicts: "A vacuum runs while requests are slow, on a table with many dead rows or its TOAST table; its reads and writes are a large part of the disk's throughput; its worker waits for reads and writes like sessions do.",
    clears: "No vacuum ran; or its bytes are a small part of the disk's throughput; or requests do not wait for the disk.",
    looks_like: "A vacuum against wraparound (it says so, and has to run). A vacuum that is merely running: in the background, on a disk with room, it delays no request.",
    fix: "Fewer dead rows first (unchanged values that are sent again, updates that could be HOT); then smaller portions, by settings for the table. Never switch it off.",
    prove: "The same load again, after vacuum has caught up: runs are short, and dead rows stay near the threshold.",
    references: "PostgreSQL documentation: Routine Vacuuming, Automatic Vacuuming (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay), VACUUM Progress Reporting, pg_stat_io.",
};

/// A vacuum present for a smaller share (0-1) of the time does not delay requests for long.
const RUNS: f64 = 0.1;

/// Pause to set if vacuum makes none yet, milliseconds: PostgreSQL's default.
const LEAST_PAUSE_MS: f64 = 2.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    or_by_disk(case, from_server(case))
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let vacuum = view.vacuum()?;
    let Some(longest) = vacuum.runs.first().filter(|_| vacuum.running_ratio >= RUNS) else {
        let text = "no vacuum ran while requests were slow, or only for moments".to_owned();
        let none = vacuum.evidence(percent(vacuum.running_ratio), "most of the time", text);
        return Ok(Outcome::Cleared(none.into_iter().collect()));
    };
    let tables = view.table_writes().unwrap_or_default();
    let table = tables.iter().find(|t| t.table == longest.table);
    let dead = table
        .and_then(|t| t.dead)
        .map_or_else(String::new, |n| format!(", with {} dead rows at the end", thousands(n)));
    let through = longest.done_ratio.map_or_else(String::new, |r| format!(", {} of its pages done", percent(r)));
    let text = format!(
        "{} of {} ran for {} of the time{through}{dead}",
        if longest.automatic { "autovacuum" } else { "vacuum" },
        longest.name(),
        percent(longest.running_ratio)
    );
    let under_way = vacuum.evidence(percent(vacuum.running_ratio), "short runs now and then", text);
    let demand = demand(case)?;
    let (share, how) = share(&view, &vacuum, &demand)?;
    let waited = demand.waited_ms(case)?;
    let explains_ms = waited * share;
    let taken = vacuum.evidence(
        ms(explains_ms),
        "a small part of the delay",
        format!("{how}; a request waits {} for {}", ms(waited), demand.flow.name),
    );
    let mut evidence: Vec<Evidence> = under_way.into_iter().chain(taken).collect();
    // Its share of the bytes matters only if the wait for them does: what queues in front of the
    // service comes on top of both.
    if share < MATTERS || !is_felt(case, waited)? {
        return Ok(Outcome::Cleared(evidence));
    }
    let made: f64 = tables.iter().map(TableWrites::dead_per_second).sum();
    if let Some(table) = table {
        evidence.push(dead_rows(&view, table, made));
    }
    evidence.extend(worker_waits(&view));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![
            FAIR * vacuum.running_ratio.max(0.5),
            if vacuum.bytes_per_second.is_some() { STRONG } else { WEAK },
        ],
        fixes: fixes(&view, &tables, table),
        prove: "Once vacuum has caught up, the same load again: runs are short, and dead rows stay near the threshold."
            .to_owned(),
        role: Role::Root,
    }))
}

/// Vacuum's share (0-1) of the disk's work, and its source.
fn share(view: &View<'_>, vacuum: &Vacuum, demand: &Demand) -> Result<(f64, String), Missing> {
    if let (Some((_, measured)), Some(bytes_per_second)) = (vacuum.bytes_per_second, vacuum_bytes(vacuum, demand)) {
        let by = match measured {
            IoSource::Counters => "by pg_stat_io",
            IoSource::Log => "by the server's log of the runs that ended",
            IoSource::Progress => "by the pages that it passed",
        };
        let share = demand.share(bytes_per_second);
        return Ok((
            share,
            format!(
                "it read and wrote {} {by}: {}",
                super::bytes_per_second(bytes_per_second),
                share_text(demand, share)
            ),
        ));
    }
    let sessions = view.server_waits()?.map_or(0.0, |waits| waits.disk);
    let share = vacuum.waiting / (vacuum.waiting + sessions).max(f64::MIN_POSITIVE);
    // One worker that reads ahead moves more than a session that waits for a page: few waits do not
    // prove little work.
    if share < MATTERS {
        let enable = "log_autovacuum_min_duration = 0 with the log watched, or PostgreSQL 16 and later";
        return Err(Missing::new("how much vacuum read and wrote", enable));
    }
    let text = format!(
        "{} of the readers and writers were its workers ({:.1} beside {sessions:.1} sessions)",
        percent(share),
        vacuum.waiting
    );
    Ok((share, text))
}

/// New dead rows, and their total.
fn dead_rows(view: &View<'_>, table: &TableWrites, all_per_second: f64) -> Evidence {
    let share = table.dead_per_second() / all_per_second.max(1e-9);
    let text = format!(
        "{} new dead rows per second in {}, {} of all; vacuum starts at {}",
        thousands(table.dead_per_second()),
        table.name(),
        percent(share),
        thousands(holdup_signals::database::autovacuum::fires_at(view, table))
    );
    view.table_evidence(
        table,
        metrics::postgresql::STAT_TABLES_N_DEAD_TUP,
        format!("{}/s", thousands(table.dead_per_second())),
        "",
        text,
    )
}

/// What its workers wait for.
fn worker_waits(view: &View<'_>) -> Option<Evidence> {
    let labels = [("backend_type", "autovacuum worker"), ("wait_event_type", "IO")];
    let waiting = view.gauge(metrics::postgresql::ACTIVITY_SESSIONS.name, &labels, "").ok()?;
    let text = format!("{:.1} of its workers waited for reads and writes on average", waiting.mean);
    (waiting.mean > 0.0).then(|| waiting.evidence(format!("{:.1}", waiting.mean), "", text))
}

fn fixes(view: &View<'_>, tables: &[TableWrites], table: Option<&TableWrites>) -> Vec<Fix> {
    let mut fixes = vec![Fix {
        text: "Make fewer dead rows: leave unchanged large values out of updates, and if possible indexed columns (HOT). Let this run end: a stopped one starts over, with more to do."
            .to_owned(),
        command: None,
        keep: None,
        risk: None,
    }];
    if let Some(table) = table {
        let owner = table.toast_of.as_ref().and_then(|of| tables.iter().find(|t| t.table == *of)).unwrap_or(table);
        fixes.extend(vacuum_advice::advise(view, table, owner));
    }
    fixes.push(slower(view));
    fixes
}

/// Twice the pause between its portions, at which it moves about half as much.
fn slower(view: &View<'_>) -> Fix {
    let server = Server::find(view, Engine::PostgreSql);
    // -1 takes the pause of a manual VACUUM, and 0 makes none.
    let pause_ms = server.number(&VACUUM_DELAY).and_then(|own| match own {
        own if own < 0.0 => server.value("vacuum_cost_delay").and_then(milliseconds),
        own => Some(own),
    });
    let to = pause_ms.filter(|pause| *pause > 0.0).map_or(LEAST_PAUSE_MS, |pause| 2.0 * pause);
    let of = &VACUUM_DELAY;
    match SettingChange::new(Direction::Raise, of.name, of.unit, pause_ms, to, of.bounds) {
        Ok(change) => change.fix(
            "only to slow it down for now; it then takes longer, and dead rows accumulate meanwhile",
            server.steps(&[(&VACUUM_DELAY, &change)]),
            "If it can no longer keep up, tables grow and all reads become slower; watch dead rows.",
        ),
        Err(stay) => stay.fix("Do not slow vacuum further."),
    }
}

mod signs;
#[cfg(test)]
mod tests;
