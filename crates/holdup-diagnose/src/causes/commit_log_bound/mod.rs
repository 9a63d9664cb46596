//! Statements wait at their commit until the log is on the disk.

mod advice;
mod many_small_commits;
mod signs;

use super::parts::clearing;
use super::parts::slow_device::slowed_evidence;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Source::Of, Source::With, Trait, ms,
};
use crate::case::Case;
use crate::next_command;
use crate::resources::commits::{self, Committing, Durability, LogFlushes};
use crate::resources::volume::level;
use crate::resources::{is_felt, sessions};
use crate::strength::{FAIR, STRONG};
use holdup_signals::database::server::DATABASE;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::WithinStatement, Trait::LongStatement, Trait::Line],
    follows_from: &[
        // A flush waits behind all other work of the disk, including pages that have to be written.
        Edge::same_time(&[&[Of(Cause::DiskFull)], &[With(Trait::FullDisk)], &[Of(Cause::FlushStorm)]]),
    ],
    traces: &[many_small_commits::PATTERN],
    signs: Some(signs::find),
    errors: &[
        (holdup_recording::events::SLOW_FLUSH, crate::strength::CERTAIN),
        (holdup_recording::events::DISK_BUSY, crate::strength::WEAK),
    ],
    ..Definition::new(Cause::CommitLogBound, DOC, Judge::Alone(judge), &next_command::LOG_AND_PAGES)
};

const DOC: Doc = Doc {
    title: "Commits wait for the log",
    what: "A transaction is committed once its log is on the disk: a flush of the log file, and of the binary log beside it. Transactions that commit at once share a flush (group commit); each waits for the one in progress and for its own.",
    hurts: "The disk's time for a flush is a floor below every transaction, and locks are held through it, whatever the disk's throughput. The queue of the disk may be empty all along.",
    needs: "Sampled sessions of the database (--watch mysql://… or postgresql://…) and its durability settings; for the time per flush the host's disk counters (--watch host).",
    predicts: "Sessions are in commit (\"Commit\", \"waiting for handler commit\", \"query end\", \"Waiting for prior transaction to commit\", a COMMIT that starts; PostgreSQL: LWLock:WALWrite, IO:WALSync) for most of the excess; flushes follow one another without a pause, each as long as a commit takes.",
    clears: "Few sessions are in commit; or by the settings commits do not wait for a flush; or a flush is too short to delay a commit.",
    looks_like: "A disk with a queue (disk_saturated: reads and writes wait, too; this then follows from it). A disk whose flushes got slow has no queue, and commits are all that waits for it: that is this. A backup that holds the commit lock (\"Waiting for commit lock\": a lock). Semi-synchronous replication (\"Waiting for semi-sync ACK\": the replica).",
    fix: "Fewer commits (several rows each), a disk with a protected write cache for the log; or, if losing a second of transactions is acceptable, a log that is flushed once a second.",
    prove: "The same load again: hardly a session is in commit, and flushes have pauses.",
    references: "MySQL Reference Manual: innodb_flush_log_at_trx_commit, sync_binlog, General Thread States (query end, waiting for handler commit); MariaDB documentation: Group Commit for the Binary Log; PostgreSQL documentation: synchronous_commit, commit_delay, Wait Events; Linux: Documentation/admin-guide/iostats.rst (flush requests).",
};

/// Most disk operations that a commit waits for: the flush in progress and its own, each with data
/// and journal in front of it, for the log, the binary log and the log again.
const OPERATIONS: f64 = 2.0 * 3.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    match from_server(case) {
        Err(missing) => clearing::by_statements(case, "including commits").ok_or(missing),
        outcome => outcome,
    }
}

fn from_server(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let committing = Committing::measure(&view)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let mean = committing.mean;
    let explains_ms = committing.request_ms(&view, completed);
    let counted = seen(&view, &committing, explains_ms)?;
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![counted]));
    }
    let durable = Durability::read(&view)?;
    if !durable.waits {
        return Ok(Outcome::Cleared(vec![durable.evidence, counted]));
    }
    let mut evidence = vec![counted, durable.evidence];
    // Few sightings may be chance: of n the error is the root of n.
    let sightings = mean * committing.instants as f64;
    let mut weights = vec![STRONG * (1.0 - 1.0 / (1.0 + sightings).sqrt())];
    if let Some(flush) = LogFlushes::measure(&view) {
        let per_commit = explains_ms / commits::per_request(&view, completed).max(1e-9);
        let most = OPERATIONS * flush.each_ms;
        evidence.push(flush.evidence);
        // I/O delayed by a cgroup's limit never reaches the device that counts.
        let held_back = view.throttles().ok().and_then(|t| t.into_iter().next()).is_some_and(|t| t.is_reached());
        if most < MATTERS * per_commit && !held_back {
            return Ok(Outcome::Cleared(evidence));
        }
        weights.push(STRONG * flush.busy_ratio.min(1.0));
    }
    if let Some((flow, slowed)) = level::slowed(case) {
        evidence.push(slowed_evidence(&view, &flow, &slowed));
        weights.push(FAIR);
    }
    evidence.extend(commits::grouped(&view));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: advice::fixes(&view, durable.is_postgresql),
        prove: format!("Run the same scenario again: hardly any of the {mean:.1} sessions in commit is left."),
        role: Role::Root,
    }))
}

fn seen(view: &View<'_>, committing: &Committing, explains_ms: f64) -> Result<Evidence, Missing> {
    let mean = committing.mean;
    let Some(most) = committing.groups.first() else {
        let counted =
            sessions::counted(view, &[]).ok_or_else(|| Missing::new("samples of all database sessions", DATABASE))?;
        return Ok(counted.evidence(
            "0 in commit",
            "most of them, if the log were the cause",
            "no session was seen in commit",
        ));
    };
    let labels = [("true_state", most.true_state.as_str()), ("state", most.state.as_str())];
    let labels = holdup_recording::Labels::new(labels.into_iter().filter(|(_, value)| !value.is_empty()));
    let text = format!(
        "{mean:.1} sessions on average were in commit, {} per request; most of them in \"{}\" with: {}",
        ms(explains_ms),
        most.state,
        if most.statement.is_empty() { "(no statement shown)" } else { &most.statement }
    );
    Ok(Evidence::new("sessions", "state", labels, view.window, format!("{mean:.1} on average"), "none or few", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mysql://db";
    const NONE: (f64, f64, f64) = (0.0, 0.0, 0.0);
    const WRITES: (f64, f64, f64) = (20.0, 4096.0, 0.2);

    /// 50 requests of 400 ms a second, `count` sessions in `state`, a disk whose flushes take `flush_ms`.
    fn server(count: i64, state: &str, flush_ms: f64) -> SyntheticRecording {
        on_disk(NONE, WRITES, flush_ms).sessions(count, state)
    }

    /// A server whose disk reads, writes and flushes like that, without its sessions.
    fn on_disk(read: (f64, f64, f64), write: (f64, f64, f64), flush_ms: f64) -> SyntheticRecording {
        let labels = [("device", "vda")];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .setting(DB, "innodb_flush_log_at_trx_commit", "1")
            .setting(DB, "log_bin", "OFF")
            .counter(DB, "mysql_global_status_com_update", &[], 50.0)
            .disk("vda", read, write)
            .counter("host", "system_disk_flushes_total", &labels, 8.0)
            .counter("host", "system_disk_flush_time_seconds_total", &labels, 8.0 * flush_ms / 1e3)
    }

    #[test]
    fn sessions_in_commit_behind_slow_flushes_are_its_doing() {
        for state in ["Commit", "waiting for handler commit", "query end", "Waiting for prior transaction to commit"] {
            let made = server(15, state, 120.0);
            assert!((made.explains(&DEFINITION).unwrap() - 300.0).abs() < 30.0, "{state}");
        }
        let diagnosis = server(15, "Commit", 120.0).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::CommitLogBound));
        let text = diagnosis.findings[0].evidence.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n");
        assert!(text.contains("8 flushes/s of 120 ms") && text.contains("waits for the flush"), "{text}");
    }

    #[test]
    fn other_states_quick_flushes_and_lazy_logs_clear_it() {
        assert_eq!(server(15, "Updating", 120.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(server(15, "Waiting for commit lock", 120.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(server(15, "Commit", 0.1).explains(&DEFINITION), Some(0.0));
        let lazy = server(15, "Commit", 120.0).setting(DB, "innodb_flush_log_at_trx_commit", "2");
        assert_eq!(lazy.explains(&DEFINITION), Some(0.0));
        let binlog = lazy.setting(DB, "log_bin", "ON").setting(DB, "sync_binlog", "1");
        assert!(binlog.explains(&DEFINITION).unwrap() > 250.0);
    }

    #[test]
    fn a_disk_that_is_busy_with_reads_is_not_busy_for_the_log() {
        let weight = |made: SyntheticRecording| {
            let diagnosis = made.sessions(15, "Commit").diagnose();
            diagnosis.findings.into_iter().find(|f| f.cause == DEFINITION.cause).map_or(0.0, |f| f.confidence)
        };
        let busy = (900.0, 4096.0, 1.0);
        let (reads, writes) = (weight(on_disk(busy, WRITES, 40.0)), weight(on_disk(NONE, busy, 40.0)));
        assert!(reads > 0.0 && reads < writes, "{reads} {writes}");
    }

    #[test]
    fn postgresql_says_it_by_its_wait_events() {
        let made = |commit: &str| {
            SyntheticRecording::new(12).requests(50, 400).sessions(15, "IO:WALSync").setting(
                "postgresql://db",
                "synchronous_commit",
                commit,
            )
        };
        assert!(made("on").explains(&DEFINITION).unwrap() > 250.0);
        assert_eq!(made("off").explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        let made = server(15, "Commit", 120.0);
        assert_eq!(made.clone().without("mysql_sessions").explains(&DEFINITION), None);
        for column in ["state", "true_state", "observed_at"] {
            assert_eq!(made.clone().without_column("sessions", column).explains(&DEFINITION), None, "{column}");
        }
        assert_eq!(made.without_setting("innodb_flush_log_at_trx_commit").explains(&DEFINITION), None);
    }
}
